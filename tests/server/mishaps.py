# What befalls a server: it is asked while the model opens, its worker dies, a recording is bad, a file has gone.
import base64
import glob
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

from client import PATIENCE, SANITIZED, Server, Socket, form, open_files, tone, wait_for

TEXT = "Hello there."


def who_comes_too_early_is_told(program):
    s = Server(program, "--lanes", "8", held=True)
    try:
        assert s.ask("GET", "/health")[0] == 200 and s.ask("GET", "/ready")[0] == 503
        speech = {"input": TEXT, "language": "en", "response_format": "pcm", "max_new_tokens": 2}
        for path, body in (("speech", speech), ("speech/batch", {"items": [speech]}), ("voices", {"name": "x"})):
            status, headers, answer = s.ask("POST", "/v1/audio/" + path, body)
            error = json.loads(answer)["error"]
            assert status == 503 and error["type"] == "overloaded_error", (path, answer)
            assert int(headers["retry-after"]) == 1, headers
        w = Socket(s)
        assert w.status == 503
        w.close()
        assert s.metric('rejected_total{reason="not_ready"}') == 4
        s.resume()
        assert s.ask("POST", "/v1/audio/speech", speech)[0] == 200
    finally:
        code = s.stop()
    assert code == 0, (code, s.said())


def recordings_of_a_killed_server_go(program):
    def start():
        s = Server(program, "--lanes", "1", "-q")
        held = [os.readlink(fd) for fd in glob.glob(f"/proc/{s.process.pid}/fd/*") if os.path.exists(fd)]
        folder, = [f for f in held if f.startswith("/tmp/utter-serve-")]  # it is locked while its server lives
        return s, folder
    killed, left = start()
    alive, kept = start()
    try:
        killed.stop(signal.SIGKILL)
        for folder in (left, kept):
            with open(folder + "/1.sound", "w"):
                os.utime(folder, (0, 0))
        other, _ = start()
        assert other.stop() == 0
        assert not os.path.exists(left) and os.path.exists(kept + "/1.sound")
        os.remove(kept + "/1.sound")
    finally:
        assert alive.stop() == 0 and not os.path.exists(kept)


def the_end_is_told(program):
    """Who has no sound when the time of a drain is over is refused, not shut out without a word."""
    s = Server(program, "--lanes", "3", "--drain", "0")
    answers = []
    w = Socket(s)
    w.send({"type": "session.config"})
    assert w.receive()["type"] == "session.created"
    os.kill(s.workers()[0], signal.SIGSTOP)
    asks = [threading.Thread(target=lambda: answers.append(s.speak(input=TEXT))) for _ in range(2)]
    for t in asks:
        t.start()
    w.send({"type": "input.text", "text": TEXT})
    w.send({"type": "input.done"})
    w.send(b"", kind=9)
    assert w.receive()[0] == "pong" and wait_for(lambda: s.metric("requests_running") == 3)
    s.process.send_signal(signal.SIGTERM)
    for t in asks:
        t.join()
    assert all(status == 503 and b"the server stops" in body for status, _, body in answers), answers
    messages, _ = w.until("none such")
    assert any("the server stops" in str(m) for m in messages) and messages[-1] == ("close", 1001), messages
    assert s.process.wait(10) == 0, s.said()


def folders_of_others_stay(program):
    """They look like those of a server that is gone, but hold what no server of ours has put there."""
    mine = [tempfile.mkdtemp(prefix=prefix, dir="/tmp") for prefix in ("utter-serve-", "utter-")]
    short = "/tmp/utter-" + mine[1][-6:]
    os.rename(mine.pop(), short)
    six = "/tmp/utter-serve-" + mine[0][-6:]
    os.rename(mine[0], six)
    try:
        for folder in (short, six):
            for name in ("model.safetensors", "1.sound.txt", "sound"):
                with open(os.path.join(folder, name), "w"):
                    pass
            os.utime(folder, (0, 0))
        assert Server(program, "--lanes", "1", "-q").stop() == 0
        assert all(len(os.listdir(folder)) == 3 for folder in (short, six))
    finally:
        for folder in (short, six):
            shutil.rmtree(folder, ignore_errors=True)


