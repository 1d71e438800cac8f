"""Whether a voice drifts over a long sound: pitch, loudness and rate of each ten minutes, and how far they stray.

    utter say -f book.txt -o long.wav --times long.json
    python3 drift.py long.wav long.json [--window 600] [--most 3600]

Pitch: the median of 40 ms frames that have one (autocorrelation above half of its peak). Loudness: the RMS of frames
above -50 dB, in decibels. Rate: letters a second, between the begin and the end of each word. The sound has 16 bits
and one channel; the words are those of --times.
"""
import argparse
import json
import wave

import numpy as np

LOUD = 10 ** (-50 / 20)
FRAME_S, STEP_S = .04, .02
LOW_HZ, HIGH_HZ = 60, 400


def pitch_of(frames, rate):
    """Hz of each frame, 0 where there is none."""
    n = frames.shape[1]
    spectrum = np.fft.rfft(frames - frames.mean(1, keepdims=True), 2 * n)
    same = np.fft.irfft(np.abs(spectrum) ** 2)[:, :n]
    same = same / (same[:, :1] + 1e-12) / (1 - np.arange(n) / n)
    first, last = int(rate / HIGH_HZ), int(rate / LOW_HZ)
    best = same[:, first:last].argmax(1)
    return np.where(same[np.arange(len(same)), first + best] > .5, rate / (first + best), 0)


def about(sound, rate, words):
    """Median pitch, level, letters a second."""
    n, step = int(FRAME_S * rate), int(STEP_S * rate)
    frames = np.lib.stride_tricks.sliding_window_view(sound, n)[::step]
    power = (frames ** 2).mean(1)
    loud = power > LOUD ** 2
    pitches = np.concatenate([pitch_of(part, rate) for part in np.array_split(frames[loud], 1 + loud.sum() // 2000)])
    letters = sum(len(w["text"]) for w in words)
    seconds = sum(w["end_s"] - w["start_s"] for w in words)
    return np.median(pitches[pitches > 0]), 10 * np.log10(power[loud].mean()), letters / seconds


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sound")
    options.add_argument("words")
    options.add_argument("--window", type=float, default=600, help="seconds")
    options.add_argument("--most", type=float, default=3600, help="seconds of the sound that are looked at")
    args = options.parse_args()
    with open(args.words, encoding="utf-8") as file:
        words = [w for w in json.load(file)["words"] if not w["skipped"] and w["end_s"] > w["start_s"]]
    rows = []
    with wave.open(args.sound) as file:
        rate = file.getframerate()
        assert file.getnchannels() == 1 and file.getsampwidth() == 2
        for i in range(int(min(args.most, file.getnframes() / rate) // args.window)):
            begin, end = i * args.window, (i + 1) * args.window
            sound = np.frombuffer(file.readframes(int(args.window * rate)), np.int16).astype(np.float32) / 32768
            rows.append(about(sound, rate, [w for w in words if begin <= w["start_s"] < end]))
            pitch, level, pace = rows[-1]
            print(f"{begin:6.0f} s  pitch {pitch:6.1f} Hz  level {level:6.2f} dB  rate {pace:5.2f} letters/s")
    table = np.array(rows)
    hours = np.arange(len(table)) * args.window / 3600
    tones = np.column_stack([12 * np.log2(table[:, 0]), table[:, 1], 100 * np.log(table[:, 2])])
    for name, column in zip(("pitch, semitones", "level, dB", "rate, %"), tones.T):
        slope = np.polyfit(hours, column, 1)[0] if len(column) > 1 else 0
        print(f"{name:17} {slope:+.2f} an hour, {np.ptp(column):.2f} between the least and the most")


if __name__ == "__main__":
    main()
