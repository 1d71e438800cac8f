"""check_job.py UTTER MODELS: utter job with the built-in voice. LINES says how many lines are spoken while workers are
killed, every EVERY seconds; MANY how many are submitted at once. Ends with `N passed, N failed, N skipped`."""

import fcntl
import glob
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time

import check_nats
import check_s3
import check_server
from jobs import COLLECT, EMPTY, HERE, MANIFEST, POISON, RESULTS, check, check_kills, climbing_key, counts, environment
from jobs import files_below, fresh, job, leftovers, many, models, n_lines, queue_counts, sanitized, sounds
from jobs import spent, spoken_lines, stamp, start, told, utter, wait_for, wait_for_results, work
from jobs import write_manifest


def check_newcomer():
    """The lines that utter job --help tells a newcomer to type."""
    folder = fresh("newcomer")
    shown = job("--help", folder=folder).stdout
    commands = [line.strip() for line in shown.split("To begin with:")[1].split("\n")[1:5]]
    path = dict(environment, PATH=os.path.dirname(utter) + ":" + os.environ["PATH"])
    for command in commands:
        result = subprocess.run(command, shell=True, cwd=folder, env=path, capture_output=True, text=True)
        check("newcomer", result.returncode == 0, command, result.stderr)
    subprocess.run([utter, "say", "-q", "-o", "said.flac", "Hello there."], cwd=folder, env=environment, check=True)
    said = sounds(folder, ".")
    check("as utter say", said.get("sounds/hello.flac") == said["said.flac"], said)


def check_manifest():
    folder = fresh("manifest")
    cases = [
        ("no JSON", ["{"], "lines.jsonl"),
        ("no object", ["[1]"], "is no object"),
        ("no id", ['{"text": "a b"}'], '"id"'),
        ("no text", ['{"id": "a"}'], "give one of them"),
        ("two texts", ['{"id": "a", "text": "b", "file": "c"}'], "give one of them"),
        ("empty text", ['{"id": "a", "text": " "}'], "nothing to speak"),
        ("a field", ['{"id": "a", "text": "b", "voise": "c"}'], 'did you mean "voice"'),
        ("an id that climbs", ['{"id": "../a", "text": "b"}'], "cannot name a file"),
        ("an absolute id", ['{"id": "/a", "text": "b"}'], "cannot name a file"),
        ("a hidden id", ['{"id": "a/.b", "text": "b"}'], "cannot name a file"),
        ("a format", ['{"id": "a", "text": "b", "format": "aiff"}'], "none of wav"),
        ("markup", ['{"id": "a", "text": "b", "markup": "html"}'], "none of none"),
        ("a seed", ['{"id": "a", "text": "b", "seed": -1}'], '"seed"'),
        ("a file", ['{"id": "a", "file": "no-such.txt"}'], "no-such.txt: cannot open"),
        ("a folder", ['{"id": "a", "file": "folder"}'], "folder: "),
        ("an empty file", ['{"id": "a", "file": "empty.txt"}'], "nothing to speak"),
        ("no UTF-8", ['{"id": "a", "file": "latin.txt"}'], "no text in UTF-8"),
        ("a language", ['{"id": "a", "text": "b", "language": "klingon"}'], 'line 1: unknown language "klingon"'),
        ("SSML", ['{"id": "a", "text": "<speak>a</b>", "markup": "ssml"}'], "line 1: "),
        ("much to escape", [json.dumps({"id": "a", "text": '"' * 524000})], "bytes as JSON"),
        ("a long line", ['{"id": "a", "text": "b"}', " " * 5000000], "lines.jsonl: line 2 is longer"),
        ("a voice", ['{"id": "a", "text": "b", "voice": "nobody"}'], 'line 1: unknown voice "nobody"'),
        ("one id twice", ['{"id": "a", "text": "b"}', "", '{"id": "a", "text": "c"}'], "s.jsonl: lines 1 and 3 have"),
        ("long text", [json.dumps({"id": "a", "text": "word " * 200000})], "make several lines"),
        ("nothing", ["", " "], "there is no line"),
    ]
    os.mkdir(os.path.join(folder, "folder"))
    for name, data in (("empty.txt", b" "), ("latin.txt", b"gr\xfcn")):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(data)
    write_manifest(folder, ["\ufeff" + json.dumps({"id": "good", "text": "Good morning."})])
    check("a mark of UTF-8", told("submit", *MANIFEST, folder=folder).get("submitted") == 1)
    for name, lines, wanted in cases:
        write_manifest(folder, lines)
        result = job("submit", *MANIFEST, folder=folder)
        check("wrong manifest: " + name, result.returncode == 1 and wanted in result.stderr, result.stderr)
        check("wrong manifest: " + name + ": told once", result.stderr.count("line 1: ") <= 1, result.stderr)
    status = queue_counts(folder)
    check("wrong manifests leave what waits", (status["waiting"], status["done"]) == (1, 0), status)
    result = job("submit", *MANIFEST, "--seed", str(2**63), folder=folder)
    check("a large seed", result.returncode == 1 and "--seed" in result.stderr, result.stderr)
    result = subprocess.run([utter, "job", "submit", "/dev/stdin", *HERE], cwd=folder, env=environment, text=True,
                            input="{}", capture_output=True)
    check("a pipe as manifest", "is read twice" in result.stderr, result.stderr)
    result = job("submit", "/dev/null", *HERE, folder=folder)
    check("a device as manifest", result.returncode == 1 and "is no file" in result.stderr, result.stderr)
    for arguments in (["submit", "lines.jsonl"], ["work"], ["status"], ["collect", "lines.jsonl"], [], ["sumbit"]):
        result = job(*arguments, folder=folder)
        check("too little typed", result.returncode == 1 and "utter: job" in result.stderr, arguments, result.stderr)
    result = job("work", "--queue", "nowhere", *RESULTS, folder=folder)
    check("no queue", result.returncode == 1 and "submit makes it" in result.stderr, result.stderr)


