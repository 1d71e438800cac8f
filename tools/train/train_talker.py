"""Trains the talker and the predictor on codes and texts, both layouts, in pieces.

    python3 train_talker.py --codes codes/slt codes/rms --texts text/train_slt.txt text/train_rms.txt \\
        --presets clara miles --tokenizer run/tokenizer --out run --seconds 480 --begin 0 --end .5

State: OUT/talker.pt (averaged weights in bf16) and OUT/talker.json (curve), both written at every look; a run that is
started again goes on from there, with a warm-up.
"""
import argparse
import concurrent.futures
import glob
import os
import time

import numpy as np
import torch

import layout
import pieces
import shapes
from talker import Talker
from tokenizer import Tokenizer

HELD_BACK = 256                        # utterances of the training data kept for validation
FALL = .9                              # weight of each further codebook


class Utterances:
    """Codes and texts of all voices, flat on the device, with starts and lengths. Grows when new parts appear."""

    def __init__(self, args, tokenizer, ids, device):
        shares = (args.shares * len(args.codes))[:len(args.codes)]
        self.folders = list(zip(args.codes, args.texts, [ids["speakers"][p] for p in args.presets], shares))
        self.tokenizer, self.device, self.shard = tokenizer, device, args.shard
        self.frames = self.counts = np.zeros(0, np.int64)
        self.shares = np.zeros(0)                                   # how often each utterance is in an epoch
        self.codes = self.tokens = self.speakers = None
        self.lines, self.taken = {}, {folder: set() for folder in args.codes}
        while not self.extend() or not all(self.taken.values()):
            time.sleep(.5)

    def extend(self):
        """Takes in the parts that are not in yet; whether there was one."""
        parts = []
        for folder, path, speaker, share in self.folders:
            for name in sorted(glob.glob(os.path.join(folder, "*.lengths.npy"))):
                if name not in self.taken[folder]:
                    parts.append(self.part(path, speaker, name))
                    self.shares = np.append(self.shares, np.full(len(parts[-1][1]), share))
                    self.taken[folder].add(name)
        if parts:
            codes, frames, tokens, counts, speakers = zip(*parts)
            self.codes = self.longer(self.codes, codes)
            self.tokens = self.longer(self.tokens, tokens)
            self.speakers = self.longer(self.speakers, speakers)
            self.frames, self.counts = (np.concatenate((old,) + new).astype(np.int64)
                                        for old, new in ((self.frames, frames), (self.counts, counts)))
            self.frame_lengths, self.text_lengths = (torch.from_numpy(v).to(self.device)
                                                     for v in (self.frames, self.counts))
            self.frame_starts = self.frame_lengths.cumsum(0) - self.frame_lengths
            self.text_starts = self.text_lengths.cumsum(0) - self.text_lengths
            print(len(self.frames), "utterances", flush=True)
        return bool(parts)

    def longer(self, old, new):
        pieces_there = [] if old is None else [old]
        return torch.cat(pieces_there + [torch.from_numpy(np.asarray(v)).to(self.device) for v in new])

    def part(self, path, speaker, name):
        """One part's codes, frame counts, token ids, token counts and speaker. Its name is its first shard's number and
        says where its sentences begin, so that parts may come in any order."""
        lengths = np.load(name)
        if path not in self.lines:
            with open(path, encoding="utf-8") as file:
                self.lines[path] = [line.rstrip("\n") for line in file]
        first = int(os.path.basename(name).partition(".")[0]) * self.shard
        encoded = [self.tokenizer.encode(line) for line in self.lines[path][first:first + len(lengths)]]
        if len(encoded) != len(lengths):
            raise ValueError(f"{name}: more utterances than {path} has sentences from line {first + 1} on")
        return (np.load(name.replace(".lengths.", ".codes.")), lengths, [i for e in encoded for i in e],
                [len(e) for e in encoded], np.full(len(encoded), speaker))

    def __len__(self):
        return len(self.frames)

    def positions(self, stream):
        """Positions needed by each utterance in a layout (bool or an array of them)."""
        return 9 + self.frames + np.where(stream, 2, self.counts + 2 - shapes.LEAD)


