"""How well the built-in voice's words are timed, and how well it tells which it has skipped.

    python3 word_times.py teacher  --texts heldout_words.txt --out run   # led along the teacher's recordings
    python3 word_times.py skipped  --texts heldout_words.txt --out run   # the same, with a word more in the text
    python3 word_times.py judged   --texts heldout_words.txt --out run   # its own speech against pocketsphinx
    python3 word_times.py whole    --texts heldout_endings.txt --out run # every word once, in order, in the sound

The truth of `teacher` and of pocketsphinx's own error are flite's segments. `--part I/N` takes every N-th text from
I on, `--but I/N` all others. Needs libflite with the voices slt and rms; `judged` pocketsphinx and its model en-us.
"""
import argparse
import array
import ctypes
import json
import os
import random
import re
import subprocess
import sys
import unicodedata
import wave

HERE = os.path.dirname(os.path.abspath(__file__))
TREE = os.path.join(HERE, "..", "..")
sys.path.insert(0, os.path.join(HERE, "..", "train"))
import shapes  # noqa: E402  (nothing but tables)
import spoken  # noqa: E402

RATE, TEACHER_RATE, FRAME = shapes.SAMPLE_RATE, 16000, shapes.FRAME
LOUD, BEFORE, AFTER = 260, 1280, 3200  # as the voice was trained: speech.py
WORD = re.compile(r"[^\W_]+(?:['’.][^\W_]+)*")
MODEL = os.environ.get("POCKETSPHINX_MODEL", "/usr/share/pocketsphinx/model/en-us")
ALIGNER = os.environ.get("POCKETSPHINX", "pocketsphinx_continuous")


# ---- The teacher ----

class Teacher:
    """A voice of flite: sound as the built-in voice learnt it, and where each word begins in it, in seconds."""

    def __init__(self, source):
        load = lambda name: ctypes.CDLL(f"lib{name}.so.1", mode=ctypes.RTLD_GLOBAL)
        self.flite = load("flite")
        for name in ("flite_cmulex", "flite_usenglish"):
            load(name)
        self.flite.flite_init()
        register = getattr(load(f"flite_cmu_us_{source}"), f"register_cmu_us_{source}")
        pointer, text = ctypes.c_void_p, ctypes.c_char_p
        for name, result, arguments in (
                ("flite_synth_text", pointer, [text, pointer]), ("utt_relation", pointer, [pointer, text]),
                ("relation_head", pointer, [pointer]), ("item_next", pointer, [pointer]),
                ("path_to_item", pointer, [pointer, text]), ("item_feat_float", ctypes.c_float, [pointer, text]),
                ("delete_utterance", None, [pointer]), ("utt_wave", pointer, [pointer]),
                ("cst_wave_save_riff", ctypes.c_int, [pointer, text])):
            function = getattr(self.flite, name)
            function.restype, function.argtypes = result, arguments
        register.restype, register.argtypes = pointer, [text]
        self.voice = register(None)

    def say(self, text, path):
        """Writes the recording to `path`; the words' beginnings."""
        utterance = self.flite.flite_synth_text(spoken.spoken(text).encode(), self.voice)
        begins, end, word = [], 0.0, None
        item = self.flite.relation_head(self.flite.utt_relation(utterance, b"Segment"))
        while item:
            of = self.flite.path_to_item(item, b"R:SylStructure.parent.parent")
            if of and of != word:
                begins.append(end)
            word = of
            end = self.flite.item_feat_float(item, b"end")
            item = self.flite.item_next(item)
        self.flite.cst_wave_save_riff(self.flite.utt_wave(utterance), path.encode())
        self.flite.delete_utterance(utterance)
        moved = trim(path)
        return [begin + moved for begin in begins]


