"""What the checks of utter job share: a folder each, the program, lines, and what became of them."""

import glob
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time

utter, models = sys.argv[1:3]
work = tempfile.mkdtemp()
sanitized = "/san-" in utter
n_lines = int(os.environ.get("LINES", 6 if sanitized else 30))
every_s = float(os.environ.get("EVERY", 2 if sanitized else 0.4))
many = int(os.environ.get("MANY", 1000 if sanitized else 20000))
counts = {"passed": 0, "failed": 0, "skipped": 0}
environment = dict(os.environ, LC_ALL="C.UTF-8", XDG_CONFIG_HOME=work, XDG_DATA_HOME=work, UTTER_DEVICE="cpu")
for name in ("UTTER_MODEL", "UTTER_VOICE"):
    environment.pop(name, None)
WORDS = "one two three four five six seven eight nine ten red green blue cold warm old new good long short".split()


def check(name, good, *shown):
    counts["passed" if good else "failed"] += 1
    if not good:
        print("FAIL job/" + name, *shown, flush=True)


def skip(name, why):
    counts["skipped"] += 1
    print(f"skip job/{name}: {why}")


def job(*arguments, folder, **more):
    return subprocess.run(
        [utter, "job", *arguments], cwd=folder, env=environment, capture_output=True, text=True, **more
    )


def told(*arguments, folder):
    """What a command says as JSON."""
    result = job(*arguments, "--json", folder=folder)
    return json.loads(result.stdout) if result.stdout else {"error": result.stderr, "code": result.returncode}


def start(*arguments, folder):
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([utter, "job", *arguments], cwd=folder, env=environment, text=True, **pipes)


def fresh(name):
    folder = os.path.join(work, name)
    os.mkdir(folder)
    return folder


def write_manifest(folder, lines, name="lines.jsonl"):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        for line in lines:
            file.write(line if isinstance(line, str) else json.dumps(line))
            file.write("\n")


def spoken_lines(n, seed=1):
    draw = random.Random(seed)
    return [
        {"id": f"part{i % 3}/line{i:05}", "text": " ".join(draw.choices(WORDS, k=draw.randint(2, 5))) + f" {i}."}
        for i in range(n)
    ]


def sounds(folder, where):
    """The hash of each file of sound, by its name."""
    found = {}
    for path in glob.glob(os.path.join(folder, where, "**"), recursive=True):
        if os.path.isfile(path) and not path.endswith((".json", ".jsonl")):
            with open(path, "rb") as file:
                found[os.path.relpath(path, os.path.join(folder, where))] = hashlib.sha256(file.read()).hexdigest()
    return found


def files_below(folder, where, ending):
    return sorted(glob.glob(os.path.join(folder, where, "???", "*" + ending)))


def leftovers(folder, where):
    return [path for path in glob.glob(os.path.join(folder, where, "**", ".*"), recursive=True)]


def climbing_key(path):
    """As long as a key, and one that names PATH.json from below any folder."""
    left = 64 - len(path.lstrip("/"))
    return "../" * (left // 3) + "/" * (left % 3) + path.lstrip("/")


# Right as far as a submission looks: whether there is a voice that a text calls for, its worker sees.
POISON = {"id": "bad", "text": "[voice:klingon]Hello.", "markup": "tags"}
RESULTS = ["--results", "results"]
HERE = ["--queue", "queue", *RESULTS]
MANIFEST = ["lines.jsonl", *HERE]
EMPTY = [*HERE, "--until-empty"]
COLLECT = ["lines.jsonl", *RESULTS, "-o", "sounds"]


def kill_workers(folder, n_workers, queue):
    """Workers on one queue, one of which is killed every so often. How many were."""
    arguments = ["work", "--queue", queue, *RESULTS, "--until-empty", "-q", "--threads", "1", "--lanes", "2"]
    workers = [start(*arguments, folder=folder) for _ in range(n_workers)]
    killed, draw, last, before = 0, random.Random(3), time.monotonic(), 0
    while any(worker.poll() is None for worker in workers):
        time.sleep(0.05)
        # Where the machine is slow, something gets done between two deaths all the same.
        made = len(files_below(folder, "results", ".json"))
        # Where it is quick, not all is made before there were some.
        if (time.monotonic() - last >= every_s and made >= before + 3) or made >= before + n_lines // 6:
            last, before = time.monotonic(), made
            i = draw.randrange(n_workers)
            if workers[i].poll() is None:
                workers[i].kill()
                killed += 1
            workers[i].communicate()
            workers[i] = start(*arguments, folder=folder)
    return killed, [worker.communicate()[1] for worker in workers]


def check_kills(name, queue, whole):
    folder = fresh(name)
    write_manifest(folder, spoken_lines(n_lines))
    begin = time.monotonic()
    given = told("submit", "lines.jsonl", "--queue", queue, *RESULTS, folder=folder)
    check(name + ": submitted", given.get("submitted") == n_lines, given)
    killed, said = kill_workers(folder, 3, queue)
    print(f"{name}: {n_lines} lines, {killed} workers killed, {time.monotonic() - begin:.1f} s", flush=True)
    check(name + ": some were killed", killed > 2, killed)
    check(name + ": nothing was said", not any(said), said)
    result = job("collect", *COLLECT, folder=folder)
    check(name + ": every line", result.returncode == 0, result.stdout, result.stderr)
    check(name + ": as by one", sounds(folder, "sounds") == whole)
    check(name + ": once", len(files_below(folder, "results", ".flac")) == n_lines)
    check(name + ": nothing left", not leftovers(folder, "results"), leftovers(folder, "results"))
    status = told("status", "--queue", queue, folder=folder)["queue"]
    check(name + ": empty", status["waiting"] == status["claimed"] == 0, status)


def spent(process):
    """Seconds of processors that a process has had, which do not hang on what else the machine does."""
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stamp(path):
    about = os.stat(path)
    return about.st_ino, about.st_mtime_ns


def queue_counts(folder):
    return told("status", "--queue", "queue", folder=folder)["queue"]


def wait_for(condition, seconds=300):
    """The time is for what never comes: on a machine at other work what comes takes its time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


def wait_for_results(folder, n):
    return wait_for(lambda: len(files_below(folder, "results", ".json")) >= n)
