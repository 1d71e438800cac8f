"""arbiter.py GOLDEN OUT FP32 FP64 [N]: a copy of a golden file of one sound, whose official fp32 samples (the first N
alone) are moved by FP32 times their peak, with samples in fp64 added: the old ones, moved by FP64 times the peak."""
import array
import json
import struct
import sys

golden, out, *shifts = sys.argv[1:5]
most = int(sys.argv[5]) if len(sys.argv) > 5 else None
with open(golden, "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
    data = file.read()
tensors = {}
for name, entry in header.items():
    if name != "__metadata__":
        begin, end = entry["data_offsets"]
        tensors[name] = entry, data[begin:end]
peak = max(map(abs, array.array("f", next(data for name, (_, data) in tensors.items() if name.endswith("/samples")))))
for name in [name for name in tensors if name.endswith(("/samples", "/strided"))]:
    entry, old = tensors[name]
    for new, shift in zip((name, name + "_fp64"), map(float, shifts)):
        moved = array.array("f", old)
        moved[:most] = array.array("f", [sample + shift * peak for sample in moved[:most]])
        tensors[new] = dict(entry), moved.tobytes()
at, body = 0, b""
for entry, data in tensors.values():
    entry["data_offsets"] = [at, at + len(data)]
    at += len(data)
    body += data
text = json.dumps({"__metadata__": header["__metadata__"]} | {name: entry for name, (entry, _) in tensors.items()})
text += " " * (-len(text.encode()) % 8)
with open(out, "wb") as file:
    file.write(struct.pack("<Q", len(text.encode())) + text.encode() + body)
