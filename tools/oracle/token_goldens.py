#!/usr/bin/env python3
"""Writes tests/text/fixtures/official: checksums of what the official tokenizer computes.

    token_goldens.py [--token-lines PROGRAM] [FILE]

Runs in the Python of tools/oracle/install. A line of the file is "kind name CRC-32":
  lines PATTERN-BLOCK  ids (and -1 behind each line) of 64 lines of tests/text/lines.h with the vocabulary of
                       tests/fixtures/vocabulary
  words PATTERN-BLOCK  for each of 4096 code points, how many characters the first word of WORDS has
  nfc BLOCK            for each of 4096 code points, the normal form of NFC, and a line break behind each"""

import argparse
import json
import pathlib
import struct
import zlib

import compare_tokens

N_LINES = 4096
LINE_BLOCK = 64
CODE_BLOCK = 4096
WORDS = ["a{0}", "A{0}", "{0}a", " {0}", "{0}{0}", "!{0}"]
NFC = ["{0}", "a{0}\u0301", "-\u0345{0}", "{0}\u0316", "-\u0301\u0316{0}\u0334", "\u1100{0}", "\uac00{0}"]
# The planes that have anything to normalise.
NFC_BLOCKS = [*range(0x20), 0x2f, 0xe0]


def code_points(block):
    first = block * CODE_BLOCK
    return [chr(code) for code in range(first, first + CODE_BLOCK) if not 0xd800 <= code < 0xe000]


def lines_golden(processors, lines):
    for pattern, processor in processors.items():
        all_ids = compare_tokens.official_ids(processor, lines)
        for block in range(0, N_LINES // LINE_BLOCK):
            crc = 0
            for ids in all_ids[block * LINE_BLOCK:(block + 1) * LINE_BLOCK]:
                crc = zlib.crc32(struct.pack(f"<{len(ids) + 1}i", *ids, -1), crc)
            yield "lines", f"{pattern}-{block}", crc


def words_golden(processors):
    for pattern, processor in processors.items():
        split = json.loads(processor.tokenizer.backend_tokenizer.to_str())["pre_tokenizer"]["pretokenizers"][0]
        from tokenizers import Regex, pre_tokenizers
        words = pre_tokenizers.Split(Regex(split["pattern"]["Regex"]), "isolated")
        for block in range(0x110):
            lengths = bytes(words.pre_tokenize_str(form.format(character))[0][1][1]
                            for character in code_points(block) for form in WORDS)
            yield "words", f"{pattern}-{block}", zlib.crc32(lengths)


def nfc_golden(processor):
    normalizer = processor.tokenizer.backend_tokenizer.normalizer
    for block in NFC_BLOCKS:
        text = "".join(normalizer.normalize_str(form.format(character)) + "\n"
                       for character in code_points(block) for form in NFC)
        yield "nfc", str(block), zlib.crc32(text.encode())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", default="tests/text/fixtures/official")
    parser.add_argument("--token-lines", default="build/release/tools/token_lines")
    arguments = parser.parse_args()
    folder = pathlib.Path("tests/fixtures/vocabulary")
    processors = {pattern: compare_tokens.official(folder, version)
                  for pattern, version in compare_tokens.PATTERNS.items()}
    lines = compare_tokens.made_lines(arguments.token_lines, N_LINES)
    with open(arguments.file, "w", encoding="ascii") as file:
        file.write("# Made by tools/oracle/token_goldens.py, which says what this is.\n")
        for golden in (lines_golden(processors, lines), words_golden(processors), nfc_golden(processors["native"])):
            for kind, name, crc in golden:
                file.write(f"{kind} {name} {crc:08x}\n")


if __name__ == "__main__":
    main()
