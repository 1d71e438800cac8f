# Sessions of Home Assistant, as its Wyoming integration was seen to send them: a new connection for every request.
import json
import os
import signal
import socket
import threading
import time

from client import PATIENCE, Server, free_port, wait_for
from elevenlabs import TEXT


class Wyoming:
    def __init__(self, port):
        self.s = socket.create_connection(("127.0.0.1", port))
        self.s.settimeout(20 * PATIENCE)
        self.f = self.s.makefile("rb")

    def send(self, kind, data=None, raw=b""):
        more = json.dumps(data).encode() if data is not None else b""
        line = {"type": kind, "version": "1.10.2", **({"data_length": len(more)} if more else {})}
        self.s.sendall(json.dumps(line).encode() + b"\n" + more + raw)

    def receive(self):
        """(type, data, payload), or None at the end."""
        line = self.f.readline()
        if not line:
            return None
        e = json.loads(line)
        data = {**(e.get("data") or {}), **json.loads(self.f.read(e.get("data_length") or 0) or b"{}")}
        return e["type"], data, self.f.read(e.get("payload_length") or 0)

    def until(self, kind):
        got = []
        while not got or got[-1][0] != kind:
            got.append(self.receive())
            assert got[-1], got
        return got

    def close(self):
        self.f.close()
        self.s.close()


def ask(port, kind, data=None):
    w = Wyoming(port)
    w.send(kind, data)
    return w


def sound_of(events):
    return b"".join(payload for kind, _, payload in events if kind == "audio-chunk")


def wyoming_speaks(s, port):
    w = ask(port, "describe")
    tts = w.receive()[1]["tts"][0]
    assert {v["name"] for v in tts["voices"]} == {"clara", "miles"} and tts["supports_synthesize_streaming"], tts
    assert all(v["languages"] == ["en"] and v["installed"] and v["attribution"] for v in tts["voices"]), tts
    w.send("ping", {"text": "x"})
    w.send("select-program", {"name": "none"})  # what is not known here is passed over
    assert w.receive() == ("pong", {"text": "x"}, b"")
    w.close()
    w = ask(port, "synthesize", {"text": TEXT, "voice": {"name": "miles"}})
    got = w.until("audio-stop")
    assert got[0] == ("audio-start", {"rate": 24000, "width": 2, "channels": 1}, b"") and len(sound_of(got)) > 40000
    w.close()


def wyoming_streams(s, port):
    w = ask(port, "synthesize-start", {"voice": {"name": "clara"}})
    for word in TEXT.split():
        w.send("synthesize-chunk", {"text": word + " "})
    w.send("synthesize", {"text": TEXT})  # for servers that do not stream: said once only
    w.send("synthesize-stop")
    got = w.until("synthesize-stopped")
    kinds = [kind for kind, _, _ in got]
    assert kinds[0] == "audio-start" and kinds[-2:] == ["audio-stop", "synthesize-stopped"] and \
        kinds.count("audio-start") == 1 and 40000 < len(sound_of(got)) < 300000, kinds
    for text in ("", " ", "<b> </b>"):  # nothing to say
        w.send("synthesize-start", {})
        w.send("synthesize-chunk", {"text": text})
        w.send("synthesize-stop")
        got = [kind for kind, _, _ in w.until("synthesize-stopped")]
        assert got == ["audio-start", "audio-stop", "synthesize-stopped"], (text, got)
    w.close()


def wyoming_waits_for_who_does_not_read(s, port):
    w = Wyoming(port)
    line = b'{"type":"describe"}\n'
    for i in range(0, len(line), 3):  # in pieces
        w.s.sendall(line[i:i + 3])
    w.s.sendall(line * 1200)
    time.sleep(1)
    for _ in range(1201):
        assert w.receive()[0] == "info"
    w.s.sendall(b'{"type":"ping","data_length":13}\n{"te')
    time.sleep(0.1)
    w.s.sendall(b'xt":"x"}   ')
    assert w.receive() == ("pong", {"text": "x"}, b"")
    w.close()