def trim(path):
    """80 ms of quiet before the speech and 200 ms behind it; by how much its beginning has moved, in seconds."""
    with wave.open(path) as file:
        sound = array.array("h", file.readframes(file.getnframes()))
    loud = [i for i, x in enumerate(sound) if abs(x) > LOUD]
    start, end = max(0, loud[0] - BEFORE), min(len(sound), loud[-1] + AFTER)
    front = BEFORE - (loud[0] - start)
    made = array.array("h", [0] * front) + sound[start:end] + array.array("h", [0] * (AFTER - (end - loud[-1])))
    with wave.open(path, "wb") as file:
        file.setparams((1, 2, TEACHER_RATE, 0, "NONE", ""))
        file.writeframes(made.tobytes())
    return (front - start) / TEACHER_RATE


# ---- The program ----

def run_tool(args, lines):
    """word_times over a list of (recording, voice, layout, seed, text): an answer for each."""
    text = "".join("\t".join(map(str, line)) + "\n" for line in lines)
    command = [os.path.join(TREE, "build", "release", "tools", "word_times"), args.model]
    command += [args.heads] if args.heads else []
    command[1:1] = ["--cuda"] if args.cuda else []
    done = subprocess.run(command, input=text.encode(), stdout=subprocess.PIPE, check=True)
    answers = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert len(answers) == len(lines)
    return answers


def texts_of(args):
    with open(args.texts, encoding="utf-8") as file:
        lines = [line.rstrip("\n") for line in file if line.strip()]
    numbered = list(enumerate(lines))
    for option, wanted in ((args.part, True), (args.but, False)):
        if option:
            first, of = map(int, option.split("/"))
            numbered = [(i, line) for i, line in numbered if (i % of == first) == wanted]
    return numbered[:args.limit]


def recordings(args, check=True):
    """(index, text, preset, path, beginnings) of each text and speaker with as many words as the teacher says."""
    os.makedirs(args.out, exist_ok=True)
    made = []
    for preset, (source, _) in shapes.SPEAKERS.items():
        teacher = Teacher(source)
        for i, text in texts_of(args):
            path = os.path.join(args.out, f"{preset}_{i:05d}.wav")
            begins = teacher.say(text, path)
            if not check or len(WORD.findall(text)) == len(begins):
                made.append((i, text, preset, path, begins))
    return made


def line_of(name, errors, unit="ms"):
    errors = sorted(errors)
    mean, most = sum(errors) / len(errors), errors[-1]
    high = errors[int(0.95 * (len(errors) - 1))]
    return f"{name:34s} {len(errors):6d} {mean:8.1f} {unit} mean {high:8.1f} 95% {most:8.1f} most"


# ---- What is measured ----

def teacher(args):
    made = recordings(args)
    for preset in shapes.SPEAKERS:
        for layout in ("full", "stream"):
            own = [m for m in made if m[2] == preset]
            answers = run_tool(args, [(m[3], preset, layout, 0, m[1]) for m in own])
            off, late, online, told = [], [], [], []
            for (_, _, _, _, begins), answer in zip(own, answers):
                assert len(answer["words"]) == len(begins) and not answer["approximate"]
                for begin, word in zip(begins, answer["words"]):
                    off.append(abs(word["start"] / RATE - begin) * 1000)
                    late.append((word["start"] / RATE - begin) * 1000)
                    online.append(abs(word["first"] - word["start"]) / RATE * 1000)
                    lead = shapes.LEAD if layout == "stream" else 0
                    told.append(word["told"] - lead - word["start"] / FRAME)
            late.sort()
            print(line_of(f"{preset} {layout}: starts", off), f"median offset {late[len(late) // 2]:.1f}")
            print(line_of("  online against final", online))
            print(line_of("  frames until told", told, "fr"), flush=True)


def planted(text, words, random_of):
    """The text with a word more behind a word that is not its last; the word's number."""
    spans = [m.span() for m in WORD.finditer(text)]
    at = random_of.randrange(1, len(spans))
    word = random_of.choice([w for w in words if w.lower() not in text.lower()])
    return text[:spans[at][0]] + word + " " + text[spans[at][0]:], at


