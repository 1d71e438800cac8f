#!/usr/bin/env python3
"""Speed beside the official package: both speak the same text greedily in fp32, in turn, in one run.

usage: speed.py -m DIR [--frames N] [--rounds N] [--threads N]

DIR is a custom-voice checkpoint (tools/oracle/full_size makes one of full size). Prints wall and processor time of each
round; the engine's time includes starting the program and loading the checkpoint, the official package's does not.
"""
import argparse
import os
import pathlib
import resource
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import official  # noqa: E402

UTTER = pathlib.Path(__file__).resolve().parents[2] / "build/release/utter"
TEXT = "The morning train leaves the station at seven, and nobody is late today."


def timed(who, work):
    used = lambda: sum(resource.getrusage(who)[:2])
    wall, processor = time.time(), used()
    work()
    return time.time() - wall, used() - processor


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", required=True, metavar="DIR")
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    package = official.Official(args.model, args.threads)
    voice = package.model.get_supported_speakers()[0]
    settings = dict(do_sample=False, subtalker_dosample=False, max_new_tokens=args.frames + 1, non_streaming_mode=True)
    command = [UTTER, "say", "-m", args.model, "-v", voice, "-l", "english", "--greedy", "--max-frames",
               str(args.frames), "--threads", str(args.threads), "--quiet", "-o", os.devnull, "--format", "raw", TEXT]
    for round_number in range(args.rounds + 1):
        theirs = timed(resource.RUSAGE_SELF, lambda: package.model.generate_custom_voice(
            TEXT, speaker=voice, language="english", **settings))
        ours = timed(resource.RUSAGE_CHILDREN, lambda: subprocess.run(command, check=True))
        if round_number:  # the first warms both up
            print("official {:.2f} s wall, {:.2f} s processor; utter {:.2f} and {:.2f}; ratio {:.2f} and {:.2f}".format(
                *theirs, *ours, theirs[0] / ours[0], theirs[1] / ours[1]), flush=True)


if __name__ == "__main__":
    main()
