#!/usr/bin/env python3
"""Makes the committed golden files afresh, compares them, and lets the engine verify them.

usage: make_goldens.py [--update] [NAME...]

NAME is a test checkpoint of tests/fixtures/checkpoints (built by `make checkpoints`) that has a set in cases.py, or
sampling, or encode-NAME; all by default. Fresh files go to build/oracle/golden. --update copies them over
tests/golden: say why in the commit.
"""
import argparse
import concurrent.futures
import json
import multiprocessing
import os
import pathlib
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
import cases as case_lists  # noqa: E402
import encode  # noqa: E402
import goldenfile  # noqa: E402

COMMITTED, FRESH, CHECKPOINTS = ROOT / "tests/golden", ROOT / "build/oracle/golden", ROOT / "build/checkpoints"
# Not for `utter verify`: unit tests read them.
SAMPLING = "sampling"
ENCODE = {"encode-tiny06": ("tiny06-base", "all"), "encode-tiny17": ("tiny17-base", "few")}
ENCODE_MARGIN = 5e-6
SMALLEST_MARGIN = 1e-5
UTTER = ROOT / "build/release/utter"


def recipes():
    """Checkpoint name -> arguments of make_model."""
    lines = [line.split("#")[0].split() for line in (ROOT / "tests/fixtures/checkpoints").read_text().splitlines()]
    return {words[0]: " ".join(words[1:]) for words in lines if words}


def make(name, recipe):
    import golden
    out = FRESH / f"{name}.safetensors"
    if name == SAMPLING:
        import sampling
        FRESH.mkdir(parents=True, exist_ok=True)
        sampling.write(out)
        return out
    if name in ENCODE:
        checkpoint, recordings = ENCODE[name]
        encode.make(CHECKPOINTS / checkpoint, out, encode.SETS[recordings], ENCODE_MARGIN)
        return out
    golden.make(CHECKPOINTS / name, out, case_lists.SETS[name], recipe, threads=1)
    return out


def compare(name, fresh):
    committed = COMMITTED / f"{name}.safetensors"
    if not committed.exists():
        return [f"{committed.name} is not in tests/golden"]
    differences = encode.differences if name in ENCODE else goldenfile.differences
    return [f"{committed.name}: {what}" for what in differences(committed, fresh)] + sees_changes(differences, fresh)


def sees_changes(differences, fresh):
    """A comparison that finds nothing is only worth something if it finds one wrong value."""
    metadata, tensors = goldenfile.load(fresh)
    kind = lambda name: "f" if tensors[name].dtype.kind == "f" else "i"
    for name in {kind(name): name for name in tensors if tensors[name].size}.values():  # an integer and a float tensor
        changed = tensors[name].copy()
        changed.flat[-1] += changed.dtype.type(1)
        other = fresh.with_name(fresh.stem + "-changed.safetensors")
        goldenfile.save_file(tensors | {name: changed}, str(other), metadata=metadata)
        found = differences(fresh, other)
        other.unlink()
        if len(found) != 1 or not found[0].startswith(name):
            return [f"the comparison does not see that {name} was changed"]
    return []


def work(name):
    """In frames of speech, about; what listens takes as long as 200."""
    return 200 if name in ENCODE else sum(case.get("max_frames", 0) for case in case_lists.SETS.get(name, []))


def near_ties(name, fresh):
    """Choices so close that fp32 rounding on another machine could turn them have no place in a committed file."""
    if name in (SAMPLING, "ties", *ENCODE):
        return []
    cases = json.loads(goldenfile.load(fresh)[0]["cases"])
    return [f"case {case['name']}: two scores are only {case['margin']:.2g} apart; take another text"
            for case in cases if case.get("margin", 1) < SMALLEST_MARGIN]


def verify(name, fresh):
    """What the engine says about a fresh golden: a list of faults."""
    command = [UTTER, "verify", fresh, "-m", CHECKPOINTS / name]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        return []
    return [f"{' '.join(map(str, command))}: exit {run.returncode}\n{run.stdout}{run.stderr}".rstrip()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true")
    parser.add_argument("names", nargs="*", metavar="NAME")
    args = parser.parse_args()
    start, faults, all_recipes = time.time(), [], recipes()
    names = sorted(args.names or [*case_lists.SETS, SAMPLING, *ENCODE], key=work, reverse=True)

    workers = min(2, len(os.sched_getaffinity(0)))
    with concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        runs = {pool.submit(make, name, all_recipes.get(name)): name for name in names}
        for run in concurrent.futures.as_completed(runs):
            name, fresh = runs[run], run.result()
            if args.update:
                shutil.copyfile(fresh, COMMITTED / fresh.name)
            found, verified = compare(name, fresh), UTTER.exists() and name in case_lists.SETS
            found += near_ties(name, fresh)
            found += verify(name, fresh) if verified else []
            print(f"{name}: {'; '.join(found) or 'as committed' + (', verified' if verified else '')}", flush=True)
            faults += found
    print(f"{len(names)} golden files in {time.time() - start:.0f} s, {len(faults)} faults")
    if not UTTER.exists():
        print(f"SKIPPED: {UTTER.relative_to(ROOT)} is not built, nothing was verified")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
