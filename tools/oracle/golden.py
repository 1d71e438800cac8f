#!/usr/bin/env python3
"""Runs the official package on a checkpoint and writes a golden file, for `utter verify`.

usage: golden.py -m DIR -o golden.safetensors [--set NAME] [--frames N] [--only CASE,CASE] [--recipe TEXT] [--threads N]

Without --set: a handful of cases that fit the checkpoint, 24 frames each (about two minutes for a 0.6B model on two
cores). --set takes a list of cases by name (cases.py has them).
"""
import argparse
import os
import sys
import time

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases as case_lists  # noqa: E402
import goldenfile  # noqa: E402
import official  # noqa: E402

CHUNK = 300  # frames that the official decoder takes at once


FRAME = 1920


def run_speak(engine, case):
    voice, first = None, case.pop("first_samples")
    if case.get("reference"):
        case["reference"] = dict(case["reference"])
        voice = made_up_voice(engine, case["reference"])
    wants_fp64 = case.pop("fp64", False)
    arrays, samples = engine.speak(case, case.pop("activations"), voice)
    n_frames = len(arrays["codes"])
    if voice:
        arrays |= {"x_vector": voice[0]} | ({} if voice[1] is None else {"reference_codes": voice[1]})
        # The official cut is one sample early for some lengths (docs/model.md, Vocoder): the last one of the reference.
        samples = samples[len(samples) - n_frames * FRAME:]
    n_decoded = n_frames + case.get("reference", {}).get("frames", 0)
    case.update(frames=n_frames, finish="eos" if n_frames < case["max_frames"] else "max_frames",
                n_text_ids=len(arrays["ids"]) - 8, margin=float(arrays["margins"].min()) if n_frames else 1e30)
    rule = "whole" if n_decoded <= CHUNK else "official_chunks"
    exact = None
    if wants_fp64 and rule == "whole":
        codes = arrays["codes"] if n_decoded == n_frames else np.concatenate([voice[1], arrays["codes"]])
        exact = engine.decode_fp64(codes)[(n_decoded - n_frames) * FRAME:]
    case["sound"], sound = goldenfile.sound_entry(samples, first, rule, exact)
    return arrays | sound


def made_up_voice(engine, reference):
    """An x-vector and reference codes from a seed: what the encoders would give is not the question here."""
    seed, talker = reference.pop("seed"), engine.config.talker_config
    noise = case_lists.random_codes(seed, 1, talker.hidden_size, 1 << 16)[0]
    codes = None
    if reference["frames"]:
        codes = case_lists.random_codes(seed, reference["frames"], talker.num_code_groups,
                                        talker.code_predictor_config.vocab_size)
    return (noise / 32768.0 - 1).astype("float32") * 2, codes


def run_decode(engine, case):
    decoder = engine.decoder.config
    codes = case_lists.random_codes(case.pop("seed"), case["frames"], decoder.num_quantizers, decoder.codebook_size)
    rule, first = case.pop("rule"), case.pop("first_samples")
    if rule == "whole" and len(codes) > CHUNK:
        stages, samples = {}, engine.decode_whole(codes)
    else:
        stages, samples = engine.decode(codes, case.pop("stages", False))
    case.pop("stages", None)
    exact = engine.decode_fp64(codes) if case.pop("fp64", False) else None
    case["sound"], sound = goldenfile.sound_entry(samples, first, rule, exact)
    return {"codes": codes, **stages, **sound}


def make(folder, out, cases, recipe=None, threads=2):
    """Runs `cases` (from cases.py) and writes the golden file `out`."""
    engine = official.Official(folder, threads)
    tensors, done = {}, []
    for case in cases:
        case, start = dict(case), time.time()
        arrays = run_decode(engine, case) if case["kind"] == "decode" else run_speak(engine, case)
        tensors |= {f"{case['name']}/{name}": array for name, array in arrays.items()}
        done.append(case)
        official.progress(f"  {case['name']}: {case['frames']} frames, {time.time() - start:.1f} s"
                          + (f", smallest margin {case['margin']:.2g}" if "margin" in case else ""))
    made_on = goldenfile.checkpoint(folder, engine.kind, engine.size, recipe)
    goldenfile.save(out, official.made_with(), made_on, done, tensors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-m", "--model", required=True, metavar="DIR")
    parser.add_argument("-o", "--out", required=True, metavar="FILE")
    parser.add_argument("--set", metavar="NAME", choices=sorted(case_lists.SETS | case_lists.FULL_SIZE),
                        help="a list of cases: full-size, full-size-sound, or a test checkpoint")
    parser.add_argument("--only", metavar="CASES", help="names of cases, comma separated")
    parser.add_argument("--frames", type=int, default=24, help="frames of each case of the default list")
    parser.add_argument("--recipe", help="what make_model was told")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if args.set:
        cases = (case_lists.SETS | case_lists.FULL_SIZE)[args.set]
    else:
        cases = case_lists.for_checkpoint(args.model, args.frames)
    if args.only:
        cases = [case for case in cases if case["name"] in args.only.split(",")]
    if not cases:
        parser.error("there are no such cases")
    make(args.model, args.out, cases, args.recipe, args.threads)


if __name__ == "__main__":
    main()
