# The tests of tests/server/run. Usage: serve.py PROGRAM CHECKPOINTS
import array
import base64
import hashlib
import io
import json
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import time
import wave

import carried
import keyed
import lacking
import mishaps
import several
import shared
import strangers
import word_times
from client import PATIENCE, SANITIZED, Checks, Server, Socket, form, tone, wait_for

program, checkpoints = sys.argv[1:3]
LANES = 4 if SANITIZED else 8  # each is warmed up at the start
TEXT = "Hello there."
LONG = "The quick brown fox jumps over the lazy dog near the river bank. " * 4


def speech_is_that_of_the_program(s):
    status, headers, pcm = s.speak(input=TEXT, voice="clara", seed=3)
    assert status == 200 and headers["x-sample-rate"] == "24000" and headers["x-request-id"], headers
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.raw")
        assert os.spawnl(os.P_WAIT, program, "utter", "say", "-q", "-v", "clara", "--seed", "3", "-o", path, TEXT) == 0
        with open(path, "rb") as f:
            assert f.read() == pcm


def every_format_and_way(s):
    wav = s.speak(input=TEXT, response_format="wav", stream=False)[2]
    with wave.open(io.BytesIO(wav)) as w:
        n, rate = w.getnframes(), w.getframerate()
    assert rate == 24000 and n * 2 + 44 == len(wav)
    pcm = s.speak(input=TEXT)[2]
    assert wav[44:] == pcm
    # Where the length is known, a whole FLAC tells it: players show it, and play to the end.
    for rate, speed in ((24000, 1), (16000, 1.25)):
        whole = s.speak(input=TEXT, seed=3, response_format="flac", stream=False, sample_rate=rate, speed=speed)[2]
        plain = s.speak(input=TEXT, seed=3, response_format="pcm", sample_rate=rate, speed=speed)[2]
        assert int.from_bytes(whole[21:26], "big") & (1 << 36) - 1 == len(plain) // 2 > 0
    for kind, begin in (("mp3", b"\xff"), ("opus", b"OggS"), ("flac", b"fLaC"), ("aac", b"\xff"), ("wav", b"RIFF")):
        status, headers, sound = s.speak(input=TEXT, response_format=kind)
        assert status == 200 and sound.startswith(begin) and len(sound) > 2000, kind
        if kind == "opus":  # a page for each packet of 20 ms: players start at once
            assert sound.count(b"OggS") > len(pcm) / 2 / 480 - 2, sound.count(b"OggS")
    status, headers, sound = s.speak(input=TEXT, sample_rate=16000, speed=2.0)
    assert abs(len(sound) - len(pcm) / 3) < 4000, len(sound)


def events_carry_the_same_sound(s):
    status, headers, body = s.speak(input=TEXT, stream_format="sse")
    assert headers["content-type"] == "text/event-stream"
    events = [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]
    assert [e["type"] for e in events[:-1]] == ["speech.audio.delta"] * (len(events) - 1)
    assert events[-1]["type"] == "speech.audio.done" and events[-1]["usage"]["output_tokens"] > 0
    assert b"".join(base64.b64decode(e["audio"]) for e in events[:-1]) == s.speak(input=TEXT)[2]


def alone_and_in_a_crowd_the_same(s):
    alone = [s.speak(input=f"{TEXT} Number {i}.", seed=i)[2] for i in range(8)]
    together = [None] * 8

    def ask(i):
        together[i] = s.speak(input=f"{TEXT} Number {i}.", seed=i)[2]
    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert together == alone


def bad_fields_are_named(s):
    for field, value in (("input", None), ("input", " "), ("input", 5), ("input", "x" * 100001),
                         ("voice", "nobody"), ("voice", 3), ("voice", {"id": ""}), ("response_format", "midi"),
                         ("speed", 0.1), ("speed", 5), ("speed", "fast"), ("sample_rate", 7999), ("sample_rate", 48001),
                         ("sample_rate", 1.5), ("stream_format", "x"), ("stream", "yes"), ("language", "klingon"),
                         ("temperature", -1), ("top_p", 0), ("top_p", 2), ("top_k", -1), ("seed", -1), ("seed", 1.5),
                         ("repetition_penalty", 0), ("max_new_tokens", 0), ("max_new_tokens", 1000001),
                         ("volume_multiplier", 9), ("instructions", 4), ("instructions", "y" * 4097),
                         ("task_type", "Base"), ("ref_audio", "AAAA"), ("word_timestamps", True),
                         ("word_timestamps", 1), ("speaker_embedding", [1.0]), ("non_streaming_mode", 1),
                         ("split_granularity", "word"), ("markup", "html"), ("spell_out", 1),
                         ("initial_codec_chunk_frames", 0), ("subtalker_top_p", 7), ("subtalker_temperature", "x")):
        status, headers, body = s.ask("POST", "/v1/audio/speech", {"input": TEXT, field: value})
        error = json.loads(body)["error"]
        assert status == 400 and error["param"] == field and field in error["message"], (field, value, status, body)
        assert error["type"] == "invalid_request_error"
    status, _, body = s.speak(input=TEXT, model="gpt-9")
    assert status == 404 and json.loads(body)["error"]["code"] == "model_not_found"
    assert s.speak(input=TEXT, something_new=1, max_new_tokens=2)[0] == 200