def check_lines():
    """What a line may say, and what comes of it."""
    folder = fresh("lines")
    with open(os.path.join(folder, "one.txt"), "w", encoding="utf-8") as file:
        file.write("It was cold.\n\nIt was dark. " + "He went on and on. " * 20)
    write_manifest(
        folder,
        [
            {"id": "file", "file": "one.txt", "format": "opus"},
            {"id": "words", "text": "Good morning to all.", "words": True, "format": "wav"},
            {"id": "again", "text": "Good morning to all."},
            {"id": "once more", "text": "Good morning to all."},
            {"id": "seed", "text": "Good morning to all.", "seed": 7},
            {"id": "tags", "text": "Good[pause:2s] morning.", "markup": "tags"},
            {"id": "m/p/3", "text": "Good evening.", "format": "mp3", "language": "en"},
        ],
    )
    check("submitted", told("submit", *MANIFEST, folder=folder).get("submitted") == 7)
    done = told("work", *EMPTY, folder=folder)
    check("one sound is made once", (done.get("made"), done.get("found")) == (6, 1), done)
    result = job("collect", *COLLECT, folder=folder)
    have = sounds(folder, "sounds")
    names = ["again.flac", "file.opus", "m/p/3.mp3", "once more.flac", "seed.flac", "tags.flac", "words.wav"]
    check("collected", result.returncode == 0 and sorted(have) == names, result, sorted(have))
    check("one sound, two ids", have["again.flac"] == have["once more.flac"] != have["seed.flac"])
    with open(os.path.join(folder, "sounds", "results.jsonl"), encoding="utf-8") as file:
        lines = {line["id"]: line for line in map(json.loads, file)}
    kept = []
    for path in files_below(folder, "results", ".json"):
        with open(path, encoding="utf-8") as file:
            kept.append(json.load(file))
    check("results name their lines", len(kept) == 6 and all(about.get("id") in lines for about in kept), kept)
    words = lines["words"]["words"]
    check("words", [word["text"] for word in words] == ["Good", "morning", "to", "all"], words)
    check("times", all(0 <= w["start_s"] <= w["end_s"] <= lines["words"]["seconds"] for w in words), words)
    check("hashes", all(lines[os.path.splitext(name)[0]]["sha256"] == have[name] for name in have))
    check("pauses", lines["tags"]["seconds"] > 2.5, lines["tags"])
    check("long text", lines["file"]["pieces"] > 1 and lines["file"]["finish"] == "eos", lines["file"])
    subprocess.run(
        [utter, "say", "-q", "-f", "one.txt", "-o", "said.opus"], cwd=folder, env=environment, check=True
    )


