"""utter job with the nats-server of Debian, where it is installed and utter was built with libnats."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import urllib.request

from jobs import COLLECT, POISON, RESULTS, check, check_kills, climbing_key, environment, files_below, fresh, job
from jobs import n_lines, sanitized, skip, sounds, spoken_lines, stamp, start, told, utter, wait_for
from jobs import wait_for_results, work
from jobs import write_manifest
from store import Store

SERVER = shutil.which("nats-server") or "/usr/sbin/nats-server"


class Broker:
    """A server on loopback, with what it keeps in a folder of ours."""

    def __init__(self, *more):
        with socket.socket() as taken, socket.socket() as other:
            taken.bind(("127.0.0.1", 0))
            other.bind(("127.0.0.1", 0))
            self.port, self.monitor = taken.getsockname()[1], other.getsockname()[1]
        self.store = os.path.join(work, f"nats-{self.port}")
        self.more = more
        self.url = f"nats://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        log = os.path.join(work, f"nats-{self.port}.log")
        address = ["-a", "127.0.0.1", "-p", str(self.port), "-m", str(self.monitor), "-l", log]
        self.process = subprocess.Popen([SERVER, *address, *self.more, *(["-sd", self.store] if self.more else [])])
        wait_for(self.answers)

    def answers(self):
        with socket.socket() as asked:
            return asked.connect_ex(("127.0.0.1", self.port)) == 0

    def redelivered(self, name):
        """How many lines of a queue are with somebody who is not the first."""
        ask = f"http://127.0.0.1:{self.monitor}/jsz?consumers=true"
        with urllib.request.urlopen(ask, timeout=60) as answer:
            told_now = json.load(answer)
        for account in told_now.get("account_details", []):
            for stream in account.get("stream_detail", []):
                if stream["name"] == name:
                    return sum(c.get("num_redelivered", 0) for c in stream.get("consumer_detail", []))
        return -1

    def connections(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor}/connz", timeout=60) as answer:
            return json.load(answer)["num_connections"]

    def send(self, subject, data):
        """A message without a client's library; what the server answers to it, where it does."""
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            server.recv(4096)
            begin = 'CONNECT {"verbose":false}\r\nSUB answers 1\r\nPUB %s answers %d\r\n' % (subject, len(data))
            server.sendall(begin.encode() + data + b"\r\n")
            return server.recv(4096)

    def claim_as_other(self, name):
        """What another worker does: it makes the consumer, and takes a line."""
        config = {"durable_name": "workers", "ack_policy": "explicit", "ack_wait": 20 * 10**9, "max_deliver": -1}
        config |= {"max_ack_pending": 65536, "filter_subject": name + ".lines.*"}
        asked = json.dumps({"stream_name": name, "config": config})
        self.send(f"$JS.API.CONSUMER.DURABLE.CREATE.{name}.workers", asked.encode())
        self.send(f"$JS.API.CONSUMER.MSG.NEXT.{name}.workers", b"1")

    def kill(self):
        self.process.kill()
        self.process.wait()

    def lose(self):
        """Killed, and all that it kept is gone."""
        self.kill()
        shutil.rmtree(self.store)
        self.start()


class Between:
    """What stands between a worker and its server, and passes on everything but, while it is silent, what JetStream is
    asked: as a cluster that has no leader."""

    def __init__(self, broker):
        self.silent, self.n_kept = False, 0
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"nats://127.0.0.1:{self.listening.getsockname()[1]}"
        self.server = ("127.0.0.1", broker.port)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client = self.listening.accept()[0]
            server = socket.create_connection(self.server)
            threading.Thread(target=self.answers, args=(server, client), daemon=True).start()
            threading.Thread(target=self.asks, args=(client, server), daemon=True).start()

    def answers(self, server, client):
        with contextlib.suppress(OSError):  # whoever is killed closes nothing in order
            while data := server.recv(65536):
                client.sendall(data)
        client.close()

    def asks(self, client, server):
        with client.makefile("rb") as lines, contextlib.suppress(OSError):
            for line in lines:
                words = line.split()
                is_message = words and words[0] in (b"PUB", b"HPUB")
                data = line + (lines.read(int(words[-1]) + 2) if is_message else b"")
                if self.silent and is_message and words[1].startswith(b"$JS.API."):
                    self.n_kept += 1
                else:
                    server.sendall(data)
        server.close()


