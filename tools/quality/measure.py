"""One command, one table: words understood, endings, durations and loudness of spoken sentences, beside the teacher.

    python3 measure.py --teacher run/teacher --texts text/train_slt.txt text/train_rms.txt \\
        --groups 150 --out run/quality run/roundtrip run/spoken

Every folder holds sound files and a manifest.json: a list of {"file", "index", "text", "speaker", "layout", "ended"};
`index` pairs an item with the teacher's recording of the same sentence and speaker. --texts are the sentences that
the judge's language model is made from (never held-out ones). --groups 150 also reports the first 150 sentences and
the rest apart. Without --texts words are not judged (for long lists of sentences where only endings matter).
Intervals are 95%: bootstrap over sentences for word errors and their ratio, Wilson for shares.
"""
import argparse
import json
import os
import tempfile
import zlib

import numpy as np

import recogniser

FRAME = 1920
SHORTEST, LONGEST = .6, 1.6           # duration against the teacher, inside which an ending counts
DRAWS = 2000
TINY = 1e-4                           # a teacher without errors still gives a ratio


def load(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        items = json.load(file)
    for item in items:
        item["samples"], item["rate"] = recogniser.read_wav(os.path.join(folder, item["file"]))
        item["seconds"] = len(item["samples"]) / item["rate"]
    return items


def mark(path):
    with open(path, "rb") as file:
        return zlib.crc32(file.read())


def judge_words(folder, items, language, args):
    """Fills in errors, words and heard. What was heard is kept in the folder, a piece at a time, for the next time."""
    path = os.path.join(folder, "heard.json")
    known = {}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            kept = json.load(file)
        known = kept["heard"] if kept["texts"] == args.texts_mark else {}
    stale = [i for i in items if known.get(i["file"], {}).get("samples") != zlib.crc32(i["samples"])]
    for start in range(0, len(stale), args.piece):
        piece = stale[start:start + args.piece]
        heard = recogniser.judge([(i["samples"], i["rate"], i["text"]) for i in piece], language, args.processes)
        for item, (errors, words, text) in zip(piece, heard):
            known[item["file"]] = dict(errors=errors, words=words, heard=text, samples=zlib.crc32(item["samples"]))
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(dict(texts=args.texts_mark, heard=known), file)
        os.replace(path + ".part", path)
    for item in items:
        item.update({key: known[item["file"]][key] for key in ("errors", "words", "heard")})


def interval(values):
    return [float(np.percentile(values, 2.5)), float(np.percentile(values, 97.5))]


def word_errors(items, teacher, random):
    """Word error rate, and its ratio to the teacher's on the same sentences (paired bootstrap)."""
    pick = random.randint(0, len(items), (DRAWS, len(items)))
    errors, words, base, base_words = (np.array(v, float)[pick].sum(1) for v in (
        [i["errors"] for i in items], [i["words"] for i in items],
        [t["errors"] for t in teacher], [t["words"] for t in teacher]))
    rate = sum(i["errors"] for i in items) / sum(i["words"] for i in items)
    base_rate = sum(t["errors"] for t in teacher) / sum(t["words"] for t in teacher)
    return dict(word_errors=rate, word_errors_interval=interval(errors / words), teacher=base_rate,
                ratio=rate / max(base_rate, TINY),
                ratio_interval=interval((errors / words) / np.maximum(base / base_words, TINY)))


def wilson(good, count):
    z, p = 1.96, good / count
    centre, spread = p + z * z / (2 * count), z * np.sqrt(p * (1 - p) / count + z * z / (4 * count * count))
    return [float((centre - spread) / (1 + z * z / count)), float((centre + spread) / (1 + z * z / count))]


def endings(items, teacher):
    ratio = np.array([i["seconds"] / t["seconds"] for i, t in zip(items, teacher)])
    ended = np.array([i["ended"] for i in items])
    good = ended & (ratio >= SHORTEST) & (ratio <= LONGEST)
    return dict(ended=float(ended.mean()), ended_in_time=float(good.mean()),
                ended_in_time_interval=wilson(int(good.sum()), len(items)), duration=float(np.median(ratio)),
                duration_range=[float(np.percentile(ratio, 5)), float(np.percentile(ratio, 95))],
                outside=[dict(text=i["text"], ratio=round(float(r), 2), ended=bool(i["ended"]))
                         for i, r, g in zip(items, ratio, good) if not g][:20])


def decibels(x):
    return float(20 * np.log10(max(x, 1e-6)))


def jumps(samples):
    """Mean step between neighbours at frame borders, against all other places."""
    steps = np.abs(np.diff(samples))
    at = np.arange(FRAME - 1, len(steps), FRAME)
    return steps[at].mean() / max(steps.mean(), 1e-9) if len(at) else 1.


def hum(samples, rate):
    """Share of the power below 60 Hz (no voice reaches down there), in decibels; the offset is not part of it."""
    power = np.abs(np.fft.rfft(samples)) ** 2
    low = np.arange(len(power)) * rate / len(samples) < 60
    return 10 * np.log10(max(power[low][1:].sum(), 1e-12) / max(power[1:].sum(), 1e-9))


def levels(items):
    return dict(loudness=decibels(np.sqrt(np.mean(np.concatenate([i["samples"] for i in items]) ** 2))),
                peak=decibels(max(np.abs(i["samples"]).max() for i in items)),
                clipped=float(np.mean([np.abs(i["samples"]).max() >= .999 for i in items])),
                offset=decibels(max(abs(i["samples"].mean()) for i in items)),
                hum=float(np.median([hum(i["samples"], i["rate"]) for i in items])),
                border_jump=float(np.mean([jumps(i["samples"]) for i in items if len(i["samples"]) > FRAME])))


def measure(items, teacher, groups, with_words):
    """One row for each speaker and layout, and for each group of sentences."""
    rows, random = [], np.random.RandomState(0)
    base = {(t["speaker"], t["index"]): t for t in teacher}
    kinds = [("all", lambda i: True)]
    if groups:
        kinds += [("easy", lambda i: i["index"] < groups), ("others", lambda i: i["index"] >= groups)]
    for speaker, name in sorted({(i["speaker"], i["layout"]) for i in items}):
        for kind, wanted in kinds:
            own = [i for i in items if (i["speaker"], i["layout"]) == (speaker, name) and wanted(i)]
            if not own:
                continue
            beside = [base[i["speaker"], i["index"]] for i in own]
            row = dict(speaker=speaker, layout=name, sentences=kind, count=len(own))
            if with_words:
                row.update(word_errors(own, beside, random))
            row.update(endings(own, beside))
            row.update(levels(own))
            row.update({"teacher_" + key: value for key, value in levels(beside).items()})
            rows.append(row)
    return rows


def percent(value, bounds=None):
    text = f"{100 * value:.1f}"
    return text + (f" ({100 * bounds[0]:.1f}-{100 * bounds[1]:.1f})" if bounds else "")


def table(rows):
    """The rows as a Markdown table."""
    words = "word_errors" in rows[0]
    lines = ["| What | Speaker | Layout | Sentences | n |" +
             (" Word errors, % | Teacher, % | Ratio |" if words else "") +
             " Ended by itself, % | Ended within 0.6-1.6x, % | Length / teacher: median (5-95%) |"
             " Loudness (teacher), dB | Peak, dB | Clipped, % | Offset, dB | Below 60 Hz (teacher), dB | Border jump |"]
    lines.append("|" + "---|" * (lines[0].count("|") - 1))
    for r in rows:
        cells = [r["what"], r["speaker"], r["layout"] or "-", r["sentences"], str(r["count"])]
        if words:
            low, high = r["ratio_interval"]
            cells += [percent(r["word_errors"], r["word_errors_interval"]), percent(r["teacher"]),
                      f"{r['ratio']:.2f} ({low:.2f}-{high:.2f})"]
        cells += [percent(r["ended"]), percent(r["ended_in_time"], r["ended_in_time_interval"]),
                  f"{r['duration']:.2f} ({r['duration_range'][0]:.2f}-{r['duration_range'][1]:.2f})",
                  f"{r['loudness']:.1f} ({r['teacher_loudness']:.1f})", f"{r['peak']:.1f}", percent(r["clipped"]),
                  f"{r['offset']:.1f}", f"{r['hum']:.1f} ({r['teacher_hum']:.1f})", f"{r['border_jump']:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folders", nargs="+")
    options.add_argument("--teacher", required=True)
    options.add_argument("--texts", nargs="*", default=[])
    options.add_argument("--groups", type=int, default=0)
    options.add_argument("--processes", type=int, default=os.cpu_count())
    options.add_argument("--piece", type=int, default=200, help="recordings judged before what was heard is saved")
    options.add_argument("--out", required=True, help="writes OUT.json and OUT.md")
    args = options.parse_args()
    args.texts_mark = [mark(path) for path in args.texts]
    teacher, rows = load(args.teacher), []
    folders = [(os.path.basename(os.path.normpath(folder)), load(folder)) for folder in args.folders]
    with tempfile.TemporaryDirectory() as scratch:
        language = recogniser.prepare(args.texts, scratch) if args.texts else None
        if language:
            wanted = {(i["speaker"], i["index"]) for _, items in folders for i in items}
            judge_words(args.teacher, [i for i in teacher if (i["speaker"], i["index"]) in wanted], language, args)
        for folder, (what, items) in zip(args.folders, folders):
            if language:
                judge_words(folder, items, language, args)
            rows += [dict(what=what, **row) for row in measure(items, teacher, args.groups, bool(language))]
    with open(args.out + ".json", "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
    with open(args.out + ".md", "w", encoding="utf-8") as file:
        file.write(table(rows) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
