"""The mean of the weights of training states that began alike: codec.pt or talker.pt of one shape.

    python3 mean.py run/one/codec.pt run/other/codec.pt --out run/codec.pt
"""
import argparse

import torch

import pieces


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("states", nargs="+")
    options.add_argument("--out", required=True)
    args = options.parse_args()
    states = [torch.load(path, map_location="cpu") for path in args.states]
    part = "codec" if "codec" in states[0] else "talker"
    if any(state["shape"] != states[0]["shape"] for state in states):
        raise SystemExit("mean.py: the states have different shapes")
    mean = {k: sum(state[part][k].float() for state in states) / len(states) for k in states[0][part]}
    pieces.save(args.out, **{k: v for k, v in states[0].items() if k in ("shape", "text")}, **{part: mean})


if __name__ == "__main__":
    main()
