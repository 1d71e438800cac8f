# What the server does when it lacks memory, where the simulation does not reach: voices that are made, and Wyoming.
# Each allocation of its front end fails (lacks.c), alone or with some that follow. Whoever asked is told, or the
# connection ends; nobody waits for ever, and whoever asks next is served. As a program:
# lacking.py PROGRAM upload|erase|once|wyoming [LASTING] -- OPTIONS of utter serve; all but the last want a base model.
import base64
import http.client
import json
import mmap
import os
import struct
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "dialects"))
from client import PATIENCE, SANITIZED, Server, Socket, form, free_port, tone, wait_for  # noqa: E402
from wyoming_replay import Wyoming  # noqa: E402

LEFT, LASTING, FAILED, ASKED, OWNER = range(5)  # of struct lacks
UPLOAD = form({"name": "Bea", "audio_sample": tone(1), "overwrite": "true"})


class Lacking:
    """A server, started again when it dies, and what `what` asks of it."""
    def __init__(self, program, what, *options):
        self.program, self.options, self.port = program, options, free_port()
        self.what = {"upload": self.upload, "erase": self.erase, "once": self.once, "wyoming": self.wyoming,
                     "talk": self.talk}[what]
        self.file = tempfile.NamedTemporaryFile()
        self.file.truncate(4096)
        self.shared = mmap.mmap(self.file.fileno(), 4096)
        self.number = self.lasting = 0  # of the allocation that is to fail, and how many fail behind it
        self.start()

    def start(self):
        self[OWNER] = 0
        library = os.path.join(os.path.dirname(self.program), "tests/server/lacks.so")
        self.server = Server(self.program, "-q", "--wyoming", f"tcp://127.0.0.1:{self.port}", *self.options,
                             env={**os.environ, "LD_PRELOAD": library, "LACKS": self.file.name})

    def __getitem__(self, i):
        return struct.unpack_from("<q", self.shared, 8 * i)[0]

    def __setitem__(self, i, value):
        struct.pack_into("<q", self.shared, 8 * i, value)

    def begin(self):
        self[LASTING] = self.lasting
        self[LEFT] = self.number

    def ask(self, method, path, *body):
        status, _, answer = self.server.ask(method, path, *body, timeout=60 * PATIENCE)
        try:
            told = json.loads(answer)
        except ValueError:
            raise AssertionError((status, answer))
        assert status == 200 or "error" in told or told == {}, (status, answer)  # {}: not even that could be told
        return str(status)

    def upload(self):
        self.begin()
        return self.ask("POST", "/v1/audio/voices", *UPLOAD)

    def erase(self):
        assert self.ask("POST", "/v1/audio/voices", *UPLOAD) == "200"
        self.begin()
        return self.ask("DELETE", "/v1/audio/voices/Bea")

    def once(self):
        """A speech in a voice that comes with it."""
        self.begin()
        status, _, answer = self.server.speak(input="Hi.", ref_audio=base64.b64encode(tone(1)).decode(), stream=False,
                                              max_new_tokens=2, timeout=60 * PATIENCE)
        assert status != 200 or len(answer) == 2 * 3840, (status, answer[:200])
        return str(status)

    def talk(self):
        """A WebSocket of a dialect, up to its first answer."""
        self.begin()
        try:
            w = Socket(self.server, "/tts/websocket")
        except IndexError:  # no answer, and an end
            return "ended"
        w.close()
        return str(w.status)

    def wyoming(self):
        self.begin()
        w = Wyoming(self.port)
        w.s.settimeout(60 * PATIENCE)
        got = []

        def ends(*kinds):
            while (not got or got[-1] not in (*kinds, "error")) and (event := w.receive()):
                got.append(event[0])
            return got[-1:] == [kinds[-1]]
        w.send("describe")
        good = ends("info")
        if good:
            w.send("synthesize-start", {})
            w.send("synthesize-chunk", {"text": "Hi there."})
            w.send("synthesize-stop")
            good = ends("synthesize-stopped")
        if good:
            w.send("synthesize", {"text": "Hi you."})
            good = ends("audio-stop")
        w.close()
        assert not good or got.count("audio-start") == 2 and "audio-chunk" in got, got
        return "whole" if good else "told" if got[-1:] == ["error"] else "ended"

    def outcome(self):
        try:
            return self.what()
        except TimeoutError:
            raise AssertionError("nobody answers")
        except (OSError, http.client.IncompleteRead):  # the connection ended
            return "ended"
        finally:
            self[LEFT] = 0

    def each(self, lasting=0, most=1 << 30):
        """Every allocation that it asks for, up to so many. {outcome: how often}."""
        usual = self.outcome()
        before = self[ASKED]
        assert self.outcome() == usual
        asked, outcomes, number = self[ASKED] - before, {}, 0
        while number < min(asked * 5 // 4 + 20, most):  # the order of threads may move some
            number += 1
            self.number, self.lasting, failed = number, lasting, self[FAILED]
            outcome = self.outcome()
            self.number = 0
            if self[FAILED] > failed:
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
            alive = self.server.process.poll() is None
            assert alive and wait_for(lambda: self.outcome() == usual, 20, 0.2), (
                number, lasting, outcome, usual, "alive" if alive else "DIED", self.server.said()[-1000:])
        return outcomes


def an_upload_without_memory_is_told(program):
    """Of a form, up to where a model without voices of its own refuses it."""
    lacking = Lacking(program, "upload", "--lanes", "1")
    try:
        for lasting in (0, 20):
            outcomes = lacking.each(lasting, 150)
            assert sum(outcomes.values()) > 20 and outcomes.get("503"), outcomes
    finally:
        code = lacking.server.stop()
    assert code == 0, (code, lacking.server.said()[-1000:])


def a_talk_without_memory_is_told(program):
    lacking = Lacking(program, "talk", "--lanes", "1")
    try:
        outcomes = lacking.each()
        assert outcomes.get("503"), outcomes
    finally:
        code = lacking.server.stop()
    assert code == 0, (code, lacking.server.said()[-1000:])


def what_is_always_the_same_is_made_once(program):
    """/openapi.json took 0.5 ms of the front end's turn, and so did each who asked for it again."""
    lacking = Lacking(program, "talk", "--lanes", "1")
    try:
        asked, answers = [], []
        for _ in range(2):
            before = lacking[ASKED]
            answers.append(lacking.server.ask("GET", "/openapi.json")[2])
            asked.append(lacking[ASKED] - before)
        assert answers[0] == answers[1] and asked[0] > 1000 and asked[1] < 100, asked
    finally:
        assert lacking.server.stop() == 0


# A sanitizer has a malloc of its own.
TESTS = () if SANITIZED else (an_upload_without_memory_is_told, a_talk_without_memory_is_told,
                              what_is_always_the_same_is_made_once)


def main():
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    program, what, *lasting = arguments[:at]
    began, lacking = time.time(), Lacking(program, what, *arguments[at + 1:])
    outcomes = lacking.each(*map(int, lasting))
    print(json.dumps({"what": what, "failed": lacking[FAILED], "outcomes": outcomes, "code": lacking.server.stop(),
                      "seconds": round(time.time() - began)}))


if __name__ == "__main__":
    main()
