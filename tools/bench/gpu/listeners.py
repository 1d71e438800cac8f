# A server of one device under what listeners do to it: listeners.py PROGRAM PART... [-- options of utter serve]. It
# wants the machine alone. Prints a line of JSON for each figure; where it has a bar, whether that holds.
#   overload  the good answers a second that fit; what is left of them at TIMES that, for LONG seconds each; how soon
#             the rest is refused; first audible sound of those who are taken against that at 80 %; memory
#   rate      first audible sound at RATE requests a second, a minute
#   short     first audible sound of short requests beside four of 4,000 characters
#   book      sound a second of one long text to a file against `utter bench` with as many lanes
#   killed    the worker is killed under load: how soon that is told, how soon the next one speaks
#   hangs     the same of a kernel that never ends; PROGRAM is built with hangs.patch, which plants one
#   taken     another program takes all memory of the GPU under load: nobody who speaks notices, who is refused is told
# Settings: those of figures.py; DEVICE (cuda), RATE (30; where overload begins), TIMES (of overload: 2,10), LONG (300
# seconds of it), WORDS_OF_BOOK (100000), LANES_OF_BOOK (64), BOUND_MS (20, of rate; 30 of short is 1.5 times that),
# REFUSED_MS (50).
import http.client
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import figures
from figures import SECONDS, arguments, judged, load, rounded, show, told, wait_for

(program, *parts), options = arguments()
DEVICE = os.environ.get("DEVICE", "cuda")
RATE, LONG, BOUND_MS, REFUSED_MS = (float(os.environ.get(name, usual)) for name, usual in (
    ("RATE", 30), ("LONG", 300), ("BOUND_MS", 20), ("REFUSED_MS", 50)))
BOOK_WORDS, BOOK_LANES = (int(os.environ.get(name, usual)) for name, usual in (
    ("WORDS_OF_BOOK", 100000), ("LANES_OF_BOOK", 64)))
TIMES = [float(x) for x in os.environ.get("TIMES", "2,10").split(",")]
PAGE = ("The quick brown fox jumps over the lazy dog near the river bank. " * 62)[:4000]
SENTENCE = "Hello there, how are you today?"


def serve():
    return figures.serve(program, "--device", DEVICE, "-q", *options)


def good_a_second(r, seconds):
    """Those who heard it in time, without a pause, of those who asked within so many seconds. Not until the last one
    is heard out: that takes as long behind a short load as behind a long one."""
    return r["goodput"] * r["requests"] / seconds


def resident_mb(s):
    total = 0
    for pid in (s.process.pid, *s.workers()):
        with open(f"/proc/{pid}/status") as f:
            total += int(next(x for x in f if x.startswith("VmRSS")).split()[1])
    return rounded(total / 1024)


def find_peak(s):
    """What fits: the good answers a second where all but one in a hundred are good. Each run is longer than a speech,
    since it begins with all lanes free. A RATE that does not fit is halved until it does."""
    fits, at, seconds = 0, RATE, max(SECONDS, LONG / 6)
    for _ in range(8):
        r = load(s, at, seconds)
        if r["goodput"] >= 0.99:
            fits, at = good_a_second(r, seconds), at * 1.12
        elif fits:
            break
        else:
            at /= 2
    assert fits, f"not even {2 * at:g} a second fit"
    return fits


def overload():
    s = serve()
    load(s, RATE / 4, 2)  # warm
    peak = find_peak(s)
    calm = load(s, 0.8 * peak, max(SECONDS, LONG / 5))
    show("peak", good_a_second=rounded(peak), calm_p99_ms=calm["audible_ms"]["p99"])
    for times in TIMES:
        before = resident_mb(s)
        r = load(s, times * peak, LONG)
        judged(f"{times:g} times: good answers of the peak", good_a_second(r, LONG) / peak, 0.95, most=False, **told(r))
        judged(f"{times:g} times: refusals ms, p99", r["refused_ms"]["p99"], REFUSED_MS)
        judged(f"{times:g} times: audible p99 over that at 80 %",
               r["audible_ms"]["p99"] / calm["audible_ms"]["p99"], 1.2)
        judged(f"{times:g} times: underruns", r["underruns"], 0)
        show(f"{times:g} times: memory MB", before=before, after=resident_mb(s))
    s.stop()


def rate():
    s = serve()
    load(s, RATE, 2)  # warm
    r = load(s, RATE, max(SECONDS, LONG / 5))
    judged(f"{RATE} a second: audible ms, p95", r["audible_ms"]["p95"], BOUND_MS)
    judged(f"{RATE} a second: underruns", r["underruns"], 0)
    s.stop()


def first_ms(s, text, seed):
    """Of an answer that is streamed as samples: when the first that is not silence is heard."""
    began = time.time()
    w = figures.speech(s, text, seed)
    try:
        for piece, at in w:
            for i in range(0, len(piece) - 1, 2):
                if abs(int.from_bytes(piece[i:i + 2], "little", signed=True)) > 103:  # -50 dB
                    return 1000 * (time.time() - began + (at + i) / 48000)
    finally:
        w.close()
    return float("inf")


