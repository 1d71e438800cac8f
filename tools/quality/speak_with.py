"""Speaks sentences with the program itself (`utter say`); writes sound files and a manifest for measure.py.

    python3 speak_with.py --program ../../build/release/utter --texts run/text/heldout_words.txt --out run/spoken

Sampling is the program's and the checkpoint's default; sentence i gets the seed --seed + i.
"""
import argparse
import json
import os
import subprocess
from multiprocessing.pool import ThreadPool


def speak(job):
    """One item of the manifest; the file appears in `out`."""
    args, preset, name, index, text = job
    file = f"{preset}_{name}_{index:05d}.wav"
    command = [args.program, "say", "--stats", "-l", "english", "-v", preset, "--layout", name, "--seed",
               str(args.seed + index), "-o", os.path.join(args.out, file)] + args.options.split() + ["--", text]
    if args.model:
        command[2:2] = ["-m", args.model]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    finish = [line.split()[1] for line in (done.stdout + done.stderr).splitlines() if line.startswith("finish ")]
    return dict(file=file, index=index, text=text, speaker=preset, layout=name, ended=finish == ["eos"],
                finish=finish[0])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--program", required=True)
    options.add_argument("--model", help="checkpoint folder; without it the voice that comes with the program")
    options.add_argument("--texts", required=True)
    options.add_argument("--presets", nargs="+", default=["clara", "miles"])
    options.add_argument("--layouts", nargs="+", default=["full", "stream"])
    options.add_argument("--every", type=int, default=1, help="take each n-th sentence only")
    options.add_argument("--turns", action="store_true", help="each sentence once: presets and layouts take turns")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--options", default="", help="further ones for `utter say`, in one string")
    options.add_argument("--processes", type=int, default=os.cpu_count())
    options.add_argument("--out", required=True)
    args = options.parse_args()
    os.makedirs(args.out, exist_ok=True)
    with open(args.texts, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file]
    ways = [(preset, name) for preset in args.presets for name in args.layouts]
    jobs = [(args, preset, name, index, lines[index]) for k, (preset, name) in enumerate(ways)
            for index in range(0, len(lines), args.every) if not args.turns or index // args.every % len(ways) == k]
    with ThreadPool(args.processes) as pool:
        items = pool.map(speak, jobs, 8)
    with open(os.path.join(args.out, "manifest.json"), "w", encoding="utf-8") as file:
        json.dump(items, file, indent=0)


if __name__ == "__main__":
    main()
