# Sessions of other services' clients, as they were seen to send them, replayed without their packages.
import base64
import json
import socket
import time

from client import SANITIZED, Socket, wait_for

TEXT = "Hello there. How are you?"
LONG = "The quick brown fox jumps over the lazy dog near the river bank. " * 6
EL = "/v1/text-to-speech/21m00Tcm4TlvDq8ikWAM"


def quiet(s):
    """Nothing is left on a lane or in the queue."""
    return wait_for(lambda: s.metric("requests_running") + s.metric("requests_queued") == 0)


def until_final(w, context=None):
    """Messages of a context up to its last one."""
    got = []
    while not got or got[-1].get("isFinal") is not True:
        m = w.receive()
        assert isinstance(m, dict) and "message" not in m, m
        if context in (None, m.get("contextId")):
            got.append(m)
    return got


def sound_of(messages):
    return b"".join(base64.b64decode(m["audio"]) for m in messages if m.get("audio"))


def letters_of(messages, key="normalizedAlignment"):
    return "".join(c for m in messages if m.get(key) for c in m[key]["chars"])


def elevenlabs_speaks_over_http(s):
    status, headers, sound = s.ask("POST", EL + "?output_format=pcm_24000", {"text": TEXT, "seed": 3, "model_id": "x"})
    assert status == 200 and headers["content-type"].startswith("audio/"), (status, headers)
    assert sound == s.speak(input=TEXT, voice="nova", seed=3)[2]
    body = {"text": TEXT, "seed": 3, "voice_settings": {"speed": 1, "stability": 0.5}}
    lines = s.ask("POST", EL + "/stream/with-timestamps?output_format=pcm_24000", body)[2].decode().splitlines()
    pieces = [json.loads(line) for line in lines]
    assert b"".join(base64.b64decode(p["audio_base64"]) for p in pieces) == sound
    told = [p["alignment"] for p in pieces if p["alignment"]]
    letters, starts, ends = (sum((a[key] for a in told), []) for key in (
        "characters", "character_start_times_seconds", "character_end_times_seconds"))
    assert "".join(letters).strip() == TEXT and ends == sorted(ends) and starts == sorted(starts)
    assert len(told) > 3 and pieces[2]["audio_base64"] and pieces.index(next(p for p in pieces if p["alignment"])) < \
        len(pieces) / 2, len(told)  # words come with the sound, not behind it
    status, headers, text = s.ask("POST", EL + "/with-timestamps?output_format=pcm_24000", body)
    whole = json.loads(text)
    assert base64.b64decode(whole["audio_base64"]) == sound and int(headers["content-length"]) == len(text)
    whole = whole["alignment"]
    assert "".join(whole["characters"]).strip() == TEXT
    assert abs(whole["character_end_times_seconds"][-1] - len(sound) / 48000) < 0.001
    final = s.words(input=TEXT, voice="nova", seed=3)
    for w in final:
        assert abs(whole["character_start_times_seconds"][w["at"]] - w["start"]) < 0.001, (whole, final)
    for kind, least in (("ulaw_8000", 4000), ("alaw_8000", 4000), ("mp3_44100_192", 20000), ("opus_48000_64", 4000)):
        assert len(s.ask("POST", f"{EL}?output_format={kind}", body)[2]) > least, kind
    for path, body, want in ((EL, {"text": 3}, 422), (EL, {}, 422), (EL + "?output_format=x", {"text": TEXT}, 400),
                             ("/v1/text-to-speech/nobody", {"text": TEXT}, 404), (EL, {"text": TEXT, "seed": -1}, 400),
                             (EL, {"text": TEXT, "voice_settings": {"speed": 99}}, 400), (EL, {"text": " "}, 400)):
        status, headers, answer = s.ask("POST", path, body)
        assert status == want and json.loads(answer)["detail"]["message"], (path, body, status, answer)
    voices = json.loads(s.ask("GET", "/v1/voices")[2])["voices"]
    assert {"voice_id", "name", "category"} <= set(voices[0]) and "clara" in [v["voice_id"] for v in voices]
    models = json.loads(s.ask("GET", "/v1/models", headers={"xi-api-key": "x"})[2])
    assert models[0]["can_do_text_to_speech"] and models[0]["model_id"], models


