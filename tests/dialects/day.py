# A day of conversations at speed: a turn every ten seconds makes 8,640, said through every dialect as its clients were
# seen to say them, one of four interrupted; and contexts that are opened and dropped. Memory, open files, threads must
# not grow, no lane may be left. Usage: day.py PROGRAM [TURNS [CONTEXTS]]. Ends with `N passed, N failed`.
import collections
import concurrent.futures
import os
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from cartesia import BASE, until_done  # noqa: E402
from client import Checks, Server, Socket, free_port  # noqa: E402
from deepgram import QUERY, until  # noqa: E402
from elevenlabs import EL, LONG, quiet, until_final  # noqa: E402
from wyoming_replay import ask  # noqa: E402

SAID = ("Yes, of course.", "One moment.", "It is ten to nine.", "Good night.", "No.")
TALKERS = 4  # twice as many lanes: who interrupts speaks while the old speech leaves its lane


def pieces(text):
    return [word + " " for word in text.split()]


def elevenlabs(s, port, text, interrupted):
    w = Socket(s, EL + "/multi-stream-input?output_format=pcm_24000&sync_alignment=true&auto_mode=true")
    w.send({"text": " ", "context_id": "a", "voice_settings": {}})
    for piece in pieces(text):
        w.send({"text": piece, "context_id": "a"})
    w.send({"text": "", "context_id": "a", "flush": True})
    if interrupted:
        w.receive()
        w.send({"context_id": "a", "close_context": True})
        w.send({"text": "No. ", "context_id": "b", "flush": True})
    name = "b" if interrupted else "a"
    w.send({"context_id": name, "close_context": True})
    until_final(w, name)
    w.send({"close_socket": True})
    w.close()


def cartesia(s, port, text, interrupted):
    w = Socket(s, "/tts/websocket")
    base = {**BASE, "add_timestamps": True, "context_id": "c"}
    for piece in pieces(text):
        w.send({**base, "transcript": piece, "continue": True})
    if interrupted:
        w.send({**base, "transcript": "And ", "continue": True, "flush": True})
        w.receive()
        w.send({"context_id": "c", "cancel": True})
        w.send({**base, "context_id": "d", "transcript": "No. ", "continue": True})
    w.send({**base, "context_id": "d" if interrupted else "c", "transcript": "", "continue": False})
    until_done(w, "d" if interrupted else "c")
    w.close()


def aura(s, port, text, interrupted):
    w = Socket(s, "/v1/speak" + QUERY)
    for piece in pieces(text):
        w.send({"type": "Speak", "text": piece})
    w.send({"type": "Flush"})
    if interrupted:
        w.receive()
        w.send({"type": "Clear"})
        until(w, "Cleared")
        w.send({"type": "Speak", "text": "No."})
        w.send({"type": "Flush"})
    until(w, "Flushed")
    w.close()


def flux(s, port, text, interrupted):
    w = Socket(s, "/v2/speak?model=flux-alexis-en&encoding=linear16&sample_rate=24000")
    for piece in pieces(text):
        w.send({"type": "Speak", "text": piece})
    w.send({"type": "Flush"})
    if interrupted:
        while not isinstance(m := w.receive(), bytes):
            assert m["type"] == "SpeechStarted" or m["type"] == "Connected", m
        w.send({"type": "Interrupt", "playback_offset": {"type": "time_ms", "value": 50}})
        w.send({"type": "Speak", "text": "No."})
        w.send({"type": "Flush"})
    until(w, "SpeechMetadata")
    w.close()


def own(s, port, text, interrupted):
    w = Socket(s)
    w.send({"type": "session.config", "word_timestamps": True})
    for piece in pieces(text):
        w.send({"type": "input.text", "text": piece})
    w.send({"type": "input.done"})
    if interrupted:
        w.until("audio.start")
        w.send({"type": "input.cancel", "played_ms": 100})
    w.until("audio.cancelled" if interrupted else "session.done")
    w.close()


def http(s, port, text, interrupted):
    path, body = random.choice((
        (EL + "/stream/with-timestamps?output_format=pcm_24000", {"text": text}), (EL, {"text": text}),
        ("/tts/sse", {**BASE, "transcript": text, "add_timestamps": True}), ("/v1/speak" + QUERY, {"text": text}),
        ("/v1/audio/speech", {"input": text, "stream_format": "sse", "word_timestamps": True})))
    if interrupted:
        s.raw(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              b"Content-Length: 15\r\n\r\n{\"input\":\"No.\"}", 0.01)
    else:
        status, _, answer = s.ask("POST", path, body)
        assert status == 200 and len(answer) > 1000, (path, status, answer[:200])


