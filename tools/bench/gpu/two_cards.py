# Several devices behind one front end, measured: two_cards.py PROGRAM PART... [-- options of utter serve]. It wants the
# machine alone. Prints one line of JSON for each figure.
#   rate     requests a second, open loop, at which p95 of the first audible sample is LIMIT_MS: one device, then all
#   linear   the most requests a second that are made, open loop, when far more come: one device, then all
#   kill     worker 0 is killed every 5 s under load: what listeners hear of it, and how soon it is back
#   drain    each worker is sent away and brought back under load: speeches that fail
#   bulk     LINES (2000) lines of `utter job`, a nats-server beside it: a worker on one device, then one on each; the
#            same bytes from both. Of a model that ends by itself (make_model --craft eos-sometimes), MODEL
# Settings come from the environment: those of figures.py, ONE and ALL (lists of devices: cuda:0, cuda:all), RUNS (of
# the search, at most: 6), RATE (of one device, where it begins: 30), LIMIT_MS (50).
import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import figures
from figures import SECONDS, command, judged, load, rounded, show, told, wait_for

words, options = figures.arguments()
program, parts = os.path.abspath(words[0]), words[1:]
ONE, ALL = os.environ.get("ONE", "cuda:0"), os.environ.get("ALL", "cuda:all")
RATE, RUNS = float(os.environ.get("RATE", "30")), int(os.environ.get("RUNS", "6"))
LIMIT_MS = float(os.environ.get("LIMIT_MS", "50"))
REFUSED = 0.01  # of all, at most, at a rate that counts
EVERY_S = 5  # between two kills


def serve(devices):
    return figures.serve(program, "--device", devices, "-q", *options)


def workers(s):
    return json.loads(s.ask("GET", "/v1/workers")[2])["workers"]


def is_within(r):
    return r["audible_ms"]["p95"] <= LIMIT_MS and r["refused"] + r["broken"] <= REFUSED * r["requests"]


def find_rate(s, start):
    """Between the last rate within the limit and the first beyond it, by halves; at the end on the line between."""
    load(s, start / 4, min(2, SECONDS))  # warm
    low, high, at = None, None, start
    for _ in range(RUNS):
        r = load(s, at)
        if is_within(r):
            low = (at, r["audible_ms"]["p95"])
        else:
            high = (at, r["audible_ms"]["p95"])
        at = (low[0] + high[0]) / 2 if low and high else 1.25 * at if low else at / 1.4
        if low and high and high[0] - low[0] < 0.03 * low[0]:
            break
    if not low or not high or high[1] <= LIMIT_MS:
        return low[0] if low else 0
    return low[0] + (high[0] - low[0]) * (LIMIT_MS - low[1]) / (high[1] - low[1])


def rate():
    found = []
    for devices in (ONE, ALL):
        s = serve(devices)
        start = found[0] * len(workers(s)) * 0.97 if found else RATE
        found.append(find_rate(s, start))
        n = len(workers(s))
        s.stop()
    show("rate", one=rounded(found[0]), all=rounded(found[1]), devices=n, limit_ms=LIMIT_MS,
         times=rounded(found[1] / found[0]) if found[0] else None)


def linear():
    """Whoever is not promised a place is refused at once, so that the good ones are what the devices make."""
    found = []
    for devices in (ONE, ALL):
        s = serve(devices)
        n = len(workers(s))
        load(s, RATE * n, SECONDS / 2)
        r = load(s, 3 * RATE * n)
        found.append(r["audio_per_second"])
        s.stop()
    show("linear", one=rounded(found[0]), all=rounded(found[1]), devices=n, of_linear=rounded(found[1] / found[0] / n))


def under_load(s, seconds, act):
    """What `act` does while the load runs, and what its listeners heard."""
    p = subprocess.Popen(command(s, RATE / 2, seconds), stdout=subprocess.PIPE)
    t = threading.Thread(target=act)
    time.sleep(2)
    t.start()
    r = json.loads(p.communicate()[0])
    t.join()
    return r


def state(s, i, pid):
    w = workers(s)[i]
    return w["state"] if w["pid"] != pid else None


