"""Two or more models say the same sentences, and the difference in words understood is judged pair by pair.

    python3 paired.py run --program UTTER --models fp32=../../voice/builtin q8=Q8.utter q4/2=Q4.utter \
        --texts run/text/heldout_words.txt --judge-texts run/text/train_slt.txt run/text/train_rms.txt --seeds 4 \
        --seconds 600 --out run/paired.jsonl
    python3 paired.py report run/paired.jsonl --teacher run/teacher

A *turn* is one sentence, preset voice, layout and seed, said by every model (by NAME/n=MODEL in each n-th turn only)
and judged at once; turns come in a shuffled order, so that a run that --seconds cuts off is a fair sample of all. The
first model is what the others are compared with. Each line of the file is one turn. The intervals are 95%: bootstrap
over sentences, all turns of a sentence together. --language LM DICTIONARY is what recogniser.prepare() makes, for a
machine that lacks the texts. Endings, lengths and peaks are kept too. With --teacher (recordings of the same texts that
measure.py has judged: manifest.json and heard.json) every model's errors also stand as a ratio to the teacher's.
"""
import argparse
import collections
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time

import numpy as np

import recogniser

DRAWS = 2000
PIECE = 8                             # turns that a process says before it judges them


def say(args, model, turn, path):
    """Seconds of speech, and whether the end came by itself."""
    text, _, preset, name, seed = turn
    command = [args.program, "say", "--stats", "-m", model, "-l", "english", "-v", preset, "--layout", name, "--seed",
               str(seed), "--threads", "1", "--device", "cpu", "-o", path, *args.options.split(), "--", text]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    finish = [line.split()[1] for line in (done.stdout + done.stderr).splitlines() if line.startswith("finish ")]
    return finish == ["eos"]


def run_piece(job):
    """Says and judges some turns; returns their lines."""
    args, number, turns = job
    if time.time() > args.until:
        return []
    with tempfile.TemporaryDirectory() as folder:
        items, keys, ended = [], [], []
        for k, turn in enumerate(turns):
            for name, model, each in args.models:
                if (number * PIECE + k) % each:
                    continue
                path = os.path.join(folder, "x.wav")
                ended.append(say(args, model, turn, path))
                samples, rate = recogniser.read_wav(path)
                items.append((samples, rate, turn[0]))
                keys.append((k, name))
        heard = recogniser.judge(items, args.language, 1)
    lines = [dict(index=t[1], preset=t[2], layout=t[3], seed=t[4], models={}) for t in turns]
    for (k, name), (errors, words, _), (samples, rate, _), end in zip(keys, heard, items, ended):
        lines[k]["words"] = words
        lines[k]["models"][name] = dict(errors=errors, seconds=round(len(samples) / rate, 2), ended=end,
                                        peak=round(float(np.abs(samples).max()), 3))
    return lines


def all_turns(args):
    texts = []
    for path in args.texts:
        with open(path, encoding="utf-8") as file:
            texts += [line.rstrip("\n") for line in file if line.strip()]
    turns = []
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        some = [(text, i, preset, name, 1 + 100000 * seed + i) for i, text in enumerate(texts)
                for preset in args.presets for name in args.layouts]
        random.Random(seed).shuffle(some)
        turns += some
    return turns


