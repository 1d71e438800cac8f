# One GPU measured against what is asked of it: one_card.py BUILD CHECKPOINTS PART... It wants the machine alone. Prints
# a line of JSON for each figure; where it has a bar, whether that holds.
#   lanes    a frame, first samples and RTF of 0.6B and 1.7B on one lane; how often real time with 64 and 256 of 0.6B
#   before   BEFORE, the program of an earlier tree, beside this one: frame, first samples and RTF by turns; codes and
#            sounds of 20 utterances on one lane, on five and of 64 on 64, bf16 and 8 bits, by `serve` and by `say`
#   packed   a frame of one lane by graphs in 8 and 4 bits over one in bf16, by turns
#   posed    a frame of one lane as an RTX 5090 makes it, and as a 3090 does
#   memory   what the card gives away for one lane in 8 and 4 bits, all in
#   serve    `utter serve --weights q8` at 10 and 20 requests a second: players that ran dry
#   soak     check_soak as a 5090, and as a 3090 by the graphs alone, 20,000 frames, twice each
#   foretold what `utter info` foretells of a step against what `utter bench` measures, 1 to 64 lanes
# CHECKPOINTS holds 0.6b, 1.7b (make_model 0.6b custom_voice, 1.7b custom_voice), wide (make build/checkpoints/wide).
# Settings: those of figures.py; TURNS (3); LEAST=1 for a try of the script itself on small checkpoints.
import concurrent.futures
import json
import os
import statistics
import subprocess
import tempfile
import threading

from figures import SECONDS, Server, arguments, judged, load, serve, show

(build, checkpoints, *parts), options = arguments()
program = os.path.join(build, "utter")
LEAST = os.environ.get("LEAST") == "1"
TURNS = 1 if LEAST else int(os.environ.get("TURNS", "3"))
SMALL, LARGE = (os.path.join(checkpoints, name) for name in ("0.6b", "1.7b"))
# Measured before the rooms were rebuilt: ms of a frame, ms of first samples at p95, RTF; how often real time.
BARS = {"H200": ((1.06, 2.7, 0.0153), {64: 490, 256: 616}), "H100": ((1.22, 3.2, 0.0184), {})}
SLOWER = 1.01  # may be
FRAME_MS = 80  # of speech


def said(*words, env=None):
    r = subprocess.run(words, capture_output=True, env={**os.environ, **(env or {})})
    assert r.returncode == 0, (words, r.stderr.decode()[-1000:])
    return r.stdout.decode()


def bench(model, *more, words=13, lanes="1", by=program):
    """The rows of one run."""
    runs = ["--runs", "1", "--max-frames", "4"] if LEAST else []
    out = said(by, "bench", "-m", model, "--device", "cuda", "--words", str(words), "--lanes", lanes, "--json",
               "-q", *runs, *more, *options)
    return [json.loads(line) for line in out.splitlines()]


def card():
    return json.loads(said(program, "info", "-m", SMALL, "--device", "cuda", "--json"))["gpus"][0]


def frame_ms(model, *more):
    return bench(model, *more)[0]["frame_ms"]["median"]


def lanes():
    one, many = next((bars for name, bars in BARS.items() if name in card()), ((), {}))
    for model in SMALL, LARGE:
        rows = [bench(model)[0] for _ in range(TURNS)]
        values = [statistics.median(f(r) for r in rows) for f in (
            lambda r: r["frame_ms"]["median"], lambda r: r["ttfc_ms"]["p95"], lambda r: r["rtf"])]
        names = ("frame ms", "first samples ms, p95", "rtf")
        for i, (name, value) in enumerate(zip(names, values)):
            if one and model == SMALL:
                judged("0.6b " + name, value, round(one[i] * SLOWER, 4))
            else:
                show(os.path.basename(model) + " " + name, value=value)
    for r in bench(SMALL, words=53, lanes="1,2" if LEAST else "64,256"):
        n, value = r["lanes"], 1 / r["rtf"]
        if n in many:
            judged(f"{n} lanes, times real time", value, many[n] / SLOWER, most=False)
        else:
            show(f"{n} lanes, times real time", value=value)


def text_of(i):
    return f"Number {i}: the river was {'very ' * (i % 7)}quiet when we came home that evening."


def sounds(by, n, lanes, bits):
    """Of n requests to a server, as many at a time as it has lanes."""
    s = Server(by, "-m", SMALL, "--device", "cuda", "--weights", bits, "--lanes", str(lanes), "-q")
    assert s.port, s.said()

    def ask(i):
        body = {"input": text_of(i), "seed": i, "max_new_tokens": 40, "response_format": "pcm"}
        status, _, sound = s.ask("POST", "/v1/audio/speech", body, timeout=120)
        assert status == 200, sound
        return sound
    with concurrent.futures.ThreadPoolExecutor(lanes) as many:
        made = list(many.map(ask, range(n)))
    s.stop()
    return made