def kill():
    s = serve(ALL)
    seconds, backs, hit = 6 * SECONDS, [], []

    def act():
        for _ in range(int((seconds - 2) / EVERY_S)):
            w = workers(s)[0]
            hit.append(w["running"])
            os.kill(w["pid"], signal.SIGKILL)
            began = time.time()
            wait_for(lambda: state(s, 0, w["pid"]) == "ready", 30)
            backs.append(rounded(time.time() - began))
            time.sleep(max(0, EVERY_S - (time.time() - began)))
    quiet = load(s, RATE / 2)
    r = under_load(s, seconds, act)
    show("kill", **told(r, kills=len(backs), ran_on_it=hit, back_s=backs, most_back_s=max(backs),
                        underruns_without=quiet["underruns"], deaths=[
                            s.metric(f'device_deaths_total{{worker="{i}"') for i in range(len(workers(s)))]))
    s.stop()


def drain():
    s = serve(ALL)
    seconds, times = 2 * SECONDS, []

    def order(i, what):
        assert s.ask("POST", f"/v1/workers/{i}/{what}", {})[0] == 200

    def act():
        for i in range(len(workers(s))):
            for what, then in (("drain", "out"), ("start", "ready"), ("replace", "ready")):
                pid, began = workers(s)[i]["pid"], time.time()
                order(i, what)
                wait_for(lambda: state(s, i, pid) == then, 30)
                times.append((i, what, rounded(time.time() - began)))
    r = under_load(s, seconds, act)
    show("drain", **told(r, failed=r["broken"] + r["refused"], took_s=times, deaths=s.metric("worker_deaths_total")))
    s.stop()


class broker:
    """A nats-server on loopback, with what it keeps in a folder of ours."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"nats://127.0.0.1:{port}"
        server = shutil.which("nats-server") or "/usr/sbin/nats-server"
        self.process = subprocess.Popen([server, "-js", "-a", "127.0.0.1", "-p", str(port), "-sd", folder + "/nats",
                                         "-l", folder + "/nats.log"])

        def answers():
            with socket.socket() as asked:
                return asked.connect_ex(("127.0.0.1", port)) == 0
        assert wait_for(answers, 10)


def job(folder, *words, **how):
    return subprocess.Popen([program, "job", *words], cwd=folder, **how)


def sums(folder):
    """Of the sounds that a job has made, by the names of its results."""
    found = {}
    for at, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".wav"):
                with open(os.path.join(at, name), "rb") as f:
                    found[name] = hashlib.sha256(f.read()).hexdigest()
    return found


def bulk():
    words = "the river morning we found a small garden beside old stone bridge and children were reading".split()
    draw, n_lines = random.Random(1), int(os.environ.get("LINES", "2000"))
    model = ["-m", os.path.abspath(os.environ["MODEL"])] if "MODEL" in os.environ else []
    devices = os.environ.get("BULK", "cuda:0,cuda:1").split(",")
    with tempfile.TemporaryDirectory() as folder:
        b = broker(folder)
        with open(folder + "/lines.jsonl", "w") as f:
            for i in range(n_lines):
                text = " ".join(draw.choices(words, k=draw.randint(8, 30)))
                f.write(json.dumps({"id": str(i), "text": f"{text} {i}.", "seed": i}) + "\n")
        rates, made = [], []
        for turn, on in enumerate((devices[:1], devices)):
            where = ["--queue", f"{b.url}/lines{turn}", "--results", f"results{turn}"]
            assert job(folder, "submit", "lines.jsonl", *where, "--format", "wav", "-q", *model).wait() == 0
            began = time.time()
            workers = [job(folder, "work", *model, *where, "--device", d, "--until-empty", "--json", "-q",
                           stdout=subprocess.PIPE, text=True) for d in on]
            told = [json.loads(w.communicate()[0]) for w in workers]
            wall = time.time() - began
            made.append(sums(f"{folder}/results{turn}"))
            rates.append(n_lines / max(t["took_s"] for t in told))
            show("bulk", devices=on, lines=len(made[-1]), lines_a_second=rounded(rates[-1]), wall_s=rounded(wall),
                 told=told)
        judged("bulk: lines a second of all over one", rates[1] / rates[0], 0.95 * len(devices), most=False,
               same_bytes=made[0] == made[1] and len(made[0]) == n_lines)
        b.process.terminate()
        b.process.wait()


for part in parts:
    {"rate": rate, "linear": linear, "kill": kill, "drain": drain, "bulk": bulk}[part]()
