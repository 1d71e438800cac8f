# The pages at / and /docs in Chromium: driven by the keyboard and by clicks, measured for contrast, names, order, sizes
# and things that move. Usage: look.py PROGRAM CHECKPOINTS [FOLDER], where FOLDER gets pictures of what was seen.
# Ends with `N passed, N failed`.
import io
import json
import os
import pathlib
import sys
import tempfile
import time
import wave

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from browser import Browser  # noqa: E402
from client import Checks, Server, tone  # noqa: E402

program, checkpoints = sys.argv[1:3]
pictures = sys.argv[3] if len(sys.argv) > 3 else None
SCREENS = ((1280, 900, False), (1280, 900, True), (390, 844, False), (390, 844, True))
TEXT = "Hello there, how are you today? I can read 21 things aloud, while you watch which word is heard."
LONG = "The quick brown fox jumps over the lazy dog near the river bank. " * 12


def url(s, path="/"):
    return f"http://127.0.0.1:{s.port}{path}"


def text_of(b, name):
    return b.value(f"document.getElementById('{name}').textContent")


def seconds_of(b):
    """Where the listener is, and how much there is."""
    here, whole = text_of(b, "clock").replace("…", "").split(" / ")
    return [60 * int(m) + float(s) for m, s in (x.split(":") for x in (here, whole))]


def type_text(b, text):
    b.tab_to("text")
    b.key("a", 65, control=True)
    b.call("Input.insertText", text=text)


def named(b):
    """Controls that have no name for those who do not see them."""
    nodes = b.call("Accessibility.getFullAXTree")["nodes"]
    controls = [n for n in nodes if not n.get("ignored") and n["role"]["value"] in (
        "button", "textbox", "combobox", "slider", "spinbutton", "link", "list", "region", "searchbox")]
    assert len(controls) > 5, controls
    return [n["role"]["value"] for n in controls if n["role"]["value"] != "list" and not n.get("name", {}).get("value")]


def measure(b, name, moved=0.02):
    faults = {"contrast": b.measured("contrast"), "places": b.measured("places")}
    assert all(f["n"] > 8 and not f["bad"] for f in faults.values()), (name, faults)
    assert named(b) == [], (name, named(b))
    assert b.value("moved") <= moved, (name, "moved", b.value("moved"))
    assert not b.faults, (name, b.faults)
    outside = [u for u in b.requests if not u.startswith(("http://127.0.0.1:", "blob:", "data:"))]
    assert not outside, outside
    if pictures:
        b.picture(os.path.join(pictures, name + ".png"))


def looks_right(s):
    for width, height, dark in SCREENS:
        name = f"page-{width}-{'dark' if dark else 'light'}"
        with Browser() as b:
            b.screen(width, height, dark)
            b.go(url(s))
            measure(b, name)
            type_text(b, TEXT)
            b.key("Enter", 13, control=True)
            b.wait("globalThis.now().startsWith('how')")
            measure(b, name + "-speaks")
            b.wait("document.getElementById('state').textContent === 'Ended'")
            b.tab_to("compare")
            b.enter()
            b.wait("document.getElementById('state').textContent.startsWith('Three takes')")
            measure(b, name + "-compares")
            b.go(url(s, "/docs"))
            b.wait("document.querySelectorAll('#services h3').length === 4")
            assert f":{s.port}/v1/audio/speech" in b.value("document.querySelector('pre').textContent")
            measure(b, f"docs-{width}-{'dark' if dark else 'light'}", moved=0.05)


def tells_the_truth_of_what_is_heard(s):
    """E1: what is made in a moment is heard for long; nothing is over before it has been heard, and nothing twice."""
    with Browser() as b:
        b.screen(1280, 900)
        b.go(url(s))
        type_text(b, LONG)
        b.tab_to("speak")
        b.enter()
        b.wait("document.getElementById('figures').textContent.includes('made in')")
        here, whole = seconds_of(b)
        assert whole > 25 and here < whole / 2 and b.state() == "Playing", (here, whole, b.state())
        assert b.value("document.getElementById('stop').ariaDisabled") == "false"
        began, first = time.time(), seconds_of(b)[0]
        time.sleep(3)
        ran = seconds_of(b)[0] - first
        assert abs(ran - (time.time() - began)) < 0.35, ran
        b.tab_to("speak")  # a second time: the first one ends
        b.enter()
        b.wait("document.getElementById('takes').children.length === 2")
        b.wait("document.getElementById('figures').textContent.includes('made in')")
        assert seconds_of(b)[0] < whole / 2
        assert b.value("document.querySelectorAll('#takes [aria-current=true]').length") == 1
        b.tab_to("play")
        b.enter()
        assert b.state() == "Paused" and text_of(b, "play") == "Play"
        paused = seconds_of(b)[0]
        time.sleep(0.4)
        assert seconds_of(b)[0] == paused
        b.tab_to("position")
        b.key("End", 35)
        b.key("ArrowLeft", 37)
        b.tab_to("play")
        b.enter()
        b.wait("document.getElementById('state').textContent === 'Ended'", 20)
        here, whole = seconds_of(b)
        assert here == whole and b.value("document.getElementById('stop').ariaDisabled") == "true"
        b.tab_to("speak")
        b.enter()
        b.wait("document.getElementById('state').textContent === 'Speaking'")
        b.key("Escape", 27)
        assert b.state() == "Stopped" and b.value("document.getElementById('stop').ariaDisabled") == "true"
        assert not b.faults, b.faults