def elevenlabs_stream_input(s):
    w = Socket(s, EL + "/stream-input?model_id=x&output_format=pcm_24000&seed=3")
    w.send({"text": " ", "try_trigger_generation": True, "voice_settings": None,
            "generation_config": {"chunk_length_schedule": [50]}})
    for word in ("Hello ", "there. ", "How ", "are ", "you?"):
        w.send({"text": word, "try_trigger_generation": True})
    w.send({"text": ""})
    got = until_final(w)
    assert len(sound_of(got)) > 30000 and letters_of(got) == TEXT + " ", letters_of(got)
    assert w.receive() == ("close", 1000)
    w = Socket(s, "/v1/text-to-speech/nobody/stream-input")
    w.send({"text": " "})
    assert "nobody" in w.receive()["message"] and w.receive()[0] == "close"


def elevenlabs_contexts(s):
    """As LiveKit and Pipecat have it: two contexts at once, one of them closed in the middle, an error in a third."""
    w = Socket(s, EL + "/multi-stream-input?output_format=pcm_24000&sync_alignment=true&auto_mode=true&seed=3")
    assert w.status == 101
    w.send({"text": ""})  # keeps the connection
    for name in ("a", "b"):
        w.send({"text": " ", "context_id": name, "voice_settings": {}})
        w.send({"text": LONG[:130] if name == "a" else "Hello there. ", "context_id": name, "flush": True})
    w.send({"text": "How are you? ", "context_id": "b"})
    w.send({"text": "", "context_id": "b", "flush": True})
    w.send({"context_id": "b", "close_context": True})
    w.send({"text": 5, "context_id": "c"})
    w.send(b"{")
    errors, a, b = [], [], []
    while not b or not b[-1].get("isFinal"):
        m = w.receive()
        if "message" in m:
            errors.append(m)
        else:
            (a if m["contextId"] == "a" else b).append(m)
    assert [m.get("contextId") for m in errors] == ["c", None] and all(m["error"] for m in errors), errors
    assert letters_of(b) == "Hello there. How are you? "
    starts = [t for m in b if m["alignment"] for t in m["alignment"]["charStartTimesMs"]]
    assert starts == sorted(starts) and starts[-1] > 800, starts  # they count on through the context
    w.send({"text": "Never said. ", "context_id": "d"})
    w.send({"context_id": "d", "close_context": True})  # not flushed: dropped
    w.send({"close_socket": True})  # what was flushed is said to its end
    a += until_final(w, "a")
    assert len(sound_of(a)) > 48000 * 6 and letters_of(a).strip() == LONG[:130].strip(), letters_of(a)
    assert w.receive() == ("close", 1000)
    assert quiet(s)


def elevenlabs_times_restart(s):
    w = Socket(s, EL + "/multi-stream-input?output_format=pcm_24000&seed=3")
    for text in ("Hello there. ", "How are you? "):
        w.send({"text": text, "context_id": "a", "flush": True})
    w.send({"context_id": "a", "close_context": True})
    got = until_final(w, "a")
    spans = [m["alignment"] for m in got if m["alignment"]]
    assert len(spans) > 3 and all(a["charStartTimesMs"][0] < 600 for a in spans), spans
    told = sum(a["charStartTimesMs"][-1] + a["charDurationsMs"][-1] for a in spans) / 1000
    assert abs(told - len(sound_of(got)) / 48000) < 0.02, told  # a client that adds the messages up does not drift
    w.close()


def run_ahead(s):
    """Takes sound as it comes, which is not much more than who hears it needs. The longest time without any."""
    w = Socket(s, EL + "/multi-stream-input?output_format=pcm_24000")
    w.send({"text": LONG * 4, "context_id": "a", "flush": True})
    seconds, began, last, longest = 0, time.time(), time.time(), 0
    while time.time() < began + 3.5 or (seconds < 5 and not SANITIZED):
        seconds += len(base64.b64decode(w.receive()["audio"] or "")) / 48000
        longest, last = max(longest, time.time() - last), time.time()
        heard = time.time() - began  # at most
        assert seconds < 7 + heard, (seconds, heard)
    w.close()
    assert quiet(s)
    return longest