def run(args):
    args.until = time.time() + args.seconds
    scratch = tempfile.TemporaryDirectory()
    if not args.language:
        args.language = recogniser.prepare(args.judge_texts, scratch.name)
    turns = all_turns(args)
    jobs = [(args, n, turns[n * PIECE:(n + 1) * PIECE]) for n in range(len(turns) // PIECE)]
    done = 0
    with multiprocessing.Pool(args.processes) as pool, open(args.out, "w", encoding="utf-8") as file:
        for lines in pool.imap_unordered(run_piece, jobs):
            for line in lines:
                file.write(json.dumps(line) + "\n")
            file.flush()
            done += len(lines)
    print(f"{done} turns")


def load(paths):
    lines = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            lines += [json.loads(line) for line in file if line.endswith("\n")]
    return lines


def sums(lines, first, other):
    """One row for each sentence: errors of both, words, turns."""
    rows = collections.defaultdict(lambda: np.zeros(4))
    for line in lines:
        m = line["models"]
        if first in m and other in m:
            rows[line["index"]] += (m[first]["errors"], m[other]["errors"], line["words"], 1)
    return np.array(list(rows.values()))


def compare(lines, first, other, generator):
    rows = sums(lines, first, other)
    total = rows.sum(0)
    drawn = np.array([rows[generator.integers(0, len(rows), len(rows))].sum(0) for _ in range(DRAWS)])
    difference = 100 * (drawn[:, 1] - drawn[:, 0]) / drawn[:, 2]
    low, high = np.percentile(difference, [2.5, 97.5])
    pairs = [(l["models"][first], l["models"][other]) for l in lines if first in l["models"] and other in l["models"]]
    length = np.array([b["seconds"] / max(a["seconds"], .08) for a, b in pairs])
    return (f"| {other} | {len(pairs)} of {len(rows)} | {100 * total[0] / total[2]:.2f} | "
            f"{100 * total[1] / total[2]:.2f} | {100 * (total[1] - total[0]) / total[2]:+.2f} ({low:+.2f} to "
            f"{high:+.2f}) | {sum(a['ended'] for a, _ in pairs)}, {sum(b['ended'] for _, b in pairs)} | "
            f"{np.median(length):.3f} ({np.percentile(length, 5):.2f}-{np.percentile(length, 95):.2f}) |")


def teacher_errors(folder):
    """(speaker, index) -> errors and words of the teacher's recording."""
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)
    with open(os.path.join(folder, "heard.json"), encoding="utf-8") as file:
        heard = json.load(file)["heard"]
    return {(m["speaker"], m["index"]): (heard[m["file"]]["errors"], heard[m["file"]]["words"]) for m in manifest}


def against_teacher(lines, name, teacher, generator):
    """Turns, errors, both rates in percent, their ratio and its interval; the teacher counts once in every turn."""
    rows, turns = collections.defaultdict(lambda: np.zeros(4)), 0
    for line in lines:
        if name in line["models"]:
            errors, words = teacher[line["preset"], line["index"]]
            if words != line["words"]:
                sys.exit(f"paired.py: sentence {line['index']} has {line['words']} words, the teacher's {words}: "
                         "other texts (give the recordings of those that were said)")
            rows[line["index"]] += (line["models"][name]["errors"], words, errors, words)
            turns += 1
    rows = np.array(list(rows.values()))
    drawn = np.array([rows[generator.integers(0, len(rows), len(rows))].sum(0) for _ in range(DRAWS)])
    total, ratio = rows.sum(0), (drawn[:, 0] / drawn[:, 1]) / (drawn[:, 2] / drawn[:, 3])
    return (turns, len(rows), int(total[0]), 100 * total[0] / total[1], 100 * total[2] / total[3],
            (total[0] / total[1]) / (total[2] / total[3]), *np.percentile(ratio, [2.5, 97.5]))


def report_ratios(lines, folder):
    teacher, generator = teacher_errors(folder), np.random.default_rng(0)
    layouts = sorted({line["layout"] for line in lines})
    print("\n| Model | Speaker | Layout | Turns of sentences | Errors | Word errors, % | Teacher, % | Ratio |\n"
          "|---|---|---|---|---|---|---|---|")
    for name in dict.fromkeys(name for line in lines for name in line["models"]):
        for preset in sorted({line["preset"] for line in lines}):
            for layout in layouts + (["both"] if len(layouts) > 1 else []):
                some = [l for l in lines if l["preset"] == preset and layout in ("both", l["layout"])]
                if any(name in line["models"] for line in some):
                    print("| %s | %s | %s | %d of %d | %d | %.2f | %.2f | %.3f (%.2f-%.2f) |"
                          % (name, preset, layout, *against_teacher(some, name, teacher, generator)))


def report(args):
    lines = load(args.files)
    if args.teacher:
        report_ratios(lines, args.teacher)
    first = next(iter(lines[0]["models"]))
    others = list(dict.fromkeys(name for line in lines for name in line["models"] if name != first))
    generator = np.random.default_rng(0)
    for what, wanted in [("all", lambda l: True)] + [
            (f"{p} {n}", lambda l, p=p, n=n: (l["preset"], l["layout"]) == (p, n))
            for p, n in sorted({(l["preset"], l["layout"]) for l in lines})]:
        some = [line for line in lines if wanted(line)]
        print(f"\n{what}, against {first}\n\n| Model | Turns of sentences | {first}: word errors, % | Its own, % | "
              "Difference, points | Ended by themselves | Length: median (5-95%) |\n|---|---|---|---|---|---|---|")
        for other in others:
            if any(other in line["models"] for line in some):
                print(compare(some, first, other, generator))


def named(text):
    """NAME=MODEL or NAME/n=MODEL."""
    name, model = text.split("=", 1)
    name, _, each = name.partition("/")
    return name, model, int(each or 1)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = options.add_subparsers(dest="command", required=True)
    speak = commands.add_parser("run")
    speak.add_argument("--program", required=True)
    speak.add_argument("--models", nargs="+", required=True, type=named)
    speak.add_argument("--texts", nargs="+", required=True)
    speak.add_argument("--presets", nargs="+", default=["clara", "miles"])
    speak.add_argument("--layouts", nargs="+", default=["full", "stream"])
    speak.add_argument("--seeds", type=int, default=1)
    speak.add_argument("--first-seed", type=int, default=0, help="for a second run: other turns")
    speak.add_argument("--language", nargs=2, help="language model and dictionary")
    speak.add_argument("--judge-texts", nargs="+", default=[])
    speak.add_argument("--options", default="", help="further ones for `utter say`, in one string")
    speak.add_argument("--processes", type=int, default=os.cpu_count())
    speak.add_argument("--seconds", type=float, default=1e9)
    speak.add_argument("--out", required=True)
    tell = commands.add_parser("report")
    tell.add_argument("files", nargs="+")
    tell.add_argument("--teacher", help="folder of the teacher's judged recordings: ratios to them as well")
    args = options.parse_args()
    if args.command == "run" and not (args.language or args.judge_texts):
        sys.exit("paired.py: --language or --judge-texts is missing")
    (run if args.command == "run" else report)(args)


if __name__ == "__main__":
    main()