def check_again():
    """Submitted again: what is missing or damaged, and nothing else."""
    folder = fresh("again")
    write_manifest(folder, spoken_lines(n_lines))
    job("submit", *MANIFEST, folder=folder)
    job("work", *EMPTY, folder=folder)
    job("collect", *COLLECT, folder=folder)
    whole = sounds(folder, "sounds")
    shutil.rmtree(os.path.join(folder, "sounds"))
    check("nothing to do", told("submit", *MANIFEST, folder=folder).get("submitted") == 0)
    flacs, jsons = files_below(folder, "results", ".flac"), files_below(folder, "results", ".json")
    os.remove(flacs[0])
    os.remove(jsons[1])
    for path, at in ((flacs[2], 5000), (jsons[3], 150)):
        with open(path, "r+b") as file:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1]))
    os.truncate(flacs[4], os.path.getsize(flacs[4]) - 1)
    os.truncate(jsons[5], 40)
    before = {path: stamp(path) for path in flacs[6:]}
    quick = told("submit", *MANIFEST, "--quick", folder=folder)
    check("what is damaged, by length", quick.get("submitted") == 5, quick)
    given = told("submit", *MANIFEST, folder=folder)
    check("what is damaged", given.get("submitted") == 6, given)
    done = told("work", *EMPTY, folder=folder)
    check("made again", (done.get("made"), done.get("found")) == (6, 0), done)
    check("nothing is made twice", before == {path: stamp(path) for path in flacs[6:]})
    check("collected again", job("collect", *COLLECT, folder=folder).returncode == 0)
    check("as before", sounds(folder, "sounds") == whole)
    changed = spoken_lines(n_lines)
    changed[3]["text"] += " And more."
    write_manifest(folder, [*changed, {"id": "new", "text": "This is new."}])
    check("a line has changed", told("submit", *MANIFEST, folder=folder).get("submitted") == 2)
    return whole


def check_lost_queue(whole):
    folder = fresh("lost")
    write_manifest(folder, spoken_lines(n_lines))
    job("submit", *MANIFEST, folder=folder)
    worker = start("work", *HERE, "-q", folder=folder)
    some = wait_for(lambda: len(files_below(folder, "results", ".json")) > n_lines // 4)
    shutil.rmtree(os.path.join(folder, "queue"))
    time.sleep(0.3)
    before = {path: stamp(path) for path in files_below(folder, "results", ".json")}
    check("a queue is lost in the middle", some and n_lines // 4 < len(before) < n_lines, len(before))
    given = told("submit", *MANIFEST, folder=folder)
    check("only the missing", given.get("submitted", 0) <= n_lines - len(before), given)
    # The worker that was there goes on with the queue that is there again.
    done = wait_for_results(folder, n_lines)
    done = done and wait_for(lambda: queue_counts(folder)["done"] == given["submitted"])
    worker.send_signal(signal.SIGTERM)
    worker.communicate()
    check("the worker goes on", done)
    check("complete", job("collect", *COLLECT, folder=folder).returncode == 0)
    check("as by one machine", sounds(folder, "sounds") == whole)
    check("no valid one made twice", before == {path: stamp(path) for path in before})


def check_signals():
    """A worker's lines wait again at once, however it ends."""
    folder = fresh("signals")
    write_manifest(folder, [{"id": f"{i}", "text": f"Number {i}. " + "On and on it went. " * 400} for i in range(2)])
    job("submit", *MANIFEST, folder=folder)
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)):
        worker = start("work", *HERE, "-q", "--lanes", "2", folder=folder)
        claimed = wait_for(lambda: queue_counts(folder)["claimed"] == 2)
        check(f"{number}: claimed", claimed)
        time.sleep(0.2)
        begin = time.monotonic()
        worker.send_signal(number)
        worker.communicate()
        took = time.monotonic() - begin
        status = queue_counts(folder)
        check(f"{number}: waits again", (status["waiting"], status["claimed"]) == (2, 0), status)
        check(f"{number}: at once", worker.returncode == code and took < 10, worker.returncode, took)  # of minutes
    check("nothing half made", not files_below(folder, "results", ""), files_below(folder, "results", ""))


