# Writes the recordings of tests/cli/bad_sound.sh, good ones and bad ones.
import math
import struct


def wav(name, samples, rate=24000, channels=1, float32=False, promise=None):
    data = b"".join(struct.pack("<f", x) if float32 else struct.pack("<h", max(-32768, min(32767, round(x * 32767))))
                    for x in samples)
    width = 4 if float32 else 2
    n = len(data) if promise is None else promise
    form = struct.pack("<HHIIHH", 3 if float32 else 1, channels, rate, rate * channels * width & 0xffffffff,
                       channels * width, 8 * width)
    with open(name, "wb") as file:
        file.write(b"RIFF" + struct.pack("<I", (36 + n) & 0xffffffff) + b"WAVEfmt " + struct.pack("<I", 16) + form +
                   b"data" + struct.pack("<I", n) + data)


tone = [0.3 * math.sin(i * 0.05) * math.sin(i * 0.0007) for i in range(4 * 24000)]
open("empty", "w").close()
with open("text.wav", "w") as text:
    text.write("This is no sound.\n")
with open("header-only.wav", "wb") as header:
    header.write(b"RIFF\x24\0\0\0WAVEfmt ")
wav("good.wav", tone)
wav("rate-0.wav", tone, rate=0)
wav("rate-7000.wav", tone, rate=7000)
wav("channels-0.wav", tone, channels=0)
wav("channels-9.wav", tone[:9 * 9000], channels=9)
wav("nan.wav", tone[:30000] + [math.nan] + tone[30000:], float32=True)
wav("infinite.wav", tone[:30000] + [math.inf] + tone[30000:], float32=True)
wav("absurd.wav", tone[:30000] + [3e38] + tone[30000:], float32=True)
wav("no-samples.wav", [])
wav("one-sample.wav", [0.5])
wav("long-promise.wav", tone, promise=0x7ffffff0)
wav("silence.wav", [0] * 24000 * 4)
wav("clipped.wav", [max(-1, min(1, 9 * x)) for x in tone])
wav("longest.wav", tone * 29)
with open("silence.json", "w") as codes:
    codes.write('{"codes":[' + ",".join(["[" + ",".join(["0"] * 16) + "]"] * 1600) + "]}")
with open("large.wav", "wb") as large:
    large.truncate(65 << 20)
    large.seek(0)
    with open("good.wav", "rb") as good:
        large.write(good.read(44))
