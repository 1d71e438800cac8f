#!/usr/bin/env python3
"""What programs that were compiled against utter.h stand on, compared with tests/api/abi.txt: exported symbols,
values of constants, sizes of structs, places of their members. What is new is no fault; what is gone, or lies
elsewhere, is one. Structs that carry their size may grow. Prints one line for each fault.
Usage: tests/api/abi.py LIBRARY [HEADER]; UPDATE=1 records what there is, for a release.
tests/api/abi.py --earlier HEADER writes utter.h as an earlier version could have had it: structs that carry their size
lack their last member."""
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = os.path.join(HERE, "abi.txt")


def structs(text):
    """(name, its members) of each struct that is spelt out."""
    for body, name in re.findall(r"typedef struct \w+ \{(.*?)\} (\w+);", text, re.S):
        lists = re.findall(r"([^;{}]+);", body)
        yield name, [re.search(r"(\w+)(\[[^\]]*\])?\s*$", part).group(1) for one in lists for part in one.split(",")]


def layout(header):
    """Lines "KIND NAME NUMBER..." for what the compiler makes of the header."""
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    rows = []
    for name, members in structs(text):
        rows.append(f'printf("struct {name} %zu\\n", sizeof({name}));')
        rows += [f'printf("member {name}.{m} %zu %zu\\n", offsetof({name}, {m}), sizeof((({name} *)0)->{m}));'
                 for m in members]
    for body in re.findall(r"typedef enum \w+ \{(.*?)\}", text, re.S):
        rows += [f'printf("constant {name} %d\\n", {name});' for name in re.findall(r"\b(UTTER_\w+)", body)]
    with tempfile.TemporaryDirectory() as folder:
        source, program = os.path.join(folder, "layout.c"), os.path.join(folder, "layout")
        with open(source, "w", encoding="utf-8") as file:
            file.write(f'#include <stdio.h>\n#include "{os.path.abspath(header)}"\n'
                       f"int main(void)\n{{\n{chr(10).join(rows)}\nreturn 0;\n}}\n")
        subprocess.run([os.environ.get("CC", "cc"), "-w", source, "-o", program], check=True)
        return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def symbols(library):
    """Lines "symbol NAME" for what it exports."""
    said = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    return sorted({f"symbol {row.split()[2].split('@')[0]}" for row in said.splitlines() if " T utter_" in row})


def table(rows):
    """{"KIND NAME": numbers}"""
    return {" ".join(row.split()[:2]): [int(word) for word in row.split()[2:]] for row in rows}


def faults(recorded, now):
    """What programs of the time of the record would stumble over."""
    for what, numbers in recorded.items():
        if what not in now:
            yield f"{what}: is gone"
            continue
        kind, name = what.split()
        grows = kind == "struct" and recorded.get(f"member {name}.size") == [0, 8] and now[what] >= numbers
        if now[what] != numbers and not grows:
            yield f"{what}: was {numbers}, is {now[what]}"


def earlier(path):
    """utter.h with shorter structs."""
    with open(f"{HERE}/../../include/utter.h", encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    text, n = re.subn(r"(typedef struct \w+ \{\s*size_t size;[^}]*;)[^;}]*;(\s*\})", r"\1\2", text)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return 0 if n >= 7 else 1


def main():
    """0: programs go on."""
    if sys.argv[1] == "--earlier":
        return earlier(sys.argv[2])
    rows = symbols(sys.argv[1]) + layout(sys.argv[2] if len(sys.argv) > 2 else f"{HERE}/../../include/utter.h")
    if os.environ.get("UPDATE"):
        with open(RECORD, "w", encoding="utf-8") as file:
            file.write("\n".join(rows) + "\n")
    with open(RECORD, encoding="utf-8") as file:
        recorded = table(file.read().splitlines())
    found = list(faults(recorded, table(rows)))
    print("\n".join(found) if found else f"{len(recorded)} things, no fault")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