def check_poison():
    folder = fresh("poison")
    write_manifest(
        folder, [POISON, *spoken_lines(5), {"id": "z", "text": "Bye."}]
    )
    job("submit", *MANIFEST, folder=folder)
    result = job("work", *EMPTY, "--tries", "2", folder=folder)
    check("poison: told", result.returncode == 3 and result.stderr.count("klingon") == 2, result.stderr)
    status = told("status", *MANIFEST, folder=folder)
    check("poison: others go on", status["results"]["done"] == 6 and status["results"]["failed"] == 1, status)
    check("poison: in the queue", status["queue"] == {"waiting": 0, "claimed": 0, "done": 6, "failed": 1}, status)
    result = job("collect", *COLLECT, folder=folder)
    with open(os.path.join(folder, "sounds", "results.jsonl"), encoding="utf-8") as file:
        first = json.loads(file.readline())
    check("poison: its reason", result.returncode == 3 and "klingon" in first["error"], first)
    check("poison: its tries", (first["id"], first["status"], first["tries"]) == ("bad", "failed", 2), first)
    again = told("submit", *MANIFEST, folder=folder)
    check("poison: stays", (again["submitted"], again["failed"]) == (0, 1), again)
    again = told("retry", *MANIFEST, folder=folder)
    check("poison: retried", again["submitted"] == 1, again)
    result = job("work", *EMPTY, folder=folder)
    check("poison: fails again", result.stderr.count("klingon") == 3, result.stderr)
    # A line that workers die of.
    write_manifest(folder, [{"id": "deadly", "text": "Hello."}], "deadly.jsonl")
    arguments = ["deadly.jsonl", "--queue", "deaths", *RESULTS]
    job("submit", *arguments, folder=folder)
    change_records(folder, "deaths", b" \x00\x1e\x00")
    result = job("work", "--queue", "deaths", *RESULTS, "--until-empty", folder=folder)
    check("a deadly line", result.returncode == 3 and "30 workers" in result.stderr, result.stderr)


