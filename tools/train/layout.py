"""Prompts as training rows: both text layouts of the official package, many utterances packed into each row.

Positions of one utterance with a language (without one the prefix is one shorter):
    0 1 2         im_start assistant line_feed                       text only
    3 .. H-2      tts_pad + (think think_bos LANGUAGE think_eos speaker)
    H-1           tts_bos + pad
    full:   H ..  the text tokens and tts_eos, each + pad;           then tts_pad + bos
    stream: H     the first text token + bos; the others and tts_eos come with the frames
The position of bos decides frame 0; frame q enters one position after it was decided. All shapes are fixed by the
packing, so that a training step can be captured as a CUDA graph.
"""
from typing import NamedTuple

import numpy as np
import torch

from shapes import LEAD

NOTHING = -100                          # the target that cross_entropy passes over


class Rows(NamedTuple):
    owner: torch.Tensor                 # [rows, time] which utterance a position belongs to, -1: none
    text: torch.Tensor                  # [rows, time] text ids or -1
    codec: torch.Tensor                 # [rows, time] codec ids or -1
    entering: torch.Tensor              # [rows, time, books] the frame that enters (perhaps with mistakes) or -1
    codes: torch.Tensor                 # [rows, time, books] the frame that should be decided
    made: torch.Tensor                  # [rows, time] whether there is such a frame
    target: torch.Tensor                # [rows, time] c0, EOS or NOTHING


class Header:
    """The first positions of every prompt. Constants lie on the device, so that nothing waits for a copy."""

    def __init__(self, ids, special, device):
        self.ids, self.special = ids, special
        self.named = torch.tensor([ids["think"], ids["think_bos"], ids["english"], ids["think_eos"], 0, ids["pad"]],
                                  device=device)
        self.plain = torch.tensor([ids["nothink"], ids["think_bos"], ids["think_eos"], 0, ids["pad"], -1],
                                  device=device)
        self.role = torch.tensor([special[name] for name in ("im_start", "assistant", "line_feed")], device=device)

    def rows(self, speaker, auto, position):
        """Text and codec ids at `position` (-1 outside of the header) and its size; arguments are broadcast."""
        size = 9 - auto.long()
        place = (position - 3).clamp(0, 5)
        codec = torch.where(auto, self.plain[place], self.named[place])
        codec = torch.where(place == 4 - auto.long(), speaker, codec)
        inside = (position >= 3) & (position < size)
        text = torch.full_like(codec, self.special["tts_pad"]).masked_fill(position == size - 1,
                                                                           self.special["tts_bos"])
        text = torch.where(position < 3, self.role[position.clamp(0, 2)], text).masked_fill(position >= size, -1)
        return text, codec.masked_fill(~inside, -1), size


def pack(lengths, time):
    """Puts utterances one after another into rows of `time` positions: owner and start [rows, time], -1 where empty."""
    rows, starts, row, at = [], [], 0, 0
    for length in lengths.tolist():
        if at + length > time:
            row, at = row + 1, 0
        rows.append(row)
        starts.append(at)
        at += length
    rows, starts = np.array(rows), np.array(starts)
    flat = np.repeat(rows * time + starts - (lengths.cumsum() - lengths), lengths) + np.arange(lengths.sum())
    owner = np.full((row + 1) * time, -1, np.int32)
    begin = np.zeros((row + 1) * time, np.int32)
    owner[flat] = np.repeat(np.arange(len(lengths)), lengths)
    begin[flat] = np.repeat(starts, lengths)
    return owner.reshape(-1, time), begin.reshape(-1, time)


def with_mistakes(codes, data, most):
    """Half of the frames untouched, the others with codes of other frames at a rate uniform up to `most`."""
    draw = torch.rand(codes.shape[:-1], device=codes.device)[..., None]
    rate = (draw >= .5) * torch.rand_like(draw) * most
    other = data.codes[torch.randint(0, len(data.codes), codes.shape[:-1], device=codes.device)].long()
    return torch.where(torch.rand(codes.shape, device=codes.device) < rate, other, codes)


def build(data, owner, begin, stream, header, mistakes=0., auto_share=.3):
    """Rows of the packed utterances: owner (-1: none), begin and stream are [rows, time]."""
    ids, special = header.ids, header.special
    device, which = owner.device, owner.clamp(min=0)
    there = owner >= 0
    position = torch.arange(owner.shape[1], device=device)[None] - begin
    auto = torch.rand(owner.shape, device=device).gather(1, begin) < auto_share
    skipped = (~stream).long() * LEAD
    n_text, n_frames = data.text_lengths[which], data.frame_lengths[which] - skipped
    text, codec, size = header.rows(data.speakers[which], auto, position)
    offset = (position - size).clamp(min=0)
    token = data.tokens[(data.text_starts[which] + offset).clamp(max=len(data.tokens) - 1)]
    body = token.masked_fill(offset == n_text, special["tts_eos"]).masked_fill(offset > n_text, special["tts_pad"])
    q = position - size - (~stream).long() * (n_text + 1)               # frame q is decided here; bos is at q = 0
    text = torch.where((position >= size) & (q <= n_frames), body, text)
    codec = codec.masked_fill((position >= size) & (q < 0) & ~stream, ids["pad"]).masked_fill(q == 0, ids["bos"])
    made = there & (q >= 0) & (q < n_frames)
    frame = data.frame_starts[which] + skipped + q
    codes = data.codes[frame.clamp(0, len(data.codes) - 1)].long()
    before = data.codes[(frame - 1).clamp(0, len(data.codes) - 1)].long()
    before = with_mistakes(before, data, mistakes) if mistakes else before
    enters = there & (q >= 1) & (q <= n_frames)
    target = codes[..., 0].masked_fill(~made, NOTHING).masked_fill(there & (q == n_frames), ids["eos"])
    return Rows(owner, text.masked_fill(~there, -1), codec.masked_fill(~there, -1),
                before.masked_fill(~enters[..., None], -1), codes, made, target)
