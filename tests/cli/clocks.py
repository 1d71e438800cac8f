"""clocks.py SRT ASS: whether the cues of both begin and end at the same times, as far as ASS can tell them."""
import re
import sys

clocks = []
for name in sys.argv[1:]:
    with open(name, encoding="utf-8") as file:
        lines = [line for line in file if "-->" in line or line.startswith("Dialogue")]
    found = [re.findall(r"(\d+):(\d\d):(\d\d)[.,](\d+)", line)[:2] for line in lines]
    clocks.append([3600 * int(h) + 60 * int(m) + float(f"{s}.{part}") for cue in found for h, m, s, part in cue])
print(len(clocks[0]), len(clocks[0]) == len(clocks[1]) and all(abs(a - b) < 0.0051 for a, b in zip(*clocks)))