def skipped(args):
    with open(args.texts, encoding="utf-8") as file:
        words = sorted({w for line in file for w in WORD.findall(line) if len(w) >= args.letters and w.islower()})
    random_of = random.Random(7)
    cases = []
    for i, text, preset, path, begins in recordings(args):
        if len(begins) >= 3:
            cases.append((text, None, preset, path))
            cases.append((*planted(text, words, random_of), preset, path))
    for layout in ("full", "stream"):
        answers = run_tool(args, [(c[3], c[2], layout, 0, c[0]) for c in cases])
        found = other = n_planted = wrong = n_said = 0
        for (text, at, _, _), answer in zip(cases, answers):
            told = [i for i, word in enumerate(answer["words"]) if word["skipped"]]
            if at is None:
                n_said, wrong = n_said + len(answer["words"]), wrong + len(told)
            else:
                n_planted, found, other = n_planted + 1, found + (told == [at]), other + (told not in ([at], []))
        print(f"{layout}: found {found} of {n_planted} ({100 * found / n_planted:.1f}%), another word {other}; "
              f"false alarms {wrong} of {n_said} words ({100 * wrong / n_said:.2f}%), "
              f"of {len(cases) - n_planted} utterances at most as many", flush=True)


def judged_begins(path, text, scratch):
    """Where pocketsphinx, which knows the text, hears each word begin; None: it did not find all of them."""
    words = spoken.words(text)
    with open(scratch + ".gram", "w", encoding="utf-8") as file:
        file.write("#JSGF V1.0;\ngrammar text;\npublic <text> = " + " ".join(words) + " ;\n")
    command = [ALIGNER, "-hmm", os.path.join(MODEL, "en-us"), "-dict", os.path.join(MODEL, "cmudict-en-us.dict"),
               "-jsgf", scratch + ".gram", "-infile", path, "-time", "yes", "-remove_silence", "no",
               "-remove_noise", "no", "-bestpath", "no", "-logfn", os.devnull]
    heard = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
    rows = [line.split() for line in heard]
    rows = [(re.sub(r"\(\d+\)", "", r[0]), float(r[1])) for r in rows
            if len(r) == 4 and r[0][0] not in "<[" and re.fullmatch(r"[\d.]+", r[1])]
    return [begin for _, begin in rows] if [word for word, _ in rows] == words else None


def judged(args):
    made = [m for m in recordings(args) if len(spoken.words(m[1])) == len(m[4])]
    own, teachers, lost = [], [], 0
    for i, text, preset, path, begins in made:
        scratch = os.path.join(args.out, "scratch")
        heard = judged_begins(path, text, scratch)
        lost += heard is None
        teachers += [abs(a - b) * 1000 for a, b in zip(heard or [], begins)]
        for layout in ("full", "stream"):
            sound, times = scratch + ".own.wav", scratch + ".json"
            subprocess.run([os.path.join(TREE, "build", "release", "utter"), "say", "-m", args.model, "--voice", preset,
                            "--layout", layout, "--seed", str(i), "--rate", str(TEACHER_RATE), "--times", times,
                            "-o", sound, text],
                           check=True, stderr=subprocess.DEVNULL)
            heard = judged_begins(sound, text, scratch)
            with open(times, encoding="utf-8") as file:
                words = json.load(file)["words"]
            lost += heard is None
            own += [abs(a - w["start_s"]) * 1000 for a, w in zip(heard or [], words)]
    print(line_of("pocketsphinx on the teacher", teachers))
    print(line_of("own speech against pocketsphinx", own), f"{lost} utterances that it could not align")


