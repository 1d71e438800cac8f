# A long text that a cloned voice goes on through, piece by piece.
import json
import os
import subprocess
import tempfile

from client import Server, form, tone

TEXT = " ".join(["The train left the old station at noon, and nobody was told.",
                 "They looked at each other, and a man in a grey coat laughed.",
                 "It was a warm day in the middle of the summer."] * 3)


def clone(s, **fields):
    status, _, body = s.ask("POST", "/v1/audio/voices", *form({"audio_sample": tone(1), **fields}))
    assert status == 200, body


def say(program, model, voice, *options):
    """The samples of the program in a file, as of an answer that nobody hears while it is made."""
    with tempfile.NamedTemporaryFile(suffix=".raw") as file:
        subprocess.run([program, "say", "-m", model, "-v", voice, *options, "-o", file.name, TEXT],
                       stderr=subprocess.DEVNULL, check=False)  # 3: a model of random weights says less than all
        with open(file.name, "rb") as made:
            return made.read()


def voices_go_on(program, model):
    """carry: the samples that the program makes with --carry."""
    model = os.path.join(os.path.dirname(model), "base-ends")  # speech that ends by itself
    with tempfile.TemporaryDirectory() as folder:
        s = Server(program, "--lanes", "2", "-m", model, "--voices", folder)
        try:
            clone(s, name="b", ref_text="One tone.")
            anew, on = (say(program, model, os.path.join(folder, os.listdir(folder)[0]), *carry)
                        for carry in ([], ["--carry"]))
            assert anew != on and min(len(anew), len(on)) > 0
            assert s.speak(input=TEXT, voice="b", stream=False)[2] == anew
            assert s.speak(input=TEXT, voice="b", stream=False, carry=True)[2] == on
            # What is heard at once is said again less often.
            assert s.speak(input=TEXT, voice="b", carry=True)[2] != s.speak(input=TEXT, voice="b")[2]
            clone(s, name="x")
            status, _, body = s.speak(input=TEXT, voice="x", carry=True)
            assert status == 400 and "transcript" in json.loads(body)["error"]["message"], (status, body)
            assert s.stop() == 0
        finally:
            s.stop()