def change_records(folder, queue, record):
    """What a queue knows of each of its lines: state, tries, deaths of workers."""
    for path in glob.glob(os.path.join(folder, queue, "*.state")):
        with open(path, "r+b") as file:
            file.write(record * (os.path.getsize(path) // 4))


def check_suspects():
    """Lines that workers have died of are made one by one, so that one of them does not take the others along."""
    folder = fresh("suspects")
    write_manifest(folder, [{"id": f"{i}", "text": f"Number {i}. " + "On and on it went. " * 20} for i in range(4)])
    job("submit", *MANIFEST, folder=folder)
    change_records(folder, "queue", b" \x00\x02\x00")
    worker = start("work", *EMPTY, "-q", "--lanes", "4", folder=folder)
    claimed = []
    while worker.poll() is None:
        claimed.append(queue_counts(folder)["claimed"])
    worker.communicate()
    check("suspects: alone", max(claimed) == 1, claimed)
    check("suspects: all", queue_counts(folder)["done"] == 4 and worker.returncode == 0, worker.returncode)
    # A machine that fails over a line counts as a death of all that it was speaking.
    write_manifest(folder, [{"id": f"m{i}", "text": f"{i}. " + "On and on it went. " * 400} for i in range(2)])
    job("submit", *MANIFEST, folder=folder)
    worker = start("work", *EMPTY, "-q", "--lanes", "2", folder=folder)
    wait_for(lambda: queue_counts(folder)["claimed"] == 2)
    before = spent(worker)
    wait_for(lambda: spent(worker) > before + 0.5)  # it speaks
    with open(f"/proc/{worker.pid}/statm", encoding="utf-8") as file:
        used = int(file.read().split()[0]) * resource.getpagesize()
    if not sanitized:
        resource.prlimit(worker.pid, resource.RLIMIT_AS, (used, used))
        said = worker.communicate()[1]
        states = b"".join(open(path, "rb").read() for path in glob.glob(os.path.join(folder, "queue", "*.state")))
        check("no memory: told", worker.returncode == 2 and "memory" in said, worker.returncode, said)
        check("no memory: a death of both", b" \x00\x01\x00" * 2 in states, states)
    else:
        worker.kill()
        worker.communicate()


def check_keys():
    """Whoever writes into a queue names no files."""
    folder = fresh("keys")
    write_manifest(folder, spoken_lines(1))
    job("submit", *MANIFEST, folder=folder)
    path = glob.glob(os.path.join(folder, "queue", "*.lines"))[0]
    with open(path, "rb") as file:
        line = json.loads(file.readline())
    line["key"] = climbing_key(os.path.join(folder, "outside"))
    with open(path, "w", encoding="utf-8") as file:
        file.write(json.dumps({"key": line.pop("key"), **line}, separators=(",", ":")) + "\n")
    result = job("work", *EMPTY, folder=folder, timeout=600)
    left = [name for name in os.listdir(folder) if name.startswith("outside")]
    check("a key that is a path", result.returncode == 0 and not left, result.stderr, left)
    check("it is done with", queue_counts(folder) == {"waiting": 0, "claimed": 0, "done": 0, "failed": 1})


def check_cut_submission():
    """States whose lines were not written any more are nothing to wait for."""
    folder = fresh("cut")
    write_manifest(folder, ({"id": f"{i}", "text": f"Line {i}."} for i in range(2000)))
    small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000))
    result = job("submit", *MANIFEST, folder=folder, preexec_fn=small)
    left = glob.glob(os.path.join(folder, "queue", "*.state"))
    check("a submission that is cut", result.returncode == 2 and not left, result.stderr, left)
    write_manifest(folder, spoken_lines(2))
    job("submit", *MANIFEST, folder=folder)
    os.remove(glob.glob(os.path.join(folder, "queue", "*.lines"))[0])
    result = job("work", *EMPTY, folder=folder, timeout=600)
    check("states without lines", result.returncode == 0 and queue_counts(folder)["waiting"] == 0, result.stderr)


