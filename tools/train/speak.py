"""Speaks many sentences at once with a checkpoint in the official layout; writes sound files and a manifest.

    python3 speak.py --voice ../../voice/builtin --texts text/heldout_words.txt --presets clara miles \\
        --layouts full stream --out run/spoken

Sampling follows the official rules (repetition penalty on c0, at least two frames, suppressed control ids, top-k).
The manifest is what tools/quality/measure.py judges; another engine may write the same.
"""
import argparse
import json
import os
import wave

import numpy as np
import torch
import torch.nn.functional as F

import layout
from checkpoint import Voice
from shapes import SAMPLE_RATE


class RowCache:
    """Keys and values of one layer; every row of the batch is at its own position."""

    def __init__(self, batch, heads, positions, width, device):
        self.k = torch.zeros(batch, heads, positions, width, device=device)
        self.v = torch.zeros_like(self.k)
        self.at = None                                                  # None: the prompt, else [batch] positions

    def extend(self, k, v):
        if self.at is None:
            self.k[:, :, :k.shape[2]], self.v[:, :, :v.shape[2]] = k, v
            return k, v
        rows = torch.arange(len(k), device=k.device)
        self.k[rows, :, self.at], self.v[rows, :, self.at] = k[:, :, 0], v[:, :, 0]
        return self.k, self.v


def prompt(voice, tokens, speaker, stream, auto):
    """Text ids, codec ids of one prompt, and the text that comes with the frames."""
    ids, special = voice.ids, voice.tokenizer.special
    header = layout.Header(ids, special, "cpu")
    text, codec, size = header.rows(torch.tensor(speaker), torch.tensor(auto), torch.arange(9))
    text, codec = text[:size].tolist(), codec[:size].tolist()
    if stream:
        return text + tokens[:1], codec + [ids["bos"]], tokens[1:] + [special["tts_eos"]]
    body = tokens + [special["tts_eos"], special["tts_pad"]]
    return text + body, codec + [ids["pad"]] * (len(body) - 1) + [ids["bos"]], []


def padded(lists, fill, device):
    out = torch.full((len(lists), max(map(len, lists))), fill)
    for row, values in enumerate(lists):
        out[row, :len(values)] = torch.tensor(values, dtype=torch.long)
    return out.to(device)


def draw(logits, temperature, top_k):
    if temperature == 0:
        return logits.argmax(-1)
    logits = logits / temperature
    threshold = logits.topk(min(top_k, logits.shape[-1]), -1).values[..., -1:]
    return torch.multinomial(torch.softmax(logits.masked_fill(logits < threshold, -torch.inf), -1), 1)[:, 0]