def elevenlabs_run_ahead_is_bounded(s):
    """Pipecat takes what is silent for 3 s for ended. Of a machine at other work one time of three is asked."""
    silences = [run_ahead(s)]
    while min(silences) >= 2 and len(silences) < 3 and not SANITIZED:
        silences.append(run_ahead(s))
    assert min(silences) < 2 or SANITIZED, silences


def elevenlabs_closed_twice_is_interrupted(s):
    w = Socket(s, EL + "/multi-stream-input?output_format=pcm_24000")
    w.send({"text": LONG * 4, "context_id": "a", "flush": True})
    w.send({"context_id": "a", "close_context": True})  # the end of the turn: it is said
    assert w.receive()["audio"]
    w.send({"context_id": "a", "close_context": True})  # the interruption
    got = until_final(w, "a")
    assert len(sound_of(got)) < 48000 * 9, len(sound_of(got))
    assert wait_for(lambda: s.metric("requests_running") == 0, 20)
    w.send({"text": "Hello. ", "context_id": "a", "flush": True})  # the name is free again
    w.send({"context_id": "a", "close_context": True})
    assert letters_of(until_final(w, "a")) == "Hello. "
    w.close()


def elevenlabs_waits_for_the_listener(s):
    """A piece that begins while enough is in hand is held, not dropped."""
    pieces = 2 if SANITIZED else 4
    w = Socket(s, EL + "/multi-stream-input?output_format=pcm_24000&seed=3")
    for _ in range(pieces):
        w.send({"text": LONG[:65], "context_id": "a", "flush": True})
    w.send({"context_id": "a", "close_context": True})
    got = until_final(w, "a")
    assert letters_of(got).split() == (LONG[:65] * pieces).split(), letters_of(got)
    w.close()


def elevenlabs_waits_as_long_as_asked(s):
    """Also for the first message; others have 20 s."""
    quick, patient = (Socket(s, EL + "/multi-stream-input" + query) for query in ("?inactivity_timeout=1", ""))
    assert quick.receive() == ("close", 1000)
    patient.send({"text": "Hello.", "context_id": "a", "flush": True})
    assert patient.receive()["audio"]
    quick.close()
    patient.close()


def what_goes_away_leaves_nothing(s):
    for i in range(30):
        w = Socket(s, EL + "/multi-stream-input")
        for k in range(3):
            w.send({"text": TEXT, "context_id": f"c{k}", "flush": k % 2 == 0})
        w.close()
    assert quiet(s)


def elevenlabs_waits_for_who_reads(s):
    """Who takes nothing is not spoken to, until it takes what there is."""
    c = socket.create_connection(("127.0.0.1", s.port))
    c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    begun = s.metric("step_seconds_count")
    body = json.dumps({"text": LONG * 12}).encode()
    c.sendall(f"POST {EL}/stream/with-timestamps?output_format=pcm_48000 HTTP/1.1\r\nHost: localhost\r\n"
              f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)

    def stands():
        before = s.metric("step_seconds_count")
        time.sleep(0.3)
        return begun < before == s.metric("step_seconds_count") and s.metric("requests_running") == 1
    assert wait_for(stands, 60)
    steps = s.metric("step_seconds_count")
    c.settimeout(60)
    while s.metric("step_seconds_count") == steps:
        assert c.recv(1 << 16)
    c.close()
    assert quiet(s)


TESTS = [elevenlabs_speaks_over_http, elevenlabs_stream_input, elevenlabs_contexts, elevenlabs_times_restart,
         elevenlabs_run_ahead_is_bounded, elevenlabs_closed_twice_is_interrupted, elevenlabs_waits_for_the_listener,
         elevenlabs_waits_as_long_as_asked, elevenlabs_waits_for_who_reads, what_goes_away_leaves_nothing]