class Packs:
    """Endless batches of packed utterances; the next epoch is packed while this one is used."""

    def __init__(self, data, held, args, random):
        self.data, self.held, self.members = data, held, np.setdiff1d(np.arange(len(data)), held)
        self.rows, self.time_steps, self.streams, self.random = args.rows, args.time, args.streams, random
        self.pool = concurrent.futures.ThreadPoolExecutor(1)
        self.coming, self.now, self.at = self.pool.submit(self.epoch), (), 0

    def packed(self, members, stream):
        """owner, begin and stream [rows, time]."""
        owner, begin = layout.pack(self.data.positions(stream)[members], self.time_steps)
        there = owner >= 0
        owner = np.where(there, members[owner], -1)
        flags = np.broadcast_to(stream, len(self.data))[owner] & there
        return [torch.from_numpy(v) for v in (owner.astype(np.int32), begin, flags)]

    def epoch(self):
        stream = self.random.rand(len(self.data)) < self.streams
        members = self.members[self.random.permutation(len(self.members))]
        members = members[self.data.positions(stream)[members] <= self.time_steps]
        members = members[self.random.rand(len(members)) < self.data.shares[members]]
        return self.packed(members, stream)

    def draw(self):
        if not self.now or self.at + self.rows > len(self.now[0]):
            self.now, self.at = [v.to(self.data.device) for v in self.coming.result()], 0
            if self.data.extend():
                self.members = np.setdiff1d(np.arange(len(self.data)), self.held)
            self.coming = self.pool.submit(self.epoch)
        part = slice(self.at, self.at + self.rows)
        self.at += self.rows
        owner, begin, stream = (v[part] for v in self.now)
        return owner.long(), begin.long(), stream