def check_voices():
    """A worker without a voice, or with another one of its name, ends; the lines wait for those that have it."""
    folder = fresh("voices")
    model = ["-m", os.path.join(models, "tiny06-base")]
    for name, text in (("ours", "One voice it is."), ("theirs", "Another one, which is longer.")):
        os.mkdir(os.path.join(folder, name))
        clone = ["clone", *model, name + ".wav", "-o", name + "/ann.voice"]
        for command in (["say", "-o", name + ".wav", text], clone):
            subprocess.run([utter, *command, "-q"], cwd=folder, env=environment, check=True)
    os.mkdir(os.path.join(folder, "none"))
    for line, wanted in (
        ({"id": "a", "text": "Hello.", "voice": "ann"}, 'voice "ann"'),
        ({"id": "b", "text": "[voice:ann]Hello.", "markup": "tags"}, "its text calls for"),
    ):
        write_manifest(folder, [line])
        given = told("submit", *MANIFEST, *model, "--voices", "ours", folder=folder)
        check("voices: submitted", given.get("submitted") == 1, given)
        for where in ("none", "theirs"):
            result = job("work", *EMPTY, *model, "--voices", where, folder=folder)
            check(f"voices: {where}", result.returncode == 1 and wanted in result.stderr, result.stderr)
            check(f"voices: {where}: told once", result.stderr.count("utter: ") == 1, result.stderr)
        status = queue_counts(folder)
        check("voices: the line waits", (status["waiting"], status["failed"]) == (1, 0), status)
        done = told("work", *EMPTY, *model, "--voices", "ours", folder=folder)
        check("voices: who has it", done.get("made") == 1, done)
    shutil.copy(os.path.join(folder, "theirs", "ann.voice"), os.path.join(folder, "ours", "bnn.voice"))
    write_manifest(folder, [{"id": name, "text": "Good day.", "voice": name} for name in ("bnn", "ann")])
    told("submit", *MANIFEST, *model, "--voices", "ours", folder=folder)
    done = told("work", *EMPTY, *model, "--voices", "ours", folder=folder)
    check("voices: each line has its own", done.get("made") == 2, done)


def check_not_whole():
    """A sound that may lack words is there all the same, and told of."""
    folder = fresh("not-whole")
    model = ["-m", os.path.join(models, "loop")]
    text = "Hello there. It was a warm day in the middle of the summer."
    write_manifest(folder, [{"id": "a", "text": text, "voice": "ryan"}])
    job("submit", *MANIFEST, *model, folder=folder)
    result = job("work", *EMPTY, *model, folder=folder)
    check("not whole", result.returncode == 3, result.returncode, result.stderr)
    status = told("status", *MANIFEST, *model, folder=folder)["results"]
    check("not whole: counted", (status["done"], status["not_whole"]) == (1, 1), status)
    result = job("collect", *COLLECT, *model, folder=folder)
    check("not whole: collected", result.returncode == 3 and len(sounds(folder, "sounds")) == 1, result)


