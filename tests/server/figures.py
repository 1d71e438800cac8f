# What the server must show, measured: python3 tests/server/figures.py PROGRAM streams|leave|silent|kill [N].
# Not part of the tests: it wants the machine alone. Prints one line of JSON for each figure.
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

from client import Server, wait_for

program, what = sys.argv[1:3]
number = int(sys.argv[3]) if len(sys.argv) > 3 else 0
LONG = "The quick brown fox jumps over the lazy dog near the river bank. " * 4


def load(s, *options):
    out = subprocess.run([program, "load", "--port", str(s.port), "--json", *options], check=True, capture_output=True)
    return json.loads(out.stdout)


def post(s, text):
    c = socket.create_connection(("127.0.0.1", s.port))
    body = json.dumps({"input": text, "response_format": "pcm"}).encode()
    c.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return c


def show(name, **values):
    print(json.dumps({"figure": name, **values}))


def streams(s):
    r = load(s, "--listeners", str(number or 20), "--seconds", "20")
    show("streams", listeners=number or 20, requests=r["requests"], underruns=r["underruns"],
         audible_ms=r["audible_ms"], first_ms=r["first_ms"], gap_ms=r["gap_ms"], underrun_ms=r["underrun_ms"])


def percentile_of(s, name, share):
    """Upper border of the bucket in which the share lies."""
    lines = [x for x in s.ask("GET", "/metrics")[2].decode().splitlines() if x.startswith(f"tts_{name}_bucket")]
    counts = [(x.split('le="')[1].split('"')[0], float(x.rsplit(" ", 1)[1])) for x in lines]
    return next(border for border, n in counts if n >= share * counts[-1][1]), int(counts[-1][1])


def leave(s):
    """Clients that leave before the first frame, while they stream, and blocked; beside three who stay."""
    random.seed(1)
    stay = [post(s, LONG) for _ in range(3)]
    for i in range(number or 200):
        c = post(s, LONG)
        if i % 4 == 1:
            c.recv(1)
        elif i % 4 == 2:
            c.recv(20000)
            time.sleep(0.02)
        elif i % 4 == 3:
            time.sleep(random.random() * 0.03)
        c.close()
    for c in stay:
        c.close()
    wait_for(lambda: s.metric("requests_running") == 0, 20)
    border, n = percentile_of(s, "cancel_to_free_seconds", 0.99)
    mean = s.metric("cancel_to_free_seconds_sum") / n
    show("leave", cancels=n, p99_at_most_s=border, mean_ms=1000 * mean, lanes_still_taken=s.metric("requests_running"))


def silent(s):
    before = load(s, "--listeners", "8", "--seconds", "12", "--words", "10-30", "--seed", "5")
    def memory():
        with open(f"/proc/{s.process.pid}/status") as f:
            return int(next(x for x in f if x.startswith("VmRSS")).split()[1])
    alone = memory()
    held, stop = [], threading.Event()
    def connect(i):
        c = socket.create_connection(("127.0.0.1", s.port))
        if i % 3 == 1:
            c.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: loc")
        elif i % 3 == 2:
            c.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
        return c
    held = [connect(i) for i in range(1000)]
    most = [memory()]
    def again():  # those that were shut out come back
        while not stop.wait(0.5):
            most[0] = max(most[0], memory())
            for i, c in enumerate(held):
                c.setblocking(False)
                try:
                    if c.recv(4096) == b"":
                        raise OSError
                except BlockingIOError:
                    continue
                except OSError:
                    c.close()
                    held[i] = connect(i)
    t = threading.Thread(target=again)
    t.start()
    after = load(s, "--listeners", "8", "--seconds", "12", "--words", "10-30", "--seed", "5")
    stop.set()
    t.join()
    show("silent", connections=1000, without_p99_ms=before["audible_ms"]["p99"], with_p99_ms=after["audible_ms"]["p99"],
         without_p50_ms=before["audible_ms"]["p50"], with_p50_ms=after["audible_ms"]["p50"],
         underruns=[before["underruns"], after["underruns"]], memory_kb=[alone, most[0]])


def kill(s):
    random.seed(2)
    outcomes, slowest, wrong = {}, 0, 0
    whole = s.speak(input=LONG)[2]

    def ask(i):
        try:
            status, _, body = s.ask("POST", "/v1/audio/speech", {"input": LONG, "response_format": "pcm"}, timeout=60)
            key = status if status != 200 else "complete" if body == whole else "wrong"
        except Exception as e:
            key = type(e).__name__
        outcomes[key] = outcomes.get(key, 0) + 1
    for _ in range(number or 100):
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
        for t in threads:
            t.start()
        time.sleep(random.random() * 0.4)
        began = time.time()
        os.kill(s.workers()[0], signal.SIGKILL)
        assert wait_for(lambda: s.ask("GET", "/ready")[0] == 200 and s.ask("GET", "/health")[0] == 200, 10)
        slowest = max(slowest, time.time() - began)
        for t in threads:
            t.join()
    show("kill", times=number or 100, slowest_back_s=slowest, outcomes=outcomes)


server = Server(program, "-q")
{"streams": streams, "leave": leave, "silent": silent, "kill": kill}[what](server)
server.stop()
