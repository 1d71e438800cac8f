"""What sound is compared by: log-mel and magnitude distances at several resolutions, and discriminators."""
import math

import torch
import torch.nn as nn
import torch.nn.functional as F

from shapes import SAMPLE_RATE

TOP = 8400.                                             # the teachers have nothing above 8 kHz


def mel_filters(window, bands):
    frequency = torch.linspace(0, SAMPLE_RATE / 2, window // 2 + 1)

    def to_mel(hertz):
        return 2595 * math.log10(1 + hertz / 700)
    edges = 700 * (10 ** (torch.linspace(0, to_mel(TOP), bands + 2) / 2595) - 1)
    rising = (frequency[:, None] - edges[:-2]) / (edges[1:-1] - edges[:-2])
    falling = (edges[2:] - frequency[:, None]) / (edges[2:] - edges[1:-1])
    filters = torch.clamp(torch.minimum(rising, falling), min=0)
    return filters / filters.sum(0).clamp(min=1e-3)


class Spectrum(nn.Module):
    """Magnitudes of one window size, and their mel bands."""

    def __init__(self, window, hop, bands):
        super().__init__()
        self.window, self.hop = window, hop
        self.register_buffer("shape", torch.hann_window(window), persistent=False)
        self.register_buffer("filters", mel_filters(window, bands), persistent=False)

    def forward(self, x):
        bins = torch.stft(x, self.window, self.hop, self.window, self.shape, center=True, return_complex=True)
        size = torch.view_as_real(bins).square().sum(-1).add(1e-9).sqrt() * (2 / self.shape.sum())
        return size, size.transpose(1, 2) @ self.filters


class SpectralLoss(nn.Module):
    WINDOWS = [(2048, 512, 160), (1024, 256, 96), (640, 160, 40), (512, 128, 56), (256, 64, 28), (128, 32, 14)]

    def __init__(self, floor=3e-5, magnitude=.7):
        super().__init__()
        self.floor, self.magnitude = floor, magnitude
        self.spectra = nn.ModuleList(Spectrum(*w) for w in self.WINDOWS)

    def forward(self, made, real):
        loss = 0.
        for spectrum in self.spectra:
            (a, mel_a), (b, mel_b) = spectrum(made), spectrum(real)
            loss = loss + ((mel_a + self.floor).log() - (mel_b + self.floor).log()).abs().mean()
            loss = loss + self.magnitude * (a - b).abs().sum(1).mean()
        return loss / len(self.spectra)

    def heard(self, made, real):
        """Mean difference of log-mel bands as a recogniser sees them: 27 ms windows, 10 ms apart."""
        spectrum = Spectrum(640, 240, 40).to(made.device)
        return sum((v + self.floor).log() * sign for v, sign in (
            (spectrum(made)[1], 1), (spectrum(real)[1], -1))).abs().mean()


class SlowEnvelope(nn.Module):
    """Distance of log-mel bands averaged by bells of 16 and 43 ms (deviation), in frames within 35 dB of the loudest.
    The noise of each window, which no decoder can know, hides such errors from the others; a recogniser hears them."""
    WINDOW, DEVIATIONS = (512, 128, 40), (3, 8)

    def __init__(self, floor=3e-5):
        super().__init__()
        self.floor, self.spectrum = floor, Spectrum(*self.WINDOW)
        for i, deviation in enumerate(self.DEVIATIONS):
            t = torch.arange(-3 * deviation, 3 * deviation + 1) / deviation
            self.register_buffer(f"bell{i}", torch.softmax(-.5 * t.square(), 0)[None, None], persistent=False)

    def forward(self, made, real):
        a, b = self.spectrum(made)[1], self.spectrum(real)[1]
        level = 20 * (b.square().sum(2) + 1e-12).sqrt().log10()
        weight = torch.sigmoid((level - level.amax(1, keepdim=True) + 35) / 2)
        difference = ((a + self.floor).log() - (b + self.floor).log()).transpose(1, 2).flatten(0, 1)[:, None]
        loss = 0.
        for i in range(len(self.DEVIATIONS)):
            bell = getattr(self, f"bell{i}")
            slow = F.conv1d(F.pad(difference, (bell.shape[2] // 2,) * 2, mode="replicate"), bell)
            slow = slow.view(len(b), -1, b.shape[1]).abs().mean(1)
            loss = loss + (slow * weight).sum() / weight.sum()
        return loss / len(self.DEVIATIONS)


class MelProbe(nn.Module):
    """Reads eight log-mel frames out of each codec frame. Only a teacher for the encoder; never exported."""

    def __init__(self, inputs, hidden=256, bands=80, slots=8):
        super().__init__()
        self.slots = slots
        self.spectrum = Spectrum(1024, 1920 // slots, bands)
        self.mix = nn.Conv1d(inputs, hidden, 3)
        self.out = nn.Linear(hidden, slots * bands)

    def forward(self, vectors, sound, floor=1e-4):
        batch, time, _ = vectors.shape
        h = F.gelu(self.mix(F.pad(vectors.transpose(1, 2), (2, 0)))).transpose(1, 2)
        guess = self.out(h).reshape(batch, time * self.slots, -1)
        wanted = (self.spectrum(sound)[1][:, :time * self.slots] + floor).log()
        return (guess - wanted).abs().mean()


class SpectrogramJudge(nn.Module):
    """A small discriminator on the complex spectrogram."""

    def __init__(self, window, channels=24):
        super().__init__()
        self.window = window
        self.register_buffer("shape", torch.hann_window(window), persistent=False)

        def conv(inputs, outputs, kernel, **options):
            return nn.utils.parametrizations.weight_norm(nn.Conv2d(inputs, outputs, kernel, **options))
        self.layers = nn.ModuleList(
            [conv(2, channels, (3, 9), padding=(1, 4))] +
            [conv(channels, channels, (3, 9), stride=(1, 2), padding=(d, 4), dilation=(d, 1)) for d in (1, 2, 4)] +
            [conv(channels, channels, 3, padding=1)])
        self.verdict = conv(channels, 1, 3, padding=1)

    def forward(self, x):
        with torch.autocast(x.device.type, enabled=False):
            bins = torch.stft(x.float(), self.window, self.window // 4, self.window, self.shape, center=True,
                              return_complex=True) * (2 / self.shape.sum() ** .5)
            bins = torch.view_as_real(bins[:, :int(self.window / 2 * .72)]).permute(0, 3, 2, 1)
        features = []
        for layer in self.layers:
            bins = F.leaky_relu(layer(bins), .2)
            features.append(bins)
        return self.verdict(bins), features


class Discriminators(nn.Module):
    def __init__(self):
        super().__init__()
        self.judges = nn.ModuleList(SpectrogramJudge(n) for n in (1024, 512, 256))

    def forward(self, x):
        return [judge(x) for judge in self.judges]


def hinge_for_judges(real, made):
    return sum(F.relu(1 - r.float()).mean() + F.relu(1 + m.float()).mean()
               for (r, _), (m, _) in zip(real, made)) / len(real)


def hinge_for_maker(made):
    return sum(F.relu(1 - m.float()).mean() for m, _ in made) / len(made)


def feature_distance(real, made):
    pairs = [(a.float(), b.float()) for (_, fa), (_, fb) in zip(real, made) for a, b in zip(fa, fb)]
    return sum((a - b).abs().mean() / (a.abs().mean() + 1e-3) for a, b in pairs) / len(pairs)
