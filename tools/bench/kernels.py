#!/usr/bin/env python3
"""Is a kernel the same machine code as before? No GPU is needed, only nvcc.
  tools/bench/kernels.py build TREE ARCH FOLDER [NAME ...]  compiles TREE's kernels (of files with a NAME in their path)
                                                            for sm_ARCH into FOLDER, with what ptxas says of each
  tools/bench/kernels.py compare BEFORE AFTER [LIKE]        compares two such folders; LIKE: only kernels with it in
                                                            their names
  tools/bench/kernels.py table FOLDER                       lists those of one folder, and ends with 1 where one that
                                                            runs in every frame spills registers that MAY_SPILL does
                                                            not name, or ptxas took out that warps give others
                                                            registers (setmaxnreg)
Kernels are found again by file and name, without what the compiler adds for a file; else by their code; else by the
name alone. A line for each that differs: bytes of code, registers, stack, spilled bytes, shared memory, before and
after. Ends with 1 when one differs."""
import glob
import os
import re
import struct
import subprocess
import sys

FLAGS = "-std=c++17 -O3 -Iinclude -Isrc -I. -cubin -Xptxas -v -Xcompiler -fno-exceptions,-fno-rtti".split()


def build(tree, arch, folder, *names):
    folder = os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    for source in sorted(glob.glob("src/cuda/**/*.cu", root_dir=tree, recursive=True)):
        if names and not any(name in source for name in names):
            continue
        to = os.path.join(folder, source[len("src/cuda/"):-3].replace("/", "-"))
        with open(to + ".log", "w", encoding="utf-8") as log:
            subprocess.run(["nvcc", *FLAGS, f"-arch=sm_{arch}", source, "-o", to + ".cubin"], cwd=tree, check=True,
                           stdout=log, stderr=subprocess.STDOUT)


def sections(path):
    """Name and bytes of each section of a 64-bit ELF file; of those without bytes, zeros."""
    with open(path, "rb") as file:
        data = file.read()
    at, = struct.unpack_from("<Q", data, 40)
    size, count, i_names = struct.unpack_from("<HHH", data, 58)
    heads = [struct.unpack_from("<IIQQQQ", data, at + i * size) for i in range(count)]
    for name, kind, _, _, offset, n_bytes in heads:
        begin = heads[i_names][4] + name
        yield (data[begin:data.index(b"\0", begin)].decode(),
               data[offset:offset + n_bytes] if kind != 8 else bytes(n_bytes))


def kernels(folder):
    """File and name -> its code, and registers, stack, spill stores, spill loads, shared memory, as they are listed."""
    found = {}
    for path in sorted(glob.glob(folder + "/*.cubin")):
        parts = dict(sections(path))
        with open(path[:-6] + ".log", encoding="utf-8") as file:
            said = file.read()
        for text in re.split(r"Compiling entry function '", said)[1:]:
            name = text[:text.index("'")]
            used = [int(re.search(rf"(\d+) {what}", text)[1])
                    for what in ("registers", "bytes stack", "bytes spill stores", "bytes spill loads")]
            shared = len(parts.get(".nv.shared." + name, b""))
            plain = re.sub(r"\d+_GLOBAL__N__[0-9a-f]+_\d+_\w+?_cu_[0-9a-f]{8}", "_", name)
            found[os.path.basename(path)[:-6], plain] = (parts[".text." + name], [*used, shared])
    return found


def pair_up(before, after):
    """Pairs of kernels: the same file and name; else the same code; else the same name."""
    pairs = [(kernel, kernel) for kernel in before if kernel in after]
    old, new = [k for k in before if k not in after], [k for k in after if k not in before]
    for alike in (lambda a, b: before[a] == after[b], lambda a, b: a[1].split("NS_")[0] == b[1].split("NS_")[0]):
        for kernel in list(old):
            same = [other for other in new if alike(kernel, other)]
            if same:
                pairs.append((kernel, same[0]))
                old.remove(kernel)
                new.remove(same[0])
    return pairs + [(kernel, None) for kernel in old] + [(None, kernel) for kernel in new]


def compare(before, after, like=""):
    before, after = kernels(before), kernels(after)
    n = {"same": 0, "moved": 0, "differ": 0}
    for old, new in pair_up(before, after):
        if like not in " ".join((old or ()) + (new or ())):
            continue
        what = "differ" if not old or not new or before[old] != after[new] else "same" if old == new else "moved"
        n[what] += 1
        if what == "differ":
            print(" ".join(new or old))
            for when, kernel in (("before", before.get(old)), ("after", after.get(new))):
                print(f"  {when}: " + ("none" if not kernel else "{} bytes; registers {}, stack {}, spilled {} and {}, "
                                       "shared {}".format(len(kernel[0]), *kernel[1])))
    print(f"kernels: {n['same']} the same, {n['moved']} the same in another place, {n['differ']} differ")
    return n["differ"] > 0


# What runs at open, for a recording, or never; all other kernels run in every frame, prompt or sound.
SELDOM = ("pack_kernel", "unit_kernel", "listen", "probe", "groups_kernel", "moves_kernel", "weigh")

# Others that may: file and a part of the name, bytes at most, and where the machine code has them
# (docs/log/gpu-small-cards.md).
MAY_SPILL = (
    ("graph-attend", "attend_kernelILi4ELb1E", 8, "watched heads: read once for each page, at the head of that loop"),
    ("vocoder-vocoder_steps", "last_kernel", 4, "outside its loop"),
    ("vocoder-vocoder_steps", "attend_kernel14vocoder_attend", 12, "outside its loops"),
)


def may_spill(file, name, n_bytes):
    """Why this kernel may spill so many bytes; empty: it may not."""
    return next((why for its, part, most, why in MAY_SPILL if its == file and part in name and n_bytes <= most), "")


def unmoved(folder):
    """Files in whose kernels the registers stay where they are, though the code says otherwise; ptxas says why."""
    found = []
    for path in sorted(glob.glob(folder + "/*.log")):
        with open(path, encoding="utf-8") as file:
            found += [(os.path.basename(path)[:-4], line.strip()) for line in file if "'setmaxnreg' ignored" in line]
    return found


def table(folder):
    """What each kernel takes; the most important first: what spills."""
    found, n_spill, stay = kernels(folder), 0, unmoved(folder)
    print(f"{'registers':>9} {'stack':>6} {'spilled':>8} {'loaded':>7} {'shared':>7}  kernel")
    for (file, name), (_, used) in sorted(found.items(), key=lambda one: -one[1][1][2]):
        why = used[2] > 0 and may_spill(file, name, used[2])
        n_spill += used[2] > 0 and not why and not any(word in file + name for word in SELDOM)
        print(f"{used[0]:9} {used[1]:6} {used[2]:8} {used[3]:7} {used[4]:7}  {file} {name[:90]}" +
              (f" ({why})" if why else ""))
    for file, why in stay:
        print(f"{file}: {why}")
    print(f"{folder}: {len(found)} kernels, {n_spill} of every frame spill more registers than they may; "
          f"setmaxnreg does nothing in {len({file for file, _ in stay})} files")
    return n_spill > 0 or len(stay) > 0


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "table":
        return table(sys.argv[2])
    if len(sys.argv) >= 5 and sys.argv[1] == "build":
        return build(*sys.argv[2:])
    if len(sys.argv) in (4, 5) and sys.argv[1] == "compare":
        return compare(*sys.argv[2:])
    print(__doc__)
    return 2


sys.exit(main())
