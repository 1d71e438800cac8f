# Keys: who has none is refused, and what each may ask for.
import json
import signal
import socket
import time

from client import Socket, wait_for

TEXT = "Hello there."
LONG = "The quick brown fox jumps over the lazy dog near the river bank. " * 4


def keys_are_asked_for(s):
    assert s.speak(input=TEXT)[0] == 401
    assert s.ask("GET", "/health")[0] == 200 and s.ask("GET", "/metrics")[0] == 401
    assert json.loads(s.ask("GET", "/health")[2]) == {"status": "ok"}  # a stranger need not know the machine
    assert json.loads(s.ask("GET", "/health", headers={"X-API-Key": "sesame"})[2])["lanes"] == 2
    for header, value in (("Authorization", "Bearer sesame"), ("Authorization", "token sesame"),
                          ("X-API-Key", "sesame"), ("xi-api-key", "hashed")):
        assert s.ask("GET", "/v1/models", headers={header: value})[0] == 200
    assert s.ask("GET", "/v1/models", headers={"Authorization": "Bearer sesam"})[0] == 401
    assert Socket(s).status == 401 and Socket(s, "/v1/audio/speech/stream?api_key=sesame").status == 101


def keys_have_limits(s, path):
    two, three = {"Authorization": "Bearer two"}, {"Authorization": "Bearer three"}
    c = socket.create_connection(("127.0.0.1", s.port))
    body = json.dumps({"input": LONG, "response_format": "pcm"}).encode()
    c.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer two\r\n"
              b"Content-Length: %d\r\n\r\n" % len(body) + body)
    short = {"input": TEXT, "max_new_tokens": 1}

    def ask(key):
        return s.ask("POST", "/v1/audio/speech", short, headers=key)
    sesame = {"Authorization": "Bearer sesame"}

    def running():
        return b"tts_requests_running 0\n" not in s.ask("GET", "/metrics", headers=sesame)[2]
    assert wait_for(running)
    status, headers, answer = ask(two)
    error = json.loads(answer)["error"]
    assert status == 429 and error["type"] == "rate_limit_error" and error["code"] == "rate_limit_exceeded", answer
    assert int(headers["retry-after"]) == 1 and "x-should-retry" not in headers
    batch = {"items": [short] * 3, "response_format": "pcm"}
    assert ask(sesame)[0] == 200  # others are not held up
    # A batch beside it waits for no place that others have: each item says so.
    status, _, answer = s.ask("POST", "/v1/audio/speech/batch", batch, headers=two)
    answer = json.loads(answer)
    assert status == 200 and answer["failed"] == 3, answer
    assert all(r["error"]["code"] == "rate_limit_exceeded" for r in answer["results"]), answer
    c.close()
    assert ask(two)[0] == 200  # who leaves may ask again at once, wherever the old speech is
    assert wait_for(lambda: not running())
    status, _, answer = s.ask("POST", "/v1/audio/speech/batch", batch, headers=two)
    assert status == 200 and json.loads(answer)["succeeded"] == 3, answer  # one after another
    began, spoken = time.time(), 0

    def spend():
        """Until there is nothing left of its three; after each 20 s it has one more. When that will be."""
        nonlocal spoken
        while (answer := ask(three))[0] == 200:
            spoken += 1
            assert spoken <= 3 + (time.time() - began) / 20, spoken
        return answer[0] == 429 and int(answer[1]["retry-after"])
    assert 0 < spend() <= 20 and spoken >= 3, spoken
    s.process.send_signal(signal.SIGHUP)  # the file is read again: what was used stays used
    assert s.ask("GET", "/health")[0] == 200 and 0 < spend() <= 20
    metrics = s.ask("GET", "/metrics", headers=sesame)[2]
    assert b'tts_rejected_total{reason="rate"} 6\n' in metrics
    with open(path, "a") as f:  # a file that is refused changes nothing, nor do its good lines
        f.truncate(0)
        f.write("sesame\nthree per-minute=1000\ntwo speeches=many\n")
    s.process.send_signal(signal.SIGHUP)
    assert s.ask("GET", "/health")[0] == 200 and spend() > 0
