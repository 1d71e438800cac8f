"""Speech -> codes, exactly as in use: whole utterances, fp32, after LEAD frames of silence.

    python3 encode_speech.py --codec run/codec.pt --speech speech/slt --out codes/slt

OUT/codes.npy holds [frames, codebooks] of all utterances one after another (LEAD silent frames first in each, which
the full-text layout leaves out), OUT/lengths.npy the frames of each.
"""
import argparse
import os

import numpy as np
import torch

import sound
from codec import Codec

BATCH = 128


@torch.no_grad()
def encode_all(codec, voice, with_sound=False):
    """Codes [frames, codebooks] of all utterances in order, and if wanted their sound [frames, 1920] as int16."""
    frames = voice.frames(np.arange(len(voice)))
    order = np.argsort(frames, kind="stable")
    kind = torch.int16
    codes = [None] * len(voice)
    blocks = [None] * len(voice)
    for start in range(0, len(order), BATCH):
        chosen = order[start:start + BATCH]
        samples = voice.batch(chosen)
        made = codec.encode(samples).to(kind)
        if with_sound:
            samples = (samples * 32768).round().to(torch.int16).view(len(chosen), -1, 1920)
        for row, i in enumerate(chosen):
            codes[i] = made[row, :frames[i]]
            if with_sound:
                blocks[i] = samples[row, :frames[i]]
    return torch.cat(codes), torch.cat(blocks) if with_sound else None


def load_codec(path, device):
    state = torch.load(path, map_location=device)
    codec = Codec(state["shape"]).to(device).eval()
    codec.load_state_dict(state["codec"])
    return codec


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--codec", required=True)
    options.add_argument("--speech", required=True)
    options.add_argument("--shards", type=int, default=0, help="0: all that are there")
    options.add_argument("--out", required=True)
    args = options.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    os.makedirs(args.out, exist_ok=True)
    shards = sound.wait_for(args.speech, args.shards) if args.shards else sound.all_shards(args.speech)
    voice = sound.Speech(shards, device)
    codes, _ = encode_all(load_codec(args.codec, device), voice)
    np.save(os.path.join(args.out, "codes.npy"), codes.cpu().numpy())
    np.save(os.path.join(args.out, "lengths.npy"), voice.frames(np.arange(len(voice))).astype(np.int32))
    print(f"{len(voice)} utterances, {voice.hours():.2f} hours", flush=True)


if __name__ == "__main__":
    main()
