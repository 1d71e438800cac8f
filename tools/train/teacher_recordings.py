"""The teacher's own recordings of given sentences, and their codec round trip, with manifests for the judge.

    python3 teacher_recordings.py --texts text/heldout_words.txt --out run/teacher
    python3 teacher_recordings.py --texts text/heldout_words.txt --out run/roundtrip --voice ../../voice/builtin

With --voice every recording goes through encoder, codes and decoder of that checkpoint: what the talker could reach
at best.
"""
import argparse
import json
import os
from multiprocessing import Pool

import numpy as np
import torch

import shapes
import speech
from shapes import FRAME, LEAD
from sound import resample
from speak import write_wav


def record(job):
    text, source, scratch = job
    return speech.say(text, source, f"{scratch}.{os.getpid()}.wav")


@torch.no_grad()
def round_trip(codec, samples, device):
    frames = LEAD - (-len(samples) // FRAME)
    sound = torch.zeros(1, frames * FRAME, device=device)
    sound[0, LEAD * FRAME:LEAD * FRAME + len(samples)] = samples
    return codec.decode(codec.encode(sound))[0, LEAD * FRAME:].cpu()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texts", required=True)
    options.add_argument("--presets", nargs="+", default=list(shapes.SPEAKERS))
    options.add_argument("--voice", help="checkpoint for the round trip")
    options.add_argument("--limit", type=int, default=10 ** 9)
    options.add_argument("--out", required=True)
    options.add_argument("--processes", type=int, default=os.cpu_count())
    args = options.parse_args()
    os.makedirs(args.out, exist_ok=True)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    with open(args.texts, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file][:args.limit]
    items = []
    codec = None
    for preset in args.presets:
        source = shapes.SPEAKERS[preset][0]
        with Pool(args.processes) as pool:
            sounds = pool.map(record, [(line, source, os.path.join(args.out, "scratch")) for line in lines], 8)
        if args.voice and codec is None:
            from checkpoint import load_codec
            codec = load_codec(os.path.join(args.voice, "speech_tokenizer"), device)
        for i, (line, samples) in enumerate(zip(lines, sounds)):
            made = resample(samples, device).float() / 32768
            made = round_trip(codec, made, device) if codec else made.cpu()
            name = f"{preset}_{i:05d}.wav"
            write_wav(os.path.join(args.out, name), made.numpy())
            items.append(dict(file=name, index=i, text=line, speaker=preset, layout="", ended=True,
                              frames=int(-(-len(made) // FRAME))))
    for name in os.listdir(args.out):
        if name.startswith("scratch"):
            os.unlink(os.path.join(args.out, name))
    with open(os.path.join(args.out, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(items, file, indent=0)


if __name__ == "__main__":
    main()
