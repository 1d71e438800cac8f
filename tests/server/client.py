# What the tests of the server share: the program as a child, HTTP by the standard library, a small WebSocket client.
import base64
import contextlib
import http.client
import io
import json
import math
import os
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import wave

SANITIZED = any("/san-" in word for word in sys.argv)
# How much longer than on an idle machine things may take before they are taken for things that never come: a server
# shares processors with all other tests, which may be sanitized, and so may it.
PATIENCE = 10


class Server:
    key = None  # that what is asked brings along

    def __init__(self, program, *options, held=False, files=None, env=None):
        """held: the worker is stopped while it opens the model; resume() lets it go on. files: as many may be open."""
        while True:
            self.port = free_port() if held else 0
            self.log = tempfile.TemporaryFile()
            self.process = subprocess.Popen([program, "serve", "--port", str(self.port), *options],
                                            stdout=subprocess.PIPE, stderr=self.log, env=env, preexec_fn=files and (
                                                lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))))
            if not held:
                self.read_line()
                return
            self.hold_worker()
            if not select.select([self.process.stdout], [], [], 0)[0]:
                return
            self.stop(signal.SIGKILL)  # the worker was faster than this process

    def read_line(self):
        self.ready = self.process.stdout.readline().decode()
        self.port = int(self.ready.split(",")[0].rsplit(":", 1)[1]) if "ready" in self.ready else 0

    def said(self):
        """The log. Its offset is the server's too, which would write where this process reads: it is not moved."""
        return os.pread(self.log.fileno(), os.fstat(self.log.fileno()).st_size, 0).decode()

    def stop(self, signum=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(signum)
        code = self.process.wait(20 * PATIENCE)
        self.process.stdout.close()
        return code

    def workers(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            return [int(pid) for pid in f.read().split()]

    def runs_worker(self):
        """Whether the child is the worker already: until then the front end waits for it."""
        try:
            with open(f"/proc/{self.workers()[0]}/cmdline") as f:
                return "serve-worker" in f.read()
        except (IndexError, OSError):
            return False

    def hold_worker(self):
        assert wait_for(self.runs_worker, step=0.001)
        os.kill(self.workers()[0], signal.SIGSTOP)

    def resume(self):
        os.kill(self.workers()[0], signal.SIGCONT)
        self.read_line()

    def ask(self, method, path, body=None, headers=None, timeout=30 * PATIENCE):
        """status, headers, body."""
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        if self.key:
            headers = {"Authorization": "Bearer " + self.key, **(headers or {})}
        try:
            if isinstance(body, (dict, list)):
                body, headers = json.dumps(body), {"Content-Type": "application/json", **(headers or {})}
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            return r.status, r.headers, r.read()
        finally:
            c.close()

    def speak(self, timeout=30 * PATIENCE, **fields):
        return self.ask("POST", "/v1/audio/speech", {"response_format": "pcm", **fields}, timeout=timeout)

    def words(self, **fields):
        """Which word is heard when, of the whole answer."""
        status, _, body = self.speak(stream=False, word_timestamps=True, **fields)
        assert status == 200, (status, body[:300])
        return json.loads(body)["words"]

    def raw(self, data, seconds=3 * PATIENCE, until=None):
        """Sends bytes, returns what comes until the other end closes or the time is up, or up to these bytes."""
        s = socket.create_connection(("127.0.0.1", self.port))
        s.settimeout(seconds)
        got = b""
        try:
            s.sendall(data)
            while not (until and until in got) and (piece := s.recv(65536)):
                got += piece
        except OSError:
            pass
        s.close()
        return got

    def memory_kb(self):
        """Of the front end, as it is now."""
        with open(f"/proc/{self.process.pid}/status") as f:
            return int(next(x for x in f if x.startswith("VmRSS")).split()[1])

    def metric(self, name):
        text = self.ask("GET", "/metrics")[2].decode()
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith("tts_" + name))


def operated(program, *options):
    """A server that this key looks after."""
    with tempfile.NamedTemporaryFile("w") as keys:
        keys.write("guest\nboss operator\n")
        keys.flush()
        s = Server(program, *options, "--api-key-file", keys.name)
    s.key = "boss"
    return s


class Socket:
    def __init__(self, server, path="/v1/audio/speech/stream", headers=""):
        self.s = socket.create_connection(("127.0.0.1", server.port))
        self.s.settimeout(20 * PATIENCE)
        if server.key:
            headers += f"Authorization: Bearer {server.key}\r\n"
        key = base64.b64encode(os.urandom(16)).decode()
        self.s.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nConnection: Upgrade\r\n"
                        f"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                        f"{headers}\r\n").encode())
        self.buffer = b""
        while b"\r\n\r\n" not in self.buffer:
            self.buffer += self.s.recv(4096) or b"\r\n\r\n"
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        self.status = int(head.split()[1])

    def take(self, n):
        while len(self.buffer) < n:
            piece = self.s.recv(65536)
            if not piece:
                raise EOFError
            self.buffer += piece
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def send(self, message, kind=1, first=None):
        data = json.dumps(message).encode() if isinstance(message, dict) else message
        mask = os.urandom(4)
        n = len(data)
        size = struct.pack(">BH", 0xFE, n) if n < 65536 else struct.pack(">BQ", 0xFF, n)
        size = bytes([0x80 | n]) if n < 126 else size
        self.s.sendall(bytes([first or 0x80 | kind]) + size + mask + bytes(c ^ mask[i % 4] for i, c in enumerate(data)))

    def configure(self, **config):
        """Also what a session says that stays: one that is silent for 30 s is closed."""
        self.send({"type": "session.config", **config})
        answer = self.receive()
        assert answer["type"] == "session.created", answer
        return True

    def receive(self):
        """An object, bytes of sound, or ("close", code)."""
        first, n = self.take(2)
        if n == 126:
            n, = struct.unpack(">H", self.take(2))
        elif n == 127:
            n, = struct.unpack(">Q", self.take(8))
        data = self.take(n)
        if first & 15 == 8:
            return "close", struct.unpack(">H", data[:2])[0]
        if first & 15 == 10:
            return "pong", data
        return json.loads(data) if first & 15 == 1 else data

    def until(self, kind):
        """Messages up to one of this type: (messages, sound)."""
        messages, sound = [], b""
        while True:
            m = self.receive()
            if isinstance(m, bytes):
                sound += m
            else:
                messages.append(m)
                if isinstance(m, tuple) or m["type"] == kind:
                    return messages, sound

    def close(self):
        self.s.close()


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def run(self, name, test, *arguments):
        try:
            test(*arguments)
            self.passed += 1
        except Exception as e:  # a test that breaks is a failure with its reason
            self.failed += 1
            at = e.__traceback__
            while at.tb_next:
                at = at.tb_next
            print(f"FAIL server/{name}: line {at.tb_lineno}: {type(e).__name__}: {e}")

    def end(self):
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed or not self.passed else 0


def open_files(pid):
    """What the descriptors of a process stand for."""
    found = []
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(FileNotFoundError):  # closed since
            found.append(os.readlink(f"/proc/{pid}/fd/{fd}"))
    return found


def wait_for(what, seconds=5, step=0.01):
    end = time.time() + seconds * PATIENCE
    while time.time() < end:
        if what():
            return True
        time.sleep(step)
    return False


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def tone(seconds, rate=24000):
    out = io.BytesIO()
    with wave.open(out, "wb") as w:
        w.setparams((1, 2, rate, 0, "NONE", ""))
        w.writeframes(b"".join(struct.pack("<h", int(9000 * math.sin(i * 0.06) * math.sin(i * 0.0007)))
                               for i in range(int(seconds * rate))))
    return out.getvalue()


def form(fields):
    body = b""
    for name, value in fields.items():
        value = value if isinstance(value, bytes) else value.encode()
        extra = b'; filename="a.wav"' if name == "audio_sample" else b""
        body += b'--XX\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n' % (name.encode(), extra, value)
    return body + b"--XX--\r\n", {"Content-Type": "multipart/form-data; boundary=XX"}