def markup_is_obeyed(s):
    plain = s.speak(input=TEXT, seed=3)[2]
    assert s.speak(input=f"<speak>{TEXT}</speak>", markup="ssml", seed=3)[2] == plain
    assert s.speak(input=TEXT, markup="auto", spell_out=True, seed=3)[2] == plain
    paused = s.speak(input=f'<speak>{TEXT}<break time="2s"/></speak>', markup="auto", seed=3)[2]
    loud = [i for i, x in enumerate(array.array("h", paused)) if abs(x) > 131]  # -48 dB
    assert len(paused) / 2 - 1 - loud[-1] == 2 * 24000 and loud[-1] > len(plain) / 4
    assert s.speak(input="5 km", spell_out=True, seed=3)[2] == s.speak(input="five kilometers", seed=3)[2]
    for text, why in (("<speak>Tom & Ann</speak>", "line 1, column 12"), ('<voice name="nobody">x</voice>', "nobody")):
        status, _, body = s.speak(input=text, markup="ssml")
        assert status == 400 and why in json.loads(body)["error"]["message"], (status, body)
    assert s.speak(input=TEXT, markup="ssml", split_granularity="sentence")[0] == 400


def bad_bodies_are_refused(s):
    json_type = {"Content-Type": "application/json"}
    for body in (b"", b"{", b"[]", b"null", b'{"input":"a","input":"b"}', b'{"input":"a\\u0000b"}',
                 b'{"input":"\xff"}', b"[" * 100 + b"]" * 100):
        status, _, answer = s.ask("POST", "/v1/audio/speech", body, json_type)
        assert status == 400 and json.loads(answer)["error"]["message"], (body, status)
    many = b'{"input":"a","max_new_tokens":1,"x":[' + b"0," * 10000 + b"0]}"
    status, _, answer = s.ask("POST", "/v1/audio/speech", many, json_type)
    assert status == 400, (status, answer[:80])
    assert "10000 values" in json.loads(answer)["error"]["message"], answer
    assert s.ask("POST", "/v1/audio/speech", b"input=x", {"Content-Type": "text/plain"})[0] == 415
    for path, method, want in (("/v1/nothing", "GET", 404), ("/v1/audio/speech", "GET", 405),
                               ("/v1/audio/speech/stream", "GET", 426), ("/v1/models/x", "GET", 404),
                               ("/v1/audio/voices/Alloy", "GET", 200), ("/v1/audio/voices/clara", "GET", 200),
                               ("/v1/audio/voices/x", "DELETE", 404), ("/v1/audio/voices/x", "GET", 404)):
        assert s.ask(method, path)[0] == want, path


