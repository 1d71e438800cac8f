#!/usr/bin/env python3
"""Exact probabilities of the official sampling for fixed scores: sampling.py [-o tests/golden/sampling.safetensors]

The processors are those that generate() of the installed transformers builds for the settings of the official call,
in its order; the probabilities are the softmax that it draws from, taken in fp64 of the processed fp32 scores.
"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import sys

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
with contextlib.redirect_stdout(io.StringIO()):
    import numpy as np
    import torch
    from safetensors.numpy import save_file
    from transformers import GenerationConfig, GenerationMixin

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import official  # noqa: E402

CODEBOOK, CONTROL = 64, 1024
EOS = CODEBOOK + 102
TALKER, PREDICTOR = CODEBOOK + CONTROL, CODEBOOK


def noise(seed, n, scale=3.0):
    """Bell-shaped values that do not depend on a library's generator."""
    state, out = seed, np.zeros(n)
    for i in range(4 * n):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        out[i // 4] += (state >> 33) / 2.0**31 - 0.5
    return (out * scale * np.sqrt(3)).astype(np.float32)


def case(name, head, scores, *, temperature=0.9, top_k=50, top_p=1.0, repetition_penalty=1.0, history=(), drawn=None):
    drawn = len(history) if drawn is None else drawn
    return {"name": name, "head": head, "temperature": temperature, "top_k": top_k, "top_p": top_p,
            "repetition_penalty": repetition_penalty, "history": list(history), "drawn": drawn, "eos": EOS,
            "codebook_size": CODEBOOK}, scores.astype(np.float32)


def cases():
    talker, predictor = noise(1, TALKER), noise(2, PREDICTOR)
    ends = talker.copy()
    ends[EOS] = talker[:CODEBOOK].max() + 1
    below = talker - 20
    ties = np.round(predictor)              # many equal scores, also at the border of every top-k
    ties_talker = np.round(talker * 2) / 2
    flat = np.zeros(PREDICTOR)
    return [
        case("talker-defaults", "talker", talker, repetition_penalty=1.05, history=[5, 9, 5, 63, 0, 9]),
        case("talker-first-draw", "talker", ends, repetition_penalty=1.05, drawn=0),
        case("talker-second-draw", "talker", ends, repetition_penalty=1.05, history=[3]),
        case("talker-third-draw", "talker", ends, repetition_penalty=1.05, history=[3, 3]),
        case("talker-all-off", "talker", talker, temperature=1.0, top_k=0, history=[1, 2]),
        case("talker-negative", "talker", below, repetition_penalty=1.5, history=list(range(0, 64, 3))),
        case("talker-penalty-below-one", "talker", talker, repetition_penalty=0.8, history=list(range(0, 64, 5))),
        case("talker-long-history", "talker", talker, repetition_penalty=1.5,
             history=[7] * 80 + [11] + list(range(20, 60)) * 3),
        case("talker-top-p", "talker", talker, top_k=0, top_p=0.8, history=[1, 2, 3]),
        case("talker-top-k-top-p", "talker", ends, top_k=20, top_p=0.6, temperature=1.3, history=[1, 2, 3]),
        case("talker-ties", "talker", ties_talker, top_k=7, history=[4, 8, 15]),
        case("predictor-defaults", "predictor", predictor),
        case("predictor-cold", "predictor", predictor, temperature=0.1),
        case("predictor-hot", "predictor", predictor, temperature=5.0, top_k=0),
        case("predictor-top-1", "predictor", predictor, top_k=1),
        case("predictor-top-1-tie", "predictor", ties, top_k=1),
        case("predictor-top-5-tie", "predictor", ties, top_k=5),
        case("predictor-top-p", "predictor", predictor, top_k=0, top_p=0.9),
        case("predictor-top-p-tiny", "predictor", predictor, top_k=0, top_p=1e-4),
        case("predictor-top-p-ties", "predictor", ties, top_k=0, top_p=0.5),
        case("predictor-top-k-top-p-ties", "predictor", ties, top_k=12, top_p=0.7, temperature=1.0),
        case("predictor-flat", "predictor", flat, top_k=10),
        case("predictor-flat-top-p", "predictor", flat, top_k=0, top_p=0.25),
        case("predictor-top-k-above-size", "predictor", predictor, top_k=500),
    ]


class Builder(GenerationMixin):
    """Just enough of a model for generate()'s own list of processors."""

    def __init__(self):
        self.config = type("Config", (), {"is_encoder_decoder": False})()


def probabilities(entry, scores):
    talker = entry["head"] == "talker"
    settings = dict(do_sample=True, temperature=entry["temperature"], top_k=entry["top_k"], top_p=entry["top_p"])
    if talker:  # as the official model calls its talker; the predictor has none of these
        n = len(scores)
        settings |= dict(repetition_penalty=entry["repetition_penalty"], min_new_tokens=2, max_new_tokens=8192,
                         eos_token_id=EOS, suppress_tokens=[i for i in range(n - CONTROL, n) if i != EOS])
    config = GenerationConfig(**settings)
    config._eos_token_tensor = torch.tensor([EOS]) if talker else None
    # generate() derives min_length from min_new_tokens and the (empty) prompt, so both rules are in its list
    config.min_length = 2 if talker else 0
    processors = Builder()._get_logits_processor(generation_config=config, input_ids_seq_length=0, device="cpu")
    history = torch.tensor([entry["history"]], dtype=torch.long)
    out = processors(history, torch.from_numpy(scores)[None].clone())
    return torch.softmax(out.to(torch.float64), dim=-1)[0].numpy(), [type(p).__name__ for p in processors]


def border_tie(scores, p):
    """Whether of some equal scores only a part stayed: top-p cuts a sorted list, and which of equals come first there
    is the sort's affair."""
    return bool(set(scores[p > 0]) & set(scores[:CODEBOOK][p[:CODEBOOK] == 0]))


def write(out):
    tensors, entries = {}, []
    for entry, scores in cases():
        p, names = probabilities(entry, scores)
        entry["border_tie"] = border_tie(scores, p)
        tensors |= {f"{entry['name']}/logits": scores, f"{entry['name']}/probabilities": p}
        entries.append(entry)
        official.progress(f"  {entry['name']}: {np.count_nonzero(p)} candidates; {', '.join(names)}")
    metadata = {"utter_sampling": "1", "made_with": official.made_with(), "cases": json.dumps(entries)}
    save_file(tensors, out, metadata=metadata)
    pathlib.Path(out).chmod(0o644)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", default="tests/golden/sampling.safetensors")
    write(parser.parse_args().out)


if __name__ == "__main__":
    main()