class Speaker:
    def __init__(self, voice, greedy=False):
        self.voice, self.greedy = voice, greedy
        self.talker, self.ids = voice.talker, voice.ids
        self.codec_table = self.talker.model.codec_embedding.weight
        self.texts = self.talker.text_projection(self.talker.model.text_embedding.weight)

    def first_code(self, hidden, seen, step):
        """c0 of the next frame by the official order of rules."""
        rules, entries = self.voice.sampling, self.talker.shape["entries"]
        logits = self.talker.codec_head(hidden).float()
        penalty = rules["repetition_penalty"]
        punished = torch.where(logits >= 0, logits / penalty, logits * penalty)
        logits = torch.where(seen, punished, logits)
        eos = logits[:, self.ids["eos"]].clone()
        logits[:, entries:] = -torch.inf
        if step >= 2:
            logits[:, self.ids["eos"]] = eos
        return draw(logits, 0 if self.greedy else rules["temperature"], rules["top_k"])

    def other_codes(self, hidden, first):
        """c1.. of this frame and the sum of all code embeddings."""
        rules, predictor = self.voice.sampling, self.talker.code_predictor
        vectors, codes = [hidden, self.codec_table[first]], []
        for book, table in enumerate(predictor.model.codec_embedding):
            x = predictor.small_to_mtp_projection(torch.stack(vectors, 1))
            y = predictor.model.run(x, torch.arange(x.shape[1], device=x.device))[:, -1]
            codes.append(draw(predictor.lm_head[book](y).float(), 0 if self.greedy else rules["subtalker_temperature"],
                              rules["subtalker_top_k"]))
            vectors.append(table(codes[-1]))
        return codes, sum(vectors[1:])

    def prefill(self, texts, codecs, room):
        device, t = self.voice.device, self.talker.shape
        text, codec = padded(texts, -1, device), padded(codecs, -1, device)
        lengths = torch.tensor([len(x) for x in texts], device=device)
        caches = [RowCache(len(texts), t["kv_heads"], text.shape[1] + room, t["head_dim"], device)
                  for _ in range(t["layers"])]
        hidden = self.talker.model.run(self.talker.inputs(text, codec), torch.arange(text.shape[1], device=device),
                                       caches)
        return hidden[torch.arange(len(texts), device=device), lengths - 1], lengths, caches

    def advance(self, x, positions, caches):
        for cache in caches:
            cache.at = positions
        slots = torch.arange(caches[0].k.shape[2], device=x.device)
        mask = (slots[None] <= positions[:, None])[:, None, None]
        return self.talker.model.run(x[:, None], positions[:, None], caches, mask)[:, 0]

    @torch.no_grad()
    def codes(self, jobs, most_frames=400):
        """jobs: (text, preset, stream, auto) -> list of (codes [frames, books], ended by itself)."""
        voice, device = self.voice, self.voice.device
        texts, codecs, trailing = zip(*(prompt(voice, voice.tokenizer.encode(text), self.ids["speakers"][preset],
                                               stream, auto) for text, preset, stream, auto in jobs))
        hidden, lengths, caches = self.prefill(texts, codecs, most_frames)
        follow = padded([list(t) + [voice.tokenizer.special["tts_pad"]] for t in trailing], -1, device)
        last = torch.tensor([len(t) for t in trailing], device=device)
        rows = torch.arange(len(jobs), device=device)
        seen = torch.zeros(len(jobs), self.ids["size"], dtype=torch.bool, device=device)
        done = torch.zeros(len(jobs), dtype=torch.bool, device=device)
        frames, count = [], torch.zeros(len(jobs), dtype=torch.long, device=device)
        for step in range(most_frames):
            first = self.first_code(hidden, seen, step)
            done |= first == self.ids["eos"]
            if done.all():
                break
            first = torch.where(done, 0, first)
            rest, vector = self.other_codes(hidden, first)
            seen[rows, first] = True
            frames.append(torch.stack([first] + rest, 1))
            count += ~done
            text = follow[rows, torch.minimum(torch.full_like(last, step), last)]
            hidden = self.advance(vector + self.texts[text], lengths + step, caches)
        made = torch.stack(frames, 1)
        return [(made[i, :count[i]], bool(done[i])) for i in range(len(jobs))]

    @torch.no_grad()
    def sound(self, codes):
        """float samples of each item; batched by padding behind (the decoder is causal)."""
        most = max(max(map(len, codes)), 1)
        batch = torch.stack([F.pad(c, (0, 0, 0, most - len(c))) for c in codes])
        made = self.voice.codec.decode(batch)
        return [made[i, :len(c) * (made.shape[1] // most)].cpu().numpy() for i, c in enumerate(codes)]


def write_wav(path, samples):
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes((np.clip(samples, -1, 1) * 32767).round().astype(np.int16).tobytes())


def speak_all(voice, lines, presets, layouts, out, greedy=False, batch=256):
    """One sound file for each sentence, preset and layout; returns the manifest's items."""
    os.makedirs(out, exist_ok=True)
    speaker, items = Speaker(voice, greedy), []
    for preset in presets:
        for name in layouts:
            order = np.argsort([len(line) for line in lines])
            for start in range(0, len(order), batch):
                chosen = order[start:start + batch]
                spoken = speaker.codes([(lines[i], preset, name == "stream", False) for i in chosen])
                for i, (codes, ended), sound in zip(chosen, spoken, speaker.sound([c for c, _ in spoken])):
                    file = f"{preset}_{name}_{i:05d}.wav"
                    write_wav(os.path.join(out, file), sound)
                    items.append(dict(file=file, index=int(i), text=lines[i], speaker=preset, layout=name,
                                      ended=ended, frames=len(codes)))
    return items


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--voice", required=True)
    options.add_argument("--texts", required=True)
    options.add_argument("--presets", nargs="+", default=["clara", "miles"])
    options.add_argument("--layouts", nargs="+", default=["full", "stream"])
    options.add_argument("--limit", type=int, default=10 ** 9)
    options.add_argument("--out", required=True)
    options.add_argument("--greedy", action="store_true")
    options.add_argument("--seed", type=int, default=1)
    args = options.parse_args()
    torch.manual_seed(args.seed)
    with open(args.texts, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file][:args.limit]
    voice = Voice(args.voice, "cuda" if torch.cuda.is_available() else "cpu")
    items = speak_all(voice, lines, args.presets, args.layouts, args.out, args.greedy)
    with open(os.path.join(args.out, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(items, file, indent=0)


if __name__ == "__main__":
    main()