def the_first_line_names_the_address(program):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        print("SKIP server/the_first_line_names_the_address: no IPv6 here")
        return
    s = Server(program, "--host", "::1", "--lanes", "1")
    try:
        assert "http://[::1]:" in s.ready, s.ready
        c = http.client.HTTPConnection("::1", s.port, timeout=20 * PATIENCE)
        c.request("GET", "/ready")
        assert c.getresponse().status == 200
        c.close()
        load = subprocess.run([program, "load", "--host", "::1", "--port", str(s.port), "--json", "--seconds", "0.2",
                               "--listeners", "1", "--words", "1"], capture_output=True, timeout=60 * PATIENCE)
        assert load.returncode == 0 and json.loads(load.stdout)["good"] == 1, load
    finally:
        assert s.stop() == 0


def load_asks_for_a_voice_of_any_name(program):
    """A quote, or thousands of letters, are no reason to send something that is not JSON."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20 * PATIENCE)
        command = [program, "load", "--port", str(listening.getsockname()[1]), "--seconds", "20", "--rate", "1"]
        for voice in ('a "b"\\c', "n" * 9000):
            load = subprocess.Popen([*command, "--voice", voice], stderr=subprocess.DEVNULL)
            try:
                connection, _ = listening.accept()
                connection.settimeout(20 * PATIENCE)
                with connection, connection.makefile("rb") as asked:
                    length, = [int(line.split()[1]) for line in iter(lambda: asked.readline().strip(), b"")
                               if line.lower().startswith(b"content-length:")]
                    assert json.loads(asked.read(length))["voice"] == voice
            finally:
                load.kill()
                load.wait()
        said = subprocess.run([*command, "--voice", b"\xff"], capture_output=True, timeout=20 * PATIENCE)
        assert said.returncode == 1 and b"UTF-8" in said.stderr, said


def a_start_that_never_succeeds_ends(program):
    s = Server(program, "--lanes", "8", "-q", held=True)
    for i in range(3):
        if i:
            s.hold_worker()
        worker, = s.workers()
        os.kill(worker, signal.SIGKILL)
        assert wait_for(lambda: worker not in s.workers()) or i == 2
    assert s.process.wait(20 * PATIENCE) == 2 and len(s.said().splitlines()) == 1 and "3 workers" in s.said(), s.said()
    s.stop()


def worker_is_caged(program):
    """Whatever a stranger's text does to it: it reads no file of others, opens no socket, starts no program."""
    def rights(pid):
        with open(f"/proc/{pid}/status") as f:
            return dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)

    for options, caged in (((), True), (("--no-cage",), False)):
        with tempfile.TemporaryDirectory() as folder:
            s = Server(program, *options, "--lanes", "3", "--device", "cpu", "--voices", folder)
            try:
                worker, = s.workers()
                has = rights(worker)
                kernels = json.loads(s.ask("GET", "/health")[2])["kernels"]
                answer = s.ask("POST", "/v1/audio/speech", {"input": TEXT, "response_format": "pcm"})
            finally:
                s.stop()
        said = [json.loads(line) for line in s.said().splitlines() if line.startswith("{")]
        ready, = (line for line in said if line["event"] == "worker_ready")
        told = [line for line in said if line["event"] == "cage_open"]
        assert answer[0] == 200 and answer[2], answer[:2]
        assert [ready[name] for name in ("pid", "device", "kernels", "lanes")] == [worker, "cpu", kernels, 3], ready
        assert has["Seccomp"] == ("2" if caged else "0") and has["NoNewPrivs"] == str(int(caged)), (options, has)
        assert ("calls" in ready["cage"]) == caged and bool(told) == (ready["cage"] != "files, network, calls"), said
        assert caged or (told[0]["missing"] == "files, network, calls" and told[0]["why"] == "--no-cage"), told