NASTY = ["1234567890", "https://example.org/a?b=c&d=%20e#f", "\U0001F600\U0001F469\u200d\U0001F469\u200d\U0001F467 hi",
         "Yes", "a", "... --- ...", "It’s 3.14, isn't it?", "你好,世界。 Hello!", "こんにちは、元気ですか。",
         "안녕하세요 여러분", "Привет, как дела?", "caf\u00e9 cafe\u0301", "x" * 300, "A-B-C/D_E", "e.g. i.e. U.S.A.",
         "$5.99 + 20% = ?", "«Oui», dit-il…", "¿Qué? ¡No!", "Ça va ? Très bien !", "\"quoted\" (in brackets)",
         "tab between words", "mixed 漢字 and かな and 한글 and كلمة", "!!! wow !!!", " ".join(["word"] * 1000)]


def fault_of(text, answer):
    """What is wrong with the words of an answer, or None."""
    raw, words, before, covered = text.encode(), answer["words"], 0, bytearray(len(text.encode()))
    for i, word in enumerate(words):
        at, end = word["at"], word["at"] + word["bytes"]
        if at < (words[i - 1]["at"] + words[i - 1]["bytes"] if i else 0) or end > len(raw):
            return f"word {i} stands at {at}"
        if not before <= word["start"] <= word["end"] <= answer["n_samples"]:
            return f"word {i} from {word['start']} to {word['end']} of {answer['n_samples']} behind {before}"
        before = word["start"]
        covered[at:end] = b"\1" * (end - at)
    at = 0
    for letter in text:
        bytes_of = len(letter.encode())
        if unicodedata.category(letter)[0] in "LN" and not all(covered[at:at + bytes_of]):
            return f"{letter!r} at {at} is in no word"
        at += bytes_of
    return None


def timed(word):
    return [word[key] for key in ("at", "bytes", "start", "end", "skipped")]


def whole(args):
    lines = [("-", ("clara", "miles")[i % 2], ("full", "stream")[i // 2 % 2], i, text) for i, text in texts_of(args)]
    lines += [("-", "clara", layout, 1, text) for text in NASTY for layout in ("full", "stream")]
    if args.bytes:
        lines = [(how, *line[1:]) for line in lines for how in "-="]
    faults = n_words = ended = n_skipped = 0
    before = None
    for line, answer in zip(lines, run_tool(args, lines)):
        fault = fault_of(line[4], answer) if (answer["finish"] == "eos") else None
        if line[0] == "=" and [timed(word) for word in answer["words"]] != before:
            fault = "other words than with the whole text"
        before = [timed(word) for word in answer["words"]]
        n_words, ended = n_words + len(answer["words"]), ended + (answer["finish"] == "eos")
        n_skipped += sum(word["skipped"] for word in answer["words"]) if answer["finish"] == "eos" else 0
        if fault or answer["approximate"]:
            faults += 1
            print(f"{line[4][:60]!r} {line[2]}: {fault or 'approximate'}")
    print(f"{len(lines)} utterances, {ended} ended by themselves, {n_words} words, {faults} utterances with a fault, "
          f"{n_skipped} words told as skipped")
    return 1 if faults else 0


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("measure", choices=["teacher", "skipped", "judged", "whole"])
    options.add_argument("--texts", required=True)
    options.add_argument("--out", required=True)
    options.add_argument("--model", default=os.path.join(TREE, "voice", "builtin"))
    options.add_argument("--heads", help="a file of heads in place of the model's")
    options.add_argument("--cuda", action="store_true", help="on a GPU; not of `judged`")
    options.add_argument("--part")
    options.add_argument("--but")
    options.add_argument("--limit", type=int, default=10 ** 9)
    options.add_argument("--bytes", action="store_true", help="whole: also with the text given byte by byte, the same")
    options.add_argument("--letters", type=int, default=4, help="of a word that is planted, at least")
    args = options.parse_args()
    return {"teacher": teacher, "skipped": skipped, "judged": judged, "whole": whole}[args.measure](args)


if __name__ == "__main__":
    sys.exit(main())
