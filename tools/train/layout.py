"""Prompts as training rows: both text layouts of the official package, for a batch of utterances at once.

Positions of one utterance with a language (without one the prefix is one shorter):
    0 1 2         im_start assistant line_feed                       text only
    3 .. H-2      tts_pad + (think think_bos LANGUAGE think_eos speaker)
    H-1           tts_bos + pad
    full:   H ..  the text tokens and tts_eos, each + pad;           then tts_pad + bos
    stream: H     the first text token + bos; the others and tts_eos come with the frames
The position of bos decides frame 0; frame q enters one position after it was decided.
"""
from dataclasses import dataclass

import torch

from shapes import LEAD


@dataclass
class Rows:
    text: torch.Tensor                  # [batch, time] text ids or -1
    codec: torch.Tensor                 # [batch, time] codec ids or -1
    enters: torch.Tensor                # [n] flat positions at which the frames enter
    codes_in: torch.Tensor              # [n, books] what enters (perhaps with mistakes)
    makes: torch.Tensor                 # [n] flat positions that decide the frames
    codes: torch.Tensor                 # [n, books] what should be decided
    decides: torch.Tensor               # [m] flat positions with a c0 decision: the frames and the end
    target: torch.Tensor                # [m] c0 or EOS


def header(ids, special, speaker, auto, position):
    """Text and codec ids of the header at `position` [batch, time]; rows with `auto` name no language."""
    batch = len(auto)
    named = [ids["think"], ids["think_bos"], ids["english"], ids["think_eos"], 0, ids["pad"]]
    plain = [ids["nothink"], ids["think_bos"], ids["think_eos"], 0, ids["pad"], -1]
    prefix = torch.tensor([named, plain], device=position.device)[auto.long()]
    prefix[torch.arange(batch, device=position.device), 4 - auto.long()] = speaker
    size = (9 - auto.long())[:, None]
    inside = (position >= 3) & (position < size)
    codec = torch.where(inside, prefix.gather(1, (position - 3).clamp(0, 5)), -1)
    text = torch.full_like(position, -1)
    for i, name in enumerate(("im_start", "assistant", "line_feed")):
        text[:, i] = special[name]
    text = torch.where(inside, torch.where(position == size - 1, special["tts_bos"], special["tts_pad"]), text)
    return text, codec, size


def with_mistakes(codes, most):
    """Half of the frames untouched, the others with codes of other frames at a rate uniform up to `most`."""
    draw = torch.rand(len(codes), 1, device=codes.device)
    rate = torch.where(draw < .5, 0., torch.rand_like(draw) * most)
    other = codes[torch.randint(0, len(codes), (len(codes),), device=codes.device)]
    return torch.where(torch.rand(codes.shape, device=codes.device) < rate, other, codes)


def build(data, chosen, time, stream, ids, special, mistakes=0., auto_share=.3):
    """Rows of the utterances `chosen` (tensor of indices), all in one layout, in `time` positions."""
    device = chosen.device
    batch = len(chosen)
    n_text, n_frames = data.text_lengths[chosen][:, None], data.frame_lengths[chosen][:, None] - (0 if stream else LEAD)
    first_frame = data.frame_starts[chosen][:, None] + (0 if stream else LEAD)
    position = torch.arange(time, device=device)[None].expand(batch, time).contiguous()
    auto = torch.rand(batch, device=device) < auto_share
    text, codec, size = header(ids, special, data.speakers[chosen], auto, position)
    offset = (position - size).clamp(min=0)
    token = data.tokens[(data.text_starts[chosen][:, None] + offset).clamp(max=len(data.tokens) - 1)]
    body = torch.where(offset < n_text, token, torch.where(offset == n_text, special["tts_eos"], special["tts_pad"]))
    start = size if stream else size + n_text + 1                       # the position of bos
    q = position - start                                                # frame q is decided here
    text = torch.where((position >= size) & (q <= n_frames), body, text)
    if not stream:
        codec = torch.where((position >= size) & (q < 0), ids["pad"], codec)
    codec = torch.where(q == 0, ids["bos"], codec)
    made = (q >= 0) & (q < n_frames)
    makes = made.flatten().nonzero()[:, 0]
    codes = data.codes[(first_frame + q.clamp(min=0)).clamp(max=len(data.codes) - 1)[made]].long()
    target = torch.full((batch * time,), -1, device=device)
    target[makes] = codes[:, 0]
    target[(q == n_frames).flatten()] = ids["eos"]
    decides = (target >= 0).nonzero()[:, 0]
    return Rows(text, codec, makes + 1, with_mistakes(codes, mistakes) if mistakes else codes, makes, codes, decides,
                target[decides])