def a_model_that_breaks_is_opened_again(program, checkpoint):
    """In the middle of a step: who has heard nothing begins again, whatever became of the worker."""
    answers = []
    speech = {"input": TEXT, "response_format": "pcm", "max_new_tokens": 3}
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model")
        shutil.copytree(checkpoint, model)
        weights = os.path.join(model, "model.safetensors")
        with open(weights, "rb") as f:
            whole = f.read()
        s = Server(program, "--lanes", "2", "--device", "cpu", "-m", model)
        try:
            w = Socket(s)
            w.send({"type": "session.config"})
            w.send({"type": "input.text", "text": TEXT[:7]})
            w.until("audio.start")  # and the next frame waits for text
            worker, = s.workers()
            os.kill(worker, signal.SIGSTOP)
            t = threading.Thread(target=lambda: answers.append(s.ask("POST", "/v1/audio/speech", speech)))
            t.start()
            assert wait_for(lambda: s.metric("requests_running") == 2)
            w.send({"type": "input.text", "text": TEXT[7:] * 9})
            time.sleep(0.1)
            os.truncate(weights, 4096)
            os.kill(worker, signal.SIGCONT)
            assert wait_for(lambda: s.metric("worker_deaths_total") > 0, 20)
            with open(weights, "r+b") as f:
                f.write(whole)
            messages, _ = w.until("session.done")
            error, = (m for m in messages if m["type"] == "error")
            assert error["partial_audio"] and error["error"]["type"] == "overloaded_error", error
            w.close()
            t.join(30 * PATIENCE)
        finally:
            code = s.stop()
    assert answers and answers[0][0] == 200 and len(answers[0][2]) == 3 * 3840, answers
    assert code == 0 and '"worker_refused"' in s.said(), s.said()


def a_session_holds_a_mebibyte_of_text(s):
    w = Socket(s)
    w.send({"type": "session.config", "split_granularity": "sentence"})
    assert w.receive()["type"] == "session.created"
    for _ in range(9):  # a sentence without an end
        w.send({"type": "input.text", "text": "x" * 120000})
    answer = w.receive()
    assert answer["error"]["param"] == "text" and "more than 1 MiB" in answer["error"]["message"], answer
    w.send({"type": "input.cancel"})
    w.close()


def a_session_outlives_the_worker(s):
    config = {"language": "English", "max_new_tokens": 2}
    w = Socket(s)
    w.configure(**config)
    old = s.workers()
    os.kill(old[0], signal.SIGKILL)
    assert wait_for(lambda: w.configure(**config) and s.workers() != old and s.ask("GET", "/ready")[0] == 200, 60, 0.1)
    w.send({"type": "input.text", "text": TEXT})
    w.send({"type": "input.done"})
    messages, sound = w.until("session.done")
    assert messages[-2]["type"] == "audio.done" and not messages[-2]["error"] and sound, messages
    w.close()


def an_utterance_that_ends_early_is_over(s):
    w = Socket(s)
    w.send({"type": "session.config", "max_new_tokens": 2})
    text = {"type": "input.text", "text": "The quick brown fox jumps over the lazy"}
    for after, index in (("input.done", 0), ("input.cancel", 2)):
        w.send(text)  # with no end, but the speech has one
        messages, _ = w.until("session.done")
        assert messages[-1]["utterance_index"] == index and messages[-2]["finish"] == "max_frames", messages
        w.send(text)
        w.send({"type": after})
        if after == "input.cancel":
            assert w.receive()["utterance_index"] == index
        w.send({"type": "input.text", "text": TEXT})
        w.send({"type": "input.done"})
        messages, _ = w.until("session.done")
        assert [m["type"] for m in messages] == ["audio.start", "audio.done", "session.done"], messages
        assert all(m["utterance_index"] == index + 1 for m in messages), messages
    w.send({"type": "input.cancel"})
    assert w.receive()["type"] == "audio.cancelled"  # and nothing between
    w.close()


def a_long_batch_is_written_as_it_is_read(s):
    """The front end holds each sound once, not the whole answer in base64 beside it."""
    text = "The quick brown fox jumps over the lazy dog near the river bank. " * 4
    fields = {"input": text, "response_format": "pcm", "sample_rate": 48000, "sample_format": "f32", "seed": 2}
    before = s.memory_kb()
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=100 * PATIENCE)
    c.request("POST", "/v1/audio/speech/batch", json.dumps({"items": [fields] * 4 + [{"input": ""}]}),
              {"Content-Type": "application/json"})
    answer = c.getresponse()  # its head: all sounds are there
    most = s.memory_kb()
    results = json.loads(answer.read())["results"]
    sounds = [base64.b64decode(r["audio_data"]) for r in results[:4]]
    assert len(set(sounds)) == 1 and len(sounds[0]) > 1500000 and results[4]["status"] == "error", results[4]
    assert most - before < 2 * 4 * len(sounds[0]) / 1024, (before, most, len(sounds[0]))  # huge pages round up
    c.close()


