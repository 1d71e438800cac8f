"""Recordings made from whole numbers and single roundings, so that tests/cpu/recordings.h makes the same bits."""
import numpy as np

SEGMENT = 5  # segments of a recording in a second: notes, syllables
SINE = (3.14159265358979, -5.16771278004997, 2.55016403987735, -0.599264529320792, 0.0821458866111282,
        -0.00737043094571435)


def hashed(seed, index):
    """splitmix64 of a seed and an index (an array); the upper 24 bits."""
    with np.errstate(over="ignore"):
        z = np.uint64(seed) * np.uint64(0xD1342543DE82EF95) + index.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ z >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ z >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return (z ^ z >> np.uint64(31)) >> np.uint64(40)


def noise(seed, n):
    """Uniform in [-1, 1)."""
    return hashed(seed, np.arange(n)).astype(np.float64) / 8388608.0 - 1.0


def sine(phase):
    """Of a phase of 32 bits, a full turn."""
    t = phase.astype(np.uint32).astype(np.int32).astype(np.float64) / 2147483648.0
    t = np.where(t > 0.5, 1.0 - t, np.where(t < -0.5, -1.0 - t, t))
    u = t * t
    s = np.full_like(t, SINE[5])
    for c in SINE[4::-1]:
        s = s * u + c
    return s * t


def turn(hz, rate):
    return (int(hz) << 32) // rate


def phase(step, n):
    return np.arange(n, dtype=np.uint64) * np.uint64(step)


def segments(seed, rate, n, low, high):
    """For every sample: its segment's number in [low, high), and its place in the segment from 0 to 1."""
    length = rate // SEGMENT
    i = np.arange(n)
    drawn = hashed(seed, i // length).astype(np.int64)
    return low + drawn * (high - low) // 16777216, (i % length).astype(np.float64) / length


def sines(seed, rate, n):
    x = 0.001 * noise(seed, n)
    for k in range(3):
        hz = 80 + int(hashed(seed, np.array([1000 + k]))[0]) * 3000 // 16777216
        x = x + 0.3 / (k + 1) * sine(phase(turn(hz, rate), n))
    return x


def clipped(seed, rate, n):
    return np.minimum(np.maximum(4.0 * sines(seed, rate, n), -1.0), 1.0)


def chirp(seed, rate, n):
    """From 50 Hz up by 700 Hz a second, folded where it passes half the rate."""
    i = np.arange(n, dtype=np.uint64)
    with np.errstate(over="ignore"):
        bend = i * (i - np.uint64(1)) // np.uint64(2) * np.uint64(turn(700, rate) // rate)
        p = np.uint64(turn(50, rate)) * i + bend
    return 0.4 * sine(p) + 0.002 * noise(seed, n)


def music(seed, rate, n):
    x = 0.0005 * noise(seed, n)
    for voice in range(4):
        hz, place = segments(seed * 7 + voice, rate, n, 110, 880)
        steps = (hz.astype(np.uint64) << np.uint64(32)) // np.uint64(rate)
        x = x + 0.15 * (1.0 - place) * sine(np.cumsum(steps))
    return x


def speech(seed, rate, n):
    """Harmonics of a moving pitch under three formants that change with every syllable; some syllables are hiss."""
    pitch, place = segments(seed, rate, n, 90, 220)
    formants = [segments(seed * 5 + 1 + k, rate, n, *limits)[0].astype(np.float64)
                for k, limits in enumerate(((250, 900), (900, 2300), (2300, 3500)))]
    hiss = segments(seed * 5 + 4, rate, n, 0, 4)[0] == 0
    envelope = 4.0 * place * (1.0 - place)
    steps = (pitch.astype(np.uint64) << np.uint64(32)) // np.uint64(rate)
    base = np.cumsum(steps)
    voiced = np.zeros(n)
    for h in range(1, 17):
        f = (pitch * h).astype(np.float64)
        level = np.zeros(n)
        for formant in formants:
            away = (f - formant) / 90.0
            level = level + 1.0 / (1.0 + away * away)
        voiced = voiced + level / h * sine(base * np.uint64(h))
    wind = noise(seed, n)
    return envelope * np.where(hiss, 0.1 * wind, 0.3 * voiced) + 0.0003 * wind


def loud_noise(seed, rate, n):
    return 0.2 * noise(seed, n)


def hush(seed, rate, n):
    return 0.00001 * noise(seed, n)


def silence(seed, rate, n):
    return np.zeros(n)


def clicks(seed, rate, n):
    return np.where(np.arange(n) % (rate // 10) == 0, 0.9, 0.0) + 0.0005 * noise(seed, n)


KINDS = {f.__name__: f for f in (sines, clipped, chirp, music, speech, loud_noise, hush, silence, clicks)}


def make(kind, seed, rate, n):
    return KINDS[kind](seed, rate, n).astype(np.float32)
