"""check.py UTTER MODELS [BOOKS]: utter read with the books of make_books.py. KILLS says how often a run is killed (4),
CHAPTERS and BOMB_MB how large the large ones are. Ends with `N passed, N failed[, N skipped]`."""

import array
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import wave

utter, models = sys.argv[1:3]
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where a shell runs this in the background
here = os.path.dirname(os.path.abspath(__file__))
work = tempfile.mkdtemp()
books = sys.argv[3] if len(sys.argv) > 3 else os.path.join(work, "books")
kills = int(os.environ.get("KILLS", 4))
sanitized = "/san-" in utter
counts = {"passed": 0, "failed": 0, "skipped": 0}
environment = dict(os.environ, LC_ALL="C.UTF-8", XDG_CONFIG_HOME=work, XDG_DATA_HOME=work)
for name in ("UTTER_MODEL", "UTTER_VOICE", "UTTER_DEVICE"):
    environment.pop(name, None)


def processor_s():
    """Of all children that have ended: what others do on the machine is not in it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def check(name, good, *shown):
    counts["passed" if good else "failed"] += 1
    if not good:
        print("FAIL book/" + name, *shown, flush=True)


def skip(name, why):
    counts["skipped"] += 1
    print(f"skip book/{name}: {why}")


def run(*arguments, folder=work, env=environment, **more):
    return subprocess.run([utter, "read", *arguments], cwd=folder, env=env, capture_output=True, text=True, **more)


def book(name):
    return os.path.join(books, name)


def read(folder, name):
    with open(os.path.join(folder, name), "rb") as file:
        return file.read()


def fresh(name):
    folder = os.path.join(work, name)
    os.mkdir(folder)
    return folder


def chapters(name):
    """Title, level and text of each chapter; or the error."""
    result = run("--list", "--json", book(name))
    if result.returncode != 0:
        return result.stderr.strip()
    return [(c["title"], c["level"], c["text"]) for c in json.loads(result.stdout)["chapters"]]


ONE = ("Chapter 1", 2, "Chapter 1\n\nIt was a dark night.\n\nRain\u2014and more rain.\nNext line.")
WHOLE = {
    "nested.epub": [
        ("Part One", 1, "Part One"),
        ONE,
        ("Chapter 2", 2, "Chapter 2\n\nSofthyphen."),
        ("Section", 3, "In a section."),
        ("Chapter 3", 2, "Chapter 3\n\nCell\n\nby cell\n\nGoes on with the last."),
    ],
    "ncx.epub": [
        ("Part One", 1, "Part One"),
        ONE,
        ("Chapter 2", 2, "Chapter 2\n\nSofthyphen.\n\nIn a section."),
        ("Chapter 3", 1, "Chapter 3\n\nCell\n\nby cell\n\nGoes on with the last."),
    ],
    "no-toc.epub": [
        ("Part One", 1, "Part One\n\n" + ONE[2] + "\n\nChapter 2\n\nSofthyphen.\n\nIn a section."),
        ("Chapter 3", 1, "Chapter 3\n\nCell\n\nby cell"),
    ],
    "broken.epub": [
        ("", 1, "Not closed\n\nNeither this nor that &unknown; \u00a9 &\n\nA divEnd"),
        ("", 1, "caf\u00e9 \u201cquoted\u201d"),
        ("", 1, "wide"),
    ],
    "letters.epub": [("", 1, "One."), ("", 1, "Two.")],
    "outside.epub": [("", 1, "[&file;] [&net;] done")],
    "paths.epub": [("", 1, "Only this.")],
    "plain.txt": [
        ("", 1, "A short book by nobody at all"),
        ("Chapter 1", 1, "Chapter 1\n\nIt was a dark night. The rain fell without a break.\n\n* * *\n\nMore of it."),
        ("CHAPTER II. The day", 1, "CHAPTER II. The day\n\nIt was a bright day. Chapter 3 is not here."),
    ],
    "chapters.txt": [
        ("\u7b2c\u4e00\u7ae0 \u5f00\u59cb", 1, "\u7b2c\u4e00\u7ae0 \u5f00\u59cb\n\n\u5f88\u4e45\u4ee5\u524d\u3002"),
        ("\u7b2c\u4e8c\u7ae0", 1, "\u7b2c\u4e8c\u7ae0\n\n\u540e\u6765\u3002"),
    ],
    "zeros.txt": [("", 1, " ".join(["Words of it."] * 400) + "\n\nBefore a zero and behind.")],
    "zeros.srt": [("1", 1, " ".join(["Words of it."] * 400) + " Before a zero and behind.")],
    "wide.txt": [("", 1, "Wide text.")],
    "book.md": [
        ("One", 1, "One\n\nSome marked text with a link and code.\n\nfirst\n\nsecond"),
        ("One and a half", 2, "One and a half\n\nMore."),
        ("Two", 1, "Two\n\nEnd & end."),
    ],
    "book.html": [
        ("Eins", 1, "Eins\n\nGr\u00fc\u00dfe."),
        ("Zwei", 2, "Zwei\n\nNoch mehr.\n\nKein Kapitel\n\nEnde."),
    ],
    "subs.srt": [
        ("1", 1, "Hello there."),
        ("2", 1, "Far too many words for this."),
        ("3", 1, "Late."),
        ("4", 1, "The end."),
    ],
    "subs.vtt": [("1", 1, "Tom & Ann. 3 --> 4"), ("2", 1, "Late.")],
}
REFUSED = {
    "laughs.epub": "none of the pages that it lists is in it",
    "bomb.epub": "larger than 256 MB",
    "bombs.epub": "larger than 256 MB",
    "deep.epub": "more than 256 deep",
    "tags.epub": "more than 256 deep",
    "locked.epub": "encrypted (DRM)",
    "empty.epub": "there is no text",
    "nothing.txt": "there is no text",
    "lacks-pages.epub": "none of the pages",
    "no-package.epub": "no epub",
    "torn.epub": "not a whole epub",
    "damaged.epub": "is damaged",
    "latin.txt": "not UTF-8 at byte 3",
    "paper.pdf": "a PDF",
    "noise.txt": "it is no text",
    "endless.srt": "its subtitle 2 ends after more than 100 hours",
}


def check_parser():
    for name, wanted in WHOLE.items():
        check("parse " + name, chapters(name) == wanted, chapters(name))
    check("parse no-container.epub", chapters("no-container.epub") == WHOLE["nested.epub"])
    check("parse fonts.epub", len(chapters("fonts.epub")) == 1)
    about = json.loads(run("--list", "--json", book("nested.epub")).stdout)
    check(
        "about",
        (about["title"], about["author"], about["language"], about["cover"])
        == ("The Nested Book", "Ann Able, Bob", "en-GB", True),
        about,
    )
    for name, why in REFUSED.items():
        begin = processor_s()
        result = run("--list", book(name))
        lines = result.stderr.strip().split("\n")
        check("refuse " + name, result.returncode == 1 and len(lines) == 1 and why in lines[0], result.stderr)
        check("time of " + name, processor_s() - begin < (120 if sanitized else 30), processor_s() - begin)
    for name in ("many.epub", "many-in-one.epub"):
        got = chapters(name)
        n = int(os.environ.get("CHAPTERS", 5000))
        check(name, len(got) == n and got[n - 1][0] == f"Chapter {n}", len(got))
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    check("memory", sanitized or most < 1200, most, "MB")
    check(
        "names that climb",
        not os.path.exists("/tmp/utter-evil.xhtml") and not os.path.exists("/etc/utter-evil.xhtml"),
    )


# ---- Speech, with the voice that comes with the program ----

# Each chapter is a section of its own, and a short one.
TEXT = "\n\n".join("Chapter %d\n\nWords of number %d." % (c, c) for c in range(1, 15)) + "\n"


def frames(path):
    with wave.open(path) as file:
        return file.getnframes(), file.getframerate(), array.array("h", file.readframes(file.getnframes()))


def check_formats():
    folder = fresh("formats")
    begins = {"wav": b"RIFF", "flac": b"fLaC", "ogg": b"OggS", "opus": b"OggS", "mp3": (b"\xff", b"ID3")}
    for ending, begin in begins.items():
        result = run(book("book.md"), "-o", "b." + ending, folder=folder)
        check(
            "format " + ending,
            result.returncode == 0 and read(folder, "b." + ending).startswith(begin),
            result.stderr,
        )
    for ending in "flac", "opus", "ogg", "mp3":
        run(book("book.md"), "-o", "t." + ending, "--split", "--chapters", "2", folder=folder)
        data = read(folder, "t-0002." + ending)
        check("tags of " + ending, b"One and a half" in data and b"Ann Able" in data and b"The Marked Book" in data)
        os.unlink(os.path.join(folder, "t-0002." + ending))
    result = run(book("book.md"), "-o", "s.wav", "--split", "--json", folder=folder)
    check(
        "split",
        sorted(f for f in os.listdir(folder) if f.startswith("s-")) == [f"s-000{i}.wav" for i in (1, 2, 3)],
        result.stderr,
    )
    check("json", json.loads(result.stdout)["files"] == 3, result.stdout)
    run(book("book.md"), "-o", "c.wav", "--chapters", "2-", folder=folder)
    run(book("book.md"), "-o", "d.wav", "--chapters", "1,3", "--speed", "2", "--rate", "16000", folder=folder)
    whole, part, other = (frames(os.path.join(folder, f"{n}.wav")) for n in "bcd")
    check("chapters", 0.2 * whole[0] < part[0] < 0.8 * whole[0], whole[:2], part[:2])
    check("speed and rate", other[1] == 16000 and other[0] / 16000 < 0.5 * whole[0] / 24000, other[:2])
    run(book("book.md"), "-o", "e.wav", "--lanes", "1", folder=folder)
    check("lanes", read(folder, "e.wav") == read(folder, "b.wav"))
    check(
        "nothing left",
        sorted(os.listdir(folder))
        == sorted(["b." + e for e in begins] + [f"s-000{i}.wav" for i in (1, 2, 3)] + ["c.wav", "d.wav", "e.wav"]),
        os.listdir(folder),
    )
    for options, why in (
        (("--chapters", "4"), "there are 3 chapters"),
        (("--chapters", "2-x"), "no list of chapters"),
        (("-o", "-"), "a book goes to files"),
        (("-o", "x.m4b", "--split"), "an m4b holds all"),
        (("-o", "x.xyz"), "no sound format"),
        (("-o", "no/x.wav"), "no/x.wav"),
    ):
        result = run(book("book.md"), *options, folder=folder)
        check("refuse " + " ".join(options), result.returncode in (1, 2) and why in result.stderr, result.stderr)
    check("refusals leave nothing", not [f for f in os.listdir(folder) if "parts" in f], os.listdir(folder))


def check_markup():
    folder = fresh("markup")
    with open(os.path.join(folder, "m.txt"), "w", encoding="utf-8") as file:
        file.write("Hello there. [pause:3s] And on.\n")
    result = run("m.txt", "-o", "m.wav", "--markup", "tags", folder=folder)
    check("markup", result.returncode == 0 and frames(os.path.join(folder, "m.wav"))[0] > 4 * 24000, result.stderr)
    if sanitized:
        return  # minutes of speech
    # A chapter of two sections: a tag holds to its end, as if the other voice had been asked for.
    words = "\n\n".join("The train left at noon. " * 20 for _ in range(3))
    for name, tag, voice in (("a", "[voice:miles]", "clara"), ("b", "", "miles"), ("c", "", "clara")):
        with open(os.path.join(folder, name + ".txt"), "w", encoding="utf-8") as file:
            file.write(tag + words + "\n")
        run(name + ".txt", "-o", name + ".wav", "-v", voice, "--markup", "tags", "--chapters", "1", folder=folder)
    a, b, c = (read(folder, name + ".wav") for name in "abc")
    check("a tag holds to the end of its chapter", a == b != c, len(a), len(b), len(c))
    # What a voice file holds is part of what is kept (the file need not be one for that).
    hashes = []
    for content in "1", "2", "1":
        with open(os.path.join(folder, "x.voice"), "w", encoding="utf-8") as file:
            file.write(content)
        with open(os.path.join(folder, "v.txt"), "w", encoding="utf-8") as file:
            file.write("[voice:./x.voice]Hello.\n")
        run("v.txt", "-o", "v.wav", "--markup", "tags", folder=folder)
        lines = read(folder, "v.wav.parts/manifest.jsonl").decode().splitlines()
        hashes.append(json.loads(lines[-1])["book"])
    check("voices of a text are in the key", hashes[0] == hashes[2] != hashes[1], hashes)


def check_subtitles():
    folder = fresh("subtitles")
    result = run(book("subs.srt"), "-o", "s.wav", folder=folder)
    n, rate, samples = frames(os.path.join(folder, "s.wav"))
    loud = [
        max(map(abs, samples[int(a * rate) : int(b * rate)]), default=0)
        for a, b in ((0, 0.45), (0.55, 1.5), (6.0, 7.0))
    ]
    check("slots", loud[0] < 100 and loud[1] > 500 and loud[2] > 500, loud)
    check("hurried", "faster to fit" in result.stderr, result.stderr)
    slow = run(book("subs.srt"), "-o", "t.wav", "--fit", "1", folder=folder)
    check("late", "faster" not in slow.stderr and "begin late" in slow.stderr and n >= 6 * rate, slow.stderr)


def check_m4b():
    if not shutil.which("ffprobe"):
        skip("m4b", "no ffmpeg here")
        return
    folder = fresh("m4b")
    result = run(book("nested.epub"), folder=folder)
    probe = subprocess.run(
        ["ffprobe", "-v", "error", "-show_chapters", "-show_format", "-show_streams", "-of", "json", "nested.m4b"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    about = (
        json.loads(probe.stdout) if probe.returncode == 0 else {"chapters": [], "streams": [], "format": {"tags": {}}}
    )
    titles = [c["tags"]["title"] for c in about["chapters"]]
    check("m4b chapters", titles == [t for t, _, _ in WHOLE["nested.epub"]], titles, result.stderr)
    check(
        "m4b about",
        about["format"]["tags"].get("title") == "The Nested Book"
        and about["format"]["tags"].get("artist") == "Ann Able, Bob",
        about["format"],
    )
    check(
        "m4b cover", any(s.get("codec_name") == "png" and s["disposition"]["attached_pic"] for s in about["streams"])
    )
    run(book("nested.epub"), "-o", "n.wav", folder=folder)
    n, rate, _ = frames(os.path.join(folder, "n.wav"))
    ends = [float(c["end_time"]) for c in about["chapters"]] or [0]
    check("m4b length", abs(ends[-1] - n / rate) < 0.1, ends, n / rate)
    sizes = (
        [frames(os.path.join(folder, f"p-{i:04}.wav"))[0] / rate for i in range(1, 6)]
        if run(book("nested.epub"), "-o", "p.wav", "--split", folder=folder).returncode == 0
        else []
    )
    begins = [float(c["start_time"]) for c in about["chapters"]]
    # A chapter that stands alone ends with 0.5 s of quiet, one that another follows with 1.5.
    check("m4b places", all(abs(b - a - s - 1) < 0.05 for a, b, s in zip(begins, begins[1:], sizes)), begins, sizes)
    loud = run(book("plain.txt"), "-o", "l.wav", "--loudness", "-23", folder=folder)
    meter = subprocess.run(
        ["ffmpeg", "-nostats", "-i", "l.wav", "-af", "ebur128", "-f", "null", "-"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    lufs = float(re.findall(r"I: +(-[0-9.]+) LUFS", meter.stderr)[-1])
    check("loudness", abs(lufs + 23) < 1, lufs, loud.stderr)
    loud = run(book("plain.txt"), "-o", "m.wav", "--loudness", "-8", folder=folder)
    check("a loudness that peaks forbid", "note: 3 chapters stay up to" in loud.stderr, loud.stderr)


def check_full_disk():
    """ffmpeg that cannot write the last bytes: the run says so, and keeps what was spoken."""
    ffmpeg = shutil.which("ffmpeg")
    if not ffmpeg:
        skip("m4b on a full disk", "no ffmpeg here")
        return
    folder, tools = fresh("full"), fresh("full-tools")
    result = run(book("plain.txt"), folder=folder)
    most = os.path.getsize(os.path.join(folder, "plain.m4b")) - 1 if result.returncode == 0 else 0
    with open(os.path.join(tools, "ffmpeg"), "w", encoding="utf-8") as file:
        file.write(
            f"#!{sys.executable}\nimport os, resource, sys\n"
            f"resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most}))\n"
            f"os.execv({ffmpeg!r}, ['ffmpeg'] + sys.argv[1:])\n"
        )
    os.chmod(os.path.join(tools, "ffmpeg"), 0o755)
    more = dict(environment, PATH=tools + ":" + environment["PATH"])
    result = run(book("plain.txt"), "-o", "full.m4b", folder=folder, env=more)
    check(
        "m4b on a full disk",
        result.returncode == 2 and sorted(os.listdir(folder)) == ["full.m4b.parts", "plain.m4b"],
        result.returncode,
        result.stderr,
        os.listdir(folder),
    )


def check_without_ffmpeg():
    folder = fresh("without")
    result = run(book("book.md"), folder=folder, env=dict(environment, PATH=folder))
    check(
        "no ffmpeg",
        result.returncode == 0
        and "apt-get install ffmpeg" in result.stderr
        and sorted(os.listdir(folder)) == [f"book-000{i}.opus" for i in (1, 2, 3)],
        result.stderr,
        os.listdir(folder),
    )


# ---- Runs that end too early ----


def start(folder, *options):
    return subprocess.Popen(
        [utter, "read", "long.txt", *options], cwd=folder, env=environment, stderr=subprocess.PIPE, text=True
    )


def wait_for_entries(process, folder, n):
    manifest = os.path.join(folder, "b.wav.parts", "manifest.jsonl")
    while process.poll() is None:
        if os.path.exists(manifest) and read(folder, "b.wav.parts/manifest.jsonl").count(b'"key"') >= n:
            break
        time.sleep(0.005)


def interrupt(process):
    """Ctrl-C: what it said, and the seconds of processors that its end took, which do not hang on what else the machine
    does. It waits for nothing."""
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    check("Ctrl-C waits for nothing", time.monotonic() - begin < 20, said)
    after = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    return said, after - before - sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def check_kills(name, *options):
    """The same bytes, however often a run is killed."""
    folder, other = fresh(name + "-whole"), fresh(name + "-killed")
    for each in folder, other:
        with open(os.path.join(each, "long.txt"), "w", encoding="utf-8") as file:
            file.write(TEXT)
    out = options[options.index("-o") + 1]
    begin = time.monotonic()
    whole = run("long.txt", *options, folder=folder)
    took = time.monotonic() - begin
    chance, n_killed = random.Random(7), 0
    while n_killed < kills:
        process = start(other, *options)
        try:
            process.wait(chance.uniform(0, took))
        except subprocess.TimeoutExpired:
            process.kill()
            n_killed += 1
        process.communicate()
        if os.path.exists(os.path.join(other, out)) and not os.path.exists(os.path.join(other, out + ".parts")):
            check(name + " is whole", read(other, out) == read(folder, out))
            os.unlink(os.path.join(other, out))
    last = run("long.txt", *options, folder=other)
    check(
        name + " same bytes",
        whole.returncode == last.returncode == 0 and read(folder, out) == read(other, out),
        whole.stderr,
        last.stderr,
    )
    check(name + " nothing left", sorted(os.listdir(other)) == sorted(["long.txt", out]), os.listdir(other))
    print(f"{name}: {n_killed} runs killed, a whole one takes {took:.1f} s", flush=True)
    return folder


def check_resume(whole):
    """A run that goes on speaks only what is missing; what is damaged is spoken again."""
    folder = fresh("resume")
    shutil.copy(os.path.join(whole, "long.txt"), folder)
    process = start(folder, "-o", "b.wav")
    wait_for_entries(process, folder, 3)
    process.kill()
    process.communicate()
    lines = read(folder, "b.wav.parts/manifest.jsonl").decode().strip().split("\n")
    entries = [json.loads(line) for line in lines[1:]]
    check(
        "manifest",
        {"book", "model", "voice", "settings"} <= set(json.loads(lines[0]))
        and all({"key", "sha256", "seed", "pieces"} <= set(e) for e in entries),
        lines,
    )
    with open(os.path.join(folder, "b.wav.parts", entries[0]["key"] + ".flac"), "r+b") as file:
        file.seek(3000)
        file.write(b"damage")
    with open(os.path.join(folder, "b.wav.parts", "manifest.jsonl"), "a", encoding="utf-8") as file:
        file.write('{"key":"torn')
    result = run("long.txt", "-o", "b.wav", "--json", folder=folder)
    check(
        "resume",
        result.returncode == 0 and json.loads(result.stdout)["kept"] == len(entries) - 1,
        result.stdout,
        result.stderr,
    )
    check("resume bytes", read(folder, "b.wav") == read(whole, "b.wav"))


def check_interrupt(whole):
    folder = fresh("interrupt")
    shutil.copy(os.path.join(whole, "long.txt"), folder)
    slowest = 0
    n_all = frames(os.path.join(whole, "b.wav"))[0]
    for wanted in (0, 3, 7):
        process = start(folder, "-o", "b.wav")
        wait_for_entries(process, folder, wanted)
        time.sleep(0.05)
        said, took = interrupt(process)
        slowest = max(slowest, took)
        check(
            f"interrupt {wanted}",
            process.returncode in (130, -signal.SIGINT) and ("goes on from there" in said or process.returncode < 0),
            process.returncode,
            said,
        )
        if "are in b.wav" in said:
            n, _, samples = frames(os.path.join(folder, "b.wav"))
            first = frames(os.path.join(whole, "b.wav"))[2][:n]
            # The last samples may be the pause behind what was made.
            check("interrupt whole", 0 < n < n_all and samples[: n - 24000] == first[: n - 24000], n, n_all)
    check("interrupt time", slowest < 0.5, slowest)
    print(f"Ctrl-C: {1000 * slowest:.0f} ms of processors at most")
    result = run("long.txt", "-o", "b.wav", folder=folder)
    check("after interrupts", read(folder, "b.wav") == read(whole, "b.wav"), result.stderr)


def check_interrupt_m4b():
    """Ctrl-C while ffmpeg copies the whole book: nobody waits for that, and what was made is there without chapters."""
    ffmpeg = shutil.which("ffmpeg")
    if not ffmpeg:
        skip("Ctrl-C of an m4b", "no ffmpeg here")
        return
    folder, tools = fresh("interrupt-m4b"), fresh("interrupt-tools")
    with open(os.path.join(tools, "ffmpeg"), "w", encoding="utf-8") as file:
        file.write(
            f"#!{sys.executable}\nimport os, sys, time\n"
            "if 'ipod' in sys.argv:\n    open('copies', 'w').close()\n    time.sleep(60)\n"
            f"os.execv({ffmpeg!r}, ['ffmpeg'] + sys.argv[1:])\n"
        )
    os.chmod(os.path.join(tools, "ffmpeg"), 0o755)
    run(book("plain.txt"), "-o", "whole.m4b", folder=folder)
    process = subprocess.Popen(
        [utter, "read", book("plain.txt"), "-o", "b.m4b"],
        cwd=folder,
        env=dict(environment, PATH=tools + ":" + environment["PATH"]),
        stderr=subprocess.PIPE,
        text=True,
    )
    while process.poll() is None and not os.path.exists(os.path.join(folder, "copies")):
        time.sleep(0.005)
    said, took = interrupt(process)
    lengths = [
        subprocess.run(
            ["ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", name],
            cwd=folder,
            capture_output=True,
            text=True,
        ).stdout
        for name in ("whole.m4b", "b.m4b")
    ]
    check("Ctrl-C of an m4b", process.returncode == 130 and "are in b.m4b" in said, process.returncode, said)
    check("Ctrl-C of an m4b: its time", took < 0.5, took)
    whole_s, stopped_s = (float(length or 0) for length in lengths)
    check("Ctrl-C of an m4b: all of the sound", whole_s > 0 and abs(whole_s - stopped_s) < 0.1, lengths)
    check("Ctrl-C of an m4b: its title", b"plain" in read(folder, "b.m4b"))
    result = run(book("plain.txt"), "-o", "b.m4b", folder=folder)
    same = read(folder, "b.m4b") == read(folder, "whole.m4b")
    check("an m4b goes on", "were spoken before" in result.stderr and same, result.stderr)
    check("an m4b leaves nothing", sorted(os.listdir(folder)) == ["b.m4b", "copies", "whole.m4b"], os.listdir(folder))
    print(f"Ctrl-C of an m4b: {1000 * took:.0f} ms of processors")


def check_not_whole():
    folder = fresh("not-whole")
    result = run(
        book("book.md"), "-m", os.path.join(models, "loop"), "-v", "ryan", "--greedy", "-o", "b.wav", folder=folder
    )
    check(
        "not whole",
        result.returncode == 3
        and "may lack words" in result.stderr
        and os.path.exists(os.path.join(folder, "b.wav")),
        result.returncode,
        result.stderr,
    )


try:
    if len(sys.argv) <= 3:
        subprocess.run([sys.executable, os.path.join(here, "make_books.py"), books], check=True)
    check_parser()
    check_formats()
    check_markup()
    check_subtitles()
    check_full_disk()
    check_without_ffmpeg()
    check_not_whole()
    if not sanitized:  # minutes of speech, and a kill tells a sanitizer nothing
        check_m4b()
        first = check_kills("kills", "-o", "b.wav")
        check_resume(first)
        check_interrupt(first)
        check_interrupt_m4b()
    if kills > 4:
        check_kills("kills of mp3", "-o", "b.mp3", "--loudness", "-20", "--speed", "1.2", "--rate", "44100")
        if shutil.which("ffmpeg"):
            check_kills("kills of m4b", "-o", "b.m4b")
finally:
    shutil.rmtree(work)
print("%d passed, %d failed, %d skipped" % tuple(counts[k] for k in ("passed", "failed", "skipped")))
sys.exit(counts["failed"] > 0)
