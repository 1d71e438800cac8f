"""Pictures for docs/log/built-in-voice.md: spectrograms beside the teacher's, and training curves.

    python3 pictures.py --teacher run/teacher --spoken run/spoken --curves run \\
        --envelopes run/one run/other --out ../../docs/img
"""
import argparse
import json
import os

import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
import numpy as np  # noqa: E402
from scipy.signal import stft  # noqa: E402

import recogniser  # noqa: E402

TOP = 8500                            # the sources have nothing above 8 kHz


def spectrogram(axis, path, title):
    samples, rate = recogniser.read_wav(path)
    frequency, seconds, bins = stft(samples, rate, nperseg=600, noverlap=480)
    keep = frequency <= TOP
    level = 20 * np.log10(np.abs(bins[keep]) + 1e-5)
    axis.imshow(level, origin="lower", aspect="auto", cmap="magma", vmin=-90, vmax=-25,
                extent=(0, seconds[-1], 0, TOP / 1000))
    axis.set_title(title, fontsize=8)
    axis.tick_params(labelsize=6)


def compare(args, speaker):
    figure, axes = plt.subplots(len(args.indices), 2, figsize=(9, 1.7 * len(args.indices)), squeeze=False)
    for (left, right), index in zip(axes, args.indices):
        spectrogram(left, os.path.join(args.teacher, f"{speaker}_{index:05d}.wav"), f"teacher, sentence {index}")
        spectrogram(right, os.path.join(args.spoken, f"{speaker}_full_{index:05d}.wav"), f"{speaker}, sentence {index}")
    figure.supxlabel("seconds", fontsize=8)
    figure.supylabel("kHz", fontsize=8)
    figure.tight_layout()
    figure.savefig(os.path.join(args.out, f"voice-{speaker}.png"), dpi=80)


def rows(folder, name):
    with open(os.path.join(folder, name), encoding="utf-8") as file:
        return json.load(file)


def curves(args):
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
    for name, label in (("codec_joint.json", "together"), ("codec_decoder.json", "decoder alone")):
        data = rows(args.curves, name)[1:]
        left.plot([r["step"] for r in data], [r["validation"] for r in data], label=label)
    left.set(title="codec: spectral distance", xlabel="step", yscale="log")
    data = [r for r in rows(args.curves, "talker.json") if r["step"]]
    for key in ("full_first", "stream_first", "full_rest", "stream_rest"):
        right.plot([r["step"] for r in data], [r[key] for r in data], label=key.replace("_", ", "))
    right.set(title="talker: nats a code (first; mean of the rest)", xlabel="step")
    for axis in (left, right):
        axis.legend(fontsize=7)
        axis.grid(alpha=.3)
    figure.tight_layout()
    figure.savefig(os.path.join(args.out, "voice-curves.png"), dpi=80)


def slow_envelopes(args):
    """Decoders trained with --envelope: what they were trained by, and the plain distance that pays for it."""
    figure, axes = plt.subplots(1, 2, figsize=(9, 3))
    for axis, key, title in zip(axes, ("slow", "validation"), ("slow envelope, nats", "spectral distance")):
        for folder in args.envelopes:
            data = [r for r in rows(folder, "codec_decoder.json") if key in r]
            axis.plot([r["step"] for r in data], [r[key] for r in data],
                      label=os.path.basename(os.path.normpath(folder)))
        axis.set(title=title, xlabel="step")
        axis.legend(fontsize=7)
        axis.grid(alpha=.3)
    figure.tight_layout()
    figure.savefig(os.path.join(args.out, "voice-curves-envelope.png"), dpi=80)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--teacher", required=True)
    options.add_argument("--spoken", required=True)
    options.add_argument("--curves", help="folder of the curves that training wrote")
    options.add_argument("--envelopes", nargs="+", default=[], help="folders of decoders trained with --envelope")
    options.add_argument("--speakers", nargs="+", default=["clara", "miles"])
    options.add_argument("--indices", nargs="+", type=int, default=[0, 10, 20, 30, 40])
    options.add_argument("--out", required=True)
    args = options.parse_args()
    os.makedirs(args.out, exist_ok=True)
    for speaker in args.speakers:
        compare(args, speaker)
    if args.curves:
        curves(args)
    if args.envelopes:
        slow_envelopes(args)


if __name__ == "__main__":
    main()
