#!/usr/bin/env python3
"""Compares token ids with those of the official processor, for both pre-tokeniser patterns.

    compare_tokens.py [--lines N] [--every-character] [--token-lines PROGRAM] FOLDER

FOLDER holds vocab.json, merges.txt and tokenizer_config.json. The lines are those of tests/text/lines.h; they
go through the tokenizer whole and in random pieces. --every-character adds every code point of Unicode in
several contexts. Runs in the Python of tools/oracle/install; the program is build/release/tools/token_lines."""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

# The version in config.json decides which pattern the official package takes for a folder.
PATTERNS = {"mistral": "4.57.3", "native": "5.0.0"}


def official(folder, version):
    """The processor as the official package loads it for a checkpoint in a folder."""
    from qwen_tts.core.models import Qwen3TTSConfig, Qwen3TTSProcessor
    from transformers import AutoConfig, AutoProcessor
    AutoConfig.register("qwen3_tts", Qwen3TTSConfig, exist_ok=True)
    AutoProcessor.register(Qwen3TTSConfig, Qwen3TTSProcessor, exist_ok=True)
    with tempfile.TemporaryDirectory() as checkpoint:
        for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
            shutil.copy(pathlib.Path(folder) / name, checkpoint)
        config = {"model_type": "qwen3_tts", "architectures": ["Qwen3TTSForConditionalGeneration"],
                  "transformers_version": version}
        (pathlib.Path(checkpoint) / "config.json").write_text(json.dumps(config))
        processor = {"processor_class": "Qwen3TTSProcessor", "padding_side": "left"}
        (pathlib.Path(checkpoint) / "preprocessor_config.json").write_text(json.dumps(processor))
        loaded = AutoProcessor.from_pretrained(checkpoint, fix_mistral_regex=True)
        if loaded.tokenizer.vocab_size <= 100000:
            # The library patches large vocabularies only; this applies its patch to a test vocabulary too.
            loaded.tokenizer._patch_mistral_regex(loaded.tokenizer, checkpoint, _is_local=True, fix_mistral_regex=True)
        return loaded


def official_ids(processor, lines):
    return [ids for i in range(0, len(lines), 1000) for ids in processor(text=lines[i:i + 1000])["input_ids"]]


def made_lines(program, n):
    data = subprocess.run([program, "make", "0", str(n)], stdout=subprocess.PIPE, check=True).stdout
    lines, at = [], 0
    while at < len(data):
        end = data.index(b"\n", at)
        n_bytes = int(data[at:end])
        lines.append(data[end + 1:end + 1 + n_bytes].decode())
        at = end + 1 + n_bytes
    return lines


def every_character():
    """Each code point in several contexts, 16 to a line."""
    contexts = ["a{0}b", " {0}", "'{0}x", "A{0}{0}A", "1{0}\n", "\u0345{0}\u0316", "\uac00{0}\u0301", "!{0}/"]
    for context in contexts:
        for first in range(0, 0x110000, 16):
            codes = [code for code in range(first, first + 16) if not 0xd800 <= code < 0xe000]
            if codes:
                yield "".join(context.format(chr(code)) for code in codes)


def our_ids(program, folder, pattern, lines, seed=None):
    texts = (line.encode() for line in lines)
    data = b"".join(b"%d\n%s" % (len(text), text) for text in texts)
    command = [program, folder, pattern] + ([] if seed is None else [str(seed)])
    output = subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout.decode()
    return [line if line.startswith("error") else [int(word) for word in line.split()] for line in output.splitlines()]


def report(name, lines, wanted, found):
    different = [i for i in range(len(lines)) if i >= len(found) or wanted[i] != found[i]]
    print(f"{name}: {len(lines)} lines, {sum(map(len, wanted))} ids, {len(different)} different", flush=True)
    for i in different[:5]:
        here = found[i] if i < len(found) else None
        print(f"  line {i}: {lines[i]!a}\n    official {wanted[i]}\n    here     {here}")
    return len(different)


def compare(arguments, lines):
    n_different = 0
    for pattern, version in PATTERNS.items():
        wanted = official_ids(official(arguments.folder, version), lines)
        for name, seed in (("whole", None), ("in pieces", 7)):
            found = our_ids(arguments.token_lines, arguments.folder, pattern, lines, seed)
            n_different += report(f"{pattern}, {name}", lines, wanted, found)
    return n_different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--lines", type=int, default=24000)
    parser.add_argument("--every-character", action="store_true")
    parser.add_argument("--token-lines", default="build/release/tools/token_lines")
    arguments = parser.parse_args()
    lines = made_lines(arguments.token_lines, arguments.lines)
    if arguments.every_character:
        lines += every_character()
    return 1 if compare(arguments, lines) else 0


if __name__ == "__main__":
    sys.exit(main())
