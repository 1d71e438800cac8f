# The clients of soak.py, good and bad ones. Each deed takes the soak that it is part of and a source of chance, and
# says in a word what became of it, or raises: Wrong where no fault of the server's may explain it, TimeoutError where
# nobody has told it anything, and whatever else where it was told or shut out.
import base64
import hashlib
import http.client
import json
import os
import pathlib
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time

from client import Socket, form, tone
from floods import STRANGER, framed, kinds, upgrade

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TESTS / "dialects"))
import day  # noqa: E402

KEY = "soak"
HOST = b"Host: localhost\r\nAuthorization: Bearer " + KEY.encode() + b"\r\n"
PATHS = ("/v1/audio/speech/stream", "/v1/speak", "/v2/speak", "/tts/websocket",
         "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM/stream-input", "/v1/text-to-speech/x/multi-stream-input")
POSTS = ("/v1/audio/speech", "/v1/audio/speech/batch", "/v1/audio/voices", "/tts/bytes", "/tts/sse", "/v1/speak",
         "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM", "/v1/text-to-speech/x/stream/with-timestamps", "/nowhere")
TEXTS = ("No.", "Yes, of course.", "It is ten to nine.", "Where did you leave the 3 keys?",
         "The quick brown fox jumps over the lazy dog near the river bank.",
         "They looked at each other, and a man in a grey coat laughed. It was a warm day in the middle of the summer.")
FORMATS = ("pcm", "wav", "mp3", "opus", "flac", "aac")
WORDS = ("the", "river", "and", "Mr. Brown", "42", "naïve", "3:15", "\n\n", "…", "e\u0301", "你好", "🙂", "\u202e",
         "said,", "so.", "antidisestablishmentarianism", "x" * 300, "a@b.example", "<b>", "[pause:1s]", "--")


class Wrong(Exception):
    """What no fault of the server's explains."""


class Told(Socket):
    """Who is told of an error leaves: some dialects end there, others wait for the next text."""
    def receive(self):
        m = super().receive()
        if isinstance(m, dict) and (m.get("type") in ("error", "Error") or m.get("error")):
            raise ConnectionError(f"told: {m}")
        return m


day.Socket = Told
resource.setrlimit(resource.RLIMIT_NOFILE, 2 * resource.getrlimit(resource.RLIMIT_NOFILE)[1:])  # see crowd


def connect(s, stranger=False):
    c = socket.socket()
    c.settimeout(60)
    if stranger:
        c.bind((STRANGER, 0))
    c.connect(("127.0.0.1", s.port))
    return c


def post(path, body, more=b""):
    return b"POST " + path.encode() + b" HTTP/1.1\r\n" + HOST + more + b"Content-Length: %d\r\n\r\n" % len(body) + body


def compare(soak, what, sound):
    """The same bytes as the first time."""
    if len(sound) == 0 or soak.first.setdefault(what, digest := hashlib.sha256(sound).digest()) != digest:
        raise Wrong(f"other bytes of {what}: {len(sound)}")


# --- who listens

def listen(soak, draw):
    """Over HTTP, to the end. No answer that looks whole may be another one, whatever became of the worker."""
    fields = {"input": draw.choice(TEXTS), "response_format": draw.choice(FORMATS), "seed": draw.randrange(2),
              "voice": draw.choice(("clara", "miles")), "stream": draw.random() < 0.8}
    status, headers, sound = soak.server.ask("POST", "/v1/audio/speech", fields)
    if status != 200:
        raise ConnectionError(f"told: {status} {sound[:200]}")
    compare(soak, str(fields), sound)
    return "whole"


def until(w, kind):
    """The sound up to a message of this type."""
    messages, sound = w.until(kind)
    if isinstance(messages[-1], tuple):
        raise ConnectionError(f"told: {messages[-1]}")
    return sound