def check_apart():
    """A manifest with other options is another submission; a file that is gone costs its own line."""
    folder = fresh("apart")
    with open(os.path.join(folder, "one.txt"), "w", encoding="utf-8") as file:
        file.write("It was cold.")
    write_manifest(folder, [{"id": "file", "file": "one.txt"}, {"id": "text", "text": "It was dark."}])
    job("submit", *MANIFEST, folder=folder)
    job("submit", *MANIFEST, "--format", "wav", folder=folder)
    check("other options", queue_counts(folder)["waiting"] == 4, queue_counts(folder))
    job("work", *EMPTY, folder=folder)
    os.remove(os.path.join(folder, "one.txt"))
    result = job("collect", *COLLECT, folder=folder)
    with open(os.path.join(folder, "sounds", "results.jsonl"), encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    check("a file is gone", result.returncode == 3 and list(sounds(folder, "sounds")) == ["text.flac"], result.stderr)
    check("it is missing", (lines[0]["status"], lines[1]["status"]) == ("missing", "done"), lines)
    check("why", "one.txt" in lines[0]["error"], lines)
    there = ["text.jsonl", "--queue", "other", "--results", "50% done"]
    write_manifest(folder, [{"id": "text", "text": "It was dark."}], there[0])
    job("submit", *there, folder=folder)
    job("work", *there[1:], "--until-empty", folder=folder)
    check("a name with %", files_below(folder, there[-1], ".flac"), os.listdir(folder))
    for ids in (["a", "a.flac/b"], ["c.flac/d", "c"]):
        write_manifest(folder, [{"id": i, "text": "It was dark."} for i in ids], "both.jsonl")
        job("submit", "both.jsonl", *HERE, folder=folder)
        job("work", *EMPTY, folder=folder)
        result = job("collect", "both.jsonl", *COLLECT[1:], folder=folder)
        check("a file that is a folder", result.returncode == 1 and "choose other ids" in result.stderr, result)


def check_trouble():
    """What is no line's fault ends the worker, and the lines wait."""
    folder = fresh("trouble")
    write_manifest(folder, spoken_lines(4))
    job("submit", *MANIFEST, folder=folder)
    result = job("work", *EMPTY, "--weights", "q8", folder=folder)
    check("another model", result.returncode == 1 and "give -m and --weights" in result.stderr, result.stderr)
    full = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    result = job("work", *EMPTY, folder=folder, preexec_fn=full)
    check("a full disk", result.returncode == 2 and "write" in result.stderr, result.returncode, result.stderr)
    status = queue_counts(folder)
    check("lines wait", status == {"waiting": 4, "claimed": 0, "done": 0, "failed": 0}, status)
    held = open(os.path.join(folder, "queue", "submitting"), "w", encoding="utf-8")
    fcntl.flock(held, fcntl.LOCK_EX)
    result = job("submit", *MANIFEST, folder=folder)
    check("two submissions", result.returncode == 2 and "another utter job submit" in result.stderr, result.stderr)
    held.close()
    done = told("work", *EMPTY, folder=folder)
    check("and are done later", done.get("made") == 4, done)


def check_many():
    """Memory of a submission and of a worker does not grow with the lines."""
    folder = fresh("many")
    write_manifest(folder, ({"id": f"{i}", "text": f"Line {i} of many."} for i in range(many)))
    begin = time.monotonic()
    used = {}
    for name, arguments in (
        ("submit", ["submit", *MANIFEST, "-q"]),
        ("status", ["status", "--queue", "queue"]),
        ("submit again", ["submit", *MANIFEST, "-q"]),
    ):
        process = start(*arguments, folder=folder)
        _, status, usage = os.wait4(process.pid, 0)
        used[name] = usage.ru_maxrss / 1024
        check(f"many: {name}", status == 0, process.stderr.read())
        took = time.monotonic() - begin
        print(f"{many} lines, {name}: {took:.1f} s, {used[name]:.0f} MB", flush=True)
        begin = time.monotonic()
    worker = start("work", *HERE, "-q", folder=folder)
    made = wait_for(lambda: len(files_below(folder, "results", ".json")) >= 5)
    with open(f"/proc/{worker.pid}/status", encoding="utf-8") as file:
        peak = [int(line.split()[1]) / 1024 for line in file if line.startswith("VmHWM")][0]
    worker.terminate()
    worker.communicate()
    print(f"{many} lines, work: {peak:.0f} MB", flush=True)
    check("many: worked on", made)
    check("many: memory", sanitized or max(used.values()) < 150 and peak < 400, used, peak)
    status = queue_counts(folder)
    check("many: all are there", status["waiting"] + status["done"] == many and status["claimed"] == 0, status)
    shutil.rmtree(folder)


try:
    check_newcomer()
    check_manifest()
    check_lines()
    whole = check_again()
    if not sanitized:  # who is killed tells a sanitizer nothing, and what is large takes minutes with one
        check_kills("kills", "queue", whole)
        check_lost_queue(whole)
        check_signals()
        check_suspects()
        check_many()
    check_poison()
    check_keys()
    check_cut_submission()
    check_voices()
    check_not_whole()
    check_apart()
    check_trouble()
    check_nats.run(whole, many)
    check_s3.run()
    check_server.run()
finally:
    shutil.rmtree(work)
print("%d passed, %d failed, %d skipped" % tuple(counts[k] for k in ("passed", "failed", "skipped")))
sys.exit(counts["failed"] > 0)
