#!/usr/bin/env python3
"""Rebuilds vocab.json, merges.txt and tokenizer_config.json of the released checkpoints.

    real_vocabulary.py FOLDER

The PyPI package `dashscope` (pip install --no-deps dashscope) carries the rank file of the vocabulary;
docs/model.md tells how the files follow from it. vocab.json and merges.txt are the released bytes, which
their SHA-256 proves. tokenizer_config.json has the same tokens as the released one."""

import base64
import hashlib
import importlib.util
import json
import pathlib
import sys

SHA_VOCAB = ("ca10d7e9", "440910")
SHA_MERGES = ("599bab54", "26f5e3")

ADDED = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|object_ref_start|>", "<|object_ref_end|>",
         "<|box_start|>", "<|box_end|>", "<|quad_start|>", "<|quad_end|>", "<|vision_start|>", "<|vision_end|>",
         "<|vision_pad|>", "<|image_pad|>", "<|video_pad|>", "<tool_call>", "</tool_call>", "<|fim_prefix|>",
         "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<tool_response>",
         "</tool_response>", "<think>", "</think>", "<|audio_start|>", "<|audio_end|>", "<tts_pad>",
         "<tts_text_bos>", "<tts_text_eod>", "<tts_text_bos_single>", "<|audio_pad|>"]
# Tokens that are added but not special.
NORMAL = set(ADDED[14:26])


def byte_alphabet():
    same = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table, n_other = {}, 0
    for byte in range(256):
        if byte in same:
            table[byte] = chr(byte)
        else:
            table[byte] = chr(256 + n_other)
            n_other += 1
    return table


def rank_file():
    spec = importlib.util.find_spec("dashscope")
    if spec is None:
        sys.exit("real_vocabulary: the package dashscope is missing (pip install --no-deps dashscope)")
    return pathlib.Path(spec.origin).parent / "resources" / "qwen.tiktoken"


def split_by_lower_ranks(token, ranks):
    """The two halves whose merge makes `token`, or None for a single byte."""
    parts = [token[i:i + 1] for i in range(len(token))]
    limit = ranks[token]
    while len(parts) > 2:
        best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], limit))
        if ranks.get(parts[best] + parts[best + 1], limit) >= limit:
            sys.exit("real_vocabulary: a token does not follow from lower ranks")
        parts[best:best + 2] = [parts[best] + parts[best + 1]]
    return parts if len(parts) == 2 else None


def check(name, data, sha):
    digest = hashlib.sha256(data).hexdigest()
    if not (digest.startswith(sha[0]) and digest.endswith(sha[1])):
        sys.exit(f"real_vocabulary: {name} is not the released file (SHA-256 {digest})")


def tokenizer_config(first):
    decoder = {str(first + i): {"content": content, "lstrip": False, "normalized": False, "rstrip": False,
                                "single_word": False, "special": content not in NORMAL}
               for i, content in enumerate(ADDED)}
    return {"add_prefix_space": False, "added_tokens_decoder": decoder,
            "bos_token": None, "clean_up_tokenization_spaces": False, "eos_token": "<|im_end|>",
            "errors": "replace", "model_max_length": 131072, "pad_token": "<|endoftext|>",
            "split_special_tokens": False, "tokenizer_class": "Qwen2Tokenizer", "unk_token": None}


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    ranks = {}
    for line in rank_file().read_bytes().splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    alphabet = byte_alphabet()

    def text(token):
        return "".join(alphabet[byte] for byte in token)

    in_order = sorted(ranks, key=ranks.get)
    vocab = json.dumps({text(token): ranks[token] for token in in_order}, ensure_ascii=False,
                       separators=(",", ":")).encode()
    pairs = (split_by_lower_ranks(token, ranks) for token in in_order if len(token) > 1)
    merges = "".join(f"{text(left)} {text(right)}\n" for left, right in pairs).encode()
    check("vocab.json", vocab, SHA_VOCAB)
    check("merges.txt", merges, SHA_MERGES)
    (folder / "vocab.json").write_bytes(vocab)
    (folder / "merges.txt").write_bytes(merges)
    config = json.dumps(tokenizer_config(len(ranks)), ensure_ascii=False, indent=2) + "\n"
    (folder / "tokenizer_config.json").write_text(config, encoding="utf-8")


if __name__ == "__main__":
    main()