def converse(soak, draw):
    """Our WebSocket: text in pieces, some of it interrupted, some of it left."""
    w, text, voice = Told(soak.server), draw.choice(TEXTS), draw.choice(("clara", "miles"))
    try:
        w.configure(voice=voice, seed=1, word_timestamps=draw.random() < 0.5)
        for _ in range(draw.randrange(1, 4)):
            for piece in day.pieces(text):
                w.send({"type": "input.text", "text": piece})
            if draw.random() < 0.3:
                # A word or two say nothing yet: a next one could change how they are said.
                if len(text) > 30 and draw.random() < 0.5:
                    until(w, "audio.start")
                w.send({"type": "input.cancel", "played_ms": draw.randrange(300)})
                until(w, "audio.cancelled")
            else:
                w.send({"type": "input.done"})
                compare(soak, f"session {voice} {text}", until(w, "session.done"))
        if draw.random() < 0.5:
            w.send({"type": "session.close"})
    finally:
        w.close()
    return "whole"


def dialect(soak, draw):
    speak = draw.choice(day.DIALECTS)
    speak(soak.server, soak.wyoming, draw.choice(TEXTS[:5]), draw.random() < 0.3)
    return speak.__name__


def batch(soak, draw):
    """Some of it in the background, where none of it counts on a turn, nor on a busy machine on an end."""
    background = draw.random() < 0.5
    items = [{"input": draw.choice(TEXTS), "response_format": "pcm", "seed": 1, "voice": "clara"}
             for _ in range(draw.randrange(1, 4))]
    body = {"items": [{**item, "background": background} for item in items] + [{"input": ""}]}
    try:
        status, _, body = soak.server.ask("POST", "/v1/audio/speech/batch", body, timeout=60 if background else 300)
    except TimeoutError:
        if not background:
            raise
        return "not done"
    if status != 200:
        raise ConnectionError(f"told: {status} {body[:200]}")
    results = json.loads(body)["results"]
    if len(results) != len(items) + 1 or results[-1]["status"] != "error":
        raise Wrong(f"results: {body[:200]}")
    for item, result in zip(items, results):
        if result["status"] == "success":
            compare(soak, f"batch {item['input']}", base64.b64decode(result["audio_data"]))
        elif not background:
            raise ConnectionError(f"told: {result}")
    return "background" if background else "whole"


def job(soak, draw):
    """utter job, which has this server speak. What it could not get done waits for nobody."""
    with tempfile.TemporaryDirectory(dir=soak.folder) as folder:
        manifest = os.path.join(folder, "lines.jsonl")
        with open(manifest, "w") as f:
            f.writelines(json.dumps({"id": f"l{i}", "text": text}) + "\n" for i, text in enumerate(TEXTS[:3]))
        places = ["--queue", folder + "/queue", "--results", folder + "/results"]
        subprocess.run([soak.program, "job", "submit", manifest, *places], check=True, capture_output=True, timeout=60)
        # Also where this process is killed it ends.
        work = subprocess.Popen(["timeout", "90", soak.program, "job", "work", "-q", *places, "--until-empty", "--key",
                                 KEY, "--server", f"http://127.0.0.1:{soak.server.port}"], stderr=subprocess.PIPE)
        try:
            _, said = work.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            work.terminate()
            work.communicate(timeout=60)
            return "not done"
        if work.returncode not in (0, 3):
            raise ConnectionError(f"told: job {work.returncode} {said[-200:]}")
        return "done" if work.returncode == 0 else "in part"


def look(soak, draw):
    path = draw.choice(("/", "/docs", "/openapi.json", "/metrics", "/health", "/version", "/v1/models",
                        "/v1/audio/voices", "/v1/audio/voices/clara", "/v1/workers", "/page/page.js"))
    status, _, body = soak.server.ask("GET", path)
    if status != 200 or not body:
        raise ConnectionError(f"told: {path} {status}")
    return "seen"


