"""Teacher speech on the device: shards from speech.py -> 24 kHz, 16 bit, with the place of every utterance."""
import glob
import os
import time

import numpy as np
import torch
import torchaudio

from shapes import FRAME, LEAD, SAMPLE_RATE
from speech import RATE

PIECE = 120 * RATE                     # resampled in pieces, so that memory stays small


def wait_for(folder, shards, first=0):
    """Blocks until the shards `first` to `shards` - 1 are there (finished in any order); returns their names."""
    names = [os.path.join(folder, f"{i:05d}") for i in range(first, shards)]
    while not all(os.path.exists(name + ".len") for name in names):
        time.sleep(.2)
    return names


def all_shards(folder):
    return [name[:-4] for name in sorted(glob.glob(os.path.join(folder, "*.len")))]


def resample(samples, device):
    """int16 at 16 kHz (numpy) -> int16 at 24 kHz (tensor on the device)."""
    out = []
    for start in range(0, len(samples), PIECE):
        piece = torch.from_numpy(samples[start:start + PIECE]).to(device).float()
        out.append(torchaudio.functional.resample(piece, RATE, SAMPLE_RATE).clamp(-32767, 32767).short())
    return torch.cat(out)


class Speech:
    """Utterances of one voice: `track` (int16, all of them), `starts` and `lengths` in samples at 24 kHz."""

    def __init__(self, shards, device):
        raw = [np.fromfile(name + ".raw", np.int16) for name in shards]
        lengths = np.concatenate([np.fromfile(name + ".len", np.int32) for name in shards]).astype(np.int64)
        assert (lengths % 2 == 0).all()
        self.lengths = lengths * 3 // 2
        self.starts = np.concatenate(([0], self.lengths.cumsum()))[:-1]
        self.track = torch.cat([resample(x, device) for x in raw])
        self.device = device

    def __len__(self):
        return len(self.lengths)

    def hours(self):
        return self.lengths.sum() / SAMPLE_RATE / 3600

    def frames(self, chosen):
        """Codec frames of these utterances, the silent lead included."""
        return LEAD - (-self.lengths[chosen] // FRAME)

    def batch(self, chosen):
        """float [batch, samples]: each utterance after LEAD frames of silence, zeros behind, whole frames."""
        time_steps = int(self.frames(chosen).max()) * FRAME
        t = torch.arange(time_steps, device=self.device)[None] - LEAD * FRAME
        starts, lengths = (torch.from_numpy(v[chosen])[:, None].to(self.device) for v in (self.starts, self.lengths))
        inside = (t >= 0) & (t < lengths)
        index = torch.where(inside, starts + t, torch.zeros_like(starts + t))
        return self.track[index].float() / 32768 * inside


def crops(track, starts, samples):
    """float [batch, samples] from a flat int16 track."""
    return track[starts[:, None] + torch.arange(samples, device=track.device)].float() / 32768
