"""Speech -> codes, exactly as in use: whole utterances, fp32, after LEAD frames of silence.

    python3 encode_speech.py --codec run/codec.pt --speech speech/slt --out codes/slt

OUT/NNNNN.codes.npy holds [frames, codebooks] of the utterances of --group shards one after another (LEAD silent frames
first in each, which the full-text layout leaves out), OUT/NNNNN.lengths.npy, written last, the frames of each. Parts
that are there already are kept; with --shards it waits for the shards that are still being made.
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
    codec.load_state_dict({k: v.float() for k, v in state["codec"].items()})
    return codec


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--codec", required=True)
    options.add_argument("--speech", nargs="+", required=True, help="folders made by speech.py")
    options.add_argument("--shards", type=int, default=0, help="0: all that are there")
    options.add_argument("--first", type=int, default=0, help="the shard to begin with")
    options.add_argument("--group", type=int, default=40, help="shards in one part")
    options.add_argument("--out", nargs="+", required=True, help="as many folders")
    args = options.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    codec = load_codec(args.codec, device)
    most = args.shards or max(len(sound.all_shards(folder)) for folder in args.speech)
    for first in range(args.first, most, args.group):
        for folder, out in zip(args.speech, args.out):
            os.makedirs(out, exist_ok=True)
            path = os.path.join(out, f"{first:05d}")
            if os.path.exists(path + ".lengths.npy"):
                continue
            names = sound.wait_for(folder, min(first + args.group, args.shards), first) if args.shards else \
                sound.all_shards(folder)[first:first + args.group]
            if not names:
                continue
            voice = sound.Speech(names, device)
            codes, _ = encode_all(codec, voice)
            np.save(path + ".codes.npy", codes.cpu().numpy())
            np.save(path + ".part.npy", voice.frames(np.arange(len(voice))).astype(np.int32))
            os.replace(path + ".part.npy", path + ".lengths.npy")
            print(f"{path}: {len(voice)} utterances, {voice.hours():.2f} hours", flush=True)


if __name__ == "__main__":
    main()