def upload(soak, draw):
    """The built-in model makes no voices: it is refused when all of it has come, as is a voice for one speech."""
    sound = tone(draw.uniform(0.1, 3))
    if draw.random() < 0.3:
        sound = changed(draw, sound)
    what, want = draw.choice((
        (("POST", "/v1/audio/voices", *form({"name": "Bea", "audio_sample": sound})), 400),
        (("POST", "/v1/audio/voices", {"name": "Bea", "audio_sample": base64.b64encode(sound).decode()}), 400),
        (("POST", "/v1/audio/speech", {"input": "No.", "ref_audio": base64.b64encode(sound).decode()}), 400),
        (("POST", "/v1/audio/speech", {"input": "No.", "voice": "bea"}), 400),
        (("DELETE", "/v1/audio/voices/bea"), 404), (("DELETE", "/v1/audio/voices/clara"), (400, 403, 404, 405))))
    status, _, body = soak.server.ask(*what)
    if status == 200:
        raise Wrong(f"{what[:2]}: {body[:200]}")
    if status not in (want if isinstance(want, tuple) else (want,)):
        raise ConnectionError(f"told: {what[:2]} {status} {body[:200]}")
    return str(status)


# --- who leaves, or does not take what comes

def of_any_length(draw, most=5):
    n, words = int(10 ** draw.uniform(0, most)), []
    while n > 0:
        words.append(draw.choice(WORDS) if draw.random() < 0.2 else draw.choice(TEXTS))
        n -= len(words[-1]) + 1
    return " ".join(words)[:100000]


def ask_for(draw, text):
    """The bytes of a request, one way or another."""
    if draw.random() < 0.3:
        session = ({"type": "session.config", "split_granularity": draw.choice(("none", "sentence", "clause"))},
                   {"type": "input.text", "text": text[:30000]}, {"type": "input.done"})
        return upgrade(HOST) + b"".join(framed(json.dumps(message).encode()) for message in session)
    fields = {"input": text, "response_format": draw.choice(FORMATS), "stream": draw.random() < 0.7,
              "speed": draw.choice((1, 1, 0.5, 2))}
    if draw.random() < 0.2:
        fields = {"input": text, "stream_format": "sse", "word_timestamps": True}
    return post("/v1/audio/speech", json.dumps(fields).encode())


def leave(soak, draw):
    """In the middle of the request, behind it, at the first sound or later, with or without a reset."""
    data = ask_for(draw, of_any_length(draw))
    c = connect(soak.server)
    try:
        c.settimeout(draw.uniform(0.01, 2))
        c.sendall(data[:draw.randrange(len(data))] if draw.random() < 0.2 else data)
        for _ in range(int(20 * draw.random() ** 3)):
            if not c.recv(4096):
                break
        if draw.random() < 0.3:
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    except OSError:
        pass
    finally:
        c.close()
    return "left"


def read_slowly(soak, draw):
    """A little now and then, or nothing at all, of a long speech."""
    c = socket.socket()
    try:
        c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        c.settimeout(1)
        c.connect(("127.0.0.1", soak.server.port))
        c.sendall(ask_for(draw, (TEXTS[-1] + " ") * 40))
        most = draw.choice((0, 100, 5000))
        while soak.busy() and (most == 0 or c.recv(most)):
            time.sleep(0.5)
    except OSError:
        pass
    finally:
        c.close()
    return "left"


def be_silent(soak, draw):
    """A connection with nothing, half a head or half a body, until it is shut out."""
    data = draw.choice((b"", b"GET / HT", upgrade(HOST), upgrade(HOST, "/tts/websocket"),
                        post("/v1/audio/speech", b" " * 999)[:-9]))
    c = connect(soak.server)
    try:
        c.settimeout(0.5)
        c.sendall(data)
        while soak.busy():
            try:
                if not c.recv(4096):
                    return "shut out"
            except TimeoutError:
                pass
    except OSError:
        return "shut out"
    finally:
        c.close()
    return "left"


# --- hostile ones

def changed(draw, data):
    """Some of its bytes are others, gone, or come twice."""
    data = bytearray(data)
    for _ in range(draw.randrange(1, 5)):
        at, n = draw.randrange(len(data) + 1), draw.randrange(1, 17)
        what = draw.randrange(5)
        if what == 0 and at < len(data):
            data[at] ^= 1 << draw.randrange(8)
        elif what == 1:
            data[at:at] = draw.randbytes(n)
        elif what == 2:
            del data[at:at + n]
        elif what == 3:
            data[at:at] = data[at:at + n] * draw.randrange(1, 100)
        elif draw.random() < 0.2:
            del data[at:]
    return bytes(data)