def short():
    s = serve()
    first_ms(s, SENTENCE, 0)  # warm
    alone = [first_ms(s, SENTENCE, i) for i in range(20)]
    pages = [figures.speech(s, PAGE, i) for i in range(4)]
    readers = [threading.Thread(target=w.read_out) for w in pages]
    for t in readers:
        t.start()
    assert wait_for(lambda: s.metric("requests_running") == 4, 30)
    beside = [first_ms(s, SENTENCE, i) for i in range(20)]
    still = s.metric("requests_running")
    judged("short beside four pages: audible ms, median", statistics.median(beside), 1.5 * BOUND_MS,
           most_ms=rounded(max(beside)), alone_ms=rounded(statistics.median(alone)), pages_still=still)
    for w in pages:
        w.close()
    s.stop()


def book():
    model = [options[i + 1] for i, word in enumerate(options) if word in ("-m", "--model")]
    model = ["-m", *model[:1]] if model else []
    with tempfile.TemporaryDirectory() as folder:
        text, sound = f"{folder}/book.txt", f"{folder}/book.wav"
        with open(text, "w") as f:
            f.write("\n\n".join(PAGE for _ in range(max(1, BOOK_WORDS // len(PAGE.split())))))
        began = time.time()
        r = subprocess.run([program, "read", text, *model, "--device", DEVICE, "--lanes", str(BOOK_LANES), "--retries",
                            "0", "-q", "-o", sound])
        assert r.returncode in (0, 3)  # 3: a random model's pieces may lack words
        took = time.time() - began
        seconds = os.path.getsize(sound) / 48000
    bench = [program, "bench", *model, "--device", DEVICE, "--lanes", str(BOOK_LANES), "--words", "40", "--json", "-q"]
    row = json.loads(subprocess.run(bench, check=True, capture_output=True).stdout)
    judged("a long text over bench", seconds / took * row["rtf"], 0.9, most=False, seconds=rounded(seconds),
           took_s=rounded(took), bench_times_real_time=rounded(1 / row["rtf"]))


class readers:
    """Four pages that are read: when the last sound came, and when the last of them ended."""

    def __init__(self, s):
        self.last = self.ended = 0
        speeches = [figures.speech(s, PAGE, i) for i in range(4)]
        self.threads = [threading.Thread(target=self.read, args=(w,)) for w in speeches]
        for t in self.threads:
            t.start()
        assert wait_for(lambda: s.metric("requests_running") == 4 or self.ended, 30)

    def read(self, w):
        try:
            for _ in w:
                self.last = time.time()
        except (OSError, http.client.HTTPException):
            pass
        self.ended = time.time()

    def join(self):
        for t in self.threads:
            t.join()


def fall(name, s, turn, act):
    """What ends the worker; the time counts from its return, or from the last sound where it tells none."""
    r = readers(s)
    began = act(s)
    r.join()
    began = began or r.last
    assert wait_for(lambda: s.speak(input=SENTENCE, max_new_tokens=3)[0] == 200, 60, 0.02)
    judged(f"{name}: told ms", 1000 * (r.ended - began), 250, turn=turn)
    judged(f"{name}: serves again s", time.time() - began, 3, turn=turn)


def killed():
    def kill(s):
        time.sleep(0.3)
        os.kill(s.workers()[0], signal.SIGKILL)
        return time.time()
    s = serve()
    first_ms(s, SENTENCE, 0)
    for turn in range(3):
        fall("killed", s, turn, kill)
    s.stop()


def hangs():
    s = serve()
    first_ms(s, SENTENCE, 0)
    for turn in range(3):
        fall("a kernel that never ends", s, turn, lambda s: None)
    s.stop()


# It asks for ever smaller pieces until none is left, says so, and holds them until it is ended.
TAKER = """
import torch
held, size = [], 1 << 32
while size >= 1 << 16:
    try:
        held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    except RuntimeError:
        size //= 2
print("held", flush=True)
input()
"""


def taken():
    s = serve()
    load(s, RATE, 2)  # warm
    quiet = load(s, RATE)
    other = subprocess.Popen([sys.executable, "-c", TAKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    r = {}
    t = threading.Thread(target=lambda: r.update(load(s, RATE, 2 * SECONDS)))
    t.start()  # while it takes
    held = other.stdout.readline().strip()
    assert held, "nothing was taken (python3 needs torch)"
    t.join()
    full = load(s, RATE)
    other.communicate("\n")
    free = load(s, RATE)
    judged("memory taken: answers that broke", r["broken"] + full["broken"] + free["broken"], 0, held=held,
           refused=[r["refused"], full["refused"], free["refused"]], deaths=s.metric("worker_deaths_total"),
           audible_p95_ms=[x["audible_ms"]["p95"] for x in (quiet, r, full, free)])
    s.stop()


for part in parts:
    {"overload": overload, "rate": rate, "short": short, "book": book, "killed": killed, "hangs": hangs,
     "taken": taken}[part]()
