# Days of everything that befalls a server, mixed by a seed: soak.py PROGRAM [SECONDS [SEED [RATE]]]. RATE deeds a
# second (soak_clients.py), a fifth to a third of a core with the usual 6. Faults come in between: the worker is killed,
# stopped, sent away; keys are read anew. After each the next speech must be good within FAULT_S; who listens hears the
# same bytes as the first time, or is told. Every minute or so all clients end, and the server must be as it was: no
# speech, no connection, as many descriptors and threads. Memory, and what of it the heap holds (held.c), is measured
# all the time; neither may grow.
# Prints lines of JSON; ends with `N passed, N failed`. Not part of the tests: `make soak`.
import collections
import concurrent.futures
import contextlib
import http.client
import json
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time

from client import Checks, Server, free_port, wait_for
from slope import slope
from soak_clients import DEEDS, KEY, TEXTS, Wrong, crowd, listen

CREW = 16
LANES = 8  # so that there are not enough of them now and then
SAMPLE_S = 5
FAULT_S = 30
# More has come for some time than this machine, which may be at other work, can make: few may hear that.
REFUSALS = "no more speeches can be made", "no more first sounds can be made"
MOST_REFUSED = 0.05
# A slope below this, in kB an hour, is 20 MB in a month.
SMALL_KB = 30
# So much may be hidden by what goes up and down (half the interval, in kB over all that was measured): with more, a run
# tells nothing. In two hours it is 100 kB an hour of the front end, and half a MB of the worker. All memory, but not
# what is held, may grow by it: a page is taken where a block finds no hole, long after the first hour.
HIDDEN_KB = {"front end": 200, "worker": 1000}
# A run that is shorter is all warming up: also a thread begins when it is first needed.
STEADY_S = 1800


def show(name, **values):
    print(json.dumps({"soak": name, **values}), flush=True)


def read(path):
    with open(path) as f:
        return f.read()


