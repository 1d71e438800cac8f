#!/usr/bin/env python3
"""Copies a checkpoint and damages the copy: damage.py FROM TO WHAT. Prints nothing."""
import json
import os
import shutil
import struct
import sys

FILE = "model.safetensors"


def read(folder):
    with open(os.path.join(folder, FILE), "rb") as f:
        data = f.read()
    n = struct.unpack("<Q", data[:8])[0]
    return json.loads(data[8 : 8 + n]), bytearray(data[8 + n :])


def write(folder, header, data):
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(os.path.join(folder, FILE), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + data)


def first_two(header):
    """The two tensors that come first in the file."""
    names = [name for name in header if name != "__metadata__"]
    return sorted(names, key=lambda name: header[name]["data_offsets"])[:2]


def truncate(folder, header, data):
    write(folder, header, data[: len(data) // 2])


def overlap(folder, header, data):
    a, b = first_two(header)
    size = header[b]["data_offsets"][1] - header[b]["data_offsets"][0]
    header[b]["data_offsets"] = [0, size]
    write(folder, header, data)


def misshape(folder, header, data):
    for name in ("talker.model.norm.weight", "talker.codec_head.weight"):
        shape = header[name]["shape"]
        header[name]["shape"] = [shape[0] // 2, 2] + shape[1:]
    write(folder, header, data)


def mistype(folder, header, data):
    header["talker.model.norm.weight"]["dtype"] = "I16"
    write(folder, header, data)


def lose(folder, header, data):
    header["talker.model.was.norm.weight"] = header.pop("talker.model.norm.weight")
    write(folder, header, data)


def fill_nan(folder, header, data):
    for name, tensor in header.items():
        if name.startswith("talker.model.layers"):
            begin, end = tensor["data_offsets"]
            data[begin:end] = b"\xff\x7f" * ((end - begin) // 2)
    write(folder, header, data)


def no_header(folder, header, data):
    with open(os.path.join(folder, FILE), "wb") as f:
        f.write(struct.pack("<Q", 1 << 60) + data)


def main():
    source, target, what = sys.argv[1:]
    shutil.copytree(source, target)
    changes = {f.__name__: f for f in (truncate, overlap, misshape, mistype, lose, fill_nan, no_header)}
    if what in changes:
        changes[what](target, *read(target))
    else:  # a file to remove
        os.remove(os.path.join(target, what))


main()
