"""utter job work --server: the lines are spoken by a running utter serve, on lanes that its listeners leave idle."""

import base64
import json
import os
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

from jobs import EMPTY, HERE, MANIFEST, check, environment, files_below, fresh, job, queue_counts, spoken_lines
from jobs import sanitized, start, told, utter, wait_for, work, write_manifest

LONG = "On and on it went, and nobody knew why. "


class Server:
    def __init__(self, *arguments, port=0):
        command = [utter, "serve", "--port", str(port), "-q", *arguments]
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        self.url = re.search(r"http://\S+:\d+", self.process.stdout.readline()).group()
        self.port = int(self.url.rsplit(":", 1)[1])

    def ask(self, path, body=None, key=None):
        """Status and bytes of an answer."""
        headers = {"Content-Type": "application/json"}
        if key:
            headers["Authorization"] = "Bearer " + key
        data = json.dumps(body).encode() if body else None
        try:
            request = urllib.request.Request(self.url + path, data, headers)
            with urllib.request.urlopen(request, timeout=120) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def metric(self, name):
        for line in self.ask("/metrics")[1].decode().splitlines():
            if line.startswith(name + " "):
                return float(line.split()[-1])
        return -1

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.process.communicate()


def tree(folder):
    """The bytes of all results, by their names."""
    found = {}
    for path in files_below(folder, "results", "*"):
        with open(path, "rb") as file:
            found[os.path.basename(path)] = file.read()
    return found


def check_same(server):
    """Sounds and JSONs are those of one machine by itself, to the byte."""
    lines = spoken_lines(6)
    lines += [
        {"id": "words", "text": "Good morning to all of you. It is cold.", "words": True, "format": "wav", "seed": 3},
        {"id": "long", "text": LONG * 5, "words": True},
        {"id": "tags", "text": "Good[pause:1s] morning.", "markup": "tags", "language": "en", "format": "mp3"},
    ]
    for name, more in (("alone", []), ("asked", ["--server", server.url])):
        folder = fresh("server-" + name)
        write_manifest(folder, lines)
        job("submit", *MANIFEST, folder=folder)
        done = told("work", *EMPTY, *more, folder=folder)
        check("server: made " + name, (done.get("made"), done.get("again")) == (9, 0), done)
    alone, asked = tree(os.path.join(work, "server-alone")), tree(os.path.join(work, "server-asked"))
    check("server: as by one machine", len(alone) == 18 and alone == asked, alone.keys() ^ asked.keys())


def check_given_back(server):
    """Listeners take the lanes, and who waited would be refused; the lines wait again without a try or a death, and get
    made."""
    for attempt in range(3):  # on a machine at other work one lane may be all that the server promises
        folder = fresh(f"server-back-{attempt}")
        write_manifest(folder, [{"id": f"{i}", "text": LONG * 8 + str(i)} for i in range(2)])
        job("submit", *MANIFEST, folder=folder)
        worker = start("work", *EMPTY, "--server", server.url, "--json", folder=folder)
        wait_for(lambda: server.metric("tts_background_running") == 2 or worker.poll() is not None)
        if worker.poll() is None:
            break
        worker.communicate()
    both = worker.poll() is None
    check("server: all lanes of two are taken", both)
    if not both:
        return
    answers = []
    body = {"input": LONG * 2, "response_format": "pcm"}
    listeners = [threading.Thread(target=lambda: answers.append(server.ask("/v1/audio/speech", body))) for _ in "ab"]
    for listener in listeners:
        listener.start()
    for listener in listeners:
        listener.join()
    check("server: listeners are heard", [status for status, _ in answers] == [200, 200], answers)
    out, said = worker.communicate()
    done = json.loads(out)
    check("server: given back", done["given_back"] >= 1 and (done["made"], done["again"]) == (2, 0), done, said)
    states = b"".join(open(path, "rb").read() for path in sorted(glob_states(folder)))
    check("server: no try, no death", len(states) == 8 and states[1] == states[5] == 0, states)
    check("server: all are there", queue_counts(folder)["done"] == 2, queue_counts(folder))


def glob_states(folder):
    return [os.path.join(folder, "queue", name) for name in os.listdir(os.path.join(folder, "queue"))
            if name.endswith(".state")]


