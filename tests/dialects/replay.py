# The tests of tests/dialects/run. Usage: replay.py PROGRAM CHECKPOINTS
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
import cartesia  # noqa: E402
import day  # noqa: E402
import deepgram  # noqa: E402
import elevenlabs  # noqa: E402
import mcp_replay  # noqa: E402
import wyoming_replay  # noqa: E402
from client import SANITIZED, Checks, Server  # noqa: E402


def voices_are_mapped(program):
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump({"elevenlabs": {"theirs": "miles", "*": "clara"}, "*": {"both": "clara"}}, f)
        f.flush()
        s = Server(program, "--lanes", "1", "--voice-map", f.name)
        for name, ours in (("theirs", "miles"), ("both", "clara"), ("nobody", "clara"), ("miles", "miles")):
            sound = s.ask("POST", f"/v1/text-to-speech/{name}?output_format=pcm_24000", {"text": "Hi.", "seed": 1})[2]
            assert sound == s.speak(input="Hi.", voice=ours, seed=1)[2], name
        assert s.stop() == 0
        f.seek(0)
        f.write('{"elevenlabs": 1}' + " " * 99)
        f.flush()
        s = Server(program, "--voice-map", f.name)
        assert s.stop() == 1 and "must be an object of objects" in s.said(), s.said()


def main():
    checks, program = Checks(), sys.argv[1]
    s = Server(program, "--lanes", "4")
    long_speech = (cartesia.cartesia_sounds_as_asked, deepgram.deepgram_sounds_as_asked)
    for test in elevenlabs.TESTS + cartesia.TESTS + deepgram.TESTS:
        if test in long_speech and SANITIZED:
            print(f"SKIP dialects/{test.__name__}: minutes of speech under sanitizers; the plain build runs it")
        else:
            checks.run(test.__name__, test, s)
    checks.run("ends_cleanly", lambda: s.stop() == 0 or 1 / 0)
    checks.run("voices_are_mapped", voices_are_mapped, program)
    wyoming_replay.run(checks, program, sys.argv[2])
    for test in mcp_replay.TESTS:
        checks.run(test.__name__, test, program)
    if not SANITIZED:
        day.run(checks, program, 80, 20)
    sys.exit(checks.end())


main()
