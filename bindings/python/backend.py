#!/usr/bin/env python3
"""Makes the wheel, by itself (backend.py FOLDER) or for pip: the package, libutter.so of this source tree, the outside
libraries that glibc does not bring, and the voice. With PORTABLE=amd64 or arm64 in the environment most of those are
inside the library (packaging/sysroot). The tag names the oldest glibc that has all symbols they need. The same files
give the same bytes."""
import base64
import glob
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
# What glibc and the kernel bring.
SYSTEM = re.compile(r"^(linux-vdso|ld-linux.*|lib(c|m|dl|rt|pthread))\.so")
# Debian's name of the machine that packaging/sysroot has a folder for; empty when the wheel is for this machine.
PORTABLE = os.environ.get("PORTABLE", "")
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}
METADATA = """Metadata-Version: 2.1
Name: utter
Version: {version}
Summary: Text to speech with the Qwen3-TTS family
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy>=1.21
"""


def output_of(*command):
    """What a command prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def version():
    """Of the library's header."""
    with open(os.path.join(ROOT, "include", "utter.h"), encoding="utf-8") as file:
        return ".".join(re.findall(r"#define UTTER_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", file.read()))


def outside(library):
    """The outside libraries that it needs, and those need: {name: path}."""
    if PORTABLE:
        place = os.path.join(ROOT, "build", "sysroot", PORTABLE, "usr", "lib", f"{MACHINES[PORTABLE]}-linux-gnu")
        names = re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "-d", library))
        return {name: os.path.join(place, name) for name in names if not SYSTEM.match(name)}
    found = dict(re.findall(r"^\s*(\S+) => (/\S+)", output_of("ldd", library), re.M))
    return {name: path for name, path in found.items() if not SYSTEM.match(name)}


def least_glibc(paths):
    """The oldest glibc with every symbol that the files need: (2, N)."""
    said = "".join(output_of("objdump", "-T", path) for path in paths)
    return max((int(a), int(b)) for a, b in re.findall(r"\(?GLIBC_(\d+)\.(\d+)", said))


def licenses(paths):
    """What Debian says of those who made the outside libraries: {package: path}."""
    texts = {}
    docs = os.path.join(ROOT, "build", "sysroot", PORTABLE, "usr", "share", "doc")
    for path in glob.glob(f"{docs}/*.copyright") + glob.glob(f"{docs}/*/copyright") if PORTABLE else []:
        texts[os.path.relpath(path, docs).replace("/copyright", "").replace(".copyright", "")] = path
    for path in paths:
        for name in (path, os.path.realpath(path), os.path.realpath(path).replace("/usr/lib/", "/lib/")):
            said = subprocess.run(["dpkg-query", "-S", name], capture_output=True, text=True, check=False).stdout
            package = said.partition(":")[0]
            text = f"/usr/share/doc/{package}/copyright"
            if package and os.path.exists(text):
                texts[package] = text
                break
    return texts


def kinds_of_gpu():
    """What make is told where nobody chose: the kinds of GPU that are here, since all of them take many minutes."""
    try:
        said = output_of("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader")
    except (OSError, subprocess.CalledProcessError):
        said = ""
    kinds = sorted({"90a" if kind == "9.0" else kind.replace(".", "") for kind in said.split() if float(kind) >= 8})
    return f"CUDA_ARCH={' '.join(kinds)}" if kinds else "CUDA=0"


def collect(folder):
    """Every file of the wheel but its list: {name in it: path}, and the tag."""
    built = os.path.join(folder, "libutter.so.0")
    chosen = [] if {"CUDA", "CUDA_ARCH"} & os.environ.keys() else [kinds_of_gpu()]
    subprocess.run(["make", "-s", "-C", ROOT, f"-j{os.cpu_count()}", *chosen, f"WHEEL={built}", built], check=True)
    libraries, others = {"libutter.so.0": built}, outside(built)
    for name, path in others.items():
        libraries[name] = shutil.copy(os.path.realpath(path), os.path.join(folder, name))
    machine = MACHINES[PORTABLE] if PORTABLE else output_of("uname", "-m").strip()
    strip = f"{machine}-linux-gnu-strip" if PORTABLE else "strip"
    for path in libraries.values():
        subprocess.run([strip, "--strip-unneeded", path], check=True)
    files = {f"utter/lib/{name}": path for name, path in libraries.items()}
    for path in glob.glob(f"{HERE}/utter/*.py") + [f"{HERE}/utter/py.typed"]:
        files[f"utter/{os.path.basename(path)}"] = path
    voice = os.path.join(ROOT, "voice", "builtin")
    for path in glob.glob(f"{voice}/*.*") + glob.glob(f"{voice}/*/*"):
        files[f"utter/lib/builtin/{os.path.relpath(path, voice)}"] = path
    info = f"utter-{version()}.dist-info"
    files[f"{info}/licenses/LICENSE"] = os.path.join(ROOT, "LICENSE")
    for package, path in licenses(others.values()).items():
        files[f"{info}/licenses/{package}"] = path
    tag = "py3-none-manylinux_{}_{}_{}".format(*least_glibc(libraries.values()), machine)
    return files, tag, info


def pack(target, files, made, info):
    """Writes the zip; `made` are files by their text."""
    rows = []
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        def put(name, data):
            about = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))
            about.external_attr = (0o755 if ".so" in name else 0o644) << 16
            wheel.writestr(about, data, zipfile.ZIP_DEFLATED)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            rows.append(f"{name},sha256={digest},{len(data)}\n")
        for name, path in sorted(files.items()):
            with open(path, "rb") as file:
                put(name, file.read())
        for name, text in made.items():
            put(f"{info}/{name}", text.encode())
        wheel.writestr(zipfile.ZipInfo(f"{info}/RECORD", (2020, 1, 1, 0, 0, 0)),
                       "".join(rows) + f"{info}/RECORD,,\n", zipfile.ZIP_DEFLATED)


def build_wheel(wheel_directory, _settings=None, _metadata=None):
    """As pip asks for it: the name of the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        files, tag, info = collect(folder)
        name = f"utter-{version()}-{tag}.whl"
        about = f"Wheel-Version: 1.0\nGenerator: utter\nRoot-Is-Purelib: false\nTag: {tag}\n"
        os.makedirs(wheel_directory, exist_ok=True)
        pack(os.path.join(wheel_directory, name), files,
             {"METADATA": METADATA.format(version=version()), "WHEEL": about}, info)
    return name


def build_sdist(_directory, _settings=None):
    """There is none: the library is built from the whole tree."""
    raise SystemExit("no source distribution: clone the whole tree, then pip install bindings/python")


if __name__ == "__main__":
    print(os.path.join(sys.argv[1], build_wheel(sys.argv[1])))
