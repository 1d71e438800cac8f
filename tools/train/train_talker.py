"""Trains the talker and the predictor on codes and texts, both layouts, in pieces.

    python3 train_talker.py --codes codes/slt codes/rms --texts text/train_slt.txt text/train_rms.txt \\
        --presets clara miles --tokenizer run/tokenizer --out run --seconds 480 --begin 0 --end .5

State: OUT/talker.pt (weights in bf16, below 16 MB), OUT/talker.json (curve), OUT/talker_optimiser.pt (large; without
it a piece starts with a warm-up).
"""
import argparse
import os
import time

import numpy as np
import torch

import layout
import pieces
import shapes
from talker import Talker
from tokenizer import Tokenizer

BUCKETS = [48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384]
HELD_BACK = 256                        # utterances of the training data kept for validation
FALL = .9                              # weight of each further codebook


class Utterances:
    """Codes and texts of all voices, flat on the device, with starts and lengths."""

    def __init__(self, args, tokenizer, ids, device):
        codes, frames, tokens, counts, speakers = [], [], [], [], []
        for folder, path, preset in zip(args.codes, args.texts, args.presets):
            lengths = np.load(os.path.join(folder, "lengths.npy"))
            with open(path, encoding="utf-8") as file:
                lines = [line.rstrip("\n") for line in file][:len(lengths)]
            encoded = [tokenizer.encode(line) for line in lines]
            codes.append(np.load(os.path.join(folder, "codes.npy")))
            frames.append(lengths)
            tokens += encoded
            counts += [len(e) for e in encoded]
            speakers += [ids["speakers"][preset]] * len(lines)
        self.frames, self.counts = np.concatenate(frames).astype(np.int64), np.array(counts)
        self.codes = torch.from_numpy(np.concatenate(codes)).to(device)
        self.tokens = torch.tensor([i for e in tokens for i in e], device=device)
        self.frame_lengths, self.text_lengths = (torch.from_numpy(v).to(device) for v in (self.frames, self.counts))
        self.frame_starts = self.frame_lengths.cumsum(0) - self.frame_lengths
        self.text_starts = self.text_lengths.cumsum(0) - self.text_lengths
        self.speakers = torch.tensor(speakers, device=device)

    def __len__(self):
        return len(self.frames)

    def positions(self, stream):
        """Positions needed by each utterance in a layout."""
        return 9 + self.frames + (2 if stream else self.counts + 2 - shapes.LEAD)


