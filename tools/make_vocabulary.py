#!/usr/bin/env python3
"""The small test vocabulary, in the official file formats: corpus.txt -> vocab.json, merges.txt, tokenizer_config.json.

usage: tools/make_vocabulary.py [FOLDER]      (default tests/fixtures/vocabulary; corpus.txt lies there)

Byte-level BPE as the released one: ids 0..255 are the bytes in the order of the GPT-2 alphabet (so that a line break
is 198), then one id for each merge, then the 33 added tokens. Some tokens are put in by hand: those on which fixed
offsets in the prompt rely ("assistant" is one token), and those on which the two pre-tokeniser patterns disagree.
The output is committed; it depends on the corpus and on this file only.
"""
import collections
import json
import pathlib
import re
import sys

N_MERGES = 900

# One token each, built from what the training left.
WHOLE = ["assistant", "user", "system", "##",
         # a header line break that swallows white space of the text
         "\n\n", "\n\n\n", " \n", "\n \n", "\t\n", "  ", "   ", "!\n", ".\n\n",
         # the patterns split these at different places: case borders, contractions, slashes, combining marks
         " iPhone", "YouTube", "OpenAI", "McDonald", "camelCase", "PhD", "'T", "Toole", "/x", "กี"]

ADDED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>", "<|box_start|>",
         "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>", "<|vision_pad|>",
         "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>", "<|fim_middle|>",
         "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>", "</tool_response>",
         "<think>", "</think>", "<|audio_start|>", "<|audio_end|>", "<tts_pad>", "<tts_text_bos>", "<tts_text_eod>",
         "<tts_text_bos_single>", "<|audio_pad|>"]
# Tokens from <tool_call> to </think> are not "special": they survive a decode that skips special tokens.
FIRST_PLAIN, LAST_PLAIN = ADDED.index("<tool_call>"), ADDED.index("</think>")


def byte_alphabet():
    """byte -> printable character, in the order of ids."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [b for b in range(256) if b not in plain]
    return {b: chr(b) for b in plain} | {b: chr(256 + i) for i, b in enumerate(others)}


def merge(parts, pair):
    """Joins every occurrence of `pair`, left to right."""
    out, i = [], 0
    while i < len(parts):
        if i + 1 < len(parts) and (parts[i], parts[i + 1]) == pair:
            out.append(parts[i] + parts[i + 1])
            i += 2
        else:
            out.append(parts[i])
            i += 1
    return tuple(out)


def train(text, alphabet):
    """The merges of a BPE training on words; ties go to the pair that sorts first."""
    spell = lambda word: tuple(alphabet[b] for b in word.encode())
    words = collections.Counter(spell(w) for w in re.findall(r" ?[^\W\d_]+|\d| ?[^\w\s]+|\s+", text))
    merges = []
    while len(merges) < N_MERGES:
        pairs = collections.Counter()
        for parts, n in words.items():
            for pair in zip(parts, parts[1:]):
                pairs[pair] += n
        best = min(pairs, key=lambda p: (-pairs[p], p))
        merges.append(best)
        words = collections.Counter({merge(parts, best): n for parts, n in words.items()})
    for word in WHOLE:
        parts = spell(word)
        for pair in merges:
            parts = merge(parts, pair)
        while len(parts) > 1:
            merges.append(parts[:2])
            parts = merge(parts, parts[:2])
    return merges


def tokenizer_config(n_base):
    added = {str(n_base + i): {"content": token, "lstrip": False, "normalized": False, "rstrip": False,
                               "single_word": False, "special": not FIRST_PLAIN <= i <= LAST_PLAIN}
             for i, token in enumerate(ADDED)}
    special = [token for i, token in enumerate(ADDED) if not FIRST_PLAIN <= i <= LAST_PLAIN]
    return {"add_bos_token": False, "add_prefix_space": False, "added_tokens_decoder": added,
            "additional_special_tokens": [t for t in special if t != "<|endoftext|>"], "bos_token": None,
            "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>", "errors": "replace",
            "model_max_length": 131072, "pad_token": "<|endoftext|>", "split_special_tokens": False,
            "tokenizer_class": "Qwen2Tokenizer", "unk_token": None}


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "tests/fixtures/vocabulary")
    alphabet = byte_alphabet()
    merges = train((folder / "corpus.txt").read_text(encoding="utf-8"), alphabet)
    vocabulary = {character: i for i, character in enumerate(alphabet.values())}
    for left, right in merges:
        assert left + right not in vocabulary
        vocabulary[left + right] = len(vocabulary)
    write = lambda name, text: (folder / name).write_text(text, encoding="utf-8")
    write("vocab.json", json.dumps(vocabulary, ensure_ascii=False, separators=(",", ":")))
    write("merges.txt", "".join(f"{left} {right}\n" for left, right in merges))
    write("tokenizer_config.json", json.dumps(tokenizer_config(len(vocabulary)), ensure_ascii=False, indent=2) + "\n")


if __name__ == "__main__":
    main()
