# Usage: behind_haproxy.py PROGRAM HAPROXY FILE. The servers have one lane's worth of work each; what is tested is what
# comes between them and a client. With SERVERS=8, only what is about many of them.
import json
import os
import signal
import socket
import sys
import threading
import time

from behind import Behind, Listener
from client import Checks, Socket, wait_for

program, haproxy, config = sys.argv[1:4]
TEXT = "The quick brown fox jumps over the lazy dog near the river bank. "
OPTIONS = ["--threads", "1", "--lanes", "4", "--patience", "20000", "-q"]


def sound_leaves_as_it_comes(b):
    """With 48,000 bytes a second to hear, what comes first is a frame or two, not what a buffer holds."""
    s = ask(b, TEXT * 4)
    first = s.recv(1 << 20)
    while b"\r\n\r\n" not in first or len(first.split(b"\r\n\r\n", 1)[1]) < 100:
        first += s.recv(1 << 20)
    assert len(first) < 3 * 3840 + 1000, len(first)
    s.close()
    assert wait_for(lambda: total(b, "requests_running") == 0)


def ask(b, text):
    s = socket.create_connection(("127.0.0.1", b.port))
    body = json.dumps({"input": text, "response_format": "pcm"}).encode()
    s.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nContent-Type: application/json\r\n"
              b"Content-Length: %d\r\n\r\n" % (b.port, len(body)) + body)
    return s


def total(b, name):
    return sum(s.metric(name) for s in b.servers)


def who_leaves_is_seen(b):
    """While it hears, and while it waits for a lane."""
    many = [ask(b, TEXT * 20) for _ in range(8)]
    assert wait_for(lambda: total(b, "requests_running") == 8, 20)
    one = ask(b, TEXT)
    assert wait_for(lambda: total(b, "requests_queued") == 1)
    one.close()
    assert wait_for(lambda: total(b, 'cancelled_total{stage="queued"') == 1)
    for s in many:
        s.close()
    assert wait_for(lambda: total(b, "requests_running") == 0 and total(b, "cancelled_total") == 9)


def sessions_pass_through(b):
    w = Socket(b)
    assert w.status == 101
    w.send({"type": "session.config", "max_new_tokens": 3})
    w.send({"type": "input.text", "text": "Hello there."})
    w.send({"type": "input.done"})
    messages, sound = w.until("session.done")
    assert messages[-2]["type"] == "audio.done" and sound, messages
    w.close()


def operators_ask_the_server_itself(b):
    status, _, said = b.ask("POST", "/v1/workers/0/drain", {})
    assert status == 403 and b"operator" not in said, said  # the proxy's own answer
    assert b.ask("GET", "/v1/workers")[0] == 200


def all_are_used(b):
    before = [s.metric('requests_total{endpoint="speech",outcome="ok"') for s in b.servers]
    listeners = [Listener(b, TEXT, seed) for seed in range(2 * len(b.servers))]
    for x in listeners:
        x.join()
    assert all(x.whole for x in listeners)
    took = [s.metric('requests_total{endpoint="speech",outcome="ok"') - n for s, n in zip(b.servers, before)]
    assert sum(took) == len(listeners) and min(took) >= 1, took


def a_dead_worker_ends_its_own_speeches_only(b):
    alone = b.speak(input=TEXT, seed=1)[2]
    listeners = [Listener(b, TEXT) for _ in range(4)]
    assert wait_for(lambda: all(x.sound for x in listeners), 20)
    os.kill(b.servers[0].workers()[0], signal.SIGKILL)
    for x in listeners:
        x.join()
    whole = [x for x in listeners if x.whole]
    assert 2 <= len(whole) < 4 and all(x.sound == alone for x in whole), [len(x.sound) for x in listeners]
    assert wait_for(lambda: b.servers[0].ask("GET", "/ready")[0] == 200, 30)


def what_a_worker_died_of_is_not_made_again(b):
    """A text may be what it died of: it does not go on to the workers of the next server."""
    before = [(s.metric("requests_total"), s.metric("worker_deaths_total")) for s in b.servers]
    answers = []
    one = threading.Thread(target=lambda: answers.append(b.speak(input=TEXT * 20, stream=False)))
    one.start()
    assert wait_for(lambda: total(b, "requests_running") == 1)
    mine = [s.metric("requests_running") for s in b.servers].index(1)
    made = b.servers[mine].metric("device_audio_seconds_total")
    assert wait_for(lambda: b.servers[mine].metric("device_audio_seconds_total") > made, 20)  # it is not begun again
    os.kill(b.servers[mine].workers()[0], signal.SIGKILL)
    one.join()
    assert answers[0][0] == 503 and answers[0][1]["retry-after"] and b"the worker ended" in answers[0][2], answers[0][0]
    after = [(s.metric("requests_total"), s.metric("worker_deaths_total")) for s in b.servers]
    assert [(x - n, y - m) for (x, y), (n, m) in zip(after, before)] == [(i == mine, i == mine) for i in range(2)]
    assert wait_for(lambda: b.servers[mine].ask("GET", "/ready")[0] == 200, 30)


def a_rolling_restart_fails_nobody(b):
    alone = b.speak(input=TEXT, seed=1)[2]
    listeners, over = [], threading.Event()

    def come():
        while not over.is_set():
            x = Listener(b, TEXT)
            listeners.append(x)
            x.join()
    guests = [threading.Thread(target=come) for _ in range(len(b.servers) // 2 + 2)]
    for guest in guests:
        guest.start()
    for i in range(len(b.servers)):
        assert wait_for(lambda: sum(s.metric("requests_running") for s in b.servers) >= 2, 20)
        assert b.servers[i].stop() == 0
        time.sleep(2)  # as the file says: the checks have seen it
        b.servers[i] = b.start(i)
        assert wait_for(lambda: b.servers[i].metric("requests_running") > 0, 20)  # HAProxy has seen that it is back
    over.set()
    for guest in guests:
        guest.join()
    wrong = [(x.status, len(x.sound)) for x in listeners if not x.whole or x.sound != alone]
    print(f"a rolling restart of {len(b.servers)} servers: {len(listeners)} speeches, {len(wrong)} failed")
    assert len(listeners) > 6 and not wrong, (len(listeners), wrong)


def main():
    n = int(os.environ.get("SERVERS", 2))
    checks, b = Checks(), Behind(program, haproxy, config, n, OPTIONS)
    of_many = (all_are_used, a_rolling_restart_fails_nobody)
    of_two = (who_leaves_is_seen, sound_leaves_as_it_comes, sessions_pass_through, operators_ask_the_server_itself,
              a_dead_worker_ends_its_own_speeches_only, what_a_worker_died_of_is_not_made_again)
    for test in (*(of_two if n == 2 else ()), *of_many):
        checks.run(test.__name__, test, b)
    assert b.stop() == [0] * n
    sys.exit(checks.end())


main()