def seeds(name):
    return [path.read_bytes() for path in sorted((TESTS / "fuzz" / "corpus" / name).iterdir())]


SEEDS = {name: seeds(name) for name in ("http", "json", "fields", "websocket", "multipart", "front", "cartesia",
                                        "deepgram", "elevenlabs", "wyoming")}


def attack(soak, draw):
    """Bytes that are nearly right, of the inputs that the parsers' fuzzing has: heads, bodies, frames, Wyoming."""
    way = draw.choice(("head", "request", "body", "form", "frames", "messages", "wyoming", "noise"))
    port = soak.server.port
    message = changed(draw, draw.choice(SEEDS[draw.choice(("json", "fields", "cartesia", "deepgram", "elevenlabs"))]))
    if way == "head":
        data = changed(draw, draw.choice(SEEDS["http"] + SEEDS["front"]))
    elif way == "request":
        data = changed(draw, ask_for(draw, draw.choice(TEXTS)))
    elif way == "body":
        data = post(draw.choice(POSTS), message)
    elif way == "form":
        data = post("/v1/audio/voices", changed(draw, draw.choice(SEEDS["multipart"])),
                    b"Content-Type: multipart/form-data; boundary=XX\r\n")
    elif way == "frames":
        data = upgrade(HOST, draw.choice(PATHS)) + changed(draw, draw.choice(SEEDS["websocket"]))
    elif way == "messages":
        messages = message, changed(draw, message), message
        data = upgrade(HOST, draw.choice(PATHS)) + b"".join(map(framed, messages))
    elif way == "wyoming":
        data, port = changed(draw, draw.choice(SEEDS["wyoming"])), soak.wyoming
    else:
        data = draw.randbytes(draw.randrange(1, 5000))
    c = socket.create_connection(("127.0.0.1", port))
    try:
        c.settimeout(draw.uniform(0.05, 1))
        c.sendall(data)
        for _ in range(50):
            if not c.recv(65536):
                return way + " shut out"
    except OSError:
        pass
    finally:
        c.close()
    return way


FLOODS = {**kinds(HOST), "requests": (b"", b"GET /nowhere HTTP/1.1\r\n" + HOST + b"\r\n")}


def flood(soak, draw):
    """For two seconds, as much of one kind as a few connections of another address take; or 300 idle ones."""
    name = draw.choice(list(FLOODS))
    first, again = FLOODS[name]
    clients, end = [], time.time() + 2
    try:
        for _ in range(3 if again else 300):
            clients.append(connect(soak.server, stranger=True))
            clients[-1].sendall(first)
            clients[-1].settimeout(0.01)
        while time.time() < end and clients:
            c = draw.choice(clients)
            try:
                c.sendall(again) if again else time.sleep(0.1)
            except TimeoutError:
                time.sleep(0.01)
            except OSError:
                clients.remove(c)
                c.close()
    except OSError:
        pass
    finally:
        for c in clients:
            c.close()
    return name


def crowd(soak, draw):
    """Another address wants more than all places: who listens has what he asked for all the same. Not full: it came so
    soon behind another that the server let it wait."""
    places = int(re.search(r"(\d+) connections", soak.server.ready)[1])
    before, clients = soak.server.metric("connections_crowded_total"), []
    try:
        end = time.time() + 5
        while len(clients) < places + 100 and time.time() < end:
            clients.append(connect(soak.server, stranger=True))
        full = soak.server.metric("connections_crowded_total") > before
        listen(soak, draw)
        return "full" if full else "not full"
    finally:
        for c in clients:
            c.close()


# How often each happens.
DEEDS = {listen: 30, converse: 14, dialect: 20, batch: 2, job: 0.3, look: 6, upload: 4, leave: 10, read_slowly: 0.6,
         be_silent: 2, attack: 25, flood: 0.6, crowd: 0.03}