def wyoming_tells_errors(s, port):
    for kind, data in (("synthesize", {"text": TEXT, "voice": {"name": "nobody"}}), ("synthesize", {"text": " "}),
                       ("synthesize", {"text": 5}), ("synthesize-start", {"voice": {"name": "nobody"}}),
                       ("synthesize", {"text": TEXT, "voice": {"language": "tlh"}})):
        w = ask(port, kind, data)
        e = w.receive()
        assert e[0] == "error" and e[1]["text"] and w.receive() is None, (kind, data, e)  # and the end: nobody waits
        w.close()
    for raw in (b"x" * 100 + b"\n", b'{"type":"describe","data_length":-5}\n', b"\0\n", b'{"type":7}\n', b"y" * 70000):
        w = Wyoming(port)
        w.s.sendall(raw)
        e = w.receive()
        assert e[0] == "error" and w.receive() is None, e
        w.close()
    w = ask(port, "synthesize", {"text": "a " * 70000})  # too long
    assert w.receive()[0] == "error" and w.receive() is None
    assert wait_for(lambda: s.metric("requests_running") + s.metric("requests_queued") == 0)  # no lane is kept for it
    w.close()
    w = ask(port, "synthesize", {"text": TEXT * 20})
    w.until("audio-chunk")
    w.close()  # in the middle
    assert wait_for(lambda: s.metric("requests_running") + s.metric("requests_queued") == 0)


def wyoming_answers_while_the_model_opens(program, model):
    port = free_port()
    s = Server(program, "-m", model, "--lanes", "1", "--wyoming", f"tcp://127.0.0.1:{port}", held=True)
    w = ask(port, "describe")
    voices = [v["name"] for v in w.receive()[1]["tts"][0]["voices"]]
    assert voices  # which the worker does not say: it is stopped
    w.close()
    w = ask(port, "synthesize", {"text": TEXT})
    assert w.receive()[0] == "error" and w.receive() is None
    w.close()
    for path in ("/v1/voices", "/v1/audio/voices", "/v1/models"):  # lists of what is not known yet
        assert s.ask("GET", path)[0] == 200 and s.ask("GET", path, headers={"xi-api-key": "x"})[0] == 200, path
    s.resume()
    w = ask(port, "describe")
    assert [v["name"] for v in w.receive()[1]["tts"][0]["voices"]] == voices
    assert s.stop() == 0
    for wrong, why in (("tcp://0.0.0.0:1", "has no keys"), ("udp://x", "must be tcp://"),
                       ("tcp://127.0.0.1:x", "must be")):
        s = Server(program, "--wyoming", wrong)
        assert s.stop() == 1 and why in s.said(), s.said()


def wyoming_tells_of_the_end(program):
    """Who has connected and then asks is refused, and who has not heard all at the end of the drain is told."""
    port = free_port()
    s = Server(program, "--lanes", "1", "--drain", "1", "--wyoming", f"tcp://127.0.0.1:{port}")
    speaks, idle, connected = Wyoming(port), Wyoming(port), Wyoming(port)
    speaks.send("synthesize", {"text": TEXT * 200})
    assert speaks.receive()[0] == "audio-start"
    heard = []
    hears = threading.Thread(target=lambda: heard.extend(speaks.until("error")))
    hears.start()
    idle.send("ping")
    assert idle.receive()[0] == "pong"
    s.process.send_signal(signal.SIGSTOP)
    waiting = [Wyoming(port) for _ in range(20)]  # the server has not accepted them yet
    for w in waiting:
        w.send("synthesize", {"text": TEXT})
    s.process.send_signal(signal.SIGTERM)
    s.process.send_signal(signal.SIGCONT)
    assert wait_for(lambda: '"draining"' in s.said(), step=0.01)
    connected.send("synthesize", {"text": TEXT})
    assert idle.receive() is None
    for w in [*waiting, connected]:
        kind, data, _ = w.receive()
        assert kind == "error" and "about to stop" in data["text"], (kind, data)
        assert w.receive() is None
        w.close()
    hears.join()
    assert "stops" in heard[-1][1]["text"], heard[-1:]
    speaks.close()
    idle.close()
    assert s.process.wait(10 * PATIENCE) == 0, s.said()


def run(checks, program, checkpoints):
    port = free_port()
    s = Server(program, "--lanes", "2", "--wyoming", f"tcp://127.0.0.1:{port}")
    for test in (wyoming_speaks, wyoming_streams, wyoming_waits_for_who_does_not_read, wyoming_tells_errors):
        checks.run(test.__name__, test, s, port)
    checks.run("wyoming_ends_cleanly", lambda: s.stop() == 0 or 1 / 0)
    checks.run("wyoming_tells_of_the_end", wyoming_tells_of_the_end, program)
    checks.run("wyoming_answers_while_the_model_opens", wyoming_answers_while_the_model_opens, program,
               os.path.join(checkpoints, "tiny06-custom_voice"))
