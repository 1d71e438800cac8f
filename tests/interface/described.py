# What /openapi.json and /docs say, against what the server does.
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import wave

from client import PATIENCE, Server, form

root = pathlib.Path(__file__).resolve().parents[2]


def schemas(s):
    status, headers, body = s.ask("GET", "/openapi.json")
    assert status == 200 and headers["content-type"].startswith("application/json")
    return json.loads(body)


def every_path_is_there(s):
    told = schemas(s)
    assert told["openapi"].startswith("3.1") and len(told["paths"]) > 25, len(told["paths"])
    for path, methods in told["paths"].items():
        here = path.replace("{name}", "nobody")
        status, headers, _ = s.ask("PATCH", here)
        allowed = {m.strip() for m in (headers["allow"] or "").split(",")}
        assert status == 405 and allowed == {m.upper() for m in methods}, (path, status, allowed)
        for method, o in methods.items():
            if not o.get("x-websocket") and method == "get":
                status, headers, _ = s.ask("GET", here)
                kind = next(iter(o["responses"]["200"]["content"]))
                assert status == 404 and "{name}" in path or (
                    status == 200 and headers["content-type"].startswith(kind)), (path, status)


def keys_are_told_truly(s):
    """s asks for keys."""
    for path, methods in schemas(s)["paths"].items():
        for method, o in methods.items():
            status = s.ask(method.upper(), path.replace("{name}", "nobody"), b"" if method == "post" else None)[0]
            assert (status == 401) == ("security" in o), (path, method, status)


def wrong_values(p):
    """One value on each side of what is told."""
    if "enum" in p:
        return ["no such word", 1]
    if p.get("type") == "boolean":
        return ["true", 1]
    if p.get("type") in ("integer", "number"):
        return ["1", *([p["minimum"] - 1] if "minimum" in p else []), *([p["maximum"] + 1] if "maximum" in p else [])]
    return [17, *(["a" * (p["maxLength"] + 1)] if "maxLength" in p else [])]


def right_values(p):
    if "enum" in p:
        return p["enum"]
    if p.get("type") == "boolean":
        return [True, False]
    return [p[k] for k in ("minimum", "maximum", "default") if k in p]


def every_field_is_as_told(s):
    fields = schemas(s)["components"]["schemas"]["Speech"]["properties"]
    assert len(fields) > 25 and {"input", "speed", "top_p", "markup"} <= fields.keys()
    for name, p in fields.items():
        assert p["description"], name
        for value in wrong_values(p):
            status, _, body = s.speak(**{"input": "Hi.", "max_new_tokens": 1, name: value})
            known = json.loads(body)["error"]["param"]
            assert status in (400, 404) and known == name, (name, value if len(str(value)) < 99 else "long", body[:200])
        for value in right_values(p):
            if name == "task_type" or (name == "background" and value):
                continue  # the model's own alone; what comes when the machine is idle (job/check_server)
            kind = {"bit_rate": "mp3", "sample_format": "wav"}.get(name, "pcm")
            room = {"stream": False} if name == "word_timestamps" else {}
            request = {"input": "Hi.", "max_new_tokens": 1, "response_format": kind, **room, name: value}
            status, _, body = s.speak(**request)
            other = status == 400 and json.loads(body)["error"]["param"] != name
            assert status == 200 or other, (name, value, body[:300])


def examples():
    text = (root / "server/front/page/docs.html").read_text()
    found = re.findall(r'<pre data-run="([a-z-]+)">(.*?)</pre>', text, re.S)
    return [(kind, html.unescape(body)) for kind, body in found]


def run_example(s, kind, body, command, folder):
    body = body.replace("127.0.0.1:8080", f"127.0.0.1:{s.port}")
    done = subprocess.run([*command, body], cwd=folder, capture_output=True, timeout=60 * PATIENCE)
    assert done.returncode == 0, (kind, done.stdout, done.stderr)
    return done.stdout.decode()


def examples_run(s, kinds):
    """kinds: of an example -> the command that runs it."""
    for kind, body in examples():
        if kind in kinds:
            with tempfile.TemporaryDirectory() as folder:
                said = run_example(s, kind, body, kinds[kind], folder)
                if "hello.wav" in body:
                    with wave.open(os.path.join(folder, "hello.wav")) as w:
                        assert w.getframerate() == 24000, kind
                        assert len(w.readframes(10 ** 7)) > 20000, kind
                else:
                    assert "bytes of sound" in said or re.match(r"[0-9.]+ s\n", said), (kind, said)


def examples_of_the_documents_run(s):
    assert {kind for kind, _ in examples()} == {"sh", "python", "openai", "node", "websockets", "node-socket", "upload"}
    kinds = {"python": ["python3", "-c"]}
    if shutil.which("curl"):
        kinds["sh"] = ["sh", "-ec"]
    if shutil.which("node"):
        kinds["node"] = ["node", "--input-type=module", "-e"]
    examples_run(s, kinds)


def the_upload_of_the_documents_runs(s, sound):
    """s has a base model and a folder for voices."""
    if not shutil.which("curl"):
        return
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "anna.wav"), "wb") as f:
            f.write(sound)
        body = next(body for kind, body in examples() if kind == "upload")
        body = body.replace('"input"', '"max_new_tokens": 9, "input"')  # of a model with random weights
        run_example(s, "upload", body, ["sh", "-ec"], folder)
        assert os.path.getsize(os.path.join(folder, "anna-says.wav")) > 1000


def a_voice_is_offered_where_it_can_speak(program, checkpoints, folder, sound):
    def say(s, **fields):
        status, _, body = s.speak(input="Hi.", max_new_tokens=1, **fields)
        return status, "" if status == 200 else json.loads(body)["error"]["message"]

    def served(model):
        return Server(program, "--lanes", "1", "-q", "-m", os.path.join(checkpoints, model), "--voices", folder)

    def names(s):
        told = json.loads(s.ask("GET", "/v1/audio/voices")[2])
        offered = [v["name"] for v in told["voices"] if v["kind"] == "uploaded"]
        return offered, [v["name"] for v in told["uploaded_voices"]]

    s = served("tiny06-base")
    for name in ("anna", "ryan"):  # the second is a preset of the other model
        s.ask("POST", "/v1/audio/voices", *form({"name": name, "overwrite": "true", "audio_sample": sound}))
    assert names(s) == (["anna", "ryan"], ["anna", "ryan"]) and say(s)[0] == say(s, voice="Ryan")[0] == 200
    s.stop()
    s = served("tiny06-custom_voice")
    assert names(s) == ([], ["anna", "ryan"]), names(s)
    status, why = say(s, voice="anna")
    assert status == 400 and "base models" in why, why
    assert say(s, voice="ryan")[0] == say(s, voice="alloy")[0] == 200
    s.stop()
    for name in os.listdir(folder):
        os.remove(os.path.join(folder, name))
    s = served("tiny06-base")
    assert say(s) == (400, '"voice": no voice is here yet (upload one with POST /v1/audio/voices)')
    assert "no voice 'alloy'" in say(s, voice="alloy")[1]
    s.stop()
