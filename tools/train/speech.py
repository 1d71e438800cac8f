"""Speech from the teacher (flite): one shard of sound for every few hundred sentences, made on all cores.

    python3 speech.py --texts train_slt.txt --voice slt --out speech/slt

Each shard is NNNNN.raw (16 kHz, 16 bit, utterances one after another) and NNNNN.len (their lengths, int32). The
lengths appear last and whole, so that a reader may follow while shards are being made; finished ones are kept.
"""
import argparse
import os
import subprocess
import wave
from multiprocessing import Pool

import numpy as np

import spoken

PROGRAM = os.environ.get("FLITE", "flite").split()
RATE = 16000
LOUD = 260                            # below this a sample counts as silence
BEFORE, AFTER = RATE * 80 // 1000, RATE * 200 // 1000


def trim(samples):
    """80 ms of quiet before the speech and 200 ms after it, whatever the synthesizer left."""
    loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > LOUD)
    if len(loud) == 0:
        return np.zeros(BEFORE + AFTER, np.int16)
    first, last = loud[0], loud[-1]
    start, end = max(0, first - BEFORE), min(len(samples), last + AFTER)
    front = np.zeros(BEFORE - (first - start), np.int16)
    tail = np.zeros(AFTER - (end - last), np.int16)
    out = np.concatenate((front, samples[start:end], tail))
    return out[:len(out) // 2 * 2]


def say(text, voice, scratch):
    subprocess.run(PROGRAM + ["-voice", voice, "-t", spoken.spoken(text), "-o", scratch], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with wave.open(scratch) as file:
        assert file.getframerate() == RATE
        return trim(np.frombuffer(file.readframes(file.getnframes()), np.int16))


def make_shard(job):
    path, lines, voice = job
    if os.path.exists(path + ".len"):
        return
    scratch = f"{path}.{os.getpid()}.wav"
    sounds = [say(line, voice, scratch) for line in lines]
    os.unlink(scratch)
    np.concatenate(sounds).tofile(path + ".raw")
    np.array([len(x) for x in sounds], np.int32).tofile(path + ".part")
    os.rename(path + ".part", path + ".len")


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--texts", required=True)
    options.add_argument("--voice", required=True)
    options.add_argument("--out", required=True)
    options.add_argument("--limit", type=int, default=10 ** 9)
    options.add_argument("--shard", type=int, default=250, help="sentences in one shard")
    options.add_argument("--processes", type=int, default=os.cpu_count())
    args = options.parse_args()
    os.makedirs(args.out, exist_ok=True)
    with open(args.texts, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file][:args.limit]
    jobs = [(os.path.join(args.out, f"{i // args.shard:05d}"), lines[i:i + args.shard], args.voice)
            for i in range(0, len(lines), args.shard)]
    with Pool(args.processes) as pool:
        for _ in pool.imap_unordered(make_shard, jobs):
            pass


if __name__ == "__main__":
    main()
