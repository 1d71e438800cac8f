# Sessions of Cartesia's clients, as they were seen to send them.
import base64
import json

from client import Socket
from elevenlabs import LONG, TEXT, quiet

VOICE = {"mode": "id", "id": "f786b574-daa5-4673-aa0c-cbe3e8534c02"}
RAW = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24000}
BASE = {"model_id": "sonic-3", "voice": VOICE, "output_format": RAW, "language": "en"}


def until_done(w, context="c"):
    """Messages of a context; each has its type and its context, also where that is null."""
    got = []
    while not got or not (got[-1]["done"] and "data" not in got[-1]):
        m = w.receive()
        assert isinstance(m, dict) and "context_id" in m and m["type"], m
        if m["context_id"] == context:
            got.append(m)
    return got


def sound_of(messages):
    return b"".join(base64.b64decode(m["data"]) for m in messages if m["type"] == "chunk")


def words_of(messages):
    told = [m["word_timestamps"] for m in messages if m["type"] == "timestamps"]
    return sum((t["words"] for t in told), []), sum((t["start"] for t in told), []), sum((t["end"] for t in told), [])


def cartesia_speaks_over_http(s):
    body = {**BASE, "transcript": TEXT}
    status, headers, sound = s.ask("POST", "/tts/bytes", body)
    assert status == 200 and sound == s.speak(input=TEXT, voice="sage", language="en")[2]
    body = {**body, "add_timestamps": True, "context_id": "x"}
    status, headers, text = s.ask("POST", "/tts/sse", body)
    events = [json.loads(line[6:]) for line in text.decode().splitlines() if line.startswith("data: ")]
    assert sound_of(events) == sound and words_of(events)[0] == TEXT.split() and events[-1]["type"] == "done"
    assert all(e["context_id"] == "x" for e in events)
    named = [line[7:] for line in text.decode().splitlines() if line.startswith("event: ")]
    assert named == [e["type"] for e in events], named
    for wrong, want in (({"transcript": 1}, 400), ({"voice": {"mode": "embedding"}}, 400), ({"voice": "nobody"}, 404),
                        ({"output_format": {"container": "ogg"}}, 400), ({"output_format": 3}, 400),
                        ({"output_format": {"encoding": "x"}}, 400), ({"speed": "quick"}, 400)):
        status, headers, text = s.ask("POST", "/tts/bytes", {**body, **wrong})
        e = json.loads(text)
        assert status == want == e["status_code"] and e["title"] and e["message"] and e["error_code"], (wrong, e)
    assert s.ask("POST", "/tts/sse", {**body, "output_format": {"container": "wav"}})[0] == 400


def cartesia_sounds_as_asked(s):
    body = {**BASE, "transcript": TEXT}
    sound = s.ask("POST", "/tts/bytes", body)[2]
    tagged = {**body, "transcript": 'Hello <break time="1s"/>there. How are you?'}
    assert s.ask("POST", "/tts/bytes", tagged)[2] == sound  # tags are not spoken
    for container, encoding, size in (("raw", "pcm_f32le", 4), ("raw", "pcm_mulaw", 1), ("wav", "pcm_alaw", 1)):
        kind = {"container": container, "encoding": encoding, "sample_rate": 24000}
        got = s.ask("POST", "/tts/bytes", {**body, "output_format": kind})[2]
        assert len(got) == len(sound) // 2 * size + (44 if container == "wav" else 0), kind
    kind = {"container": "mp3", "bit_rate": 192000, "sample_rate": 44100}
    assert len(s.ask("POST", "/tts/bytes", {**body, "output_format": kind})[2]) > len(sound) / 48000 * 24000


def cartesia_contexts(s):
    w = Socket(s, "/tts/websocket?cartesia_version=2025-04-16")
    base = {**BASE, "add_timestamps": True, "max_buffer_delay_ms": 0, "context_id": "c"}
    w.send({**base, "transcript": LONG, "context_id": "long", "continue": True})
    for text in ("Hello there. ", "How are you? "):
        w.send({**base, "transcript": text, "continue": True})
    w.send({**base, "transcript": " ", "continue": False})
    got = until_done(w)
    words, starts, ends = words_of(got)
    assert words == "Hello there. How are you?".split() and starts == sorted(starts), words
    assert [m["type"] for m in got].count("done") == 1 and 0 < len(sound_of(got)) / 48000 - ends[-1] < 0.6, ends
    assert all(a < b for a, b in zip(starts, ends)) and starts[2] > ends[1] + 0.1, (starts, ends)  # a sentence's pause
    assert not any(m.get("approximate") for m in got)
    first = next(i for i, m in enumerate(got) if m["type"] == "timestamps")
    assert first < len(got) / 3, first  # words come with the sound
    w.send({"context_id": "long", "cancel": True})
    w.send({**base, "transcript": "And again. ", "continue": True, "flush": True})
    w.send({**base, "transcript": "", "continue": True, "flush": True})
    w.send({**base, "transcript": "", "continue": False})
    got = []
    while not got or got[-1]["type"] != "done":
        got.append(w.receive())
    after = [m for m in got if m["context_id"] != "c"]
    assert len(after) < 30, "a cancelled context goes on"
    assert [m["flush_id"] for m in got if m["type"] == "flush_done"] == [1, 2], got
    w.close()
    assert quiet(s)


def cartesia_waits_for_text(s):
    """Without more text, what there is is spoken after its delay."""
    w = Socket(s, "/tts/websocket")
    w.send({**BASE, "context_id": "c", "transcript": "Hello there.", "continue": True, "max_buffer_delay_ms": 200,
            "add_timestamps": True})
    got = [w.receive()]
    while len(words_of(got)[0]) < 2:
        got.append(w.receive())
    assert words_of(got)[0] == ["Hello", "there."]
    w.close()


def cartesia_errors_leave_the_others(s):
    w = Socket(s, "/tts/websocket")
    w.send({**BASE, "context_id": "c", "transcript": "Hello ", "continue": True})
    for wrong in ({"context_id": "d", "transcript": []}, {"context_id": 5}, {"context_id": "e", "transcript": "x",
                  "voice": "nobody"}, {"context_id": "f", "transcript": "x", "voice": VOICE, "output_format": 1}):
        w.send({"model_id": "x", **wrong})
        m = w.receive()
        while m["type"] == "chunk":
            m = w.receive()
        assert m["type"] == "error" and m["done"] is True and "context_id" in m and m["status_code"] in (400, 404), m
    w.send(b"[")
    w.send({**BASE, "context_id": "c", "transcript": "there.", "continue": False})
    assert len(sound_of(until_done(w))) > 20000
    w.close()


def cartesia_ends_a_context_without_words(s):
    w = Socket(s, "/tts/websocket")
    w.send({**BASE, "context_id": "c", "transcript": "<b> ", "continue": False})
    assert [m["type"] for m in until_done(w)] == ["done"]
    w.close()


TESTS = [cartesia_speaks_over_http, cartesia_sounds_as_asked, cartesia_contexts, cartesia_waits_for_text,
         cartesia_errors_leave_the_others,
         cartesia_ends_a_context_without_words]