def wyoming(s, port, text, interrupted):
    w = ask(port, "synthesize-start", {"voice": {"name": "clara"}})
    for piece in pieces(text):
        w.send("synthesize-chunk", {"text": piece})
    if not interrupted:
        w.send("synthesize-stop")
        w.until("synthesize-stopped")
    w.close()


DIALECTS = (elevenlabs, cartesia, aura, flux, own, http, wyoming)


def state(s):
    """Kilobytes, open files and threads of the front end and of its worker."""
    def of(pid):
        with open(f"/proc/{pid}/status") as f:
            fields = dict(line.split(":", 1) for line in f)
        return int(fields["VmRSS"].split()[0]), len(os.listdir(f"/proc/{pid}/fd")), int(fields["Threads"])
    return of(s.process.pid), of(s.workers()[0])


def say_turns(s, port, first, n, faults):
    draw = random.Random(first)
    for i in range(first, first + n):
        dialect, text, interrupted = DIALECTS[i % len(DIALECTS)], draw.choice(SAID), draw.random() < 0.25
        try:
            dialect(s, port, text, interrupted)
        except Exception as e:  # which is told with the rest
            faults.append((i, dialect.__name__, text, interrupted, repr(e)[:300]))


def a_day(s, port, turns):
    faults, states, began = [], [], time.time()
    parts = 20
    with concurrent.futures.ThreadPoolExecutor(TALKERS) as pool:
        for part in range(parts):
            each = turns // (parts * TALKERS)
            list(pool.map(lambda k: say_turns(s, port, (part * TALKERS + k) * each, each, faults), range(TALKERS)))
            assert quiet(s), "a lane is left"
            states.append(state(s))
            so_far = f"{(part + 1) * TALKERS * each} turns in {time.time() - began:.0f} s"
            print(so_far, states[-1], file=sys.stderr, flush=True)
    print(f"{so_far}, {len(faults)} faults; (kB, files, threads) of front end and worker: {states[1]} after a tenth, "
          f"{states[-1]} at the end")
    assert not faults, (collections.Counter((f[1], f[3], f[4][:60]) for f in faults), faults[:3])
    (front, worker), (front_end, worker_end) = states[1], states[-1]
    # A connection that is being closed; a thread of the worker that begins when it is first needed.
    assert front_end[1] <= front[1] + 1 and front_end[2] == front[2], states
    assert worker_end[1] == worker[1] and worker_end[2] <= worker[2] + 1, states
    # A short day is still warming up.
    assert front_end[0] - front[0] < (1500 if turns > 1000 else 4000) and worker_end[0] - worker[0] < 4000, states
    assert s.metric("worker_deaths_total") == 0


def drop_contexts(s, n):
    for i in range(n // 10):
        w = Socket(s, EL + "/multi-stream-input" if i % 2 else "/tts/websocket")
        for k in range(10):
            text = LONG if k % 3 == 0 else "Hello there. "
            w.send({"text": text, "context_id": f"c{k}", "flush": k % 2 == 0} if i % 2 else
                   {**BASE, "context_id": f"c{k}", "transcript": text, "continue": k % 2 == 0})
        if i % 4 > 1:
            w.receive()
        w.close()
    assert quiet(s), "a lane is left"


def contexts_that_are_dropped(s, n):
    drop_contexts(s, n)  # buffers grow to what so many texts at once need, and stay
    warm = state(s)
    drop_contexts(s, n)
    end = state(s)
    print(f"twice {n} contexts opened and dropped: {warm} after the first, {end} at the end")
    assert end[0][1] <= warm[0][1] + 1 and end[0][2] == warm[0][2] and end[0][0] - warm[0][0] < 3000, (warm, end)


def run(checks, program, turns, contexts):
    port = free_port()
    s = Server(program, "--lanes", str(2 * TALKERS), "--patience", "20000", "-q",
               "--wyoming", f"tcp://127.0.0.1:{port}")
    checks.run("a_day_of_conversations", a_day, s, port, turns)
    checks.run("contexts_that_are_dropped", contexts_that_are_dropped, s, contexts)
    checks.run("the_day_ends_cleanly", lambda: s.stop() == 0 or 1 / 0)


if __name__ == "__main__":
    checks = Checks()
    run(checks, sys.argv[1], *map(int, [*sys.argv[2:], *("8640", "1000")[len(sys.argv) - 2:]]))
    sys.exit(checks.end())
