# Several sets of cores in one server, measured against one of them: sets.py PROGRAM SETS OTHERS [HAPROXY], as in
#   tools/bench/sets.py build/release/utter cpu:0-1,cpu:2-3,cpu:4-5,cpu:6-7 8-11 /usr/sbin/haproxy
# OTHERS are the cores of those who listen, and of HAProxy. By turns, the same load for each set:
#   sets     one server with 1, 2, 4 ... of the sets: what all of them make, of so many times what the first one makes
#   free     the same with all sets, and its front end kept off them
#   apart    a server and its own load for each set, at the same time: what the machine allows, without a front end
#   proxy    a server for each set behind HAProxy, with the file of examples/service
# Each of them closed (listeners who ask again at once) and open (three times as many as can be served; who is not
# promised a place is refused). Prints a line of JSON for each run, and behind each turn the medians so far.
# Settings come from the environment: SECONDS (of a run: 8), TURNS (3), WORDS (5-20), WITHIN (seconds for all: 0, any).
import json
import os
import statistics
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../../tests/proxy"))
from behind import Behind, Server  # noqa: E402

program, sets = sys.argv[1], sys.argv[2].split(",")
haproxy = (sys.argv[4:] or [None])[0]
config = os.path.join(here, "../../examples/service/haproxy.cfg")
SECONDS, TURNS = float(os.environ.get("SECONDS", "8")), int(os.environ.get("TURNS", "3"))
WORDS, WITHIN = os.environ.get("WORDS", "5-20"), float(os.environ.get("WITHIN", "0"))
WARM_S, LANES, EACH = 3, 8, 12
BEGAN = time.monotonic()


def cores(text):
    """Of 0-3,8."""
    ranges = [[int(x) for x in part.split("-")] for part in text.split(",")]
    return {i for r in ranges for i in range(r[0], r[-1] + 1)}


OTHERS = cores(sys.argv[3])
assert all(s.startswith("cpu:") for s in sets)


def keep_on(pid, where):
    for thread in os.listdir(f"/proc/{pid}/task"):
        os.sched_setaffinity(int(thread), where)


def options(devices, is_open):
    n = len(cores(devices[0][4:]))
    return ["--device", ",".join(devices), "--threads", str(n), "-q",
            *([] if is_open else ["--lanes", str(LANES), "--patience", "60000"])]


class Alone:
    """A server, which looks like many."""

    def __init__(self, devices, is_open):
        self.servers = [Server(program, *options(devices, is_open))]
        self.port = self.servers[0].port

    def stop(self):
        return [s.stop() for s in self.servers]


class Pinned(Behind):
    """Each server has its own set, and HAProxy the cores of the others."""

    def __init__(self, is_open):
        self.is_open = is_open
        super().__init__(program, haproxy, config, len(sets), [])
        keep_on(self.proxy.pid, OTHERS)

    def start(self, i):
        return Server(self.program, "--port", str(self.ports[i]), *options([sets[i]], self.is_open))


def made(places):
    return [s.metric("device_audio_seconds_total") for p in places for s in p.servers]


def processor_s(pid):
    ns = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat") as f:
            ns += int(f.read().split()[0])
    return ns * 1e-9


def used(places):
    """Seconds of a processor: front ends, workers."""
    servers = [s for p in places for s in p.servers]
    return (sum(processor_s(s.process.pid) for s in servers), sum(processor_s(w) for s in servers for w in s.workers()))


def ask(place, n, rate, seconds):
    how = ["--rate", str(rate * n)] if rate else ["--listeners", str(EACH * n), "--eager"]
    p = subprocess.Popen([program, "load", "--port", str(place.port), *how, "--seconds", str(seconds), "--words", WORDS,
                          "--json"], stdout=subprocess.PIPE)
    keep_on(p.pid, OTHERS)
    return p


def measure(name, places, n, rate):
    """Seconds of sound that all make in a second. Open: rate is what one set is asked for."""
    loads = [ask(p, n // len(places), rate, WARM_S + SECONDS + 1) for p in places]
    try:
        time.sleep(WARM_S)
        began, before, busy = time.monotonic(), made(places), used(places)
        time.sleep(SECONDS)
        took, each = time.monotonic() - began, [b - a for a, b in zip(before, made(places))]
        front, workers = [(b - a) / took for a, b in zip(busy, used(places))]
        told = [json.loads(load.communicate()[0]) for load in loads]
    finally:
        for load in loads:
            load.kill()
            load.wait()
        stopped = [p.stop() for p in places]
    r = {key: sum(t[key] for t in told) for key in ("requests", "good", "refused", "broken", "underruns")}
    print(json.dumps({"run": name, "open": bool(rate), "sets": n, "sound_a_second": round(sum(each) / took, 3),
                      "each": [round(x / took, 2) for x in each], "front": round(front, 3),
                      "workers": round(workers, 3), **r, "audible_p95_ms": max(t["audible_ms"]["p95"] for t in told),
                      "at_s": round(time.monotonic() - BEGAN)}), flush=True)
    assert not any(code for codes in stopped for code in codes) and (rate or not r["refused"])
    return sum(each) / took, r["good"] / (WARM_S + SECONDS + 1)


def run(name, n, rate):
    is_open = bool(rate)
    if name == "apart":
        return measure(name, [Alone([s], is_open) for s in sets], n, rate)
    if name == "proxy":
        return measure(name, [Pinned(is_open)], n, rate)
    place = Alone(sets[:n], is_open)
    if name == "free":
        keep_on(place.servers[0].process.pid, OTHERS)
    return measure(name, [place], n, rate)


def plan():
    n = len(sets)
    yield "sets", 1
    yield "sets", n
    yield "apart", n
    if haproxy:
        yield "proxy", n
    yield "free", n
    for few in (2, 4):
        if few < n:
            yield "sets", few


def is_time_up():
    return WITHIN and time.monotonic() - BEGAN > WITHIN - (WARM_S + SECONDS + 6)


def turn(of_linear):
    """False: the time is up."""
    speeches = 0
    for is_open in (False, True):
        one = None
        rate = 3 * speeches if is_open else 0
        for name, n in plan():
            if is_time_up():
                return False
            sound, good = run(name, n, rate)
            one = one or sound
            speeches = speeches or good  # of one set, closed
            of_linear.setdefault(f"{name} {n} {'open' if is_open else 'closed'}", []).append(round(sound / one / n, 4))
    return True


def main():
    of_linear, goes_on = {}, True
    for _ in range(TURNS):
        if not goes_on:
            break
        goes_on = turn(of_linear)
        print(json.dumps({key: [statistics.median(x), x] for key, x in of_linear.items()}), flush=True)


main()
