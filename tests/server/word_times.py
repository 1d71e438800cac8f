# Which word is heard when, as the server tells it.
import array
import base64
import json
import os
import socket
import subprocess
import tempfile

from client import PATIENCE, SANITIZED, Server, Socket

TEXT = "Hello there. How are you today? I am fine."
PAGE = "The first part is short. It has two sentences.\n\nAfter a pause, the second part comes; it is longer, " \
       "and it goes on and on, so that it needs more than one piece to say. Then there is a third part, too. " \
       "Nobody knows what it is for, but it is there, and it will be read aloud like all the others. The end."


def check(words, text, seconds):
    """Every word of the text once, in order, inside the sound."""
    data, told = text.encode(), [w["word"] for w in words]
    assert told == "".join(c if c.isalnum() else " " for c in text).split(), told
    assert [w["index"] for w in words] == list(range(len(words)))
    assert all(data[w["at"]:w["at"] + w["bytes"]].decode() == w["word"] for w in words)
    times = [t for w in words for t in (w["start"], w["end"])]
    assert times == sorted(times) and 0 <= times[0] and times[-1] <= seconds + 0.001, (times, seconds)
    assert all(w["final"] and 0 <= w["certainty"] <= 1 and w["end"] > w["start"] for w in words), words


def events_of(body):
    return [json.loads(line[6:]) for line in body.decode().splitlines() if line.startswith("data: ")]


def final_of(messages):
    """Each word as it was told last; each is final once, and is not told after it."""
    final, seen = {}, set()
    for m in messages:
        for w in m["words"]:
            assert w["index"] not in final, w
            if w["final"]:
                final[w["index"]] = w
            else:
                assert w["index"] not in seen, w
            seen.add(w["index"])
    return [final[i] for i in sorted(final)]


def words_stand_beside_the_sound(s):
    status, headers, body = s.speak(input=TEXT, seed=3, stream=False, word_timestamps=True)
    answer = json.loads(body)
    sound = base64.b64decode(answer["audio_data"])
    assert status == 200 and headers["x-finish-reason"] == "stop" and int(headers["content-length"]) == len(body)
    assert sound == s.speak(input=TEXT, seed=3)[2] and answer["media_type"] == "audio/pcm"
    assert answer["approximate"] is False and answer["sample_rate"] == 24000 and answer["usage"]["output_tokens"] > 0
    check(answer["words"], TEXT, len(sound) / 48000)
    events = events_of(s.speak(input=TEXT, seed=3, stream_format="sse", word_timestamps=True)[2])
    told = [e for e in events if e["type"] == "speech.audio.words"]
    assert final_of(told) == answer["words"]
    assert b"".join(base64.b64decode(e["audio"]) for e in events if e["type"] == "speech.audio.delta") == sound
    seconds, known = 0, set()
    for e in events:
        seconds += len(base64.b64decode(e.get("audio", ""))) / 48000
        for w in e.get("words", []):
            if w["index"] not in known:  # at most a few frames after it began
                known.add(w["index"])
                assert seconds < w["start"] + 0.4, (seconds, w)
    batch = {"items": [{"input": TEXT, "seed": 3}, {"input": "Hi.", "word_timestamps": False}],
             "word_timestamps": True, "response_format": "pcm"}
    first, second = json.loads(s.ask("POST", "/v1/audio/speech/batch", batch)[2])["results"]
    assert first["words"] == answer["words"] and first["approximate"] is False and "words" not in second


def an_answer_without_room_is_refused(s):
    status, _, body = s.speak(input=TEXT, word_timestamps=True)
    error = json.loads(body)["error"]
    assert status == 400 and error["param"] == "word_timestamps" and "sse" in error["message"], body
    body = {"input": "Hi.", "word_timestamps": True, "max_new_tokens": 3}
    assert s.ask("POST", "/v1/audio/speech", body, {"Accept": "text/event-stream"})[0] == 200
    assert s.speak(input="Hi.", word_timestamps=False, max_new_tokens=3)[0] == 200


def onsets(sound, rate, quiet_s=1):
    """Where sound begins after so long a silence, in seconds."""
    samples, found, last = array.array("h", sound), [], None
    for i, x in enumerate(samples):
        if abs(x) > 655:  # -34 dB
            if last is not None and i - last > quiet_s * rate:
                found.append(i / rate)
            last = i
    return found