def check_away(server):
    """The server ends in the middle, comes again, and the worker goes on; it has said so once."""
    folder = fresh("server-away")
    write_manifest(folder, spoken_lines(12))
    job("submit", *MANIFEST, folder=folder)
    # Two lines are with the server at a time, so that it has no answer to the rest when it ends, however late its end.
    worker = start("work", *EMPTY, "--server", server.url, "--lanes", "2", folder=folder)
    some = wait_for(lambda: len(files_below(folder, "results", ".json")) >= 2)
    server.stop(signal.SIGKILL)
    said = worker.stderr.readline()
    time.sleep(1)
    check("server: away", some and worker.poll() is None, said)
    again = Server("--lanes", "2", "--background", "shared", port=server.port)
    said += worker.communicate()[1]
    check("server: again", worker.returncode == 0 and queue_counts(folder)["done"] == 12, said)
    check("server: told once", said.count("is waited for") == 1, said)
    return again


def check_refusals(server):
    """What the server lacks ends the worker, and the lines wait."""
    folder = fresh("server-other")
    write_manifest(folder, spoken_lines(1))
    job("submit", *MANIFEST, "--weights", "bf16", folder=folder)
    result = job("work", *EMPTY, "--server", server.url, folder=folder)
    check("server: another model", result.returncode != 0 and "model_hash" in result.stderr, result.stderr)
    check("server: its line waits", queue_counts(folder)["waiting"] == 1)
    result = job("work", *EMPTY, "--server", "127.0.0.1:1", folder=folder)
    check("server: no URL", result.returncode == 1 and "is not http" in result.stderr, result.stderr)
    speech = {"input": "Good morning.", "background": True, "response_format": "pcm"}
    status, sound = server.ask("/v1/audio/speech", speech)
    check("server: a plain client's", status == 200 and len(sound) > 10000, status, sound[:200])
    status, told_why = server.ask("/v1/audio/speech", dict(speech, voice_hash="0" * 64))
    check("server: another voice", status == 409 and b"voice_hash" in told_why, status, told_why)
    status, told_why = server.ask("/v1/audio/speech", dict(speech, background="yes"))
    check("server: no flag", status == 400 and b"background" in told_why, status, told_why)


def check_key():
    folder = fresh("server-key")
    with open(os.path.join(folder, "keys"), "w", encoding="utf-8") as file:
        file.write("open sesame\n".split()[0] + "\n")
    server = Server("--api-key-file", os.path.join(folder, "keys"), "--background", "shared")
    write_manifest(folder, spoken_lines(1))
    job("submit", *MANIFEST, folder=folder)
    result = job("work", *EMPTY, "--server", server.url, "--key", "shut", folder=folder)
    check("server: a wrong key", result.returncode != 0 and "(--key)" in result.stderr, result.stderr)
    environment["UTTER_API_KEY"] = "open"
    result = job("work", *EMPTY, "--server", server.url, "--key", "shut", folder=folder)
    check("server: a wrong key that is given", result.returncode != 0 and "(--key)" in result.stderr, result.stderr)
    done = told("work", *EMPTY, "--server", server.url + "/", folder=folder)
    check("server: a key that no list of processes shows", done.get("made") == 1, done)
    del environment["UTTER_API_KEY"]
    write_manifest(folder, [{"id": "long", "text": "a " * 50001}])
    job("submit", *MANIFEST, folder=folder)
    done = told("work", *EMPTY, "--server", server.url, "--key", "open", folder=folder)
    said = [json.loads(data) for name, data in tree(folder).items() if name.endswith(".json")]
    reasons = [x["error"] for x in said if x["status"] == "failed"]
    check("server: more than a server takes", done.get("failed") == 1 and "100000" in reasons[0].replace(",", ""),
          done, reasons)
    server.stop()


def check_idle():
    """On a processor, a worker of its own, which has it when nobody else wants it."""
    server = Server("--threads", "1", "--background", "idle")
    before = server.metric("tts_worker_memory_bytes")
    folder = fresh("server-idle")
    write_manifest(folder, spoken_lines(1))
    job("submit", *MANIFEST, folder=folder)
    worker = start("work", *HERE, "--server", server.url, "-q", folder=folder)

    def first_to_end(pid):
        with open(f"/proc/{pid}/oom_score_adj", encoding="utf-8") as file:
            return file.read().strip() == "1000"

    def policies():
        with open(f"/proc/{server.process.pid}/task/{server.process.pid}/children", encoding="utf-8") as file:
            return sorted((os.sched_getscheduler(int(pid)), first_to_end(pid)) for pid in file.read().split())

    wanted = [(os.SCHED_OTHER, False), (os.SCHED_IDLE, True)]
    check("server: idle", wait_for(lambda: policies() == wanted), policies())

    def health():
        return json.loads(server.ask("/health")[1]).get("idle_worker", {})

    is_told = wait_for(lambda: health().get("state") == "ready")
    memory = server.metric("tts_worker_memory_bytes")
    check("server: idle: its state and its memory are told", is_told and memory > 1.2 * before, health(), before,
          memory)
    worker.send_signal(signal.SIGTERM)
    worker.communicate()
    check("server: back at a signal", queue_counts(folder)["claimed"] == 0)
    check_still(server, health()["pid"])
    server.stop()