def stat_of(pid):
    """What the kernel tells behind the name."""
    return read(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()


def processor_s(pid, of_children=False):
    """What it took, with those of its children that have ended."""
    return sum(map(int, stat_of(pid)[11:15 if of_children else 13])) / os.sysconf("SC_CLK_TCK")


class Soak:
    def __init__(self, program, seconds, seed, rate, folder):
        self.program, self.seconds, self.rate, self.folder = program, seconds, rate, folder
        self.draw, self.luck = random.Random(seed), random.Random(-seed)  # of clients, and of faults
        self.first = {}  # what was heard the first time
        self.outcomes, self.told = collections.Counter(), collections.Counter()
        self.wrong, self.troubles, self.recoveries = [], [], []
        self.samples = []  # (name, (pid, beginning), age, quiet, (kB, of them held), descriptors, threads, children)
        self.born = {}
        self.deaths = self.quiet_moments = self.sent = self.held_back = 0
        self.lock = threading.Lock()
        # Lives of workers: several short ones, then one in which memory can be seen to grow.
        self.long_s = min(seconds / 2, 3 * 3600)
        self.busy_s = min(45, seconds / 6)
        self.lives, self.told_to_end = self.new_lives(), False
        self.has_marks = self.has_filled = False  # the worker now; any worker so far: see fill_lanes
        self.wyoming = free_port()
        for name in ("voices", "tmp", "held"):
            os.mkdir(f"{folder}/{name}")
        self.write_keys(0)
        held = os.path.join(os.path.dirname(os.path.abspath(program)), "tests/server/held.so")
        self.server = Server(program, "--threads", "2", "--lanes", str(LANES), "--patience", "20000",
                             "--wyoming", f"tcp://127.0.0.1:{self.wyoming}", "--voices", folder + "/voices",
                             "--api-key-file", folder + "/keys", "--voice-map", folder + "/map",
                             env={**os.environ, "TMPDIR": folder + "/tmp", "HELD": folder + "/held",
                                  "LD_PRELOAD": held})
        if not self.server.port:
            sys.exit(self.server.said())
        self.server.key = KEY
        self.began = self.busy_until = self.life_began = time.time()

    def busy(self):
        return time.time() < self.busy_until

    # --- what is measured

    def workers(self):
        """(name, pid) of each child."""
        for pid in self.server.workers():
            with contextlib.suppress(OSError):
                yield "idle worker" if os.sched_getscheduler(pid) == os.SCHED_IDLE else "worker", pid

    def kb(self, pid, status):
        """Of its own memory, and of the heap."""
        with open(f"{self.folder}/held/{pid}", "rb") as f:
            return int(status["RssAnon"].split()[0]), int.from_bytes(f.read(8), sys.byteorder) // 1024

    def reading(self):
        """(name, (pid, beginning), (kB, held), descriptors, threads) of the front end and of its workers; and whether
        there is one more, which has been killed: at idle priority it may be a child for some time yet, and whether its
        socket is closed already depends on who killed it."""
        some, is_dying = [], False
        for name, pid in [("front end", self.server.process.pid), *self.workers()]:
            with contextlib.suppress(OSError, KeyError):  # one that has just ended has no memory
                status = dict(line.split(":", 1) for line in read(f"/proc/{pid}/status").splitlines())
                one = pid, stat_of(pid)[19]  # a number comes again, but with another beginning
                if (int(status["SigPnd"], 16) | int(status["ShdPnd"], 16)) >> (signal.SIGKILL - 1) & 1:
                    is_dying = True
                else:
                    some.append((name, one, self.kb(pid, status), len(os.listdir(f"/proc/{pid}/fd")),
                                 int(status["Threads"])))
        return some, is_dying

    def settled(self):
        """One that the next, a moment later, agrees with in all but memory: children and descriptors are not looked at
        in one moment, and an idle worker may end or begin between them. Nothing where there is none for ten seconds."""
        last = None
        for _ in range(20):
            (last, is_dying), before = self.reading(), last
            same = before and [(*one[:2], *one[3:]) for one in before] == [(*one[:2], *one[3:]) for one in last]
            if same and not is_dying:
                return last
            time.sleep(0.5)
        return []

    def sample(self, quiet=False):
        some = self.settled() if quiet else self.reading()[0]
        for name, one, kb, files, threads in some:
            age = time.time() - self.born.setdefault(one, time.time())
            self.samples.append((name, one, age, quiet, kb, files, threads, len(some) - 1))

    def memory(self, name, warm_s, quiet_only=False):
        """Of each process of this name: (age, (kB, held)) when it had been there for some time."""
        series = collections.defaultdict(list)
        for other, one, age, quiet, kb, *_ in self.samples:
            if other == name and age >= warm_s and (quiet or not quiet_only):
                series[one].append((age, kb))
        return list(series.values())

    def growth(self, name, warm_s):
        """Of quiet samples: "kb" of all memory, "held" of the heap. Least, last and most are of any moment."""
        series, every = self.memory(name, warm_s, True), self.memory(name, warm_s)
        grown = {"hours": round(sum(one[-1][0] - one[0][0] for one in series) / 3600, 2)}
        for i, what in enumerate(("kb", "held")):
            grown[what + "_an_hour"] = slope([[(age, kb[i]) for age, kb in one] for one in series])
            values = [kb[i] for one in every for _, kb in one]
            grown[what] = [min(values), values[-1], max(values)] if values else []
        return grown

    def constant(self, name, warm_s):
        """{children that there were: how often there were so many descriptors and threads} of what was quiet."""
        seen = collections.defaultdict(collections.Counter)
        for other, _, age, quiet, _, files, threads, children in self.samples:
            if other == name and quiet and age >= warm_s:
                seen[children if name == "front end" else 0][files, threads] += 1
        return {key: {f"{files} files, {threads} threads": n for (files, threads), n in some.items()}
                for key, some in seen.items()}

    def progress(self):
        mine = os.times()
        now = time.time() - self.began
        used = sum([processor_s(self.server.process.pid, True), *(processor_s(pid) for _, pid in self.workers())])
        show("progress", seconds=round(now), deeds=self.sent, held_back=self.held_back, wrong=len(self.wrong),
             deaths=self.deaths, quiet=self.quiet_moments, cores_server=round(used / now, 3),
             cores_clients=round((mine.user + mine.system + mine.children_user + mine.children_system) / now, 3),
             recovered_s=round(max(self.recoveries, default=0), 2), load=round(os.getloadavg()[0], 1),
             front_end=self.growth("front end", self.seconds / 10), worker=self.growth("worker", self.long_s / 10))

    # --- what clients do

    def in_trouble(self, since):
        with self.lock:
            return any(end is None or end > since for _, end in self.troubles)

    def do(self, deed, seed):
        began, what = time.time(), deed.__name__
        try:
            self.count(self.outcomes, f"{what}: {deed(self, random.Random(seed))}")
        except Exception as e:
            if any(words in repr(e) for words in REFUSALS):
                self.count(self.outcomes, f"{what}: refused")
            elif not isinstance(e, (Wrong, TimeoutError)) and self.in_trouble(began):
                self.count(self.outcomes, f"{what}: told")
                self.count(self.told, f"{what}: " + re.sub(r"\d+", "N", repr(e))[:60])
            else:
                self.count(self.outcomes, f"{what}: WRONG")
                self.fault(what, seed, repr(e)[:500], round(time.time() - began, 2))

    def count(self, counter, what):
        with self.lock:
            counter[what] += 1

    def fault(self, *what):
        self.wrong.append(what)
        show("WRONG", at=round(time.time() - self.began, 1), what=what)

    # --- what befalls the server

    @contextlib.contextmanager
    def trouble(self):
        """From here until the server is well, clients may be told that it is not."""
        span = [time.time(), None]
        with self.lock:
            self.troubles[:] = self.troubles[-20:] + [span]
        try:
            yield
        finally:
            self.recover()
            span[1] = time.time()

    def recover(self):
        began = time.time()
        while time.time() < began + 4 * FAULT_S:
            with contextlib.suppress(OSError, http.client.HTTPException, ConnectionError):
                if self.server.ask("GET", "/ready")[0] == 200 and listen(self, random.Random(1)):
                    break
            time.sleep(0.05)
        took = time.time() - began
        self.recoveries.append(took)
        if took > FAULT_S:
            self.fault("recover", took, self.server.ask("GET", "/health")[2])

    def worker(self):
        return next((pid for name, pid in self.workers() if name == "worker"), None)

    def signal_worker(self, pid, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def kill_worker(self):
        with self.trouble():
            self.deaths += 1
            self.signal_worker(self.worker(), signal.SIGKILL)

    def hold_worker(self):
        """Longer than a worker may say nothing."""
        with self.trouble():
            self.deaths += 1
            pid = self.worker()
            self.signal_worker(pid, signal.SIGSTOP)
            wait_for(lambda: pid not in self.server.workers(), 6, 0.2)
            self.signal_worker(pid, signal.SIGCONT)

    def replace_worker(self):
        with self.trouble():
            self.server.ask("POST", "/v1/workers/0/replace")
            pid = self.worker()
            wait_for(lambda: self.worker() != pid, 6, 0.1)

    def drain_worker(self):
        with self.trouble():
            pid = self.worker()
            self.server.ask("POST", "/v1/workers/0/drain")
            wait_for(lambda: pid not in self.server.workers(), 6, 0.1)
            self.server.ask("POST", "/v1/workers/0/start")

    def stop_worker(self):
        """For a moment, which those who listen wait out."""
        pid = self.worker()
        self.signal_worker(pid, signal.SIGSTOP)
        time.sleep(self.luck.uniform(0.1, 3))
        self.signal_worker(pid, signal.SIGCONT)
        self.recover()

    def kill_idle_worker(self):
        for name, pid in self.workers():
            if name == "idle worker":
                self.deaths += 1
                self.signal_worker(pid, signal.SIGKILL)

    def write_keys(self, number):
        with open(self.folder + "/keys", "w") as f:
            f.write(f"{KEY} operator\nkey{number} speeches=2 per-minute=600\n")
        with open(self.folder + "/map", "w") as f:
            json.dump({"elevenlabs": {f"voice{number}": "miles"}}, f)

    def read_keys(self):
        """Those who listen notice nothing; the old key is refused, the new one taken."""
        number = self.luck.randrange(1, 1 << 30)
        self.write_keys(number)
        self.server.process.send_signal(signal.SIGHUP)

        def status(key):
            return self.server.ask("GET", "/v1/models", headers={"Authorization": f"Bearer {key}"})[0]
        if not wait_for(lambda: status(f"key{number}") == 200, 1) or status("key0") != 401:
            self.fault("read_keys", number)

    LIGHT = (stop_worker, stop_worker, read_keys, kill_idle_worker)
    DEADLY = (kill_worker, kill_worker, kill_worker, replace_worker, drain_worker, hold_worker)

    def new_lives(self):
        return [self.luck.uniform(0.01, 0.05) * self.long_s for _ in range(5)] + [self.long_s]

    def fill_lanes(self):
        """A lane keeps memory for so many positions once it has taken them (lane.c), and for the words of a long text.
        All have them when memory is measured, else what a seldom one takes late looks like growth."""
        most = {"input": "x" * 300, "max_new_tokens": 600}
        words = {"input": 4 * TEXTS[-1], "word_timestamps": True}
        with concurrent.futures.ThreadPoolExecutor(LANES) as listeners:
            for fields in (most, words):
                some = [listeners.submit(self.server.speak, 1200, seed=i, stream=False, **fields) for i in range(LANES)]
                if any(one.result()[0] != 200 for one in some):
                    self.fault("fill_lanes", [one.result()[::2] for one in some if one.result()[0] != 200][0])
        for name, one, *_ in self.reading()[0]:
            if name == "worker" or not self.has_filled:  # the front end takes something for such answers, once
                self.born[one] = time.time()
                self.samples = [sample for sample in self.samples if sample[1] != one]
        self.has_marks = self.has_filled = True

    def befall(self):
        """One fault after another, while clients are busy."""
        while self.busy():
            time.sleep(self.luck.uniform(0.2, 1) * self.busy_s / 3)
            try:
                deadly = time.time() - self.life_began > self.lives[0]
                fault = self.luck.choice(self.DEADLY if deadly else self.LIGHT)
                fault(self)
                self.count(self.outcomes, fault.__name__)
                if deadly:
                    self.lives = self.lives[1:] or self.new_lives()
                    self.life_began = time.time()
                self.has_marks = self.has_marks and not deadly
            except Exception as e:
                self.fault("befall", repr(e)[:500])

    # --- the run

    def over(self):
        return self.told_to_end or time.time() - self.began > self.seconds

    def be_busy(self, crew):
        """Deeds at random times. Where all of the crew is at something, one is held back."""
        deeds, next_sample = [crew.submit(self.befall)], 0
        self.busy_until = time.time() + self.busy_s
        while self.busy() and not self.over():
            time.sleep(self.draw.expovariate(self.rate))
            deed, seed = self.draw.choices(list(DEEDS), list(DEEDS.values()))[0], self.draw.getrandbits(48)
            deeds = [d for d in deeds if not d.done()]
            if len(deeds) < CREW:
                deeds.append(crew.submit(self.do, deed, seed))
                self.sent += 1
            else:
                self.held_back += 1
            if time.time() >= next_sample:
                self.sample()
                next_sample = time.time() + SAMPLE_S
        self.busy_until = 0
        concurrent.futures.wait(deeds)

    def be_quiet(self):
        """All clients are gone: the server must be as it was."""
        def left():
            return sum(map(self.server.metric, (
                "requests_running", "requests_queued", "background_running", "background_queued", "connections "))) - 1
        if not wait_for(lambda: left() == 0, 3, 0.1):
            self.fault("be_quiet", left(), self.server.ask("GET", "/ready")[2])
        time.sleep(2)  # the heap's holes go back a second after the last speech (links.c)
        self.sample(quiet=True)
        self.quiet_moments += 1
        show("quiet", seconds=round(time.time() - self.began), kb_files_threads={
            f"{name} {one[0]}": values[:3] for name, one, _, quiet, *values in self.samples[-4:] if quiet})
        self.do(listen, 1)

    def run(self):
        shown = time.time()
        self.do(crowd, 1)  # what the front end takes when all places are, it has taken once
        with concurrent.futures.ThreadPoolExecutor(CREW + 1) as crew:
            while not self.over():
                self.be_busy(crew)
                if self.lives[0] == self.long_s and not self.has_marks:
                    self.fill_lanes()  # while nobody else wants a lane
                self.be_quiet()
                if time.time() - shown > min(300, self.seconds / 6):
                    self.progress()
                    shown = time.time()

    def end(self):
        """SIGTERM amid some listeners, who hear all or are told."""
        with concurrent.futures.ThreadPoolExecutor(4) as crew:
            self.troubles.append([time.time(), None])
            for i in range(4):
                crew.submit(self.do, listen, i)
            time.sleep(0.05)
            children, began = self.server.workers(), time.time()
            code, took = self.server.stop(), time.time() - began

        def left():
            return [pid for pid in children if os.path.exists(f"/proc/{pid}")]
        wait_for(lambda: not left(), 1)  # one that is killed at idle priority ends when a processor is free
        return code, round(took, 2), os.listdir(self.folder + "/tmp"), left()


def is_small(name, growth):
    """And so sure that what leaks would be seen."""
    for what in ("held", "kb"):
        rise = growth[what + "_an_hour"]
        assert rise, f"too short to tell: {growth}"
        small = SMALL_KB if what == "held" else max(SMALL_KB, HIDDEN_KB[name] / growth["hours"])
        hidden = (rise["to"] - rise["from"]) / 2 * growth["hours"]
        assert rise["from"] <= 0 or rise["to"] < small, f"{what} grows: {growth}"
        assert hidden <= HIDDEN_KB[name], f"too short to tell: {hidden:.0f} kB may be hidden, {growth}"


def is_constant(seen):
    assert seen and all(len(some) == 1 for some in seen.values()), seen


def are_few(outcomes):
    refused = sum(n for what, n in outcomes.items() if what.endswith(": refused"))
    assert refused <= MOST_REFUSED * sum(outcomes.values()), refused


def is_none(some):
    assert not some, (len(some), some[:3])


def main(program, seconds=72 * 3600, seed=1, rate=6):
    checks = Checks()
    with tempfile.TemporaryDirectory() as folder:
        s = Soak(program, float(seconds), int(seed), float(rate), folder)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: setattr(s, "told_to_end", True))
        show("begins", ready=s.server.ready.strip(), seconds=s.seconds, seed=seed, rate=s.rate)
        try:
            s.run()
            s.progress()
            warmth = ("front end", s.seconds / 10), ("worker", s.long_s / 10)
            deaths = s.server.metric("worker_deaths_total")
            memory = {name: s.growth(name, warm) for name, warm in warmth}
            constant = {name: s.constant(name, warm) for name, warm in warmth}
            end = s.end()
        finally:
            s.server.stop()
        show("outcomes", **dict(sorted(s.outcomes.items())))
        show("told", **dict(s.told.most_common(30)))
        show("end", code=end[0], seconds=end[1], constant=constant, deaths=[deaths, s.deaths], quiet=s.quiet_moments,
             recovered_s=sorted(round(r, 2) for r in s.recoveries)[-5:])
        checks.run("everybody_is_served_or_told", is_none, s.wrong)
        checks.run("few_are_refused", are_few, s.outcomes)
        checks.run("all_places_were_taken", lambda: s.outcomes["crowd: full"] > 0 or 1 / 0)
        checks.run("no_worker_died_of_itself", lambda: deaths <= s.deaths or 1 / 0)
        for name in memory if s.seconds >= STEADY_S else ():
            checks.run(f"memory_of_the_{name}_stays", is_small, name, memory[name])
            checks.run(f"descriptors_and_threads_of_the_{name}_stay", is_constant, constant[name])
        checks.run("nothing_is_left", is_none, end[2] + end[3])
        checks.run("the_end_is_clean", lambda: end[0] == 0 and end[1] < 35 or 1 / 0)
    return checks.end()


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 5:
        sys.exit("usage: soak.py PROGRAM [SECONDS [SEED [RATE]]]")
    sys.exit(main(*sys.argv[1:]))