def spoken(by, i, bits, folder):
    said(by, "say", "-q", "-m", SMALL, "--device", "cuda", "--weights", bits, "--seed", str(i), "--max-frames", "40",
         "-o", folder + "/a.wav", "--codes", folder + "/a.json", text_of(i))
    with open(folder + "/a.wav", "rb") as a, open(folder + "/a.json") as b:
        return a.read(), json.load(b)["codes"]


def before():
    old = os.environ["BEFORE"]
    rows = {old: [], program: []}
    for turn in range(2 * TURNS):
        for by in (old, program) if turn % 2 else (program, old):
            rows[by].append(bench(SMALL, by=by)[0])
    for name, value in (("frame ms", lambda r: r["frame_ms"]["median"]), ("rtf", lambda r: r["rtf"]),
                        ("first samples ms", lambda r: r["ttfc_ms"]["median"])):
        was, now = ([value(r) for r in rows[by]] for by in (old, program))
        judged(f"{name}, after over before", statistics.median(now) / statistics.median(was), SLOWER, before=was,
               after=now)
    for n, at_once in ((4, 2),) if LEAST else ((20, 1), (20, 5), (64, 64)):
        for bits in ("bf16", "q8"):
            pairs = zip(*(sounds(by, n, at_once, bits) for by in (old, program)))
            judged(f"same sounds, {at_once} lanes, {bits}", sum(a == b != b"" for a, b in pairs), n, most=False)
    with tempfile.TemporaryDirectory() as folder:
        for bits, n in (("bf16", 2 if LEAST else 20), ("q8", 1 if LEAST else 8)):
            same = sum(spoken(old, i, bits, folder) == spoken(program, i, bits, folder) for i in range(n))
            judged(f"same codes and sounds of say, {bits}", same, n, most=False)


def packed():
    for bits, bar in (("q8", 0.75), ("q4", 0.65)):
        pairs = [(frame_ms(SMALL, "--kernels", "graph", "--weights", bits), frame_ms(SMALL, "--kernels", "graph"))
                 for _ in range(TURNS)]
        judged(f"{bits} over bf16, graphs", statistics.median(a / b for a, b in pairs), bar, pairs_ms=pairs)


def posed():
    for name, kernels, bar in (("5090", (), 1.30), ("3090", ("--kernels", "graph"), 2.6)):
        took = [frame_ms(SMALL, "--as", name, *kernels) for _ in range(TURNS)]
        judged(f"frame ms as a {name}", statistics.median(took), bar)


def used_mib():
    mine = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    return int(said("nvidia-smi", "-i", mine, "--query-gpu=memory.used", "--format=csv,noheader,nounits"))


def memory():
    for model, bars in ((SMALL, (("q8", 1.7), ("q4", 1.3))), (LARGE, (("q8", 3.0), ("q4", 2.2)))):
        for bits, bar in bars:
            before, seen, ended = used_mib(), [0], threading.Event()

            def watch():
                while not ended.wait(0.05):
                    seen.append(used_mib())
            t = threading.Thread(target=watch)
            t.start()
            bench(model, "--weights", bits)
            ended.set()
            t.join()
            judged(f"{os.path.basename(model)} {bits} GB", (max(seen) - before) * 1.048576 / 1000, bar)


def listeners():
    s = serve(program, "-m", SMALL, "--device", "cuda", "--weights", "q8", "-q", *options)
    for rate in (10, 20):
        r = load(s, rate, min(SECONDS, 2) if LEAST else 60)
        judged(f"q8, {rate} requests a second: underruns", r["underruns"], 0, refused=r["refused"], broken=r["broken"],
               audible_ms=r["audible_ms"])
    s.stop()


def soak():
    for name, *by in (("5090",), ("3090", "-w", "graph")):
        for turn in range(2):
            out = said(os.path.join(build, "tests/cuda/check_soak"), *by, "-n", "40" if LEAST else "20000",
                       "-r", str(turn), os.path.join(checkpoints, "wide"), env={"CUDA_AS": name})
            show(f"soak as a {name}", said=out.splitlines()[-1], holds=out.splitlines()[-1].endswith(" 0 failed"))


def foretold():
    for model in SMALL, LARGE:
        steps = json.loads(said(program, "info", "-m", model, "--device", "cuda", "--json"))["foretold_steps"]
        told = {step["lanes"]: 1000 * step["seconds"] for step in steps if not LEAST or step["lanes"] < 3}
        for n, told_ms in told.items():  # each opened by itself: lanes of one that is opened for 64 are the graphs'
            r = bench(model, words=13 if LEAST else 53, lanes=str(n))[0]
            measured = FRAME_MS * n * r["rtf"]  # with all sound; the median of a frame alone is mostly without
            judged(f"{os.path.basename(model)}, {n} lanes: foretold, away", abs(told_ms / measured - 1), 0.15,
                   foretold_ms=told_ms, measured_ms=measured, frame_ms=r["frame_ms"]["median"])


for part in parts:
    {"lanes": lanes, "before": before, "packed": packed, "posed": posed, "memory": memory, "serve": listeners,
     "soak": soak, "foretold": foretold}[part]()
