"""Long texts of the program's readings: whether they are whole, what a book loses, how pieces are joined.

    python3 long_text.py texts --sentences run/text/heldout_endings.txt --out run/texts.jsonl
    python3 long_text.py book --sentences run/other/train_slt.txt --texts run/text/train_slt.txt \\
        run/text/train_rms.txt --out run/book.jsonl
    python3 long_text.py seams --sentences run/text/heldout_endings.txt --out run/seams.jsonl

Every job takes one core; all cores work. A line of JSON is added to --out as each job ends: a run that is started again
goes on there, `--first N` does the first N jobs only, and --report says what the file holds.
"""
import argparse
import json
import os
import random
import re
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed

import numpy as np

RATE = 24000
BLOCK = RATE // 200           # 5 ms, in samples
PAUSE_S = .1                  # inside a piece, what a comma takes at least
LOUD = .004                   # above what a vocoder gives where nobody speaks (src/reading/seam.c)
DRAWS = 2000
ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")


def join_sentences(sentences, letters, draw):
    """A text of about so many letters: whole sentences, a paragraph each five."""
    text = ""
    while len(text) < letters:
        text += draw.choice(sentences) + ("\n\n" if draw.random() < .2 else " ")
    return text.strip()


def read(args, text, seed, sound=False, more=()):
    """Its pieces (or words, as `more` asks), what became of all of it, and its samples if they are wanted."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "text"), os.path.join(folder, "sound")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        command = [args.program, "-m", args.model, "-v", args.voice, "-s", str(seed), "-t", "1", *more, path]
        done = subprocess.run(command + [out] * sound, stdout=subprocess.PIPE, text=True, check=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return lines[:-1], lines[-1], np.fromfile(out, np.float32) if sound else None


def total(results, key):
    return sum(r[key] for r in results)


# ---- Whole ----

def texts_jobs(args, sentences):
    draw = random.Random(1)
    texts = [join_sentences(sentences, draw.randint(400, 2000), draw) for _ in range(200)]
    return [dict(text=text, seed=seed) for text in texts for seed in (1, 2, 3)]


def texts_job(args, job):
    _, whole, _ = read(args, job["text"], job["seed"])
    return dict(letters=len(job["text"]), seed=job["seed"], **whole)


def texts_report(results):
    good = sum(r["finish"] == "eos" and r["not_whole"] == 0 for r in results)
    first = sum(r["finish"] == "eos" and r["not_whole"] == r["said_again"] == 0 for r in results)
    return (f"{good} of {len(results)} ({100 * good / len(results):.2f} %) end by themselves and whole, {first} "
            f"without a second try; {total(results, 'said_again')} of {total(results, 'pieces')} pieces were said "
            f"again; {total(results, 'samples') / RATE:.0f} s of speech")


# ---- Words of a book ----

def book_jobs(args, sentences):
    draw = random.Random(2)
    draw.shuffle(sentences)
    jobs, chapter, n_words = [], [], 0
    for sentence in sentences:
        chapter.append(sentence)
        n_words += len(sentence.split())
        if sum(len(s.split()) for s in chapter) >= 500 or n_words >= args.words:
            jobs.append(dict(sentences=chapter, seed=len(jobs)))
            chapter = []
        if n_words >= args.words:
            return jobs
    raise SystemExit(f"{args.sentences} has {n_words} words, {args.words} are wanted (sentences.py makes more)")


def count_missing(wanted, heard):
    """Words that the best alignment leaves out, and all its errors."""
    row = [(j, 0) for j in range(len(heard) + 1)]
    for i, word in enumerate(wanted):
        previous, row = row, [(i + 1, i + 1)]
        for j, other in enumerate(heard):
            row.append(min((previous[j][0] + (word != other), previous[j][1]), (row[j][0] + 1, row[j][1]),
                           (previous[j + 1][0] + 1, previous[j + 1][1] + 1)))
    return row[-1][1], row[-1][0]


def judge(args, items):
    """Sums of missing words, of errors, and of words."""
    import recogniser
    heard = recogniser.judge(items, args.language, 1)
    missing = [count_missing(recogniser.spoken.words(text), got.split())
               for (_, _, text), (_, _, got) in zip(items, heard)]
    return dict(missing=sum(m for m, _ in missing), errors=sum(e for _, e in missing),
                words=sum(w for _, w, _ in heard))


def book_job(args, job):
    """A chapter by reading, and each of its sentences alone."""
    text = " ".join(job["sentences"])
    source = text.encode()
    pieces, whole, sound = read(args, text, job["seed"], sound=True)
    reading = judge(args, [(sound[p["begin"]:p["end"]], RATE, source[p["at"]:p["at"] + p["bytes"]].decode())
                           for p in pieces])
    alone = judge(args, [(read(args, s, job["seed"], sound=True)[2], RATE, s) for s in job["sentences"]])
    return dict(reading=reading, alone=alone, pieces=whole["pieces"], said_again=whole["said_again"],
                not_whole=whole["not_whole"])


def book_report(results):
    counts = np.array([[r[how][what] for how in ("reading", "alone") for what in ("missing", "errors", "words")]
                       for r in results], float)
    pick = np.random.RandomState(1).randint(0, len(counts), (DRAWS, len(counts)))
    drawn = counts[pick].sum(1)
    m, e, w, m1, e1, w1 = counts.sum(0)
    gap = 100 * (drawn[:, 0] / drawn[:, 2] - drawn[:, 3] / drawn[:, 5])
    return (f"{w:.0f} words; missing {100 * m / w:.2f} % by reading, {100 * m1 / w1:.2f} % of single sentences: "
            f"{100 * (m / w - m1 / w1):+.2f} points ({np.percentile(gap, 2.5):+.2f} to "
            f"{np.percentile(gap, 97.5):+.2f}); errors {100 * e / w:.2f} and {100 * e1 / w1:.2f} %; "
            f"{total(results, 'said_again')} of {total(results, 'pieces')} pieces said again, "
            f"{total(results, 'not_whole')} not whole")


# ---- Seams ----

def seams_jobs(args, sentences):
    draw = random.Random(3)
    return [dict(text=join_sentences(sentences, 6000, draw), seed=seed) for seed in range(32)]


def rms(x):
    return float(np.sqrt(np.mean(x.astype(np.float64) ** 2) + 1e-12))


def quiet_runs(sound, least_s=.04):
    """[begin, end) of each run of quiet blocks."""
    block = BLOCK
    quiet = np.abs(sound[:len(sound) // block * block]).reshape(-1, block).max(1) < LOUD
    edges = np.flatnonzero(np.diff(np.concatenate(([0], quiet, [0])).astype(int)))
    runs = edges.reshape(-1, 2) * block
    return [(a, b) for a, b in runs if b - a >= least_s * RATE]


def about_pause(sound, a, b):
    """The largest step in the quiet against the level around it; level behind against before, in half a second, without
    its last tenth before (what ends an utterance dies away) and in two seconds; how steeply the sound falls before it
    and rises behind it. In decibels."""
    ms = RATE // 1000
    before, behind = sound[max(a - 500 * ms, 0):a], sound[b:b + 500 * ms]
    if a < 600 * ms or len(behind) < 500 * ms:
        return None
    around = max(rms(before), rms(behind))
    step = np.abs(np.diff(sound[a - 2 * ms:b + 2 * ms])).max()
    db = [step / around, rms(behind) / rms(before), rms(sound[b:b + 400 * ms]) / rms(sound[a - 500 * ms:a - 100 * ms]),
          rms(sound[b:b + 2000 * ms]) / rms(sound[max(a - 2000 * ms, 0):a]),
          rms(sound[a - 10 * ms:a]) / rms(sound[a - 110 * ms:a - 10 * ms]),
          rms(sound[b:b + 10 * ms]) / rms(sound[b + 10 * ms:b + 110 * ms])]
    return [round(float(20 * np.log10(max(x, 1e-6))), 2) for x in db]


def ends_sentence(text, words, a, b):
    """Whether the quiet [a, b) inside a piece lies behind a sentence: by the words on both sides of its middle."""
    i = min(range(len(words) - 1), key=lambda k: abs(words[k]["end"] + words[k + 1]["start"] - a - b))
    between = text[words[i]["word"] + words[i]["bytes"]:words[i + 1]["word"]]
    return re.search(rb"[.!?]", between) is not None


def seams_job(args, job):
    lines, whole, sound = read(args, job["text"], job["seed"], sound=True, more=["-w"])
    pieces, words = ([line for line in lines if kind in line] for kind in ("piece", "word"))
    text = job["text"].encode()
    borders = [p["end"] for p in pieces[:-1]]
    runs = quiet_runs(sound)
    result = dict(seams=[], inside=[], loud=0, not_whole=whole["not_whole"])
    for border in borders:       # one that lies in no quiet has cut something
        result["loud"] += not any(a <= border <= b + BLOCK for a, b in runs)
    for a, b in runs:
        is_seam = any(a <= border <= b + BLOCK for border in borders)
        inside = not is_seam and b - a >= PAUSE_S * RATE and ends_sentence(text, words, a, b)
        about = about_pause(sound, a, b) if is_seam or inside else None
        if about:
            result["seams" if is_seam else "inside"].append(about)
    return result


def seams_report(results):
    seams, inside = (np.array([x for r in results for x in r[kind]]) for kind in ("seams", "inside"))
    lines = [f"{len(seams)} seams, {total(results, 'loud')} not in a quiet place; {len(inside)} sentence ends "
             f"inside pieces. In dB: median (1 - 99 %)"]
    names = ("largest step in the quiet", "level behind against before", "the same, without 100 ms",
             "the same, in 2 s", "fall before", "rise behind")
    for i, name in enumerate(names):
        low, high = np.percentile(inside[:, i], [1, 99])
        out = np.mean((seams[:, i] < low) | (seams[:, i] > high))
        lines.append(f"{name:28} seams {np.median(seams[:, i]):6.1f} ({np.percentile(seams[:, i], 1):.1f} - "
                     f"{np.percentile(seams[:, i], 99):.1f}), inside {np.median(inside[:, i]):6.1f} ({low:.1f} - "
                     f"{high:.1f}); {100 * out:.1f} % of seams outside that")
    return "\n".join(lines)


# ---- All of them ----

KINDS = {"texts": (texts_jobs, texts_job, texts_report), "book": (book_jobs, book_job, book_report),
         "seams": (seams_jobs, seams_job, seams_report)}


def load(path):
    if not os.path.exists(path):
        return {}
    with open(path, encoding="utf-8") as file:
        return {r["job"]: r for r in map(json.loads, file)}


def run(args):
    make, do, report = KINDS[args.what]
    if args.report:
        return report(list(load(args.out).values()))
    with open(args.sentences, encoding="utf-8") as file:
        jobs = make(args, [line.strip() for line in file if line.strip()])[:args.first]
    done = load(args.out)
    with tempfile.TemporaryDirectory() as folder, open(args.out, "a", encoding="utf-8") as out, \
            ThreadPoolExecutor(args.processes) as pool:
        if args.what == "book":
            import recogniser
            args.language = recogniser.prepare(args.texts, folder)
        waiting = {pool.submit(do, args, job): i for i, job in enumerate(jobs) if i not in done}
        for job in as_completed(waiting):
            result = dict(job=waiting[job], **job.result())
            done[result["job"]] = result
            print(json.dumps(result), file=out, flush=True)
    return report(list(done.values()))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=KINDS)
    options.add_argument("--program", default=os.path.join(ROOT, "build/release/tools/read_pieces"))
    options.add_argument("--model", default=os.path.join(ROOT, "voice/builtin"))
    options.add_argument("--voice", default="clara")
    options.add_argument("--sentences", help="a file of sentences, one a line")
    options.add_argument("--texts", nargs="+", default=[], help="book: what the judge's language model is made from")
    options.add_argument("--words", type=int, default=100000, help="book: how many")
    options.add_argument("--first", type=int, help="do so many jobs only")
    options.add_argument("--processes", type=int, default=os.cpu_count())
    options.add_argument("--report", action="store_true", help="say what --out holds, and do nothing")
    options.add_argument("--out", required=True)
    print(run(options.parse_args()))


if __name__ == "__main__":
    main()
