# Damages an mp3 in place.
import sys


def damage_mp3(path):
    """Behind three good frames, whole heads and nothing else that makes sense: a decoder has much to say."""
    with open(path, "rb") as file:
        mp3 = file.read()
    frames, at = [], next(i for i in range(len(mp3)) if mp3[i] == 255 and mp3[i + 1] & 0xe0 == 0xe0)
    while at + 4 < len(mp3):  # MPEG 2 layer III at 24 kHz
        kbits = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160][mp3[at + 2] >> 4]
        size = 72000 * kbits // 24000 + (mp3[at + 2] >> 1 & 1)
        frames.append(mp3[at:at + size])
        at += size
    with open(path, "wb") as file:
        file.write(b"".join(frames[:3] + [f[:4] + bytes(b ^ 0xff for b in f[4:]) for f in frames[3:]]))


damage_mp3(sys.argv[1])