def check_silence(broker):
    """A server that answers nothing is not waited for while lanes have something to say."""
    folder = fresh("nats-silence")
    between = Between(broker)
    where = ["--queue", between.url + "/silence", *RESULTS]
    write_manifest(folder, [{"id": "a", "text": "On and on it went. " * 400}])
    job("submit", "lines.jsonl", *where, folder=folder)
    worker = start("work", *where, "-q", "--lanes", "2", "--threads", "1", folder=folder)
    claimed = wait_for(lambda: counts(folder, where[1]).get("claimed") == 1)
    between.silent = True
    states = []
    while len(states) < 550 and worker.poll() is None:
        time.sleep(0.01)
        with open(f"/proc/{worker.pid}/stat", encoding="utf-8") as file:
            states.append(file.read().rsplit(") ", 1)[1][0])
    waits = states.count("S") / len(states)
    worker.kill()
    worker.communicate()
    check("nats: silence", claimed and between.n_kept > 0 and waits < 0.4, claimed, between.n_kept, waits)


def memory_of(process):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
        return [int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM")][0]


def counts(folder, url):
    said = told("status", "--queue", url, folder=folder)
    return said.get("queue", said)


def check_lost(broker, whole):
    folder = fresh("nats-lost")
    url = broker.url + "/lost"
    write_manifest(folder, spoken_lines(n_lines))
    job("submit", "lines.jsonl", "--queue", url, *RESULTS, folder=folder)
    worker = start("work", "--queue", url, *RESULTS, "-q", folder=folder)
    some = wait_for(lambda: len(files_below(folder, "results", ".json")) > n_lines // 4)
    broker.lose()
    time.sleep(1)
    before = {path: stamp(path) for path in files_below(folder, "results", ".json")}
    given = told("submit", "lines.jsonl", "--queue", url, *RESULTS, folder=folder)
    print(f"nats: the store is lost after {len(before)} of {n_lines} lines, {given.get('submitted')} go in again")
    check("nats: a store is lost in the middle", some and n_lines // 4 < len(before) < n_lines, len(before))
    check("nats: only the missing", given.get("submitted", 0) <= n_lines - len(before), given)
    done = wait_for_results(folder, n_lines)
    worker.terminate()
    check("nats: the worker goes on", done, worker.communicate())
    check("nats: complete", job("collect", *COLLECT, folder=folder).returncode == 0)
    check("nats: as by one machine", sounds(folder, "sounds") == whole)
    check("nats: no valid one made twice", before == {path: stamp(path) for path in before})


def check_numbers(broker):
    """A worker whose line was of a stream that is lost ends no line of the next stream, whose numbers are the same."""
    folder = fresh("nats-numbers")
    url = broker.url + "/numbers"
    where = ["--queue", url, *RESULTS]
    write_manifest(folder, [{"id": "old", "text": "On and on it went. " * 60}], "old.jsonl")
    job("submit", "old.jsonl", *where, folder=folder)
    worker = start("work", *where, "-q", "--lanes", "1", folder=folder)
    claimed = wait_for(lambda: counts(folder, url).get("claimed") == 1)
    os.kill(worker.pid, signal.SIGSTOP)
    broker.lose()
    write_manifest(folder, spoken_lines(4))
    job("submit", "lines.jsonl", *where, folder=folder)
    broker.claim_as_other("numbers")
    status = counts(folder, url)
    check("nats: numbers: another has the same number", claimed and status == {"waiting": 3, "claimed": 1}, status)
    os.kill(worker.pid, signal.SIGCONT)
    made = wait_for(lambda: len(files_below(folder, "results", ".json")) >= 4)
    worker.terminate()
    said = worker.communicate()[1]
    status = counts(folder, url)
    there = len(files_below(folder, "results", ".json")) + status["waiting"] + status["claimed"]
    check("nats: numbers: no line is lost", made and there == 5, status, said)


def check_signals(broker):
    """What was given back is there for the next worker at once, and not when the broker has waited for the first."""
    folder = fresh("nats-signals")
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        url = f"{broker.url}/signals-{int(number)}"
        where = ["--queue", url, *RESULTS]
        text = "On and on it went. " * 40
        write_manifest(folder, [{"id": f"{i}", "text": f"{number} {i}. {text}"} for i in range(2)])
        job("submit", "lines.jsonl", *where, folder=folder)
        worker = start("work", *where, "-q", "--lanes", "2", folder=folder)
        check(f"nats: {number}: claimed", wait_for(lambda: counts(folder, url).get("claimed") == 2))
        begin = time.monotonic()
        worker.send_signal(number)
        worker.communicate()
        took = time.monotonic() - begin
        check(f"nats: {number}: ends at once", worker.returncode == code and took < 10, took)
        status = counts(folder, url)
        check(f"nats: {number}: waits again at once", status == {"waiting": 2, "claimed": 0}, status)
        next_one = start("work", *where, "-q", "--lanes", "2", folder=folder)
        again = wait_for(lambda: counts(folder, url).get("claimed") == 2)
        died = wait_for(lambda: broker.redelivered(url.rsplit("/", 1)[1]) > 0, 2)
        check(f"nats: {number}: and is no death", again and not died)
        next_one.kill()
        next_one.communicate()


def check_poison(broker):
    folder = fresh("nats-poison")
    url = broker.url + "/poison"
    where = ["--queue", url, *RESULTS]
    write_manifest(folder, [POISON, *spoken_lines(4)])
    job("submit", "lines.jsonl", *where, folder=folder)
    result = job("work", *where, "--until-empty", folder=folder)
    check("nats: poison: told", result.returncode == 3 and result.stderr.count("klingon") == 3, result.stderr)
    status = told("status", "lines.jsonl", *where, folder=folder)
    check("nats: poison: others go on", (status["results"]["done"], status["results"]["failed"]) == (4, 1), status)
    job("collect", *COLLECT, folder=folder)
    with open(os.path.join(folder, "sounds", "results.jsonl"), encoding="utf-8") as file:
        first = json.loads(file.readline())
    check("nats: poison: its reason", "klingon" in first.get("error", "") and first["tries"] == 3, first)
    again = told("submit", "lines.jsonl", *where, folder=folder)
    check("nats: poison: stays", again["submitted"] == 0, again)
    check("nats: poison: retried", told("retry", "lines.jsonl", *where, folder=folder)["submitted"] == 1)


def check_away(broker):
    """Who waits for the end of a queue does not take a server that is away for it."""
    folder = fresh("nats-away")
    where = ["--queue", broker.url + "/away", *RESULTS, "-q"]
    write_manifest(folder, spoken_lines(1))
    job("submit", "lines.jsonl", *where, folder=folder)
    others = start("work", *where, folder=folder)
    wait_for(lambda: counts(folder, broker.url + "/away").get("claimed") == 1)
    os.kill(others.pid, signal.SIGSTOP)
    worker = start("work", *where, "--until-empty", folder=folder)
    wait_for(lambda: broker.connections() >= 2)
    time.sleep(1)
    broker.kill()
    check("nats: a server is away: waited for", not wait_for(lambda: worker.poll() is not None, 8), worker.returncode)
    others.kill()
    others.communicate()
    said = job("status", *where[:2], folder=folder)
    check("nats: a server is away: told", said.returncode == 2, said)
    broker.start()
    ended = wait_for(lambda: worker.poll() is not None)
    worker.kill()
    check("nats: a server is there again", ended and worker.returncode == 0, worker.communicate(), worker.returncode)
    check("nats: the line is done", len(files_below(folder, "results", ".json")) == 1)


def check_equal(broker):
    """Lines of one sound, in two submissions: one makes it, the other finds it. Results in a store that is busy."""
    folder = fresh("nats-equal")
    store = Store()
    environment.update(store.environment)
    where = ["--queue", broker.url + "/equal", "--results", "s3://bucket/p"]
    for name in "ab":
        write_manifest(folder, [{**line, "id": name + line["id"]} for line in spoken_lines(4)], name + ".jsonl")
        job("submit", name + ".jsonl", *where, folder=folder)
    store.goes_wrong("busy", 3)
    result = job("work", *where, "--until-empty", "--lanes", "8", "--json", folder=folder)
    done = json.loads(result.stdout or "{}")
    check("nats: equal lines", (done.get("made"), done.get("found")) == (4, 4), result)
    check("nats: are made once", len(store.puts) == len(set(store.puts)) == 8, store.puts)
    store.close()


def check_consumers(broker):
    """A stream that lets nobody take lines is told."""
    folder = fresh("nats-consumers")
    where = ["--queue", broker.url + "/odd", *RESULTS]
    write_manifest(folder, spoken_lines(1))
    config = {"name": "odd", "subjects": ["odd.lines.*"], "retention": "workqueue", "storage": "file"}
    broker.send("$JS.API.STREAM.CREATE.odd", json.dumps({**config, "max_consumers": 1}).encode())
    other = {"stream_name": "odd", "config": {"durable_name": "other", "ack_policy": "explicit"}}
    broker.send("$JS.API.CONSUMER.DURABLE.CREATE.odd.other", json.dumps(other).encode())
    job("submit", "lines.jsonl", *where, folder=folder)
    result = job("work", *where, "--until-empty", folder=folder, timeout=600)
    check("nats: no consumer", result.returncode == 2 and "JetStream's error 1002" in result.stderr, result)


def check_keys(broker):
    """Whoever sends lines into a queue names no files."""
    folder = fresh("nats-keys")
    where = ["--queue", broker.url + "/keys", *RESULTS]
    write_manifest(folder, spoken_lines(1))
    job("submit", "lines.jsonl", *where, folder=folder)
    line = b'{"key":"%s","id":"a","text":"x"}' % climbing_key(folder + "/outside").encode()
    broker.send("keys.lines.x", line)
    waits = wait_for(lambda: counts(folder, where[1]).get("waiting") == 2)
    job("work", *where, "--until-empty", folder=folder)
    check("nats: a key that is a path", waits and not os.path.exists(folder + "/outside.json"), waits)


def check_again(broker):
    """What waits of an earlier submission goes: nothing waits twice."""
    folder = fresh("nats-again")
    url = broker.url + "/again"
    write_manifest(folder, [*spoken_lines(50), {"id": "same", "text": spoken_lines(1)[0]["text"]}])
    for _ in range(2):
        job("submit", "lines.jsonl", "--queue", url, *RESULTS, folder=folder)
    status = counts(folder, url)
    check("nats: submitted twice, waits once", status == {"waiting": 50, "claimed": 0}, status)


def check_others(broker):
    """A submission leaves those of others where they are, also one that takes the place of an earlier one."""
    folder = fresh("nats-others")
    where = ["--queue", broker.url + "/others", *RESULTS]
    for name in ("first", "a", "b", "a"):
        write_manifest(folder, [{"id": f"{i}", "text": f"{name} {i}."} for i in range(3)], name + ".jsonl")
        job("submit", name + ".jsonl", *where, folder=folder)
        if name == "first":
            job("work", *where, "--until-empty", folder=folder)  # from now on the server knows of workers
    status = counts(folder, where[1])
    check("nats: two submissions wait", status == {"waiting": 6, "claimed": 0}, status)
    result = job("work", *where, "--until-empty", folder=folder, timeout=600)
    check("nats: and both are spoken", result.returncode == 0 and len(files_below(folder, "results", ".json")) == 9,
          result)


def check_claims(broker):
    """A submission that takes the place of an earlier one leaves what is being spoken to who speaks it."""
    version = subprocess.run([SERVER, "--version"], capture_output=True, text=True, check=True).stdout.split("v")[-1]
    if tuple(map(int, version.split(".")[:2])) < (2, 10):
        skip("nats: claims that stay", f"nats-server {version.strip()} ends them (2.10 does not)")
        return
    folder = fresh("nats-claims")
    where = ["--queue", broker.url + "/claims", *RESULTS]
    text = "On and on it went. " * 200
    write_manifest(folder, [{"id": f"{i}", "text": f"{i}. {text}"} for i in range(2)], "long.jsonl")
    job("submit", "long.jsonl", *where, folder=folder)
    worker = start("work", *where, "-q", "--lanes", "2", folder=folder)
    wait_for(lambda: counts(folder, where[1]).get("claimed") == 2)
    write_manifest(folder, spoken_lines(3))
    for _ in range(2):
        job("submit", "lines.jsonl", *where, folder=folder)
        status = counts(folder, where[1])
        check("nats: claims stay", status == {"waiting": 3, "claimed": 2}, status)
    worker.kill()
    worker.communicate()


def check_many(broker, many):
    folder = fresh("nats-many")
    url = broker.url + "/many"
    write_manifest(folder, ({"id": f"{i}", "text": f"Line {i} of many."} for i in range(many)))
    begin = time.monotonic()
    process = start("submit", "lines.jsonl", "--queue", url, *RESULTS, "-q", folder=folder)
    _, code, usage = os.wait4(process.pid, 0)
    used = usage.ru_maxrss / 1024, memory_of(broker.process)
    took = time.monotonic() - begin
    print(f"nats: {many} lines: {took:.1f} s, submit {used[0]:.0f} MB, server {used[1]:.0f} MB", flush=True)
    check("nats: many lines", code == 0 and counts(folder, url).get("waiting") == many, counts(folder, url))
    check("nats: memory", sanitized or used[0] < 200, used)


def run(whole, many):
    asked = job("status", "--queue", "nats://127.0.0.1:1", folder=work)
    if "built without NATS" in asked.stderr or "is not here" in asked.stderr or not os.path.exists(SERVER):
        skip("nats", asked.stderr.strip() if os.path.exists(SERVER) else "nats-server is not installed")
        return
    check("nats: no server", asked.returncode == 2 and "cannot be reached" in asked.stderr, asked.stderr)
    for url in ("nats://", "nats:///name", "nats://host/a.b"):
        said = job("status", "--queue", url, folder=work)
        check("nats: an address", said.returncode == 1 and "nats://HOST" in said.stderr, url, said.stderr)
    plain, broker = Broker(), None
    try:
        said = job("status", "--queue", plain.url, folder=work)
        check("nats: no JetStream", said.returncode == 2 and "--jetstream" in said.stderr, said.stderr)
        broker = Broker("-js")
        if not sanitized:
            check_kills("nats-kills", broker.url, whole)
            check_silence(broker)
            check_away(broker)
            check_signals(broker)
        check_again(broker)
        check_others(broker)
        check_claims(broker)
        check_equal(broker)
        check_keys(broker)
        check_consumers(broker)
        check_poison(broker)
        if not sanitized:
            check_numbers(broker)
            check_lost(broker, whole)
            check_many(broker, many)
    finally:
        plain.kill()
        if broker:
            broker.kill()