def check_still(server, idle):
    """While a listener waits for its first sound (its worker is held up) the idle worker stands still by turns; nothing
    is lost by that."""
    def stands():
        with open(f"/proc/{idle}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "T"

    alone, folder = fresh("server-still-alone"), fresh("server-still")
    for each in (alone, folder):
        write_manifest(each, spoken_lines(1))
        job("submit", *MANIFEST, folder=each)
    worker = start("work", *EMPTY, "--server", server.url, "-q", folder=folder)
    others = json.loads(server.ask("/health")[1])["workers"][0]["pid"]
    os.kill(others, signal.SIGSTOP)
    answers = []
    body = {"input": "Good morning.", "response_format": "pcm"}
    listener = threading.Thread(target=lambda: answers.append(server.ask("/v1/audio/speech", body)))
    listener.start()
    stood = wait_for(stands, 15)  # its lanes' worker is taken for hung after 20 s
    os.kill(others, signal.SIGCONT)
    listener.join()
    check("server: still: it stands", stood)
    check("server: still: the listener is heard", answers[0][0] == 200 and len(answers[0][1]) > 10000, answers[0][0])
    check("server: still: it goes on", wait_for(lambda: not stands()))
    worker.communicate()
    job("work", *EMPTY, folder=alone)
    same = len(tree(alone)) == 2 and tree(alone) == tree(folder)
    check("server: still: bulk is whole, the same bytes", same, tree(folder).keys())


class Refusing(BaseHTTPRequestHandler):
    """Twice it cannot reach its voices; from then on its worker ends over each line."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.n_asked += 1
        why = {"param": "voice"} if self.server.n_asked <= 2 else {"code": "worker_ended"}
        body = json.dumps({"error": {"message": "no", **why}}).encode()
        self.send_response(503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def check_deadly():
    """A line over which a server's worker ends has as many tries as any, once it was made alone; and a server that may
    have the voice later is not taken for one that lacks it."""
    folder = fresh("server-deadly")
    write_manifest(folder, spoken_lines(1))
    job("submit", *MANIFEST, folder=folder)
    with HTTPServer(("127.0.0.1", 0), Refusing) as server:
        server.n_asked = 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        result = job("work", *EMPTY, "--server", f"http://127.0.0.1:{server.server_port}", "--json", folder=folder)
        server.shutdown()
    done = json.loads(result.stdout)
    check("server: a deadly line", (done.get("failed"), done.get("again")) == (1, 2), done)
    check("server: a deadly line is not made on and on", server.n_asked == 2 + 2 + 3, server.n_asked)
    check("server: what is waited for is told once", result.stderr.count("is waited for") == 1, result.stderr)


class Inventing(BaseHTTPRequestHandler):
    """Tells a word that no line can have."""

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        words = [{"index": i, "start": 0, "end": 0.1, "at": 0, "bytes": 1, "final": True} for i in (0, 1 << 19)]
        sound = {"type": "speech.audio.delta", "audio": base64.b64encode(bytes(4 * 1920)).decode()}
        events = [sound, {"type": "speech.audio.words", "words": words},
                  {"type": "speech.audio.done", "finish": "complete", "pieces": 1}]
        self.send_response(200)
        self.end_headers()
        self.wfile.write("".join(f"data: {json.dumps(event)}\n\n" for event in events).encode())

    def log_message(self, *_):
        pass


def check_words():
    folder = fresh("server-words")
    write_manifest(folder, [{**spoken_lines(1)[0], "words": True}])
    job("submit", *MANIFEST, folder=folder)
    with HTTPServer(("127.0.0.1", 0), Inventing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = told("work", *EMPTY, "--server", f"http://127.0.0.1:{server.server_port}", "-q", folder=folder)
        server.shutdown()
    said = json.loads(next(data for name, data in tree(folder).items() if name.endswith(".json")))
    check("server: a word that cannot be", done.get("made") == 1 and len(said["words"]) == 1, done, len(said["words"]))


def run():
    check_key()
    check_words()
    check_deadly()
    if sanitized:  # what speaks for long takes minutes with one
        return
    server = Server("--lanes", "2", "--background", "shared", "--patience", "20000")
    try:
        check_same(server)
        check_given_back(server)
        server = check_away(server)
        check_refusals(server)
    finally:
        server.stop()
    check_idle()
