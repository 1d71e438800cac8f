"""Small tokenizer in the official files: 256 bytes, merges learnt from the training sentences, 33 added tokens.

    python3 tokenizer.py --texts text/train_slt.txt text/train_rms.txt --out run/tokenizer

The merges matter for the streaming layout: one text token enters with each frame of 80 ms, so tokens must on average
be longer than what is spoken in a frame, or the text would arrive too late. "assistant" is one token, because the
prompt is cut at fixed offsets.
"""
import argparse
import collections
import json
import os
import re

from shapes import TALKER

ADDED = ("<|endoftext|> <|im_start|> <|im_end|> <|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> "
         "<|quad_start|> <|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|> "
         "<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|> "
         "<tool_response> </tool_response> <think> </think> <|audio_start|> <|audio_end|> <tts_pad> <tts_text_bos> "
         "<tts_text_eod> <tts_text_bos_single> <|audio_pad|>").split()
# ASCII form of the official pattern: a letter run with at most one other character in front, single digits, the rest.
PIECES = re.compile(r"[^\r\nA-Za-z0-9]?[A-Za-z]+|[0-9]| ?[^\sA-Za-z0-9]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
ROLE = "assistant"


def byte_alphabet():
    """byte -> printable character, as in GPT-2."""
    plain = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table, spare = {b: chr(b) for b in plain}, 256
    for byte in range(256):
        if byte not in table:
            table[byte] = chr(spare)
            spare += 1
    return table


def merged(symbols, pair):
    out, i = [], 0
    while i < len(symbols):
        if i + 1 < len(symbols) and (symbols[i], symbols[i + 1]) == pair:
            out.append(symbols[i] + symbols[i + 1])
            i += 2
        else:
            out.append(symbols[i])
            i += 1
    return out


def learn_merges(texts, count):
    """The `count` most useful merges, most frequent pair first; ties by the pair itself."""
    alphabet = byte_alphabet()
    pieces = collections.Counter(p for text in texts for p in PIECES.findall(text))
    pieces[ROLE] = 10 ** 9
    words = [[[alphabet[b] for b in p.encode()], n] for p, n in pieces.items()]
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, (symbols, n) in enumerate(words):
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += n
            where[pair].add(i)
    merges = []
    while len(merges) < count:
        best = max(pairs, key=lambda p: (pairs[p], p))
        merges.append(best)
        for i in where.pop(best):
            symbols, n = words[i]
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] -= n
            words[i][0] = symbols = merged(symbols, best)
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += n
                where[pair].add(i)
        del pairs[best]
    return merges


def write(merges, folder):
    """vocab.json, merges.txt, tokenizer_config.json, preprocessor_config.json."""
    os.makedirs(folder, exist_ok=True)
    alphabet = byte_alphabet()
    vocabulary = {alphabet[b]: b for b in range(256)}
    for left, right in merges:
        vocabulary.setdefault(left + right, len(vocabulary))
    base = len(vocabulary)
    tokens = {str(base + i): dict(content=t, lstrip=False, normalized=False, rstrip=False, single_word=False,
                                  special=True) for i, t in enumerate(ADDED)}
    config = dict(add_bos_token=False, add_prefix_space=False, added_tokens_decoder=tokens, bos_token=None,
                  clean_up_tokenization_spaces=False, eos_token="<|im_end|>", errors="replace", model_max_length=131072,
                  pad_token="<|endoftext|>", split_special_tokens=False, tokenizer_class="Qwen2Tokenizer",
                  unk_token=None)
    files = {"vocab.json": json.dumps(vocabulary, ensure_ascii=False, separators=(",", ":")),
             "merges.txt": "".join(f"{a} {b}\n" for a, b in merges),
             "tokenizer_config.json": json.dumps(config, ensure_ascii=False, indent=2) + "\n",
             "preprocessor_config.json": json.dumps(dict(padding_side="left", padding_side_="left",
                                                         processor_class="Qwen3TTSProcessor"), indent=2) + "\n"}
    for name, content in files.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)


class Tokenizer:
    """Encodes plain ASCII text with files written above; equal to the official tokenizer on such text."""

    def __init__(self, folder):
        with open(os.path.join(folder, "vocab.json"), encoding="utf-8") as file:
            self.vocabulary = json.load(file)
        with open(os.path.join(folder, "merges.txt"), encoding="utf-8") as file:
            self.rank = {tuple(line.split()): i for i, line in enumerate(file)}
        self.alphabet, self.known = byte_alphabet(), {}
        base = len(self.vocabulary)
        added = {t: base + i for i, t in enumerate(ADDED)}
        self.special = dict(im_start=added["<|im_start|>"], im_end=added["<|im_end|>"], assistant=self.piece(ROLE)[0],
                            line_feed=self.piece("\n")[0], tts_pad=added["<tts_pad>"], tts_bos=added["<tts_text_bos>"],
                            tts_eos=added["<tts_text_eod>"])

    def piece(self, text):
        if text not in self.known:
            symbols = [self.alphabet[b] for b in text.encode()]
            while len(symbols) > 1:
                best = min(zip(symbols, symbols[1:]), key=lambda p: self.rank.get(p, 10 ** 9))
                if best not in self.rank:
                    break
                symbols = merged(symbols, best)
            self.known[text] = [self.vocabulary[s] for s in symbols]
        return self.known[text]

    def encode(self, text):
        return [i for p in PIECES.findall(text) for i in self.piece(p)]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texts", nargs="+", required=True)
    options.add_argument("--out", required=True)
    args = options.parse_args()
    lines = [line.rstrip("\n") for path in args.texts for line in open(path, encoding="utf-8")]
    write(learn_merges(lines, TALKER["text_vocabulary"] - 256 - len(ADDED)), args.out)
    tokenizer = Tokenizer(args.out)
    assert len(tokenizer.piece(ROLE)) == 1
    ids = sum(len(tokenizer.encode(line)) for line in lines[:2000])
    print(f"{len(tokenizer.vocabulary) + len(ADDED)} tokens, {sum(map(len, lines[:2000])) / ids:.2f} characters each")


if __name__ == "__main__":
    main()
