# Sessions of Deepgram's clients, as they were seen to send them.
import json

from client import Socket
from elevenlabs import LONG, TEXT, quiet

QUERY = "?model=aura-2-thalia-en&encoding=linear16&sample_rate=24000"


def until(w, kind):
    """(messages up to one of this type, sound before it)."""
    messages, sound = [], b""
    while not messages or messages[-1]["type"] != kind:
        m = w.receive()
        assert not isinstance(m, tuple), m
        if isinstance(m, bytes):
            sound += m
        else:
            messages.append(m)
    return messages, sound


def deepgram_speaks_over_http(s):
    path = "/v1/speak" + QUERY
    status, headers, sound = s.ask("POST", path + "&container=none", {"text": TEXT})
    assert status == 200 and sound == s.speak(input=TEXT, voice="sage")[2] and headers["content-type"], headers
    for query, body, want in (("?encoding=x", {"text": TEXT}, 400), ("?sample_rate=x", {"text": TEXT}, 400),
                              ("", {}, 400), ("?model=nobody", {"text": TEXT}, 404), ("", {"text": 4}, 400),
                              ("?speed=99", {"text": TEXT}, 400), ("?container=x", {"text": TEXT}, 400),
                              ("?model=%ff", {"text": TEXT}, 404)):
        status, headers, text = s.ask("POST", "/v1/speak" + query, body)
        assert status == want and json.loads(text)["err_code"] and json.loads(text)["err_msg"], (query, body, text)


def deepgram_sounds_as_asked(s):
    assert s.ask("POST", "/v1/speak" + QUERY, {"text": TEXT})[2][:4] == b"RIFF"
    for encoding, least in (("mulaw", 8000), ("alaw", 8000), ("mp3", 9000), ("opus", 4000), ("flac", 20000),
                            ("aac", 5000)):
        assert len(s.ask("POST", f"/v1/speak?encoding={encoding}&container=none", {"text": TEXT})[2]) > least, encoding


def deepgram_aura(s):
    w = Socket(s, "/v1/speak" + QUERY)
    assert w.receive()["type"] == "Metadata"
    w.send({"type": "Flush"})  # without a text it is answered, too
    assert until(w, "Flushed") == ([{"type": "Flushed", "sequence_id": 0}], b"")
    for word in TEXT.split():
        w.send({"type": "Speak", "text": word + " "})
    w.send({"type": "Flush"})
    messages, sound = until(w, "Flushed")
    assert messages[-1]["sequence_id"] == 1 and len(sound) > 40000
    for wrong in ({"type": "Speak", "text": 1}, {"type": "x"}, {}, {"type": ["Speak"]}):
        w.send(wrong)
        assert w.receive()["type"] == "Warning"
    w.send(b"{")
    assert w.receive()["type"] == "Error"
    w.send({"type": "Speak", "text": LONG})
    w.send({"type": "Flush"})
    while not isinstance(w.receive(), bytes):
        pass
    w.send({"type": "Clear"})
    until(w, "Cleared")
    w.send({"type": "Speak", "text": TEXT})
    w.send({"type": "Flush"})
    again = until(w, "Flushed")[1]  # of the long text not a sample is left
    assert abs(len(again) - len(sound)) < 24000, (len(again), len(sound))
    w.send({"type": "Speak", "text": "And the end."})
    w.send({"type": "Close"})
    end = b""
    while isinstance(m := w.receive(), bytes):
        end += m
    assert m == ("close", 1000) and len(end) > 15000, (m, len(end))
    assert quiet(s)


def deepgram_flushes_are_bounded(s):
    w = Socket(s, "/v1/speak" + QUERY)
    w.send({"type": "Speak", "text": LONG})
    for _ in range(7):  # most of what may wait on a connection
        w.send({"type": "Flush"})
        w.send({"type": "Speak", "text": "a " * 65000})
    for _ in range(500):
        w.send({"type": "Flush"})
    assert "waits" in until(w, "Error")[0][-1]["description"]
    w.send({"type": "Clear"})
    until(w, "Cleared")
    w.send({"type": "Speak", "text": TEXT})
    w.send({"type": "Flush"})
    until(w, "Flushed")
    w.close()
    assert quiet(s)