def times_are_those_of_the_sound_that_leaves(s):
    """A word behind a pause is heard when the silence ends, whatever is done to the sound."""
    text = "One apple. [pause:2s] Two pears. [pause:2s] Three plums."
    for speed, rate in ((1, 24000), (2, 24000), (0.5, 8000), (1.3, 44100)):
        fields = {"input": text, "markup": "tags", "seed": 5, "speed": speed, "sample_rate": rate}
        words = s.words(**fields)
        sound = s.speak(**fields)[2]
        at = onsets(sound, rate, 1.5 / speed)
        named = [w for w in words if w["word"] in ("Two", "Three")]
        assert [w["word"] for w in words] == ["One", "apple", "Two", "pears", "Three", "plums"], words
        assert len(at) == 2 and len(named) == 2, (at, named)
        for w, onset in zip(named, at):
            assert abs(w["start"] - onset) < 0.1 / min(speed, 1), (speed, w, at)
            assert text[w["at"]:w["at"] + w["bytes"]] == w["word"], w
        assert words[-1]["end"] <= len(sound) / 2 / rate
    # What coder and decoder put in front of an MP3 or AAC, in samples.
    for kind, delay in (("mp3", 1105), ("aac", 1600), ("opus", 0), ("flac", 0)):
        late = s.words(**{**fields, "response_format": kind})[0]["start"] - words[0]["start"]
        assert abs(late - delay / rate) < 0.0002, (kind, late)


def offsets_are_those_of_the_source(s):
    text = "I paid 42 dollars on 3 May."
    words = s.words(input=text, spell_out=True, seed=1)
    slices = [text[w["at"]:w["at"] + w["bytes"]] for w in words]
    assert slices[:5] == ["I", "paid", "42", "42", "dollars"] and slices[-1] == "May" and "3" in slices, slices
    assert all(slices) and [w["at"] for w in words] == sorted(w["at"] for w in words)
    text = '<speak><emphasis>Very</emphasis> well, <sub alias="doctor">Dr.</sub> Who.</speak>'
    words = s.words(input=text, markup="ssml", seed=1)
    assert [w["word"] for w in words] == ["Very", "well", "Dr.", "Who"], words  # without the tags around them
    assert all(text[w["at"]:w["at"] + w["bytes"]] == w["word"] for w in words)
    for text in ("你好，世界。", "Ein Übermut 😀 für 5 €!", "a\u0301bc déf", "x" * 400, "…!", "1.5.2-rc1 http://a.b/c?d=e"):
        status, _, body = s.speak(input=text, stream=False, word_timestamps=True, max_new_tokens=20)
        words = json.loads(body).get("words", [])
        assert status == 200 and all(text.encode()[w["at"]:w["at"] + w["bytes"]].decode() == w["word"] for w in words)


def words_of_a_long_text(s):
    answer = json.loads(s.speak(input=PAGE, seed=2, stream=False, word_timestamps=True)[2])
    seconds = len(base64.b64decode(answer["audio_data"])) / 48000
    check(answer["words"], PAGE, seconds)
    events = events_of(s.speak(input=PAGE, seed=2, stream_format="sse", word_timestamps=True)[2])
    check(final_of([e for e in events if "words" in e]), PAGE, seconds)


def sessions_tell_words(s):
    for cut in ("none", "sentence"):
        w = Socket(s)
        w.send({"type": "session.config", "word_timestamps": True, "seed": 3, "split_granularity": cut})
        w.receive()
        for turn in range(2):  # each utterance counts from its own beginning
            for i in range(0, len(TEXT), 7):
                w.send({"type": "input.text", "text": TEXT[i:i + 7]})
            w.send({"type": "input.done"})
            told, seconds, m = [], 0, {"type": ""}
            while m["type"] != "session.done":
                m = w.receive()
                if isinstance(m, bytes):
                    seconds += len(m) / 48000
                    m = {"type": ""}
                elif m["type"] == "audio.words":
                    assert m["utterance_index"] == turn and m["approximate"] is False
                    assert all(x["final"] or seconds < x["start"] + 0.4 for x in m["words"]), (seconds, m)
                    told.append(m)
            check(final_of(told), TEXT, seconds)
        w.close()


def what_was_heard_is_told(s):
    w = Socket(s)
    w.send({"type": "session.config", "word_timestamps": True, "seed": 3, "split_granularity": "sentence"})
    w.receive()
    w.send({"type": "input.text", "text": TEXT + " And so on."})
    w.send({"type": "input.done"})
    messages, _ = w.until("session.done")
    words = final_of([m for m in messages if m["type"] == "audio.words"])
    for word in words:  # also of an utterance that has been made, and is still heard
        w.send({"type": "input.cancel", "played_ms": 1000 * word["start"] + 1})
        m = w.receive()
        end = word["at"] + word["bytes"]
        assert m["text_spoken"] + m["text_remaining"] == TEXT + " And so on." and m["heard_utterance_index"] == 0, m
        assert m["text_spoken"].rstrip(".?") == (TEXT + " And so on.")[:end] and m["approximate"] is False, (word, m)
    w.send({"type": "input.text", "text": TEXT * 9})  # of one that goes on, with text that waits
    w.until("audio.start")
    w.send({"type": "input.cancel", "played_ms": 0})
    m = w.until("audio.cancelled")[0][-1]
    assert m["text_spoken"] == "" and m["text_remaining"] == TEXT * 9, m
    for wrong in (-1, "1", [], True):
        w.send({"type": "input.cancel", "played_ms": wrong})
        assert "text_spoken" not in w.receive() and w.receive()["error"]["param"] == "played_ms"
    w.send({"type": "input.cancel", "played_ms": 1e300})
    assert "text_spoken" in w.receive()
    w.close()
    w = Socket(s)  # words were not asked for: shares
    w.send({"type": "session.config", "seed": 3})
    w.receive()
    w.send({"type": "input.cancel", "played_ms": 5})
    assert w.receive()["text_spoken"] == ""
    w.send({"type": "input.text", "text": TEXT})
    w.send({"type": "input.done"})
    assert "audio.words" not in [m["type"] for m in w.until("session.done")[0]]
    w.send({"type": "input.cancel", "played_ms": 1500})
    m = w.receive()
    assert m["approximate"] is True and m["text_spoken"] + m["text_remaining"] == TEXT
    assert 2 < len(m["text_spoken"].split()) < 8, m
    w.send({"type": "session.config", "seed": 3, "word_timestamps": True})  # of what comes, not of what was said
    w.receive()
    w.send({"type": "input.cancel", "played_ms": 1500})
    again = w.receive()
    assert all(again[name] == m[name] for name in ("text_spoken", "text_remaining", "approximate")), again
    w.close()


