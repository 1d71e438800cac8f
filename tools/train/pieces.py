"""What every training run shares: a schedule driven by the clock, a captured step, curves, and state files.

A run is cut into pieces that end in time. `Schedule(begin, end, seconds)` covers the part [begin, end] of a whole
training in that many seconds; the learning rate follows the part, not the step, so a slower machine ends as well.
"""
import json
import math
import os
import time

import torch


class Schedule:
    def __init__(self, begin, end, seconds, peak, warm_steps=200, low=.01):
        self.begin, self.end, self.seconds, self.peak = begin, end, seconds, peak
        self.warm_steps, self.low, self.steps, self.start = warm_steps, low, 0, None

    def elapsed(self):
        if self.start is None:
            self.start = time.time()
        return time.time() - self.start

    def restart(self, until=None):
        """The clock starts now; with `until`, the piece ends at that time."""
        self.start = time.time()
        if until:
            self.seconds = max(1., until - self.start)

    def part(self):
        return self.begin + (self.end - self.begin) * min(1., self.elapsed() / max(self.seconds, .001))

    def over(self):
        return self.elapsed() >= self.seconds

    def rate(self):
        """Cosine over the whole training, warm-up at the start of each piece."""
        self.steps += 1
        cosine = self.low + (1 - self.low) * .5 * (1 + math.cos(math.pi * self.part()))
        return self.peak * min(1., self.steps / self.warm_steps) * cosine


class CapturedStep:
    """Runs `body` as a CUDA graph after a few ordinary runs; plainly where there is no GPU.

    `body` must read its inputs from fixed tensors, and must clear gradients itself by `set_to_none` before capture.
    """

    def __init__(self, body, optimisers, warm=4):
        self.body, self.optimisers, self.warm, self.graph = body, optimisers, warm, None

    def clear(self):
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)

    def plain(self):
        self.clear()
        self.body()

    def __call__(self, refill=lambda: None):
        refill()
        if not torch.cuda.is_available():
            return self.plain()
        if self.graph is None:
            self.capture(refill)
        self.graph.replay()

    def capture(self, refill):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(self.warm):
                refill()
                self.plain()
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.clear()
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.body()
        torch.cuda.synchronize()


class Curve:
    """Rows of a training curve, kept as JSON; a later piece continues the file."""

    def __init__(self, path):
        self.path, self.rows = path, []
        self.began = time.time()
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.rows = json.load(file)
        self.base = self.rows[-1]["second"] if self.rows else 0.

    def add(self, **values):
        row = dict(second=round(self.base + time.time() - self.began, 1))
        row.update({k: round(v, 5) if isinstance(v, float) else v for k, v in values.items()})
        self.rows.append(row)
        print(os.path.basename(self.path), row, flush=True)
        with open(self.path, "w", encoding="utf-8") as file:
            json.dump(self.rows, file)


def adam(parameters, betas, decay, device, epsilon=1e-8):
    """AdamW whose rate lives in a tensor, so that a captured step can follow the schedule."""
    on_gpu = device != "cpu"
    rate = torch.tensor(0., device=device) if on_gpu else 0.
    return torch.optim.AdamW(parameters, lr=rate, betas=betas, eps=epsilon, weight_decay=decay, fused=on_gpu,
                             capturable=on_gpu)


def set_rate(optimiser, value):
    for group in optimiser.param_groups:
        if torch.is_tensor(group["lr"]):
            group["lr"].fill_(value)
        else:
            group["lr"] = value


def save(path, **state):
    torch.save(state, path + ".part")
    os.replace(path + ".part", path)


def prepare_device(seed):
    torch.manual_seed(seed)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    return "cuda" if torch.cuda.is_available() else "cpu"


@torch.no_grad()
def with_average(parameters, average, action):
    """Runs `action` with the averaged weights in place of the parameters' own."""
    own = [p.detach().clone() for p in parameters]
    torch._foreach_copy_(parameters, average)
    result = action()
    torch._foreach_copy_(parameters, own)
    return result
