# What the scripts beside it share: a server of some devices, load against it, figures as lines of JSON.
# Settings come from the environment: SECONDS (of a run: 10), WORDS (5-60), FRAMES (a word, for models that do not end:
# 5).
import http.client
import json
import os
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../tests/server"))
from client import Server, operated, wait_for  # noqa: E402, F401

SECONDS = float(os.environ.get("SECONDS", "10"))
WORDS, FRAMES = os.environ.get("WORDS", "5-60"), os.environ.get("FRAMES", "5")


def show(name, **values):
    print(json.dumps({"figure": name, **values}), flush=True)


def judged(name, value, bar, most=True, **more):
    """A figure that has a bar: the most, or the least, that it may be."""
    show(name, value=rounded(value), bar=bar, holds=value <= bar if most else value >= bar, **more)


def rounded(x):
    return round(x, 4) if isinstance(x, float) else x


def arguments():
    """The words of the command line, and the options behind --."""
    words = sys.argv[1:]
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at + 1:]


def serve(program, *options):
    began = time.time()
    s = operated(program, *options)
    if not s.port:
        sys.exit(s.said())
    show("server", ready=s.ready.strip(), seconds=rounded(time.time() - began))
    return s


def processor_s(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def command(s, rate, seconds):
    """Of `utter load`, with requests at random times."""
    return [s.process.args[0], "load", "--port", str(s.port), "--key", s.key, "--json", "--rate", str(rate),
            "--seconds", str(seconds), "--words", WORDS, "--word-frames", FRAMES]


def told(r, **more):
    return {"rate": r["rate"], "requests": r["requests"], "good": r["good"], "refused": r["refused"],
            "broken": r["broken"], "underruns": r["underruns"], "audible_ms": r["audible_ms"],
            "underrun_ms": r["underrun_ms"], "most_at_once": r["most_at_once"], **more}


def load(s, rate, seconds=SECONDS):
    front = processor_s(s.process.pid)
    out = subprocess.run(command(s, rate, seconds), check=True, capture_output=True)
    r = json.loads(out.stdout)
    front = processor_s(s.process.pid) - front
    show("load", **told(r, good_a_second=rounded(r["good"] / r["wall_seconds"]),
                        front_s_a_speech=rounded(front / max(1, r["requests"])),
                        front_share=rounded(front / r["wall_seconds"])))
    return r


class speech:
    """An answer that is streamed as samples: pieces, each with the bytes before it. Asked for when it is made."""

    def __init__(self, s, text, seed):
        self.c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=600)
        frames = 5 * len(text.split())  # where a model does not end by itself
        body = json.dumps({"input": text, "response_format": "pcm", "seed": seed, "max_new_tokens": frames})
        self.c.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json",
                                                          "Authorization": "Bearer " + s.key})
        self.socket = self.c.sock
        self.answer = self.c.getresponse()
        assert self.answer.status == 200, self.answer.read()

    def __iter__(self):
        at = 0
        while piece := self.answer.read1(65536):
            yield piece, at
            at += len(piece)

    def read_out(self):
        """To its end, or until it is cut or closed."""
        try:
            for _ in self:
                pass
        except (OSError, http.client.HTTPException):
            pass

    def close(self):
        """Another thread may be reading."""
        try:
            self.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it was closed already