def session_words(s, text):
    """When our own WebSocket says that the words of this text are heard."""
    w = Socket(s)
    w.send({"type": "session.config", "voice": "sage", "word_timestamps": True})
    w.send({"type": "input.text", "text": text})
    w.send({"type": "input.done"})
    messages, _ = w.until("session.done")
    w.close()
    return [word for m in messages if m["type"] == "audio.words" for word in m["words"] if word["final"]]


def deepgram_flux(s):
    w = Socket(s, "/v2/speak?model=flux-alexis-en&encoding=linear16&sample_rate=24000")
    assert w.receive()["type"] == "Connected"
    w.send({"type": "Interrupt"})
    assert w.receive()["code"] == "NO_AUDIO_GENERATED"
    for word in TEXT.split():
        w.send({"type": "Speak", "text": word + " "})
    s.ask("GET", "/version")  # others have no part in the names of turns
    w.send({"type": "Flush"})
    messages, sound = until(w, "SpeechMetadata")
    assert [m["type"] for m in messages] == ["SpeechStarted", "Flushed", "SpeechMetadata"], messages
    assert len({m["speech_id"] for m in messages}) == 1
    first_ms = messages[-1]["audio_duration_ms"]
    assert abs(first_ms - len(sound) / 48) < 2
    w.send({"type": "Speak", "text": LONG})
    w.send({"type": "Flush"})
    w.send({"type": "Speak", "text": "Never said."})
    w.send({"type": "Flush"})
    got = 0
    while got < 48000 * 3:
        m = w.receive()
        got += len(m) if isinstance(m, bytes) else 0
    w.send({"type": "Interrupt", "playback_offset": {"type": "time_ms", "value": first_ms + 2000}})
    m = until(w, "SpeechInterrupted")[0][-1]
    assert m["speech_id"] != messages[-1]["speech_id"]
    spoken, rest = m["text_spoken"].split(), m["text_remaining"].split()
    assert spoken + rest == LONG.split() and "approximate" not in m, (spoken, rest)
    heard = sum(word["start"] < 2 for word in session_words(s, LONG))
    assert abs(len(spoken) - heard) <= 1 and heard > 3, (spoken, heard)
    assert m["audio_played_ms"] == first_ms + 2000 and m["metadata"]["audio_duration_ms"] > 2000
    w.send({"type": "Interrupt", "playback_offset": {"type": "time_ms", "value": 10}})
    assert w.receive()["type"] == "Warning"
    w.send({"type": "Configure", "speed": 2})
    assert w.receive() == {"type": "ConfigureSuccess", "applied": {"speed": 2.0}}
    w.send({"type": "Configure", "speed": "quick"})
    assert w.receive()["code"] == "SPEED_OUT_OF_RANGE"
    w.send({"type": "Speak", "text": TEXT})
    w.send({"type": "Flush"})
    again = until(w, "SpeechMetadata")[1]
    assert len(again) < 0.75 * len(sound)
    w.send({"type": "Speak"})
    assert w.receive()["type"] == "Error"
    w.send({"type": "Interrupt", "playback_offset": {"type": "time_ms", "value": 1e300}})  # more than there was
    m = w.receive()
    sent_ms = first_ms + 2000 + len(again) / 48
    assert m["text_spoken"].split() == TEXT.split() and abs(m["audio_played_ms"] - sent_ms) < 9
    w.send({"type": "Close"})
    assert w.receive()["type"] == "SessionMetadata" and w.receive() == ("close", 1000)
    assert quiet(s)


TESTS = [deepgram_speaks_over_http, deepgram_sounds_as_asked, deepgram_aura, deepgram_flushes_are_bounded,
         deepgram_flux]
