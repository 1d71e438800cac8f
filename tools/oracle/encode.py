#!/usr/bin/env python3
"""Golden files of what listens: codes and x-vectors of made recordings, by the official package in fp32.

usage: encode.py -m CHECKPOINT -o FILE [--set all|few] [--margin M]

make_goldens.py makes the committed files afresh with it, and compares.
--margin M: a recording where two distances are less than M apart, so that fp32 rounding on another machine could turn
the choice, gives way to one with another seed. tests/golden/README.md is the format; tests/cpu/test_encoder.c reads it.
"""
import argparse
import json
import pathlib
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import goldenfile  # noqa: E402
import recordings  # noqa: E402

# kind, rate, samples. Seeds are the places in the list, 100 more for each further try.
ALL = [(kind, rate, int(seconds * rate)) for kind, rate, seconds in (
    ("speech", 24000, 60), ("music", 24000, 30.013), ("chirp", 24000, 25), ("loud_noise", 24000, 20),
    ("speech", 48000, 45), ("speech", 44100, 31.7), ("speech", 16000, 24), ("sines", 24000, 12.5),
    ("clipped", 24000, 11), ("hush", 24000, 10.5), ("silence", 24000, 15), ("clicks", 24000, 10.1),
    ("speech", 8000, 13), ("speech", 11025, 11.3), ("speech", 22050, 10.7), ("speech", 32000, 10.9),
    ("speech", 96000, 11.1), ("speech", 88200, 10.3), ("music", 44100, 14.1), ("music", 48000, 12.2),
    ("music", 96000, 8), ("music", 8000, 9), ("chirp", 48000, 10), ("chirp", 44100, 9.9), ("sines", 16000, 8.8),
    ("sines", 44100, 7.7), ("loud_noise", 44100, 6.6), ("loud_noise", 8000, 5.5), ("clipped", 48000, 6),
    ("clipped", 22050, 5), ("silence", 44100, 2), ("hush", 48000, 3), ("clicks", 16000, 4.4), ("clicks", 96000, 3.3),
    ("speech", 24000, 3), ("speech", 24000, 4.21), ("speech", 24000, 1), ("speech", 12000, 2.5),
    ("music", 24000, 0.5), ("sines", 24000, 0.1), ("loud_noise", 24000, 0.1), ("silence", 24000, 0.3))]
# Around the borders of a frame, of a position, of what the speaker encoder takes.
ALL += [("speech", 24000, n) for n in (1, 2, 959, 960, 961, 1279, 1280, 1281, 1919, 1920, 1921, 3841, 15361, 30721)]
FEW = [("speech", 24000, 72000), ("music", 44100, 60000), ("loud_noise", 16000, 9001), ("silence", 24000, 4000),
       ("clipped", 48000, 30011), ("sines", 24000, 25000), ("clicks", 8000, 12345), ("speech", 24000, 1300)]
SETS = {"all": ALL, "few": FEW}
TRIES = 30
SAMPLE_RATE, SHORTEST_FOR_VECTOR = 24000, 1280


class Encoder:
    def __init__(self, folder):
        import official
        import torch
        from transformers.models.mimi import modeling_mimi
        self.torch, self.made_with = torch, official.made_with()
        self.official = official.Official(folder, 2)
        self.margins = []
        quantize = modeling_mimi.MimiEuclideanCodebook.quantize

        def watched(book, states):
            best = torch.cdist(states[None].double(), book.embed[None].double(), p=2)[0].topk(2, largest=False).values
            self.margins.append((best[:, 1] - best[:, 0]).numpy())
            return quantize(book, states)
        modeling_mimi.MimiEuclideanCodebook.quantize = watched

    def run(self, pcm, rate):
        """Through the official wrappers: codes [F, K], x-vector or None, samples at 24 kHz, smallest margin."""
        self.margins.clear()
        tokenizer = self.official.codec
        codes = tokenizer.encode(pcm, sr=rate).audio_codes[0].numpy().astype(np.int64)
        margin = float(np.min(self.margins[:codes.shape[1]]))
        wave = tokenizer._normalize_audio_inputs(pcm, rate)[0]
        vector = None
        if len(wave) >= SHORTEST_FOR_VECTOR and self.official.kind == "base":
            vector = self.official.model.model.extract_speaker_embedding(wave, SAMPLE_RATE).detach().numpy()
        return codes, vector, wave, margin


def fnv1a_words(samples):
    """FNV-1a 64 over the samples as words of 32 bits."""
    h = 14695981039346656037
    for word in samples.view(np.uint32).tolist():
        h = (h ^ word) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def make(folder, out, names, least_margin):
    encoder, cases, tensors = Encoder(folder), [], {}
    for place, (kind, rate, n) in enumerate(names):
        for seed in range(place, place + 100 * TRIES, 100):
            codes, vector, wave, margin = encoder.run(recordings.make(kind, seed, rate, n), rate)
            if margin >= least_margin:
                break
        name = f"{place:02d}-{kind}-{rate}-{n}"
        cases.append({"name": name, "kind": kind, "seed": seed, "rate": rate, "n": n, "n_24": len(wave),
                      "fnv_24": fnv1a_words(wave), "frames": len(codes), "margin": margin})
        tensors[f"{name}/codes"] = np.ascontiguousarray(codes, np.uint8 if codes.max() < 256 else np.int16)
        if vector is not None:
            tensors[f"{name}/x_vector"] = vector.astype(np.float32)
        print(f"{name}: {len(codes)} frames, margin {margin:.3g}", file=sys.stderr, flush=True)
    text = json.dumps
    entry = goldenfile.checkpoint(folder, encoder.official.kind, encoder.official.size, None)
    metadata = {"utter_encode": "1", "made_with": encoder.made_with, "checkpoint": text(entry), "cases": text(cases)}
    goldenfile.save_file(tensors, str(out), metadata=metadata)
    pathlib.Path(out).chmod(0o644)


def differences(old_path, new_path):
    """What a fresh file says differently: a list of sentences, empty when they agree."""
    (old_meta, old), (new_meta, new) = goldenfile.load(old_path), goldenfile.load(new_path)
    faults = []
    cases = lambda meta: [{k: v for k, v in case.items() if k != "margin"} for case in json.loads(meta["cases"])]
    if set(old) != set(new) or cases(old_meta) != cases(new_meta) or old_meta["checkpoint"] != new_meta["checkpoint"]:
        faults.append("other recordings, or another checkpoint")
    for name in sorted(set(old) & set(new)):
        a, b = old[name], new[name]
        far = lambda: np.abs(a.astype(np.float64) - b).max() > 1e-4 * np.abs(b.astype(np.float64)).max()
        if a.shape != b.shape or (not np.array_equal(a, b) if name.endswith("codes") else far()):
            faults.append(f"{name} differs")
    return faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", dest="folder", required=True)
    parser.add_argument("-o", dest="out", required=True)
    parser.add_argument("--set", choices=SETS, default="all")
    parser.add_argument("--margin", type=float, default=0)
    args = parser.parse_args()
    make(args.folder, args.out, SETS[args.set], args.margin)


if __name__ == "__main__":
    main()
