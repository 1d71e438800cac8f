"""Other native engines and this program side by side on the same cores, in turn, in one run.

    python3 rivals.py --cores 8,9 --rounds 3 --frames 40 --own utter --own-models q8=Q8.utter q4=Q4.utter \\
        --g qwen_tts --g-model CHECKPOINT --q qwen-tts --q-models q8=TALKER.gguf q4=TALKER.gguf --q-codec CODEC.gguf

G is gabriele-mastrapasqua/qwen3-tts, Q is ServeurpersoCom/qwentts.cpp; both are built and fed as their own pages say
(docs/log/other-engines.md has what was done). Each engine says the first 13 words of the text that `utter bench`
uses, as often as there are rounds, with two threads on the given cores, the same number of frames, sampling on and
its vocoder included. G runs as its fastest file mode (its decoder after the frames: QWEN_NO_OVERLAP) and as its
stream mode of one frame; the better figure of the two counts. Q speaks twice in a process, and the second time
counts. Loading counts nowhere. Prints one line a run as it ends, and a table of medians. QT_THREADS is read by a Q
whose thread count was made settable."""
import argparse
import json
import os
import re
import statistics
import subprocess
import tempfile
import time

TEXT = "The lamp above the harbour had burned every night for sixty years, and on"
STEADY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "17179869184",
          "MALLOC_TOP_PAD_": "268435456"}


def run(args, command, env=None, feed=None):
    """Runs a program on the cores. Returns what it wrote to stderr and stdout, its peak memory in MB, and for a `feed`
    of several lines the seconds from each line to the first bytes of sound after it."""
    with tempfile.TemporaryFile("w+") as errors:
        child = subprocess.Popen(["taskset", "-c", args.cores] + command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=errors, env={**os.environ, **(env or {})})
        first, out = [], b""
        for line in feed or []:
            begin = time.monotonic()
            child.stdin.write(line.encode() + b"\n")
            child.stdin.flush()
            wanted = len(out) + 44 + 2 * 1000
            while len(out) < wanted and (piece := os.read(child.stdout.fileno(), 1 << 16)):
                out += piece
            first.append(time.monotonic() - begin)
            while len(out) < wanted - 2000 + 2 * 1920 * args.frames and (
                    piece := os.read(child.stdout.fileno(), 1 << 16)):
                out += piece
        child.stdin.close()
        out += child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
        errors.seek(0)
        text = errors.read()
        if status:
            raise RuntimeError(f"{' '.join(command)}: status {status}\n{text[-2000:]}")
        return text, out, usage.ru_maxrss / 1024, first


def last(pattern, text):
    found = re.findall(pattern, text)
    return float(found[-1]) if found else float("nan")


def own(args, weights):
    command = [args.own, "bench", "-m", args.own_models[weights], "--threads", "2", "--words", "13", "--max-frames",
               str(args.frames), "--runs", "1", "--json", "-q"] + args.own_options.split()
    _, out, _, _ = run(args, command)
    row = json.loads(out)
    parts = {key: round(row[key], 1) for key in ("talker_ms", "predictor_ms", "vocoder_ms", "limit_gb_per_s")}
    return dict(rtf=row["rtf"], first=row["ttfc_ms"]["median"], memory=row["peak_mb"], detail=parts)


def engine_g(args, weights):
    base = [args.g, "-d", args.g_model, "--text", TEXT, "-s", "ryan", "-l", "English", "--seed", "42", "-j", "2", "-m",
            str(args.frames), {"q8": "--int8", "q4": "--int4"}[weights]]
    results, sound = [], os.path.join(tempfile.gettempdir(), "rivals_g.wav")
    for extra, env in ((["-o", sound], {"QWEN_NO_OVERLAP": "1", "QWEN_Q4_VNNI_V4": "1", **STEADY}),
                       (["--stream", "--stream-chunk", "1", "-o", sound], STEADY)):
        text, _, memory, _ = run(args, base + extra, env)
        results.append(dict(rtf=last(r"RTF ([0-9.]+)", text), first=last(r"TTFA: ([0-9.]+)", text), memory=memory,
                            detail=[line.strip() for line in text.splitlines() if "ms" in line][-8:]))
    return dict(rtf=min(r["rtf"] for r in results), first=results[1]["first"],
                memory=min(r["memory"] for r in results), detail=[results[0]["rtf"], results[1]["rtf"],
                                                                  results[0]["detail"]])


def engine_q(args, weights):
    command = [args.q, "--model", args.q_models[weights], "--codec", args.q_codec, "--speaker", "ryan", "--lang",
               "English", "--seed", "42", "--max-new", str(args.frames), "--stream-by-line", "-o", "-"]
    text, _, memory, first = run(args, command, {"QT_THREADS": "2", "OMP_NUM_THREADS": "2", **STEADY}, [TEXT, TEXT])
    return dict(rtf=last(r"RTF ([0-9.]+)", text), first=1e3 * first[-1], memory=memory,
                detail=[line for line in text.splitlines() if "[Perf]" in line][-8:])


ENGINES = {"own": own, "G": engine_g, "Q": engine_q}


def pairs(text):
    return tuple(text.split("=", 1))


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cores", required=True)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--frames", type=int, default=40)
    options.add_argument("--own", required=True)
    options.add_argument("--own-models", nargs="+", type=pairs, required=True)
    options.add_argument("--own-options", default="")
    options.add_argument("--g")
    options.add_argument("--g-model")
    options.add_argument("--q")
    options.add_argument("--q-models", nargs="+", type=pairs, default=[])
    options.add_argument("--q-codec")
    options.add_argument("--out", help="all results as JSON")
    args = options.parse_args()
    args.own_models, args.q_models = dict(args.own_models), dict(args.q_models)
    engines = ["own"] + [name for name, program in (("G", args.g), ("Q", args.q)) if program]
    results = {}
    for turn in range(args.rounds):
        for weights in ("q8", "q4"):
            for name in engines:
                try:
                    result = ENGINES[name](args, weights)
                except (RuntimeError, OSError, ValueError, KeyError, IndexError) as error:
                    print(f"{name} {weights}: {error}", flush=True)
                    continue
                results.setdefault((name, weights), []).append(result)
                print(f"round {turn}: {name} {weights}: rtf {result['rtf']:.2f}, first sound {result['first']:.0f} ms, "
                      f"{result['memory']:.0f} MB; {result['detail']}", flush=True)
    print("\n| Engine | Weights | RTF: median (least) | First sound, ms | Peak memory, MB |\n|---|---|---|---|---|")
    for (name, weights), runs in sorted(results.items(), key=lambda item: item[0][1], reverse=True):
        rtf, first = [r["rtf"] for r in runs], [r["first"] for r in runs]
        print(f"| {name} | {weights} | {statistics.median(rtf):.2f} ({min(rtf):.2f}) | {statistics.median(first):.0f} "
              f"({min(first):.0f}) | {max(r['memory'] for r in runs):.0f} |")
    if args.out:
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump({" ".join(key): value for key, value in results.items()}, file, indent=1)


if __name__ == "__main__":
    main()