def nobody_waits_but_lanes_are_given(program):
    s = Server(program, "--lanes", "1", "--queue", "0", "-q")
    try:
        assert s.ask("GET", "/ready")[0] == 200
        assert s.speak(input=TEXT, max_new_tokens=2)[0] == 200
        w = Socket(s)
        w.send({"type": "session.config"})
        w.send({"type": "input.text", "text": "The quick brown fox"})
        w.until("audio.start")
        assert s.ask("GET", "/ready")[0] == 503 and s.speak(input=TEXT)[0] == 503
        w.close()
        assert wait_for(lambda: s.ask("GET", "/ready")[0] == 200)
    finally:
        assert s.stop() == 0


def an_utterance_is_refused_once(s):
    """s is full."""
    w = Socket(s)
    w.send({"type": "session.config"})
    w.send({"type": "input.text", "text": TEXT})
    messages, _ = w.until("session.done")
    assert [m["type"] for m in messages] == ["session.created", "error", "session.done"], messages
    assert messages[1]["error"]["type"] == "overloaded_error", messages
    w.send({"type": "input.text", "text": TEXT})
    w.send({"type": "input.done"})
    w.send({"type": "input.cancel"})
    m = w.receive()
    assert m["type"] == "audio.cancelled" and m["utterance_index"] == 1, m
    w.close()


def fields_of_a_voice_are_checked(s):
    for field, value in (("ref_text", b"a\0b"), ("ref_text", b"\xff"), ("speaker_description", b"\xc3"),
                         ("consent", "y" * 4097), ("ref_text", "y" * 4097)):
        status, _, body = s.ask("POST", "/v1/audio/voices", *form({"name": "x", "audio_sample": tone(2), field: value}))
        assert status == 400 and json.loads(body)["error"]["param"] == field, (field, value[:9], status, body)
    sound = base64.b64encode(tone(2)).decode()
    for field, value in (("name", 5), ("ref_text", 5), ("consent", True), ("overwrite", 1),
                         ("speaker_description", ["x"]), ("speaker_description", "z" * 4097)):
        status, _, body = s.ask("POST", "/v1/audio/voices", {"name": "x", "audio_sample": sound, field: value})
        assert status == 400 and json.loads(body)["error"]["param"] == field, (field, status, body)


def a_voice_outlives_bad_recordings(s, folder):
    sound = tone(2)
    assert s.ask("POST", "/v1/audio/voices", *form({"name": "Bea", "audio_sample": sound}))[0] == 200
    before, pcm = os.listdir(folder), s.speak(input=TEXT, voice="bea", max_new_tokens=2)[2]
    assert len(before) == 1 and pcm
    bad = form({"name": "Bea", "audio_sample": sound[:44], "overwrite": "true"})
    assert s.ask("POST", "/v1/audio/voices", *bad)[0] == 400
    assert os.listdir(folder) == before and s.speak(input=TEXT, voice="bea", max_new_tokens=2)[2] == pcm