class Batches:
    """Draws batches of similar length; a bucket comes up as often as it holds positions."""

    def __init__(self, data, members, stream, positions, random):
        self.stream, self.positions, self.random = stream, positions, random
        need = data.positions(stream)[members]
        edges = np.searchsorted(BUCKETS, need)
        self.members = {BUCKETS[e]: members[edges == e] for e in range(len(BUCKETS)) if (edges == e).any()}
        size = np.array([k * len(v) for k, v in self.members.items()], float)
        self.share, self.sizes = size / size.sum(), list(self.members)

    def draw(self):
        time_steps = self.sizes[self.random.choice(len(self.sizes), p=self.share)]
        members = self.members[time_steps]
        return members[self.random.randint(0, len(members), max(1, self.positions // time_steps))], time_steps

    def every(self):
        for time_steps, members in self.members.items():
            yield members, time_steps


class Training:
    def __init__(self, args, device):
        self.args, self.device = args, device
        self.tokenizer = Tokenizer(args.tokenizer)
        self.shape = shapes.talker(**shapes.overrides(args.set))
        path = os.path.join(args.out, "talker.pt")
        state = torch.load(path, map_location=device) if os.path.exists(path) else {}
        self.shape = state.get("shape", self.shape)
        self.ids = shapes.control_ids(self.shape["entries"])
        self.data = Utterances(args, self.tokenizer, self.ids, device)
        self.talker = Talker(self.shape, self.ids["size"], args.dropout).to(device)
        if state:
            self.talker.load_state_dict({k: v.float() for k, v in state["talker"].items()})
        self.steps_before = state.get("steps", 0)
        self.prepare_batches()
        self.prepare_optimiser()
        fall = FALL ** torch.arange(self.shape["codebooks"] - 1, device=device)
        self.weights = fall / fall.mean()

    def prepare_batches(self):
        random = np.random.RandomState(self.args.seed + self.steps_before)
        order = np.random.RandomState(0).permutation(len(self.data))
        back = min(HELD_BACK, len(order) // 8)
        held, rest = order[:back], order[back:]
        self.train = [Batches(self.data, rest, stream, self.args.positions, random) for stream in (False, True)]
        self.check = [Batches(self.data, held, stream, 0, random) for stream in (False, True)]
        self.random = random
        print(len(self.data), "utterances,", sum(p.numel() for p in self.talker.parameters()), "parameters", flush=True)

    def prepare_optimiser(self):
        parameters = list(self.talker.parameters())
        groups = [dict(params=[p for p in parameters if p.dim() > 1], weight_decay=self.args.decay),
                  dict(params=[p for p in parameters if p.dim() < 2], weight_decay=0.)]
        self.parameters = parameters
        self.optimiser = torch.optim.AdamW(groups, self.args.rate, betas=(.9, .97), eps=1e-9,
                                           fused=self.device != "cpu")
        path = os.path.join(self.args.out, "talker_optimiser.pt")
        self.warm = 400
        if os.path.exists(path):
            self.optimiser.load_state_dict(torch.load(path, map_location=self.device))
            self.warm = 1

    def autocast(self):
        return torch.autocast(self.device, torch.bfloat16, enabled=self.device != "cpu")

    def rows(self, members, time_steps, stream, mistakes):
        chosen = torch.from_numpy(members).to(self.device)
        return layout.build(self.data, chosen, time_steps, stream, self.ids, self.tokenizer.special, mistakes)

    def step(self, rate):
        batches = self.train[int(self.random.rand() < .5)]
        members, time_steps = batches.draw()
        rows = self.rows(members, time_steps, batches.stream, self.args.mistakes)
        frames = len(rows.codes)
        chosen = torch.randperm(frames, device=self.device)[:max(1, int(frames * self.args.share))]
        with self.autocast():
            first, rest, right, _ = self.talker(rows, chosen)
        loss = first + self.args.weight_rest * (rest * self.weights).mean()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.)
        pieces.set_rate(self.optimiser, rate)
        self.optimiser.step()
        self.seen = dict(train_first=first.detach(), train_rest=rest.detach().mean())

    @torch.no_grad()
    def validate(self):
        self.talker.eval()
        out = {}
        for name, batches in zip(("full", "stream"), self.check):
            total, weight = np.zeros(5), 0
            for members, time_steps in batches.every():
                rows = self.rows(members, time_steps, batches.stream, 0.)
                n = len(rows.codes)
                with self.autocast():
                    first, rest, right, right_rest = self.talker(rows, torch.arange(n, device=self.device))
                total += n * np.array([first.item(), rest.mean().item(), right.item(), right_rest[0].item(),
                                       right_rest.mean().item()])
                weight += n
            keys = ("first", "rest", "right_first", "right_second", "right_rest")
            out.update({f"{name}_{k}": float(v) for k, v in zip(keys, total / weight)})
        self.talker.train()
        return out

    def run(self):
        args = self.args
        schedule = pieces.Schedule(args.begin, args.end, args.seconds, args.rate, self.warm)
        curve = pieces.Curve(os.path.join(args.out, "talker.json"))
        next_look, began = args.look, time.time()
        while not schedule.over() and schedule.steps < args.steps:
            self.step(schedule.rate())
            if schedule.elapsed() >= next_look:
                next_look += args.look
                curve.add(step=self.steps_before + schedule.steps, part=schedule.part(), **self.validate(),
                          **{k: v.item() for k, v in self.seen.items()},
                          milliseconds=(time.time() - began) / schedule.steps * 1e3)
        steps = self.steps_before + schedule.steps
        curve.add(step=steps, part=schedule.part(), **self.validate())
        pieces.save(os.path.join(args.out, "talker.pt"), shape=self.shape, steps=steps, text=self.tokenizer.special,
                    talker={k: v.bfloat16().cpu() for k, v in self.talker.state_dict().items()})
        pieces.save(os.path.join(args.out, "talker_optimiser.pt"), **self.optimiser.state_dict())


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--codes", nargs="+", required=True, help="folders made by encode_speech.py, one a voice")
    options.add_argument("--texts", nargs="+", required=True, help="their sentences, in the same order")
    options.add_argument("--presets", nargs="+", default=list(shapes.SPEAKERS))
    options.add_argument("--tokenizer", required=True)
    options.add_argument("--out", required=True)
    options.add_argument("--seconds", type=float, default=480)
    options.add_argument("--begin", type=float, default=0.)
    options.add_argument("--end", type=float, default=1.)
    options.add_argument("--steps", type=int, default=10 ** 9)
    options.add_argument("--rate", type=float, default=1.5e-3)
    options.add_argument("--decay", type=float, default=.05)
    options.add_argument("--dropout", type=float, default=.05)
    options.add_argument("--positions", type=int, default=32768, help="positions in a batch")
    options.add_argument("--share", type=float, default=.6, help="share of the frames that train the predictor")
    options.add_argument("--weight-rest", type=float, default=2.)
    options.add_argument("--mistakes", type=float, default=.4, help="highest rate of wrong codes in the input")
    options.add_argument("--look", type=float, default=20.)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--set", nargs="*", default=[], help="shape overrides, for example layers=4")
    args = options.parse_args()
    os.makedirs(args.out, exist_ok=True)
    Training(args, pieces.prepare_device(args.seed)).run()


if __name__ == "__main__":
    main()
