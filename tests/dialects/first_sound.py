# How much later than on our own WebSocket the first sound of the same text comes by each dialect: on connections that
# are open, by turns, from the last message with text to the first message with sound. Usage: first_sound.py PROGRAM
# [ROUNDS [MS]]; ends with 1 where the median of the differences is above MS (2). For a quiet machine.
import pathlib
import socket
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from cartesia import BASE  # noqa: E402
from client import Server, Socket  # noqa: E402
from deepgram import QUERY  # noqa: E402
from elevenlabs import EL, quiet  # noqa: E402

TEXT = "Hello there, how are you today?"
CLARA = {"mode": "id", "id": "clara"}


class Own:
    path, fields = "/v1/audio/speech/stream", {}

    def open(self, w):
        w.send({"type": "session.config", "voice": "clara", "seed": 1, **self.fields})
        assert w.receive()["type"] == "session.created"

    def begin(self, w, name):
        pass

    def say(self, w, name):
        w.send({"type": "input.text", "text": TEXT})

    def is_sound(self, m, name):
        return isinstance(m, bytes)

    def end(self, w, name):
        w.send({"type": "input.cancel"})
        w.until("audio.cancelled")


class OwnWithWords(Own):
    fields = {"word_timestamps": True}


class ElevenLabs(Own):
    path = EL.rsplit("/", 1)[0] + "/clara/multi-stream-input?output_format=pcm_24000&seed=1"

    def open(self, w):
        pass

    def begin(self, w, name):
        w.send({"text": " ", "context_id": name})

    def say(self, w, name):
        w.send({"text": TEXT + " ", "context_id": name, "flush": True})

    def is_sound(self, m, name):
        return bool(m["audio"])

    def end(self, w, name):
        w.send({"context_id": name, "close_context": True})
        w.send({"context_id": name, "close_context": True})
        while not w.receive()["isFinal"]:
            pass


class Cartesia(ElevenLabs):
    path = "/tts/websocket"

    def begin(self, w, name):
        pass

    def say(self, w, name):
        w.send({**BASE, "voice": CLARA, "context_id": name, "transcript": TEXT, "continue": True,
                "add_timestamps": True, "max_buffer_delay_ms": 0})

    def is_sound(self, m, name):
        return m["type"] == "chunk" and m["context_id"] == name  # not of one that was cancelled

    def end(self, w, name):
        w.send({"context_id": name, "cancel": True})


class Aura(Own):
    path = "/v1/speak" + QUERY.replace("aura-2-thalia-en", "clara")

    def open(self, w):
        assert w.receive()["type"] == "Metadata"

    def say(self, w, name):
        w.send({"type": "Speak", "text": TEXT})

    def end(self, w, name):
        w.send({"type": "Clear"})
        w.until("Cleared")


class Flux(Aura):
    path = "/v2/speak?model=clara&encoding=linear16&sample_rate=24000"

    def open(self, w):
        assert w.receive()["type"] == "Connected"

    def end(self, w, name):
        w.send({"type": "Interrupt"})
        w.until("SpeechInterrupted")


def first_ms(s, dialect, w, name):
    dialect.begin(w, name)
    time.sleep(0.005)
    began = time.perf_counter()
    dialect.say(w, name)
    while not dialect.is_sound(w.receive(), name):
        pass
    ms = 1000 * (time.perf_counter() - began)
    dialect.end(w, name)
    assert quiet(s)
    return ms


def main():
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    most = float(sys.argv[3]) if len(sys.argv) > 3 else 2
    s = Server(sys.argv[1], "--lanes", "4", "-q")
    dialects = [Own(), OwnWithWords(), ElevenLabs(), Cartesia(), Aura(), Flux()]
    sockets, times = [], [[] for _ in dialects]
    for dialect in dialects:
        w = Socket(s, dialect.path)
        assert w.status == 101, dialect.path
        w.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        dialect.open(w)
        sockets.append(w)
    for i in range(-2, rounds):  # the first two warm it up
        for k, dialect in enumerate(dialects):
            ms = first_ms(s, dialect, sockets[k], f"c{i}")
            times[k] += [ms] if i >= 0 else []
    worst = 0
    for dialect, mine in zip(dialects, times):
        more = statistics.median(b - a for a, b in zip(times[0], mine))
        worst = max(worst, more)
        print(f"{type(dialect).__name__}: first sound after {statistics.median(mine):.2f} ms (least {min(mine):.2f}), "
              f"{more:+.2f} against our own")
    for w in sockets:
        w.close()
    s.stop()
    return worst > most


if __name__ == "__main__":
    sys.exit(main())