def damaged_mp3(mp3, n):
    """n frames behind three good ones, with whole heads and nothing else that makes sense."""
    frames, at = [], next(i for i in range(len(mp3)) if mp3[i] == 255 and mp3[i + 1] & 0xe0 == 0xe0)
    while at + 4 < len(mp3):  # MPEG 2 layer III at 24 kHz
        kbits = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160][mp3[at + 2] >> 4]
        size = 72000 * kbits // 24000 + (mp3[at + 2] >> 1 & 1)
        frames.append(mp3[at:at + size])
        at += size
    bad = [f[:4] + bytes(b ^ (0x5a if i % 3 == 0 else 0xff) for i, b in enumerate(f[4:])) for f in frames[3:-1]]
    return b"".join(frames[:3] + (bad * (n // len(bad) + 1))[:n])


def complaints_of_a_decoder_hold_nobody_up(s):
    """More of them than a pipe takes, in as many recordings as are worked on at a time; then a good one."""
    mp3 = s.speak(input=TEXT, voice="bea", max_new_tokens=24, response_format="mp3")[2]
    for i in range(3):
        bad = form({"name": f"Bad{i}", "audio_sample": damaged_mp3(mp3, 1150)})
        assert s.ask("POST", "/v1/audio/voices", *bad)[0] in (200, 400)
    assert s.ask("POST", "/v1/audio/voices", *form({"name": "Good", "audio_sample": tone(2)}))[0] == 200
    for name in ("Bad0", "Bad1", "Bad2", "Good"):
        s.ask("DELETE", f"/v1/audio/voices/{name}")


def maker_of(s):
    """The process that makes a voice; until it is that, the front end waits for it."""
    for pid in s.workers():
        try:
            with open(f"/proc/{pid}/cmdline") as f:
                if "serve-clone" in f.read():
                    return pid
        except OSError:
            pass
    return None


def a_name_is_made_once(s, folder):
    """Two uploads of a new name at one time: the second is told."""
    first, maker = [], None
    long = tone(2 if SANITIZED else 20)  # so that it is still being made when it is stopped
    t = threading.Thread(target=lambda: first.append(
        s.ask("POST", "/v1/audio/voices", *form({"name": "Cleo", "audio_sample": long}))))
    t.start()
    try:
        assert wait_for(lambda: maker_of(s), step=0.001)
        maker = maker_of(s)
        os.kill(maker, signal.SIGSTOP)
        with open(f"/proc/{maker}/cmdline") as f:  # which everybody may read
            assert "Cleo" not in f.read()
        for more in ({}, {"overwrite": "true"}):
            second = form({"name": "cleo", "audio_sample": tone(3), **more})
            status, _, body = s.ask("POST", "/v1/audio/voices", *second)
            assert status == 409 and json.loads(body)["error"]["param"] == "name", body
    finally:
        if maker:
            os.kill(maker, signal.SIGCONT)
        t.join()
    assert first[0][0] == 200, first
    assert s.ask("DELETE", "/v1/audio/voices/Cleo")[0] == 200


def voices_of_the_program_are_known(program, model):
    """By the name that is in the file, and by that of the file; two files of one name are two voices."""
    with tempfile.TemporaryDirectory() as folder:
        sound = os.path.join(folder, "heard.wav")
        with open(sound, "wb") as f:
            f.write(tone(2))
        for file, more in (("ann", []), ("bob", ["--name", "Twin"]), ("cleo", ["--name", "Twin"])):
            clone = [program, "clone", "-q", "-m", model, sound, "-o", f"{folder}/{file}.voice", *more]
            subprocess.run(clone, check=True)
        s = Server(program, "--lanes", "1", "-m", model, "--voices", folder)
        try:
            listed = json.loads(s.ask("GET", "/v1/audio/voices?legacy=true")[2])["voices"]
            assert sorted(listed) == ["Twin", "ann", "cleo"], listed
            for name in ("Ann", "twin", "bob", "CLEO"):
                assert s.speak(input=TEXT, voice=name, max_new_tokens=1)[0] == 200, name
            assert s.speak(input=TEXT, voice="heard")[0] == 400
        finally:
            assert s.stop() == 0


def a_voice_is_its_uploaders(program, model):
    """Everybody with a key may speak with it; who has not uploaded it neither replaces nor deletes it."""
    with tempfile.TemporaryDirectory() as folder:
        voices, keys, sound = folder + "/voices", folder + "/keys", folder + "/heard.wav"
        with open(keys, "w") as f:
            f.write("ours\ntheirs\n")
        with open(sound, "wb") as f:
            f.write(tone(2))
        os.mkdir(voices)
        subprocess.run([program, "clone", "-q", "-m", model, sound, "-o", voices + "/shared.voice"], check=True)
        s = Server(program, "--lanes", "1", "-m", model, "--voices", voices, "--api-key-file", keys)
        try:
            ours, theirs = ({"Authorization": "Bearer " + key} for key in ("ours", "theirs"))

            def upload(key, **more):
                body, headers = form({"name": "Dora", "audio_sample": tone(2), **more})
                return s.ask("POST", "/v1/audio/voices", body, {**headers, **key})

            def drop(key, name="dora"):
                return s.ask("DELETE", "/v1/audio/voices/" + name, headers=key)[0]
            status, _, body = upload(ours, consent="yes")
            assert status == 200 and "owner" not in json.loads(body), body
            status, _, body = upload(theirs, overwrite="true")
            assert status == 403 and "not uploaded with this key" in json.loads(body)["error"]["message"], body
            assert drop(theirs) == 403 and drop(theirs, "shared") == 403
            assert s.ask("POST", "/v1/audio/speech", {"input": TEXT, "voice": "Dora", "max_new_tokens": 1},
                         headers=theirs)[0] == 200
            assert upload(ours, overwrite="true")[0] == 200  # and says nothing of a consent any more
            listed = json.loads(s.ask("GET", "/v1/audio/voices/Dora", headers=theirs)[2])
            assert "consent" not in listed and "owner" not in listed, listed
            assert drop(ours) == 200
        finally:
            assert s.stop() == 0


def a_full_folder_still_replaces(program, model):
    with tempfile.TemporaryDirectory() as folder:
        sound, first = folder + "/heard.wav", folder + "/v000.voice"
        with open(sound, "wb") as f:
            f.write(tone(2))
        subprocess.run([program, "clone", "-q", "-m", model, sound, "-o", first], check=True)
        for i in range(1, 1000):
            shutil.copy(first, f"{folder}/v{i:03}.voice")
        s = Server(program, "--lanes", "1", "-q", "-m", model, "--voices", folder)
        try:
            assert len(json.loads(s.ask("GET", "/v1/audio/voices?legacy=true")[2])["voices"]) == 1000
            voice = {"audio_sample": tone(2), "overwrite": "true"}
            assert s.ask("POST", "/v1/audio/voices", *form({**voice, "name": "another"}))[0] == 507
            assert s.ask("POST", "/v1/audio/voices", *form({**voice, "name": "v777"}))[0] == 200
        finally:
            assert s.stop() == 0


def a_voice_that_cannot_be_kept(program, model):
    """The fault is the server's, and the client learns no path of it."""
    with tempfile.TemporaryDirectory() as folder:
        voices = os.path.join(folder, "voices")
        os.mkdir(voices)
        s = Server(program, "--lanes", "1", "-m", model, "--voices", voices)
        try:
            os.rmdir(voices)
            status, _, body = s.ask("POST", "/v1/audio/voices", *form({"name": "Bea", "audio_sample": tone(2)}))
            error = json.loads(body)["error"]
            assert status == 500 and error["type"] == "server_error" and not error["param"], body
            assert folder not in error["message"] and "such file" in error["message"], body
        finally:
            assert s.stop() == 0


def a_voice_has_one_file(program, s, folder):
    old, = os.listdir(folder)
    assert s.stop() == 0
    os.rename(os.path.join(folder, old), os.path.join(folder, "by-hand.voice"))
    left = os.path.join(folder, ".utter-0123456789abcdef")  # by a process that was killed as it wrote
    with open(left, "w"):
        os.utime(left, (0, 0))
    again = Server(program, "--lanes", "2", "-m", s.model, "--voices", folder)
    try:
        new = form({"name": "Bea", "audio_sample": tone(3), "overwrite": "true"})
        assert again.ask("POST", "/v1/audio/voices", *new)[0] == 200
        assert os.listdir(folder) == [old]
        os.remove(os.path.join(folder, old))
        status, _, answer = again.speak(input=TEXT, voice="bea")
        assert status == 500 and "voice" in json.loads(answer)["error"]["message"], answer
        assert folder.encode() not in answer, answer
        assert again.ask("DELETE", "/v1/audio/voices/Bea")[0] == 200 and os.listdir(folder) == []
    finally:
        assert again.stop() == 0 and "Sanitizer" not in again.said()


def long_answers_wait_in_a_file(program):
    """Beyond 8 MiB; without a place for files in memory, and what has no room there is refused before it is made."""
    fields = {"input": "Seven boats came home late, and nobody asked why. " * 10, "seed": 1,
              "sample_rate": 48000, "speed": 0.25}
    whole = {**fields, "response_format": "wav", "stream": False}
    with tempfile.TemporaryDirectory() as folder:
        for place in (folder, "/nowhere"):
            s = Server(program, "--lanes", "4", env={**os.environ, "TMPDIR": place})
            try:
                def files():
                    return [path for path in open_files(s.process.pid) if path.startswith(folder)]
                answers, seen = [], 0
                asker = threading.Thread(target=lambda: answers.append(s.speak(timeout=200 * PATIENCE, **whole)))
                asker.start()
                while asker.is_alive():
                    seen = max(seen, len(files()))
                    asker.join(0.05)
                status, headers, wav = answers[0]
                assert status == 200 and len(wav) > 9 << 20 and headers["X-Finish-Reason"] == "stop", headers
                assert int(headers["Content-Length"]) == len(wav)
                sizes = int.from_bytes(wav[4:8], "little"), int.from_bytes(wav[40:44], "little")
                assert sizes == (len(wav) - 8, len(wav) - 44), sizes
                assert seen == (place == folder) and not files() and os.listdir(folder) == []
                if place == folder:
                    assert s.speak(timeout=200 * PATIENCE, **fields)[2] == wav[44:]
                    told = json.loads(s.speak(timeout=200 * PATIENCE, word_timestamps=True, **whole)[2])
                    assert base64.b64decode(told["audio_data"]) == wav and len(told["words"]) == 9 * 10
                else:
                    began = s.metric("requests_total")
                    status, headers, answer = s.speak(**{**whole, "input": "A long way. " * 8000})
                    error = json.loads(answer)["error"]
                    assert status == 503 and "stream" in error["message"] and headers["retry-after"], answer
                    status, _, answer = s.ask("POST", "/v1/audio/speech/batch", {"items": [
                        {**whole, "input": "A long way. " * 8000}, {**fields, "input": TEXT}]})
                    assert [r["status"] for r in json.loads(answer)["results"]] == ["error", "success"], answer[:300]
                    assert s.metric("requests_total") == began + 1
            finally:
                assert s.stop() == 0 and "Sanitizer" not in s.said()


def long_answers_leave_room(program):
    """Of 104 descriptors they have four, whoever asks for how many long sounds: who comes has a place."""
    long = {"input": "A long way home it was. " * 150, "response_format": "pcm"}
    s = Server(program, "--lanes", "2", "-q", files=104)
    batches = []
    try:
        for items in ([{**long, "voice": "nobody"}] * 31 + [long], *[[long] * 4] * 3):
            c = http.client.HTTPConnection("127.0.0.1", s.port)
            c.request("POST", "/v1/audio/speech/batch", json.dumps({"items": items}),
                      {"Content-Type": "application/json"})
            batches.append(c)
            n = len(batches) * 4 - 3
            assert wait_for(lambda: s.metric("requests_queued") + s.metric("requests_running") == n)
            files = [fd.path for fd in os.scandir(f"/proc/{s.process.pid}/fd")
                     if os.path.islink(fd) and os.path.realpath(fd).endswith("(deleted)")]
            # one is the log; those that cannot be spoken keep none
            assert len(files) == 1 + min(n, 4), files
    finally:
        for c in batches:
            c.close()
        assert s.stop() == 0


def wrong_starts_say_why(program):
    taken = socket.create_server(("127.0.0.1", 0))
    taken_port = taken.getsockname()[1]
    with tempfile.NamedTemporaryFile("w") as keys:
        keys.write("fine\nsesame speeches=many\n")
        keys.flush()
        for options, word in ((["--port", str(taken_port)], "in use"),
                              (["--api-key-file", keys.name], "line 2")):
            said = subprocess.run([program, "serve", *options], capture_output=True, timeout=20 * PATIENCE)
            assert said.returncode == 1 and word in said.stderr.decode() and len(said.stderr.splitlines()) == 1, said
    taken.close()
    load = [program, "load", "--port", str(taken_port), "--seconds", "6000"]  # nobody listens there any more
    said = subprocess.run(load, capture_output=True, timeout=30 * PATIENCE)
    assert said.returncode == 2 and b"nobody answers" in said.stderr, said
    for options, word, code in ((["-m", "/nowhere"], "nowhere", 1), (["--host", "0.0.0.0"], "--insecure", 1),
                                (["--api-key-file", "/nowhere"], "nowhere", 1),
                                (["--voices", "/nowhere"], "make the folder first", 1),
                                (["--host", "no such host"], "--host", 1),
                                (["--wyoming", "tcp://no such host:10300"], "--wyoming", 1),
                                (["--device", "cuda:99"], "cuda", 2)):
        s = Server(program, *options)
        assert s.stop() == code and word in s.said() and len(s.said().splitlines()) == 1, (options, s.said())
