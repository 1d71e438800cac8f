# Programs that others wrote, pointed at the server as they are. Usage: test_clients.py PROGRAM [WORDS of
# the names of tests]; needs curl, ffmpeg, and the packages of requirements.txt. Ends with `N passed, N failed`.
import asyncio
import importlib
import importlib.util
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import wave

root = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(root / "tests/server"), str(root / "tests/interface")]
import described  # noqa: E402
from client import Checks, Server  # noqa: E402

TEXT = "Hello there, how are you today?"


def curl_and_ffmpeg(s):
    want = len(s.speak(input=TEXT)[2]) / 48000
    for kind in ("wav", "mp3", "opus", "flac", "aac"):
        body = json.dumps({"input": TEXT, "response_format": kind})
        sound = subprocess.run(["curl", "-sSf", "-H", "Content-Type: application/json", "-d", body,
                                f"http://127.0.0.1:{s.port}/v1/audio/speech"], check=True, capture_output=True).stdout
        decoded = subprocess.run(["ffmpeg", "-v", "error", "-i", "-", "-f", "s16le", "-ar", "24000", "-ac", "1", "-"],
                                 input=sound, check=True, capture_output=True)
        # Within one frame of 80 ms; mp3 and aac say nothing about the silence that their coding adds.
        assert decoded.stderr == b"" and abs(len(decoded.stdout) / 48000 - want) < 0.09, (kind, decoded)


def curl_uploads_with_continue(s):
    with tempfile.NamedTemporaryFile(suffix=".wav") as f:
        f.write(b"RIFF" + b"x" * 2000000)
        f.flush()
        answer = subprocess.run(["curl", "-sS", "-F", "name=x", "-F", f"audio_sample=@{f.name}", "-m", "5",
                                 f"http://127.0.0.1:{s.port}/v1/audio/voices"], check=True, capture_output=True)
    assert "only a base model" in json.loads(answer.stdout)["error"]["message"], answer


def websockets_cancels_and_goes_on(s):
    import websockets

    async def talk():
        async with websockets.connect(f"ws://127.0.0.1:{s.port}/v1/audio/speech/stream") as w:
            await w.send(json.dumps({"type": "session.config", "voice": "alloy"}))
            for word in (TEXT * 9).split():
                await w.send(json.dumps({"type": "input.text", "text": word + " "}))
            await w.send(json.dumps({"type": "input.done"}))
            while not isinstance(await w.recv(), bytes):
                pass
            await w.send(json.dumps({"type": "input.cancel"}))
            await w.send(json.dumps({"type": "input.text", "text": TEXT}))
            await w.send(json.dumps({"type": "input.done"}))
            types, sound = [], 0
            while not types or types[-1] != "session.done":
                m = await w.recv()
                if isinstance(m, bytes):
                    sound += len(m) if "audio.cancelled" in types else 0
                else:
                    types.append(json.loads(m)["type"])
            assert types[-4:] == ["audio.cancelled", "audio.start", "audio.done", "session.done"] and sound > 50000
    asyncio.run(asyncio.wait_for(talk(), 30))


def the_agent_of_the_examples(s):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "agent.wav")
        subprocess.run([sys.executable, root / "examples/agent/agent.py", "--url", f"http://127.0.0.1:{s.port}/v1",
                        "--out", out, "hello", "what time is it", "goodbye"],
                       check=True, capture_output=True, timeout=90)
        with wave.open(out) as w:
            assert w.getnframes() / w.getframerate() > 4


def the_description_is_openapi(s):
    import openapi_spec_validator
    openapi_spec_validator.validate(described.schemas(s))


def examples_of_the_documents_run(s):
    described.examples_run(s, {"openai": [sys.executable, "-c"], "websockets": [sys.executable, "-c"]})


def give_up(signum, frame):
    raise TimeoutError


def main():
    signal.signal(signal.SIGALRM, give_up)
    checks, s = Checks(), Server(sys.argv[1])
    tests = [curl_and_ffmpeg, curl_uploads_with_continue, websockets_cancels_and_goes_on,
             the_description_is_openapi, examples_of_the_documents_run]
    if importlib.util.find_spec("pipecat"):
        tests.append(the_agent_of_the_examples)
    for module in ("openai_clients", "elevenlabs_clients", "cartesia_clients", "deepgram_clients"):
        tests += importlib.import_module(module).TESTS
    for test in tests:
        if len(sys.argv) < 3 or any(word in test.__name__ for word in sys.argv[2:]):
            signal.alarm(150)  # what hangs has failed, also where its loop does not end
            checks.run(test.__name__, test, s)
            signal.alarm(0)
    s.stop()
    import wyoming_clients
    if len(sys.argv) < 3 or "wyoming" in sys.argv[2:]:
        checks.run("wyoming", wyoming_clients.home_assistant, sys.argv[1])
    import mcp_clients
    if len(sys.argv) < 3 or "mcp" in sys.argv[2:]:
        checks.run("mcp", mcp_clients.mcp_speaks, sys.argv[1])
    sys.exit(checks.end())


main()
