# A server with two workers: one is killed, sent away, replaced; the other one's listeners hear nothing of it.
import http.client
import json
import os
import signal
import tempfile
import threading
import time

from client import PATIENCE, SANITIZED, Server, form, operated, tone, wait_for

TEXT = "The quick brown fox jumps over the lazy dog near the river bank. " * (1 if SANITIZED else 2)
CORES = sorted(os.sched_getaffinity(0))
DEVICES = ["--device", f"cpu:{CORES[0]},cpu:{CORES[-1]}", "--threads", "1", "--lanes", "4"]


def workers(s):
    return json.loads(s.ask("GET", "/v1/workers")[2])["workers"]


def state(s, i):
    return workers(s)[i]["state"]


def order(s, i, what, key=None):
    return s.ask("POST", f"/v1/workers/{i}/{what}", {}, key and {"Authorization": "Bearer " + key})[0]


class Listener(threading.Thread):
    """Asks again where it is told to: a worker that falls behind, as on a busy machine, takes none beside another."""

    def __init__(self, s, seed, text=TEXT, goes_on=None, **fields):
        """goes_on: an event before which it takes only the first sound."""
        super().__init__()
        self.fields = fields
        self.s, self.seed, self.text, self.sound, self.whole, self.n_refused = s, seed, text, b"", False, 0
        self.goes_on = goes_on
        self.start()

    def run(self):
        while self.listen() == 503:
            self.n_refused += 1
            time.sleep(0.1)

    def listen(self):
        """The answer's status, or None."""
        c, status = http.client.HTTPConnection("127.0.0.1", self.s.port, timeout=120 * PATIENCE), None
        try:
            body = {"input": self.text, "seed": self.seed, "response_format": "pcm", **self.fields}
            c.request("POST", "/v1/audio/speech", json.dumps(body),
                      {"Content-Type": "application/json", "Authorization": f"Bearer {self.s.key}"})
            answer = c.getresponse()
            status = answer.status
            while status == 200 and (piece := answer.read1(65536)):
                self.sound += piece
                if self.goes_on:
                    self.goes_on.wait()
            self.whole = status == 200
        except (http.client.HTTPException, OSError):
            pass
        finally:
            c.close()
        return status


def a_killed_worker_is_missed_by_its_own_only(program):
    s = operated(program, *DEVICES)
    try:
        alone = [s.speak(input=TEXT, seed=seed)[2] for seed in range(2)]
        listeners = [Listener(s, seed) for seed in [0, 1] * 3]
        before = []

        def all_are_heard():  # a slow machine takes two of them at first, one a worker
            before[:] = workers(s)
            n_heard = sum(bool(x.sound) and x.is_alive() for x in listeners)
            return all(w["running"] for w in before) and n_heard == sum(w["running"] for w in before)
        assert wait_for(all_are_heard, 60), before
        victim = before[0]
        os.kill(victim["pid"], signal.SIGKILL)
        for x in listeners:
            x.join()
        broken = [x for x in listeners if not x.whole]
        assert 1 <= len(broken) <= victim["running"], (len(broken), before)
        assert all(x.sound == alone[x.seed] for x in listeners if x.whole)
        assert all(alone[x.seed].startswith(x.sound) for x in broken)
        assert wait_for(lambda: state(s, 0) == "ready", 20)
        assert s.metric('device_deaths_total{worker="0"') == 1 and s.metric('device_deaths_total{worker="1"') == 0
        assert s.metric("worker_deaths_total") == 1 and workers(s)[1]["pid"] == before[1]["pid"]
    finally:
        assert s.stop() == 0


def who_leaves_ends_what_it_has_begun(program):
    """Sent away and brought back under load: not one speech fails, and each has its bytes."""
    s = operated(program, *DEVICES, "-q")
    try:
        alone = s.speak(input=TEXT, seed=1)[2]
        listeners, over = [], threading.Event()

        def come():
            while not over.is_set():
                x = Listener(s, 1)
                listeners.append(x)
                x.join()
        guests = [threading.Thread(target=come) for _ in range(3)]
        for guest in guests:
            guest.start()
        for what, i, then in (("drain", 0, "out"), ("start", 0, "ready"), ("replace", 1, "ready"), ("drain", 0, "out"),
                              ("replace", 0, "ready"), ("drain", 1, "out")):
            assert wait_for(lambda: sum(w["running"] for w in workers(s)) >= 2, 20)
            pid = workers(s)[i]["pid"]
            assert order(s, i, what) == 200
            assert wait_for(lambda: state(s, i) == then and workers(s)[i]["pid"] != pid, 30), (what, workers(s))
            assert s.ask("GET", "/ready")[0] == 200
        over.set()
        for guest in guests:
            guest.join()
        assert len(listeners) > 6 and all(x.whole and x.sound == alone and x.n_refused == 0 for x in listeners)
        assert s.metric("worker_deaths_total") == 0
        order(s, 0, "drain")  # the last one
        assert wait_for(lambda: state(s, 0) == "out") and s.ask("GET", "/ready")[0] == 503
        assert s.ask("GET", "/health")[0] == 200 and s.speak(input=TEXT)[0] == 503
        order(s, 0, "start")
        assert wait_for(lambda: s.ask("GET", "/ready")[0] == 200, 20) and s.speak(input=TEXT, seed=1)[2] == alone
    finally:
        assert s.stop() == 0