def marks_the_word_that_is_heard(s):
    told = json.loads(s.ask("POST", "/v1/audio/speech", {"input": TEXT, "stream": False, "word_timestamps": True,
                                                         "response_format": "pcm"})[2])["words"]
    with Browser() as b:
        b.screen(1280, 900)
        b.go(url(s))
        type_text(b, TEXT)
        b.key("Enter", 13, control=True)
        b.wait("document.getElementById('figures').textContent.includes('made in')")
        checked = set()
        while b.state() == "Playing":
            word, clock = b.value("[now(), document.getElementById('clock').textContent]")
            here = float(clock.split(":")[1].split(" ")[0])
            # The clock shows tenths: a word that ends or begins within these is not decided.
            sure = [w for w in told if w["start"] + 0.02 <= here and here + 0.12 <= w["end"]]
            if word and sure:
                assert word == sure[0]["word"], (word, sure, here)
                checked.add(word)
        assert len(checked) > 5, checked
        b.click(*b.value("""(() => {
            const text = document.getElementById('said').firstChild, range = new Range();
            const at = text.data.indexOf('aloud');
            range.setStart(text, at);
            range.setEnd(text, at + 5);
            const box = range.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2];
        })()"""))
        b.wait("now() === 'aloud'", 3)
        want = next(w for w in told if w["word"] == "aloud")["start"]
        assert b.state() == "Playing" and abs(seconds_of(b)[0] - want) < 0.6, (seconds_of(b), want)
        b.tab_to("position")
        b.key("Home", 36)
        for _ in range(3):
            b.key("ArrowRight", 39)
        b.wait("document.getElementById('state').textContent === 'Ended'", 20)
        assert not b.faults, b.faults


def takes_stay_and_leave(s):
    with Browser() as b:
        b.screen(1280, 900)
        b.go(url(s))
        type_text(b, "Caf\u00e9 \U0001f600, 21 things.")
        b.value("(e => { e.value = '1.5'; e.dispatchEvent(new Event('input', { bubbles: true })) })"
                "(document.getElementById('speed'))")
        b.key("Enter", 13, control=True)
        b.wait("document.getElementById('state').textContent === 'Ended'")
        seconds = seconds_of(b)[1]
        time.sleep(0.3)
        b.reload()
        assert b.value("document.getElementById('text').value") == "Caf\u00e9 \U0001f600, 21 things."
        assert b.value("document.getElementById('speed').value") == "1.5" and "18 of 100,000" in text_of(b, "counter")
        assert b.value("document.getElementById('takes').children.length") == 1 and seconds_of(b)[1] == seconds
        assert text_of(b, "said") == "Caf\u00e9 \U0001f600, 21 things."
        b.tab_to("play")
        b.enter()
        b.wait("document.getElementById('state').textContent === 'Playing' && now()")
        for kind, begin in (("wav", b"RIFF"), ("mp3", None), ("flac", b"fLaC"), ("opus", b"OggS"), ("aac", None)):
            b.value(f"document.getElementById('format').value = '{kind}'")
            b.value("document.querySelector('#takes .does button:nth-child(2)').click()", gesture=True)
            path = os.path.join(b.downloads, f"caf\u00e9-21-things.{kind}")
            b.until(lambda: os.path.exists(path) and os.path.getsize(path) > 2000, 10)
            data = open(path, "rb").read()
            assert begin is None or data.startswith(begin), (kind, data[:8])
            if kind == "wav":
                with wave.open(io.BytesIO(data)) as w:
                    assert abs(w.getnframes() / w.getframerate() - seconds) < 0.1
        b.value("document.querySelector('#takes .does button:nth-child(3)').click()", gesture=True)
        b.wait("document.getElementById('kept').hidden")
        b.reload()
        assert b.value("document.getElementById('takes').children.length") == 0 and not b.faults, b.faults


