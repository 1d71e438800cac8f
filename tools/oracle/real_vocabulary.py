#!/usr/bin/env python3
"""The released vocabulary, rebuilt: real_vocabulary.py FOLDER writes vocab.json, merges.txt and tokenizer_config.json.

The package `dashscope` (tools/oracle/install) ships the ranks of the same vocabulary. A token's id is its rank; the
merge that makes a token joins the two pieces which the lower ranks leave of it. Both files are checked against the
SHA-256 of the released ones, so what comes out is the real thing or nothing.
"""
import base64
import hashlib
import importlib.util
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from make_vocabulary import byte_alphabet, tokenizer_config  # noqa: E402

VOCAB_SHA256 = "ca10d7e9fb3ed18575dd1e277a2579c16d108e32f27439684afa0e10b1440910"
MERGES_SHA256 = "599bab54075088774b1733fde865d5bd747cbcc7a547c5bc12610e874e26f5e3"


def read_ranks():
    spec = importlib.util.find_spec("dashscope")  # found, not imported: it would want a network key
    if spec is None:
        sys.exit("real_vocabulary: the package dashscope is missing (run tools/oracle/install and use its python)")
    path = pathlib.Path(spec.origin).parent / "resources/qwen.tiktoken"
    pairs = (line.split() for line in path.read_bytes().splitlines() if line)
    return {base64.b64decode(token): int(rank) for token, rank in pairs}


def halves(token, rank, ranks):
    """The two pieces that are left when only merges of lower rank are applied."""
    parts = [bytes([byte]) for byte in token]
    while len(parts) > 2:
        best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], 1 << 30))
        assert ranks[parts[best] + parts[best + 1]] < rank
        parts[best:best + 2] = [parts[best] + parts[best + 1]]
    return parts


def write_checked(path, text, sha256):
    data = text.encode()
    if hashlib.sha256(data).hexdigest() != sha256:
        sys.exit(f"real_vocabulary: {path.name} is not the released file; the rank file of dashscope has changed")
    path.write_bytes(data)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    ranks, alphabet = read_ranks(), byte_alphabet()
    spell = lambda token: "".join(alphabet[byte] for byte in token)
    in_order = sorted(ranks.items(), key=lambda item: item[1])
    vocabulary = {spell(token): rank for token, rank in in_order}
    merges = [" ".join(map(spell, halves(token, rank, ranks))) for token, rank in in_order if len(token) > 1]
    write_checked(folder / "merges.txt", "".join(f"{line}\n" for line in merges), MERGES_SHA256)
    config = json.dumps(tokenizer_config(len(vocabulary)), ensure_ascii=False, indent=2) + "\n"
    (folder / "tokenizer_config.json").write_text(config, encoding="utf-8")
    compact = json.dumps(vocabulary, ensure_ascii=False, separators=(",", ":"))
    write_checked(folder / "vocab.json", compact, VOCAB_SHA256)


if __name__ == "__main__":
    main()