class Training:
    def __init__(self, args, device):
        self.args, self.device = args, device
        self.tokenizer = Tokenizer(args.tokenizer)
        self.state_path = os.path.join(args.out, "talker.pt")
        path = self.state_path if os.path.exists(self.state_path) else args.init
        state = torch.load(path, map_location=device) if path else {}
        self.shape = state.get("shape") or shapes.talker(**shapes.overrides(args.set))
        self.ids = shapes.control_ids(self.shape["entries"])
        self.data = Utterances(args, self.tokenizer, self.ids, device)
        self.header = layout.Header(self.ids, self.tokenizer.special, device)
        self.talker = Talker(self.shape, self.ids["size"], args.dropout).to(device)
        if state:
            self.talker.load_state_dict({k: v.float() for k, v in state["talker"].items()})
        self.steps_before = state.get("steps", 0)
        self.begin = max(args.begin, state.get("part", 0.) if path == self.state_path else 0.)
        share = (args.end - self.begin) / max(1e-6, args.end - args.begin)
        self.schedule = pieces.Schedule(self.begin, args.end, args.seconds * share, args.rate, 400)
        self.parameters = list(self.talker.parameters())
        self.average = [p.detach().clone() for p in self.parameters]
        groups = [dict(params=[p for p in self.parameters if p.dim() > 1], weight_decay=args.decay),
                  dict(params=[p for p in self.parameters if p.dim() < 2], weight_decay=0.)]
        self.optimiser = pieces.adam(groups, (.9, .97), args.decay, device, epsilon=1e-9)
        self.compiled = torch.compile(self.talker, dynamic=False) if device != "cpu" and args.compile else self.talker
        fall = FALL ** torch.arange(self.shape["codebooks"] - 1, device=device)
        self.weights = fall / fall.mean()
        self.prepare_batches()
        self.captured = pieces.CapturedStep(self.body, [self.optimiser])

    def prepare_batches(self):
        args, random = self.args, np.random.RandomState(self.args.seed + self.steps_before)
        held = np.random.RandomState(0).permutation(len(self.data))[:min(HELD_BACK, len(self.data) // 8)]
        self.train = Packs(self.data, held, args, random)
        self.check = {name: self.train.packed(held[self.data.positions(stream)[held] <= args.time], stream)
                      for name, stream in (("full", False), ("stream", True))}
        self.rows = self.make_rows()
        self.seen = {}
        print(len(self.data), "utterances,", sum(p.numel() for p in self.parameters), "parameters", flush=True)

    def make_rows(self):
        """Mistakes become rarer towards the end: by then the model's own are rarer as well."""
        most = self.args.mistakes * (1 - .6 * self.schedule.part())
        return layout.build(self.data, *self.train.draw(), self.header, most)

    def refill(self):
        """New contents for the fixed tensors that the captured step reads."""
        for old, new in zip(self.rows, self.make_rows()):
            old.copy_(new)

    def autocast(self):
        return torch.autocast(self.device, torch.bfloat16, enabled=self.device != "cpu", cache_enabled=False)

    def body(self):
        """One step on self.rows; nothing in it waits for the device."""
        made = self.rows.made.flatten()
        count = max(1, int(len(made) * self.args.share))
        chosen = (torch.rand(made.shape, device=self.device) * made).topk(count).indices
        with self.autocast():
            first, rest, _, _ = self.compiled(self.rows, chosen)
        loss = first + self.args.weight_rest * (rest * self.weights).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, 1.)
        self.optimiser.step()
        with torch.no_grad():
            torch._foreach_lerp_(self.average, self.parameters, 1 - self.args.average)
        for name, value in (("train_first", first), ("train_rest", rest.mean())):
            self.seen.setdefault(name, torch.zeros((), device=self.device)).copy_(value.detach())

    def with_average(self, action):
        return pieces.with_average(self.parameters, self.average, action)

    def validate(self):
        self.talker.eval()
        out = {}
        for name, (owner, begin, stream) in self.check.items():
            owner, begin, stream = (v.to(self.device) for v in (owner.long(), begin.long(), stream))
            rows = layout.build(self.data, owner, begin, stream, self.header)
            chosen = rows.made.flatten().nonzero()[:, 0]
            with self.autocast():
                first, rest, right, right_rest = self.talker(rows, chosen)
            out.update({f"{name}_first": first.item(), f"{name}_rest": rest.mean().item(),
                        f"{name}_right_first": right.item(), f"{name}_right_second": right_rest[0].item(),
                        f"{name}_right_rest": right_rest.mean().item()})
        self.talker.train()
        return out

    def save(self, steps, part):
        weights = self.with_average(lambda: {k: v.bfloat16().cpu() for k, v in self.talker.state_dict().items()})
        pieces.save(self.state_path, shape=self.shape, steps=steps, part=part, text=self.tokenizer.special,
                    talker=weights)

    def run(self):
        args = self.args
        schedule = self.schedule
        curve = pieces.Curve(os.path.join(args.out, "talker.json"))
        next_look, began = args.look, time.time()
        while not schedule.over() and schedule.steps < args.steps:
            pieces.set_rate(self.optimiser, schedule.rate())
            self.captured(self.refill)
            if schedule.steps == 1:
                schedule.restart(args.until)                            # compiling is not part of it
                began = time.time()
            if schedule.steps % 10 == 0 and self.device != "cpu":
                torch.cuda.synchronize()
            if schedule.elapsed() >= next_look:
                next_look += args.look
                steps, part = self.steps_before + schedule.steps, schedule.part()
                curve.add(step=steps, part=part, **self.with_average(self.validate),
                          **{k: v.item() for k, v in self.seen.items()},
                          milliseconds=(time.time() - began) / schedule.steps * 1e3)
                self.save(steps, part)
        steps = self.steps_before + schedule.steps
        curve.add(step=steps, part=schedule.part(), **self.with_average(self.validate))
        self.save(steps, schedule.part())


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--codes", nargs="+", required=True, help="folders made by encode_speech.py, one a voice")
    options.add_argument("--texts", nargs="+", required=True, help="their sentences, in the same order")
    options.add_argument("--presets", nargs="+", default=list(shapes.SPEAKERS))
    options.add_argument("--tokenizer", required=True)
    options.add_argument("--out", required=True)
    options.add_argument("--seconds", type=float, default=480)
    options.add_argument("--until", type=float, help="end at this time (seconds since 1970) instead")
    options.add_argument("--begin", type=float, default=0.)
    options.add_argument("--end", type=float, default=1.)
    options.add_argument("--steps", type=int, default=10 ** 9)
    options.add_argument("--rate", type=float, default=1.5e-3)
    options.add_argument("--decay", type=float, default=.05)
    options.add_argument("--dropout", type=float, default=.05)
    options.add_argument("--rows", type=int, default=64, help="packed rows in a batch")
    options.add_argument("--time", type=int, default=512, help="positions of a row")
    options.add_argument("--streams", type=float, default=.5, help="share of utterances in the stream layout")
    options.add_argument("--shard", type=int, default=250, help="sentences in one shard, as given to speech.py")
    options.add_argument("--shares", nargs="+", type=float, default=[1.], help="share of each voice's utterances that"
                         " an epoch takes, drawn anew each time; one for all or one a voice")
    options.add_argument("--share", type=float, default=.3, help="positions that train the predictor; about half of all"
                         " hold frames")
    options.add_argument("--average", type=float, default=.999, help="decay of the averaged weights")
    options.add_argument("--init", help="a talker.pt to start from, when OUT has none")
    options.add_argument("--compile", type=int, default=1)
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
