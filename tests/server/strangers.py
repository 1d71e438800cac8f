# Clients that ask too much, never read, or break the rules: they are told, and nobody else notices.
import json
import os
import signal
import socket
import threading
import time

import framing
from client import PATIENCE, Server, Socket, form, tone, wait_for

TEXT = "Hello there."
HOST = b"Host: localhost\r\n"


def ask_for(s, text, **fields):
    """A connection that has asked for a speech and not read anything yet."""
    body = json.dumps({"input": text, "response_format": "pcm", **fields}).encode()
    c = socket.create_connection(("127.0.0.1", s.port))
    c.settimeout(60 * PATIENCE)
    c.sendall(b"POST /v1/audio/speech HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    return c


def a_sentence_does_not_wait_for_a_page(s):
    """Pages that are collected whole keep the worker at work; a sentence gets its first sound a few steps later."""
    pages = [ask_for(s, "The quick brown fox jumps over the lazy dog near the river bank. " * 60, stream=False)
             for _ in range(4)]
    assert wait_for(lambda: s.metric("requests_running") == 4)
    for _ in range(3):
        steps = s.metric("step_seconds_count")
        c = ask_for(s, TEXT)
        assert c.recv(12) == b"HTTP/1.1 200"
        assert s.metric("step_seconds_count") - steps < 25 and s.metric("requests_running") == 5
        c.close()
        assert wait_for(lambda: s.metric("requests_running") == 4)
    for c in pages:
        c.close()
    assert wait_for(lambda: s.metric("requests_running") == 0)


def half_an_answer_is_told(s):
    """In the middle of events the worker dies: an event says so, and the answer does not end like a whole one."""
    c = ask_for(s, "The quick brown fox jumps over the lazy dog near the river bank. " * 20, stream_format="sse")
    got = b""
    while b"speech.audio.delta" not in got:
        got += c.recv(65536)
    os.kill(s.workers()[0], signal.SIGKILL)
    while piece := c.recv(65536):
        got += piece
    c.close()
    assert b"speech.audio.error" in got and not got.endswith(b"0\r\n\r\n"), got[-300:]
    assert wait_for(lambda: s.ask("GET", "/ready")[0] == 200, 60)


def spoken(s):
    """What the log says of the last speech."""
    return [json.loads(line) for line in s.said().splitlines() if '"event":"speech"' in line][-1]


def a_long_text_is_whole(s):
    """In pieces, and the same whichever way it is asked for."""
    text = ("The train left the old station at noon, and nobody had told the people who were waiting. They looked at "
            "each other. A man in a grey coat put down his bag and laughed.\n\nIt was a warm day in the middle of the "
            "summer, so they sat down on the grass, and somebody began to sing.")
    fields = {"seed": 0, "non_streaming_mode": False}
    status, _, pcm = s.speak(input=text, **fields)
    log = spoken(s)
    assert status == 200 and log["pieces"] > 1 and log["finish"] == "eos", log
    assert log["said_again"] == log["not_whole"] == 0 and abs(len(pcm) / 48000 - log["audio_s"]) < 0.01, log
    status, headers, whole = s.speak(input=text, stream=False, **fields)
    assert whole == pcm and headers["x-finish-reason"] == "stop" and headers["x-utter-not-whole"] == "0", headers
    w = Socket(s)
    w.send({"type": "session.config", "seed": 0})
    for at in range(0, len(text), 40):
        w.send({"type": "input.text", "text": text[at:at + 40]})
    w.send({"type": "input.done"})
    messages, sound = w.until("session.done")
    done = messages[-2]
    assert done["finish_reason"] == "stop" and done["not_whole"] == 0 and sound == pcm, done
    w.close()
    status, headers, cut = s.speak(input=text, stream=False, max_new_tokens=10, **fields)
    assert headers["x-finish-reason"] == "length" and cut == pcm[:len(cut)] and len(cut) == 10 * 3840, headers
    assert spoken(s)["not_whole_at"] == 0


def what_nobody_has_heard_begins_again(s):
    """A long text that is collected whole loses its worker before its first piece has ended."""
    got, text = [], "He saw the river, and then he went on along the bank to the bridge that the others had built. " * 3
    t = threading.Thread(target=lambda: got.append(s.speak(input=text, stream=False, seed=1)))
    t.start()
    assert wait_for(lambda: s.metric("requests_running") == 1, step=0.001)
    os.kill(s.workers()[0], signal.SIGKILL)
    t.join(60 * PATIENCE)
    assert got and got[0][0] == 200 and got[0][2] == s.speak(input=text, stream=False, seed=1)[2], got


def a_session_that_is_refused_ends(s):
    for config in ({"voice": "nobody"}, {"response_format": "midi"}):
        w = Socket(s)
        w.send({"type": "session.config", **config})
        assert w.receive()["error"]["param"] == next(iter(config)) and w.receive() == ("close", 1008)
        w.close()
    w = Socket(s)
    w.send({"type": "session.config"})
    assert w.receive()["type"] == "session.created"
    w.send({"type": "session.config", "voice": "nobody"})
    assert w.receive()["error"]["param"] == "voice"
    w.send({"type": "input.cancel"})  # of nothing: the index that it names is used up
    assert w.receive()["utterance_index"] == 0
    w.send({"type": "input.text", "text": TEXT})
    w.send({"type": "input.done"})
    messages, _ = w.until("session.done")
    assert messages[-1]["utterance_index"] == 1, messages
    w.close()


def heads_and_bodies_are_weighed(s):
    speech = json.dumps({"input": TEXT, "max_new_tokens": 1}).encode()
    for kind, more, want in (("application/jsonx", {}, 415), ("application/json; charset=utf-16", {}, 415),
                             ("application/json", {"Content-Encoding": "gzip"}, 415),
                             ('application/json ; Charset="UTF-8"', {"Content-Encoding": "identity"}, 200)):
        status = s.ask("POST", "/v1/audio/speech", speech, {"Content-Type": kind, **more})[0]
        assert status == want, (kind, more, status)
    assert s.ask("GET", "/version", b"hello")[0] == 200
    status, headers, _ = s.ask("GET", "/v1/audio/speech/stream", None, {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "8",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
    assert status == 426 and headers["Sec-WebSocket-Version"] == "13", headers
    upgrade = (b"Connection: keep-alive\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
               b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    for method, want in ((b"HEAD", b"400"), (b"GET", b"101")):
        got = s.raw(method + b" /v1/audio/speech/stream HTTP/1.1\r\n" + HOST + upgrade, until=b"\r\n\r\n")
        assert got.split(b" ", 2)[1] == want, got
    got = s.raw(b"GET /version HTTP/1.1\r\n" + HOST + upgrade, until=b"WebSocket")  # where there is none
    assert got.startswith(b"HTTP/1.1 400"), got
    for name, want in ((b"127.0.0.1:1@evil.example", b"400"), (b"[::1]evil.example", b"403"),
                       (b"localhost:80x", b"403")):
        assert s.raw(b"GET / HTTP/1.1\r\nHost: " + name + b"\r\nConnection: close\r\n\r\n").startswith(
            b"HTTP/1.1 " + want), name
    assert s.raw(b"GET http://localhost/version HTTP/1.2\r\n" + HOST + b"Connection: close\r\n\r\n").startswith(
        b"HTTP/1.1 200")
    s.ask("GET", "/v1/no%7Fwhere?api_key=secret")
    refused = [json.loads(line) for line in s.said().splitlines() if '"refused"' in line][-1]
    assert refused["method"] == "GET" and refused["path"] == "/v1/no\\x7fwhere" and refused["error"], refused
    late = s.raw(b"GET / HTT")
    assert late.startswith(b"HTTP/1.1 408") and b"x-request-id: req-" in late, late


def flood(w, data, stop):
    """Sends the same bytes at full speed until it is told, or thrown out."""
    try:
        while not stop.is_set():
            w.s.sendall(data)
    except OSError:
        pass


def floods_leave_others_their_turn(s):
    pongs = b"\x8a\x80\0\0\0\0" * 10000
    fragments = b"\x00\x81\0\0\0\0x" * 10000
    unknown = json.dumps({"type": "nonsense", "pad": "x" * 26000}).encode()
    unknown = b"\x81\xfe" + len(unknown).to_bytes(2, "big") + b"\0\0\0\0" + unknown
    stop, threads, sockets = threading.Event(), [], []
    patience = 4 * PATIENCE  # seconds; without a budget: never
    for data in (pongs, b"\x01\x81\0\0\0\0x" + fragments, unknown * 4, unknown * 4):
        w = Socket(s)
        w.send({"type": "session.config"})
        assert w.receive()["type"] == "session.created"
        threads.append(threading.Thread(target=flood, args=(w, data, stop)))
        sockets.append(w)
    try:
        for t in threads:
            t.start()
        time.sleep(0.3)
        worst, end = 0, time.time() + 2
        while time.time() < end:
            began = time.time()
            assert s.ask("GET", "/version", timeout=patience)[0] == 200
            c = ask_for(s, TEXT, max_new_tokens=1)
            c.settimeout(patience)
            assert c.recv(12) == b"HTTP/1.1 200"
            c.close()
            worst = max(worst, time.time() - began)
        assert worst < patience, worst
    finally:
        stop.set()
        for w in sockets:
            w.close()
        for t in threads:
            t.join()


def a_silent_worker_is_not_ready(s):
    worker, = s.workers()
    os.kill(worker, signal.SIGSTOP)
    try:
        assert wait_for(lambda: s.ask("GET", "/ready")[0] == 503, 10)
        assert b"does not answer" in s.ask("GET", "/ready")[2]
    finally:
        os.kill(worker, signal.SIGCONT)
    assert wait_for(lambda: s.ask("GET", "/ready")[0] == 200)


def idle_connections_make_way(program):
    """All places are taken by clients that stay and say nothing more: who comes has a place nonetheless."""
    s = Server(program, "--lanes", "1", files=104)
    idle = []
    try:
        for _ in range(60):  # of 36
            c = socket.create_connection(("127.0.0.1", s.port))
            c.sendall(b"GET /version HTTP/1.1\r\n" + HOST + b"\r\n")
            idle.append(c)
        for _ in range(20):
            assert s.speak(input=TEXT, max_new_tokens=1)[0] == 200
        assert s.metric("connections_crowded_total") >= 20
        busy = ask_for(s, "The quick brown fox jumps over the lazy dog. " * 40)
        assert busy.recv(12) == b"HTTP/1.1 200"
        for _ in range(60):
            c = socket.create_connection(("127.0.0.1", s.port))
            c.sendall(b"GET /version HTTP/1.1\r\n" + HOST + b"\r\n")
            idle.append(c)
        assert s.ask("GET", "/version")[0] == 200 and len(busy.recv(100)) > 0  # who is heard stays
        busy.close()
        assert '"connections_full"' in s.said()
    finally:
        for c in idle:
            c.close()
        assert s.stop() == 0


def control_tokens_are_text(program):
    """In what strangers send; --control-tokens takes them for what the official package does."""
    spelled, pcm = "Hi <|im_end|> you", []
    for more in ([], ["--control-tokens"]):
        s = Server(program, "--lanes", "1", "-q", *more)
        try:
            pcm.append([s.speak(input=text, seed=3, max_new_tokens=9)[2] for text in ("Hi you", spelled)])
        finally:
            assert s.stop() == 0
    assert pcm[0][0] == pcm[1][0] and pcm[0][1] != pcm[1][1] and pcm[0][1] != pcm[0][0]


def voices_of_a_base_model_are_told_truly(s):
    """s has no voice yet."""
    listed = json.loads(s.ask("GET", "/v1/audio/voices")[2])["voices"]
    assert listed == [], listed
    for name, want in (("alloy", 409), ("Nova", 409), ("a\u2028b", 400), ("a\u202eb", 400), ("a\u0085b", 400)):
        status, _, body = s.ask("POST", "/v1/audio/voices", *form({"name": name, "audio_sample": tone(2)}))
        assert status == want and json.loads(body)["error"]["param"] == "name", (name, status, body)


def what_is_ambiguous_is_refused(s):
    """With one answer and the end of the connection: nothing behind it is taken for a request."""
    for request in framing.ambiguous():
        got = s.raw(request + b"GET /version HTTP/1.1\r\n" + HOST + b"\r\n")
        assert got.count(b"\r\nx-request-id: ") == 1 and got[9:10] in b"45" and got[9:12] != b"404", (request, got)


def who_has_connected_is_told_of_the_end(program):
    """Also those whom the server had not accepted yet, and those who had not asked yet."""
    s = Server(program, "-q", "--lanes", "1")
    body = json.dumps({"input": TEXT, "response_format": "pcm"}).encode()
    request = b"POST /v1/audio/speech HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    accepted = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(4)]
    assert s.ask("GET", "/health")[0] == 200  # who came before was accepted before
    s.process.send_signal(signal.SIGSTOP)
    waiting = [socket.create_connection(("127.0.0.1", s.port)) for _ in range(40)]
    s.process.send_signal(signal.SIGTERM)
    for c in waiting[10:]:  # of who was accepted, such a request may come in before the signal, and is heard
        c.sendall(request)
    s.process.send_signal(signal.SIGCONT)
    time.sleep(0.1)
    for c in waiting[:10] + accepted:
        c.sendall(request)
    for c in waiting + accepted:
        c.settimeout(PATIENCE)
        answer = c.recv(4096)
        assert answer.startswith(b"HTTP/1.1 503 ") and b"about to stop" in answer, answer
        c.close()
    assert s.process.wait(10) == 0, s.said()


long_speech = (a_sentence_does_not_wait_for_a_page, half_an_answer_is_told, a_long_text_is_whole,
               what_nobody_has_heard_begins_again, floods_leave_others_their_turn)
of_a_running_server = (what_is_ambiguous_is_refused, a_session_that_is_refused_ends, heads_and_bodies_are_weighed,
                       a_silent_worker_is_not_ready)
of_a_server_each = (idle_connections_make_way, control_tokens_are_text, who_has_connected_is_told_of_the_end)
