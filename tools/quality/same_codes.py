"""Greedy codes of the program beside those of the official package, on the same checkpoint and sentences.

    VENV/bin/python same_codes.py --program ../../build/release/utter --model ../../voice/builtin \\
        --texts run/text/heldout_words.txt --every 6

Needs the official package (tools/oracle/install). Presets and layouts take turns. Exits with 1 when one differs.
"""
import argparse
import json
import subprocess
import sys
import tempfile

import torch
from qwen_tts import Qwen3TTSModel


def official(model, text, preset, stream):
    """Codes [frames][codebooks] as the package makes them; its sound is not made."""
    caught = []
    model.model.speech_tokenizer.decode = lambda items: (caught.extend(items), ([], 24000))[1]
    model.generate_custom_voice(text=text, speaker=preset, language="English", non_streaming_mode=not stream,
                                do_sample=False, subtalker_dosample=False)
    return caught[0]["audio_codes"].tolist()


def own(args, text, preset, stream):
    with tempfile.NamedTemporaryFile(suffix=".json") as codes, tempfile.NamedTemporaryFile(suffix=".wav") as sound:
        subprocess.run([args.program, "say", "-m", args.model, "-v", preset, "-l", "english", "--greedy", "--layout",
                        "stream" if stream else "full", "--codes", codes.name, "-o", sound.name, "--", text],
                       check=True, capture_output=True)
        return json.load(open(codes.name, encoding="utf-8"))["codes"]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", required=True)
    options.add_argument("--model", required=True)
    options.add_argument("--texts", required=True)
    options.add_argument("--every", type=int, default=6)
    options.add_argument("--presets", nargs="+", default=["clara", "miles"])
    args = options.parse_args()
    torch.set_num_threads(1)
    model = Qwen3TTSModel.from_pretrained(args.model, device_map="cpu", dtype=torch.float32)
    with open(args.texts, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file][::args.every]
    same = frames = 0
    for i, text in enumerate(lines):
        preset, stream = args.presets[i % len(args.presets)], i // len(args.presets) % 2 == 1
        want, have = official(model, text, preset, stream), own(args, text, preset, stream)
        same, frames = same + (want == have), frames + len(want)
        if want != have:
            first = next((k for k, (a, b) in enumerate(zip(want, have)) if a != b), min(len(want), len(have)))
            print(f"differs at frame {first} of {len(want)}: {preset}, stream {stream}: {text}", flush=True)
    print(f"{same} of {len(lines)} sentences equal, {frames} frames")
    sys.exit(same != len(lines))


if __name__ == "__main__":
    main()