def workers_are_for_operators(program):
    s = operated(program, "--lanes", "1", "-q")
    try:
        for key, status in (("guest", 403), ("nobody", 401), ("boss", 200)):
            assert order(s, 0, "replace", key) == status, key
        assert order(s, 1, "drain") == 404
    finally:
        assert s.stop() == 0


def without_keys_nobody_changes_workers(program):
    """A proxy on this machine would let strangers in: its address is ours."""
    s = Server(program, "--lanes", "1", "-q")
    try:
        for what in ("drain", "replace", "start"):
            status, _, said = s.ask("POST", f"/v1/workers/0/{what}", {})
            assert status == 403 and b"--api-key-file" in said, said
        assert state(s, 0) == "ready" and s.speak(input="Hello.")[0] == 200
    finally:
        assert s.stop() == 0


def the_only_worker_is_replaced(program):
    """Who comes while it leaves is told within the patience; who comes later waits for the model, and is heard."""
    s = operated(program, "--lanes", "2", "--threads", "1", "-q")
    try:
        pid = workers(s)[0]["pid"]
        goes_on = threading.Event()
        long = Listener(s, 1, TEXT * 6, goes_on)
        assert wait_for(lambda: long.sound, 20)
        assert order(s, 0, "replace") == 200
        status, _, said = s.ask("GET", "/ready")
        assert status == 503 and b"opening the model" in said and s.ask("GET", "/health")[0] == 200
        status, _, said = s.speak(input="Hello.")
        assert status == 503 and b"the model is being opened" in said, said
        goes_on.set()
        assert wait_for(lambda: workers(s)[0]["state"] != "leaving", 60, 0.001)
        assert s.speak(input="Hello.")[0] == 200 and workers(s)[0]["pid"] != pid
        long.join()
        assert long.whole
    finally:
        assert s.stop() == 0


def a_voice_is_known_to_all(program, model):
    with tempfile.TemporaryDirectory() as voices:
        s = operated(program, *DEVICES, "-m", model, "--voices", voices)
        try:
            assert s.ask("POST", "/v1/audio/voices", *form({"name": "Bea", "audio_sample": tone(2)}))[0] == 200
            sounds = []
            for other in (1, 0):
                order(s, other, "drain")
                assert wait_for(lambda: state(s, other) == "out")
                status, _, sound = s.speak(input="Hello.", voice="bea", seed=2, max_new_tokens=4)
                assert status == 200 and sound, sound
                sounds.append(sound)
                order(s, other, "start")
                assert wait_for(lambda: state(s, other) == "ready", 20)
            assert sounds[0] == sounds[1]
        finally:
            assert s.stop() == 0


def lists_of_devices_are_checked(program):
    for devices, word in (("cpu:0,cpu:0-1", "two sets"), ("cpu,cpu", "twice"), ("cpu:a", "set of cores"),
                          ("cpu,", "comma"), ("cpu:4000", "not all of these cores"),
                          ('a"b', "called so")):
        s = Server(program, "--device", devices)
        assert s.stop() == 1 and word in s.said(), (devices, s.said())


def run(checks, program, model):
    tests = [(workers_are_for_operators,), (without_keys_nobody_changes_workers,), (the_only_worker_is_replaced,),
             (lists_of_devices_are_checked,)]
    if len(CORES) > 1:
        tests += [(a_killed_worker_is_missed_by_its_own_only,), (who_leaves_ends_what_it_has_begun,),
                  (a_voice_is_known_to_all, model)]
    else:
        print("SKIP server/several: one core only")
    for test, *more in tests:
        if test in (the_only_worker_is_replaced, who_leaves_ends_what_it_has_begun) and SANITIZED:
            print(f"SKIP server/{test.__name__}: minutes of speech under sanitizers; the plain build runs it")
            continue
        began = time.time()
        checks.run(test.__name__, test, program, *more)
        if os.environ.get("TIMES"):
            print(f"{test.__name__}: {time.time() - began:.1f} s")
    return checks