def speaks_with_people(s):
    """E4: faults in words for people; s is stopped by this."""
    with Browser() as b:
        b.screen(1280, 900)
        b.go(url(s))
        type_text(b, "   ")
        b.key("Enter", 13, control=True)
        assert b.state() == "Write something first." and b.value("document.activeElement.id") == "text"
        type_text(b, "x" * 100001)
        b.key("Enter", 13, control=True)
        assert b.state() == "The text is too long: at most 100,000 characters."
        type_text(b, "Hello.")
        b.value("document.getElementById('language').replaceChildren(new Option('x', 'klingon'))")
        b.key("Enter", 13, control=True)
        b.wait("document.getElementById('state').textContent.startsWith('The language')")
        assert '"' not in b.state() and b.value("document.getElementById('takes').children.length") == 0, b.state()
        b.value("document.getElementById('language').replaceChildren(new Option('x', 'auto'))")
        s.stop()
        b.key("Enter", 13, control=True)
        b.wait("document.getElementById('state').textContent.startsWith('The server does not answer')")


def asks_for_a_key(s):
    with Browser() as b:
        b.screen(390, 844)
        b.go(url(s))
        assert b.state().startswith("This server asks for an API key") and b.value("document.activeElement.id") == "key"
        measure_but_faults(b)
        b.call("Input.insertText", text="sesame")
        b.enter()
        b.wait("document.getElementById('voice').options.length > 1")
        type_text(b, "Hello.")
        b.key("Enter", 13, control=True)
        b.wait("document.getElementById('state').textContent === 'Ended'")
        b.reload()
        assert b.value("document.getElementById('voice').options.length") > 1


def measure_but_faults(b):
    b.faults.clear()  # 401 is one, for the browser
    measure(b, "key-390-light")


def knows_its_model(s, voices):
    """E2, E3: a base model without a voice, then with one."""
    with tempfile.TemporaryDirectory() as folder, Browser("--use-fake-ui-for-media-stream",
                                                          "--use-fake-device-for-media-stream") as b:
        b.screen(390, 844)
        b.go(url(s))
        assert not b.value("document.getElementById('instructions').checkVisibility()")
        assert b.value("document.getElementById('cloning').checkVisibility()")
        measure(b, "base-390-light")
        type_text(b, "Hello.")
        b.key("Enter", 13, control=True)
        assert "make one below" in b.state() and b.value("document.activeElement.id") == "name"
        b.tab_to("upload")
        b.enter()
        assert text_of(b, "voice-state") == "Record something, or choose a sound file."
        with open(os.path.join(folder, "anna.wav"), "wb") as f:
            f.write(tone(2))
        node = b.call("Runtime.evaluate", expression="document.getElementById('file')")["result"]["objectId"]
        b.call("DOM.setFileInputFiles", files=[f.name], objectId=node)
        b.tab_to("name")
        b.call("Input.insertText", text="anna")
        b.tab_to("upload")
        b.enter()
        b.wait("document.getElementById('voice-state').textContent === 'The voice anna is there, and chosen.'")
        assert b.value("document.getElementById('voice').value") == "anna" and os.listdir(voices)
        b.enter()
        b.wait("!document.getElementById('replace').hidden")
        assert text_of(b, "voice-state") == "There is a voice of this name already."
        b.tab_to("replace")
        b.enter()
        b.wait("document.getElementById('voice-state').textContent.startsWith('The voice anna is there')")
        b.tab_to("record")
        b.enter()
        time.sleep(2.5)
        b.enter()
        b.wait("document.getElementById('voice-state').textContent.startsWith('Recorded 2')")


def describes_a_voice(s):
    with Browser() as b:
        b.screen(1280, 900, True)
        b.go(url(s))
        assert not b.value("document.getElementById('voice').checkVisibility()")
        assert text_of(b, "instructions-label") == "Describe the voice"
        type_text(b, "Hello.")
        b.key("Enter", 13, control=True)
        assert b.state() == "Describe the voice first." and b.value("document.activeElement.id") == "instructions"
        measure(b, "design-1280-dark")


def main():
    checks = Checks()
    s = Server(program, "--lanes", "4", "-q")
    for test in (looks_right, tells_the_truth_of_what_is_heard, marks_the_word_that_is_heard, takes_stay_and_leave,
                 speaks_with_people):
        checks.run(test.__name__, test, s)
    s.stop()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "keys"), "w") as f:
            f.write("sesame\n")
        s = Server(program, "--lanes", "2", "-q", "--api-key-file", os.path.join(folder, "keys"))
        checks.run("asks_for_a_key", asks_for_a_key, s)
        s.stop()
        os.mkdir(voices := os.path.join(folder, "voices"))
        s = Server(program, "--lanes", "2", "-q", "-m", os.path.join(checkpoints, "tiny06-base"), "--voices", voices)
        checks.run("knows_its_model", knows_its_model, s, voices)
        s.stop()
    s = Server(program, "--lanes", "2", "-q", "-m", os.path.join(checkpoints, "tiny17-voice_design"))
    checks.run("describes_a_voice", describes_a_voice, s)
    s.stop()
    sys.exit(checks.end())


main()