def bad_http_is_refused(s):
    host = b"Host: localhost\r\n"
    for request, want in ((b"GARBAGE\r\n\r\n", b"400"), (b"GET / HTTP/3.0\r\n" + host + b"\r\n", b"505"),
                          (b"GET / HTTP/1.1\r\n\r\n", b"400"),
                          (b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", b"403"),
                          (b"GET / HTTP/1.1\r\n" + host + b"Origin: http://evil.example\r\nConnection: close\r\n\r\n",
                           b"403"),
                          (b"POST /v1/audio/speech HTTP/1.1\r\n" + host +
                           b"Content-Length: 2147483648\r\n\r\n", b"413"),
                          (b"POST /v1/audio/speech HTTP/1.1\r\n" + host +
                           b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", b"400"),
                          (b"POST /v1/audio/speech HTTP/1.1\r\n" + host +
                           b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", b"400"),
                          (b"GET / HTTP/1.1\r\n" + host + b"X: " + b"y" * 20000 + b"\r\n\r\n", b"431")):
        got = s.raw(request)
        assert got.split(b" ", 2)[1] == want, (request[:60], got[:80])
    for method, path, allow in (("PUT", "/v1/audio/voices", "GET, POST"), ("GET", "/audio/speech", "POST"),
                                ("POST", "/health", "GET"), ("POST", "/v1/audio/voices/x", "GET, DELETE")):
        status, headers, _ = s.ask(method, path)
        assert status == 405 and headers["allow"] == allow, (path, headers)


def chunks_pipelines_and_continue_work(s):
    body = json.dumps({"input": "Hi.", "max_new_tokens": 2, "response_format": "pcm"}).encode()
    head = b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\n"
    chunked = head + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(b"1\r\n%c\r\n" % c for c in body) + b"0\r\n\r\n"
    last = head + b"Expect: 100-continue\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    got = s.raw(chunked + last)
    assert got.count(b"HTTP/1.1 200 OK") == 2 and b"100 Continue" in got and got.count(b"X-Finish-Reason: length") == 2
    old = s.raw(b"GET /health HTTP/1.0\r\n\r\n")
    health = json.loads(old.split(b"\r\n\r\n", 1)[1])
    assert health["status"] == "ok" and health["device"] and health["kernels"] and health["lanes"] == LANES, health
    assert s.ask("HEAD", "/")[2] == b""


def cut_request(s, request, cut):
    """The request in pieces, whose answer is 400, and a whole one behind it."""
    c = socket.create_connection(("127.0.0.1", s.port))
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    c.settimeout(10 * PATIENCE)
    for a, b in zip([0] + cut, cut + [len(request)]):
        time.sleep(0.02)
        c.sendall(request[a:b])
    answer = c.recv(65536)
    assert answer.startswith(b"HTTP/1.1 400"), (cut, answer)
    c.sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")  # the next one is read as ever
    assert c.recv(65536).startswith(b"HTTP/1.1 200"), cut
    c.close()


def drop_by_drop(s):
    """However a request is cut, its last byte brings the answer; and drops in the middle of it wake nobody."""
    start = b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\n"
    body = json.dumps({"input": " ", "pad": "x" * 9000}).encode()
    head = start + b"Content-Length: %d\r\n\r\n" % len(body)
    n = len(head)
    for cut in ([n - 4], [n - 3], [n - 2], [n - 1], [n - 3, n - 2, n - 1, n, n + 1], [7, n - 1, n + 4096, n + 8193],
                [n + 4097, n + len(body) - 1]):
        cut_request(s, head + body, cut)
    short = start + b"Content-Length: 2\r\n\r\n"
    cut_request(s, short + b"{}", [len(short) - 3, len(short)])
    cut_request(s, short + b"{}", [len(short) - 1, len(short) + 1])
    chunked = start + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
    n = len(chunked)
    for cut in ([n - 15, n - 1], [n - 13, n - 3], [n - 14, n - 2], [n - 13, n - 12, n - 6, n - 1]):
        cut_request(s, chunked, cut)

    def wakings():
        with open(f"/proc/{s.process.pid}/status") as f:
            return int(next(line for line in f if line.startswith("voluntary")).split()[1])
    c = socket.create_connection(("127.0.0.1", s.port))
    c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    c.sendall(head + body[:1])
    time.sleep(0.1)
    before, began = wakings(), time.time()
    for i in range(1, 301):
        c.sendall(body[i:i + 1])
        time.sleep(0.003)
    woken, seconds = wakings() - before, time.time() - began
    c.close()
    assert woken < 100 + 20 * seconds, (woken, seconds)  # of itself it wakes 14 times a second


def a_batch_answers_each_item(s):
    status, _, body = s.ask("POST", "/v1/audio/speech/batch", {
        "response_format": "pcm", "voice": "miles", "max_new_tokens": 3,
        "items": [{"input": "One."}, {"input": ""}, {"input": "Three.", "speed": 99}, {"input": "Four."}, 7]})
    answer = json.loads(body)
    assert status == 200 and answer["total"] == 5 and answer["succeeded"] == 2 and answer["failed"] == 3
    assert [r["status"] for r in answer["results"]] == ["success", "error", "error", "success", "error"]
    assert answer["results"][2]["error"]["param"] == "speed"
    alone = s.speak(input="One.", voice="miles", max_new_tokens=3)[2]
    assert base64.b64decode(answer["results"][0]["audio_data"]) == alone
    for items in ([], [{}] * 33, "x"):
        assert s.ask("POST", "/v1/audio/speech/batch", {"items": items})[0] == 400


def sessions_speak_while_text_arrives(s):
    w = Socket(s)
    w.send({"type": "input.text", "text": "x"})
    assert w.receive()["error"]["param"] == "type"
    w.send({"type": "session.config", "voice": "clara", "seed": 1})
    assert w.receive()["type"] == "session.created"
    w.send({"type": "input.text", "text": "The quick brown fox jumps over the lazy"})
    assert w.receive()["type"] == "audio.start"  # before the sentence has an end
    assert isinstance(w.receive(), bytes)
    w.send({"type": "input.text", "text": " dog near the river."})
    w.send({"type": "input.done"})
    messages, sound = w.until("session.done")
    assert messages[-2]["type"] == "audio.done" and messages[-2]["finish"] == "eos", messages
    w.send({"type": "input.text", "text": TEXT})
    w.send({"type": "input.done"})
    messages, sound = w.until("session.done")
    assert messages[0]["utterance_index"] == 1 and len(sound) == messages[-2]["total_bytes"]
    whole = s.speak(input=TEXT, voice="clara", seed=1, non_streaming_mode=False)[2]
    assert sound == whole
    w.send({"type": "nonsense"})
    assert "action" not in w.receive()  # what was said before is not meant
    w.send(b"are you there", 9)
    assert w.receive() == ("pong", b"are you there")
    w.send({"type": "session.close"})
    assert w.receive() == ("close", 1000)
    w.close()


def sessions_cancel_and_cut(s):
    w = Socket(s)
    w.send({"type": "session.config", "split_granularity": "sentence", "max_new_tokens": 4})
    w.send({"type": "input.text", "text": "One is one. Two is two. "})
    w.send({"type": "input.done"})
    messages, _ = w.until("session.done")
    assert [m["type"] for m in messages] == ["session.created"] + ["audio.start", "audio.done"] * 2 + ["session.done"]
    assert messages[-1]["total_sentences"] == 2
    w.send({"type": "session.config", "max_new_tokens": 4000})
    w.receive()
    w.send({"type": "input.text", "text": LONG})
    w.send({"type": "input.done"})
    w.until("audio.start")
    w.send({"type": "input.cancel"})
    messages, _ = w.until("audio.cancelled")
    assert messages[-1]["utterance_index"] == 1
    assert wait_for(lambda: s.metric("requests_running") == 0)
    w.send({"type": "nonsense"})
    assert w.receive()["error"]["param"] == "type"
    w.send(b"{", 1)
    assert w.receive()["type"] == "error"
    w.send(b"\xff\xfe", 1)
    assert w.receive() == ("close", 1007)
    w.close()
    for first, data, code in ((0x83, b"", 1002), (0xC1, b"", 1002), (0x82, b"x", 1003), (0x80, b"x", 1002)):
        w = Socket(s)
        w.send(data, first=first)
        assert w.receive() == ("close", code)
        w.close()


def who_leaves_frees_the_lane(s):
    before = s.metric("cancelled_total")
    for i in range(10):
        c = socket.create_connection(("127.0.0.1", s.port))
        body = json.dumps({"input": LONG, "response_format": "pcm"}).encode()
        c.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        if i % 2:
            c.recv(1000)
        assert wait_for(lambda: s.metric("requests_running") > 0 or i % 2 == 0)
        c.close()
    assert wait_for(lambda: s.metric("cancelled_total") >= before + 10)
    assert wait_for(lambda: s.metric("requests_running") == 0)
    assert s.metric("cancel_to_free_seconds_count") >= 10


def who_does_not_read_is_paused(s):
    c = socket.create_connection(("127.0.0.1", s.port))
    c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    body = json.dumps({"input": LONG * 12, "response_format": "pcm", "max_new_tokens": 4000}).encode()
    c.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    assert wait_for(lambda: s.metric("batch_size") == 0 and s.metric("requests_running") == 1, 60)
    steps = s.metric("step_seconds_count")
    time.sleep(0.3)
    assert s.metric("step_seconds_count") == steps and s.metric("requests_running") == 1
    c.close()
    assert wait_for(lambda: s.metric("requests_running") == 0)
    assert s.metric('cancelled_total{stage="paused"}') == 1


def a_dead_worker_is_replaced(s):
    results = []

    def ask(i):
        try:
            status, headers, body = s.ask("POST", "/v1/audio/speech", {"input": LONG, "response_format": "pcm"})
            results.append((status, len(body)))
        except Exception as e:
            results.append((type(e).__name__, 0))
    for signum in (signal.SIGKILL, signal.SIGABRT):
        results.clear()
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(6)]
        for t in threads:
            t.start()
        wait_for(lambda: s.metric("requests_running") > 2)
        time.sleep(0.1)
        os.kill(s.workers()[0], signum)
        assert wait_for(lambda: s.metric("ready") == 1 and s.ask("GET", "/ready")[0] == 200, 3)
        for t in threads:
            t.join(60 * PATIENCE)
        whole = len(s.speak(input=LONG)[2])
        assert len(results) == 6 and all(r[0] in (503, "IncompleteRead") or r == (200, whole) for r in results), results


def too_many_are_refused(s):
    clients = []
    body = json.dumps({"input": LONG, "response_format": "pcm"}).encode()
    for i in range(3):
        c = socket.create_connection(("127.0.0.1", s.port))
        c.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        clients.append(c)
        assert wait_for(lambda: s.metric("requests_running") + s.metric("requests_queued") == i + 1)
    assert s.ask("GET", "/ready")[0] == 503
    status, headers, answer = s.speak(input=TEXT)
    error = json.loads(answer)["error"]
    assert status == 503 and error["type"] == "overloaded_error"
    assert int(headers["retry-after"]) > 0 and f"try again in {headers['retry-after']} s" in error["message"], error
    mishaps.an_utterance_is_refused_once(s)
    clients.pop().close()  # a queued one leaves: its place is free
    assert wait_for(lambda: s.metric("requests_queued") == 0)
    for c in clients:
        c.close()
    assert wait_for(lambda: s.speak(input=TEXT)[0] == 200)


def who_sends_too_much_is_refused(s):
    head = b"POST /v1/audio/voices HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10000000\r\n\r\n"
    senders = []
    for _ in range(14):  # of which 128 MiB may be held together
        c = socket.create_connection(("127.0.0.1", s.port))
        c.settimeout(30)  # of each: together less than the test's own time
        senders.append(c)
        try:
            c.sendall(head + b"x" * 9900000)
        except OSError:
            pass
    answers = []
    assert wait_for(lambda: select.select(senders, [], [], 0)[0])
    for c in senders:
        c.settimeout(0.2)
        try:
            answers.append(c.recv(1000))
        except OSError:
            answers.append(b"")
    refused = [a for a in answers if a.startswith(b"HTTP/1.1 503 ")]
    assert 1 <= len(refused) <= 3 and all(b"\r\nRetry-After: 1\r\n" in a for a in refused), answers
    assert s.speak(input=TEXT, max_new_tokens=1)[0] == 200  # little is taken even now
    for c in senders:
        c.close()


def who_reads_nothing_costs_little(s):
    before, page = s.memory_kb(), b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    c = socket.create_connection(("127.0.0.1", s.port))
    c.settimeout(10 * PATIENCE)
    sender = threading.Thread(target=c.sendall, args=(page * 3000,))  # 45 MB of answers
    sender.start()
    time.sleep(0.5)
    assert s.memory_kb() < before + 4096, (before, s.memory_kb())
    got, tail = 0, b""
    while got < 3000:  # and nothing of it is lost
        tail += c.recv(1 << 20)
        got += tail.count(b"HTTP/1.1 200 OK")
        tail = tail[-14:]
    sender.join()
    c.close()
    w = Socket(s)
    with_ping = b"\x89\x84\0\0\0\0ping" * 200000
    try:
        w.s.settimeout(5)
        w.s.sendall(with_ping)
    except OSError:
        pass
    assert s.memory_kb() < before + 8192
    w.close()
    assert s.speak(input=TEXT, max_new_tokens=1)[0] == 200


def speeches_end_before_the_server(s):
    got = []
    t = threading.Thread(target=lambda: got.append(s.speak(input=LONG, max_new_tokens=2000 if LANES == 8 else 30)))
    t.start()
    assert wait_for(lambda: s.metric("requests_running") == 1)
    w = Socket(s)
    w.send({"type": "session.config"})
    w.receive()
    s.process.send_signal(signal.SIGTERM)
    assert w.receive() == ("close", 1001)
    w.close()
    t.join()
    assert got[0][0] == 200 and len(got[0][2]) > 100000
    assert s.process.wait(10 * PATIENCE) == 0


def voices_are_made_and_kept(s, folder):
    sound = tone(2)
    fields = {"name": "Anna B", "audio_sample": sound, "consent": "yes"}
    status, _, body = s.ask("POST", "/v1/audio/voices", *form(fields))
    voice = json.loads(body)
    same = {**fields, "audio_sample": base64.b64encode(sound).decode(), "overwrite": True}
    assert s.ask("POST", "/v1/audio/voices", same)[0] == 200
    assert status == 200 and voice["name"] == "Anna B" and voice["success"] and voice["consent"] == "yes", body
    assert s.ask("POST", "/v1/audio/voices", *form({"name": "anna b", "audio_sample": sound}))[0] == 409
    assert s.ask("POST", "/v1/audio/voices", *form({"name": "Zoe\u0308", "audio_sample": sound}))[0] == 200
    assert s.ask("POST", "/v1/audio/voices", *form({"name": "zo\u00eb", "audio_sample": sound}))[0] == 409
    assert s.ask("DELETE", "/v1/audio/voices/Zoe%CC%88")[0] == 200  # an accent may be composed or not
    first = s.speak(input=TEXT, voice="ANNA B", max_new_tokens=3)
    assert first[0] == 200 and len(first[2]) == 3 * 3840
    assert s.speak(input=TEXT, voice="alloy", max_new_tokens=2)[0] == 200
    once = base64.b64encode(sound).decode()
    direct = s.speak(input=TEXT, ref_audio="data:audio/wav;base64," + once, max_new_tokens=3)
    assert direct[0] == 200 and direct[2] == first[2]
    assert s.stop() == 0
    os.symlink(os.path.abspath(s.model), named := folder + ' "\\\n')
    again = Server(program, "--lanes", "2", "-m", named, "--voices", folder)
    try:
        told = json.loads(again.ask("GET", "/v1/models")[2])["data"][0]["id"]
        assert told == os.path.basename(folder) + " ___", told
        assert again.speak(input=TEXT, voice="anna b", max_new_tokens=3)[2] == first[2]
        listed = json.loads(again.ask("GET", "/v1/audio/voices")[2])
        assert listed["uploaded_voices"][0]["consent"] == "yes"
        assert again.ask("DELETE", "/v1/audio/voices/Anna%20B")[0] == 200
        assert again.speak(input=TEXT, voice="anna b")[0] == 400 and os.listdir(folder) == []
    finally:
        again.stop()


def hostile_uploads_are_refused(s):
    header = tone(1)[:44]
    for sound in (b"x", b"RIFF", header, header[:40] + b"\xff\xff\xff\xff",
                  header[:22] + b"\0\0" + header[24:] + b"x" * 99,
                  header[:24] + b"\xff\xff\xff\x7f" + header[28:] + b"x" * 99, b"OggS" + b"\0" * 100, tone(31)):
        status, _, body = s.ask("POST", "/v1/audio/voices", *form({"name": "x", "audio_sample": sound}))
        assert status == 400 and json.loads(body)["error"]["param"] == "audio_sample", (sound[:50], status, body)
        assert b"/tmp" not in body
    for name in ("", ".", "../x", "a/b", "a\\b", "a\nb", "n" * 101):
        status, _, body = s.ask("POST", "/v1/audio/voices", *form({"name": name, "audio_sample": b"x"}))
        assert status == 400 and json.loads(body)["error"]["param"] == "name", name
    assert s.ask("POST", "/v1/audio/voices", *form({"name": "x"}))[0] == 400
    assert s.ask("POST", "/v1/audio/voices", b"--XX", {"Content-Type": "multipart/form-data; boundary=XX"})[0] == 400


def ends_cleanly(s):
    assert s.stop() == 0 and "Sanitizer" not in s.said(), s.said()[-2000:]


def main():
    checks = word_times.run(Checks(), program, checkpoints)
    s = Server(program, "--lanes", str(LANES), "--drain", "600")
    long_speech = (every_format_and_way, who_reads_nothing_costs_little, events_carry_the_same_sound, markup_is_obeyed,
                   alone_and_in_a_crowd_the_same, who_leaves_frees_the_lane, who_does_not_read_is_paused,
                   a_dead_worker_is_replaced, mishaps.a_long_batch_is_written_as_it_is_read,
                   *strangers.long_speech)
    for test in (speech_is_that_of_the_program, *long_speech, bad_fields_are_named, bad_bodies_are_refused,
                 bad_http_is_refused, who_sends_too_much_is_refused, chunks_pipelines_and_continue_work, drop_by_drop,
                 a_batch_answers_each_item, sessions_speak_while_text_arrives, sessions_cancel_and_cut,
                 mishaps.a_session_holds_a_mebibyte_of_text, mishaps.a_session_outlives_the_worker,
                 mishaps.an_utterance_that_ends_early_is_over, *strangers.of_a_running_server,
                 speeches_end_before_the_server):
        if test in long_speech and SANITIZED:
            print(f"SKIP server/{test.__name__}: minutes of speech under sanitizers; the plain build runs it")
        else:
            checks.run(test.__name__, test, s)
    checks.run("ends_cleanly", ends_cleanly, s)
    s = Server(program, "--lanes", "2", "--queue", "1", "--patience", "60000", "-q")
    checks.run("too_many_are_refused", too_many_are_refused, s)
    checks.run("ends_cleanly", ends_cleanly, s)
    with tempfile.TemporaryDirectory() as folder:
        keys = os.path.join(folder, "keys")
        with open(keys, "w") as f:
            f.write("# mine\nsesame\ntwo speeches=1\nthree per-minute=3\nsha256:"
                    + hashlib.sha256(b"hashed").hexdigest() + "\n")
        s = Server(program, "--lanes", "2", "--api-key-file", keys)
        checks.run("keys_are_asked_for", keyed.keys_are_asked_for, s)
        checks.run("keys_have_limits", keyed.keys_have_limits, s, keys)
        checks.run("ends_cleanly", ends_cleanly, s)
        os.mkdir(voices := os.path.join(folder, "voices"))
        model = os.path.join(checkpoints, "tiny06-base")
        s = Server(program, "--lanes", "4", "-m", model, "--voices", voices)
        s.model = model
        checks.run("voices_of_a_base_model_are_told_truly", strangers.voices_of_a_base_model_are_told_truly, s)
        checks.run("hostile_uploads_are_refused", hostile_uploads_are_refused, s)
        checks.run("fields_of_a_voice_are_checked", mishaps.fields_of_a_voice_are_checked, s)
        checks.run("a_voice_outlives_bad_recordings", mishaps.a_voice_outlives_bad_recordings, s, voices)
        checks.run("complaints_of_a_decoder_hold_nobody_up", mishaps.complaints_of_a_decoder_hold_nobody_up, s)
        checks.run("a_name_is_made_once", mishaps.a_name_is_made_once, s, voices)
        checks.run("a_voice_has_one_file", mishaps.a_voice_has_one_file, program, s, voices)
        checks.run("ends_cleanly", ends_cleanly, s)
        s = Server(program, "--lanes", "4", "-m", model, "--voices", voices)
        s.model = model
        checks.run("voices_are_made_and_kept", voices_are_made_and_kept, s, voices)
        checks.run("ends_cleanly", ends_cleanly, s)
    spoken = os.path.join(checkpoints, "tiny06-custom_voice")
    checks.run("a_model_that_breaks_is_opened_again", mishaps.a_model_that_breaks_is_opened_again, program, spoken)
    for test in (mishaps.voices_of_the_program_are_known, mishaps.a_voice_is_its_uploaders, *shared.TESTS,
                 mishaps.a_full_folder_still_replaces, mishaps.a_voice_that_cannot_be_kept, carried.voices_go_on):
        checks.run(test.__name__, test, program, model)
    for test in (mishaps.load_asks_for_a_voice_of_any_name, mishaps.who_comes_too_early_is_told,
                 mishaps.recordings_of_a_killed_server_go, mishaps.nobody_waits_but_lanes_are_given,
                 mishaps.folders_of_others_stay, mishaps.the_first_line_names_the_address, mishaps.worker_is_caged,
                 mishaps.a_start_that_never_succeeds_ends, mishaps.the_end_is_told, mishaps.long_answers_leave_room,
                 mishaps.wrong_starts_say_why, *strangers.of_a_server_each, *lacking.TESTS):
        checks.run(test.__name__, test, program)
    if not SANITIZED:
        checks.run("long_answers_wait_in_a_file", mishaps.long_answers_wait_in_a_file, program)
    sys.exit(several.run(checks, program, model).end())


main()