def a_long_answer_is_written_piece_by_piece(s):
    """Who does not read it has little of it in the buffers; who reads gets it whole."""
    body = json.dumps({"input": PAGE, "seed": 2, "response_format": "wav", "sample_format": "f32", "sample_rate": 48000,
                       "stream": False, "word_timestamps": True, "max_new_tokens": 200}).encode()
    c = socket.create_connection(("127.0.0.1", s.port))
    c.settimeout(20)
    c.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              b"Content-Length: %d\r\n\r\n" % len(body) + body)
    got = c.recv(100)
    assert s.ask("GET", "/health")[0] == 200
    while b"\r\n\r\n" not in got:
        got += c.recv(65536)
    head, got = got.split(b"\r\n\r\n", 1)
    n = int(next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")).split()[1])
    while len(got) < n:
        got += c.recv(65536)
    sound = base64.b64decode(json.loads(got)["audio_data"])
    assert n > 3000000 and len(got) == n and int.from_bytes(sound[4:8], "little") == len(sound) - 8, n
    c.sendall(b"GET /version HTTP/1.1\r\nHost: localhost\r\n\r\n")  # the connection goes on
    assert c.recv(65536).startswith(b"HTTP/1.1 200")
    c.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
              b"Content-Length: %d\r\n\r\n" % len(body) + body)
    c.recv(100)
    c.close()  # in the middle of it


def without_heads_times_are_approximate(program, model):
    s = Server(program, "-m", model, "--lanes", "1")
    try:
        answer = json.loads(s.speak(input=TEXT, stream=False, word_timestamps=True, max_new_tokens=4)[2])
        assert answer["approximate"] is True and all(w["certainty"] == 0 for w in answer["words"]), answer["words"]
        name = json.loads(s.ask("GET", "/v1/audio/voices")[2])["voices"][0]["name"]
        lines = s.ask("POST", f"/v1/text-to-speech/{name}/with-timestamps", {"text": "Hi."}, timeout=90 * PATIENCE)[2]
        assert json.loads(lines)["approximate"] is True
    finally:
        assert s.stop() == 0


def heads_that_were_learnt_before_are_known(program, model):
    """What `utter align-heads` has left in the cache holds for a server from its first speech on."""
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "XDG_CACHE_HOME": cache}
        text = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi"
        subprocess.run([program, "align-heads", "-q", "-m", model, "--layout", "stream", "--max-frames", "57",
                        text, text, text], env=env, check=True, stdout=subprocess.DEVNULL)
        s = Server(program, "-m", model, "--lanes", "1", env=env)
        try:
            answer = json.loads(s.speak(input=TEXT, stream=False, word_timestamps=True, max_new_tokens=8)[2])
            assert answer["approximate"] is False, answer["words"]
        finally:
            assert s.stop() == 0


def run(checks, program, checkpoints):
    s = Server(program, "--lanes", "4")
    for test in (words_stand_beside_the_sound, an_answer_without_room_is_refused,
                 times_are_those_of_the_sound_that_leaves, offsets_are_those_of_the_source, words_of_a_long_text,
                 sessions_tell_words, what_was_heard_is_told, a_long_answer_is_written_piece_by_piece):
        if SANITIZED and test in (words_of_a_long_text, times_are_those_of_the_sound_that_leaves,
                                           offsets_are_those_of_the_source, a_long_answer_is_written_piece_by_piece):
            print(f"SKIP server/{test.__name__}: a long text under sanitizers; the plain build runs it")
        else:
            checks.run(test.__name__, test, s)
    checks.run("ends_cleanly", lambda: s.stop() == 0 or 1 / 0)
    checks.run("without_heads_times_are_approximate", without_heads_times_are_approximate, program,
               os.path.join(checkpoints, "tiny06-custom_voice"))
    checks.run("heads_that_were_learnt_before_are_known", heads_that_were_learnt_before_are_known, program,
               os.path.join(checkpoints, "follows"))
    return checks
