"""utter job with results in a store that speaks S3: the small one of store.py, which goes wrong as it is told."""

import glob
import hashlib
import json
import os
import subprocess
import time

from jobs import check, environment, fresh, job, models, sanitized, sounds, spent, spoken_lines, start, told, utter
from jobs import wait_for, write_manifest
from store import Store

N = 8
THERE = ["--results", "s3://bucket/a/prefix"]
QUEUE = ["--queue", "queue"]


def names(store, ending):
    return {path for path in store.objects if path.endswith(ending)}


def whole(store):
    """Every JSON that is there has its sound, as long and with the hash that it says; nothing else is there."""
    for path in names(store, ".json"):
        about = json.loads(store.objects[path])
        sound = store.objects.get(path[: -len("json")] + about.get("format", "none"))
        if sound is None or hashlib.sha256(sound).hexdigest() != about["sha256"]:
            return False
    return len(store.objects) == 2 * len(names(store, ".json"))


def check_store(store):
    folder = fresh("s3")
    write_manifest(folder, spoken_lines(N))
    given = told("submit", "lines.jsonl", *QUEUE, *THERE, folder=folder)
    check("s3: submitted", given.get("submitted") == N, given)
    done = told("work", *QUEUE, *THERE, "--until-empty", folder=folder)
    check("s3: one put a sound, one a JSON", len(store.puts) == 2 * N, store.puts)
    check("s3: made", done.get("made") == N and len(names(store, ".flac")) == N and whole(store), done)
    check("s3: under the prefix", all(path.startswith("/bucket/a/prefix/") for path in store.objects))
    result = job("collect", "lines.jsonl", *THERE, "-o", "sounds", folder=folder)
    check("s3: collected", result.returncode == 0, result.stderr)
    job("submit", "lines.jsonl", "--queue", "near", "--results", "near-results", folder=folder)
    job("work", "--queue", "near", "--results", "near-results", "--until-empty", folder=folder)
    job("collect", "lines.jsonl", "--results", "near-results", "-o", "near-sounds", folder=folder)
    check("s3: as in a folder", sounds(folder, "sounds") == sounds(folder, "near-sounds") != {})
    check("s3: nothing to do", told("submit", "lines.jsonl", *QUEUE, *THERE, folder=folder).get("submitted") == 0)
    flacs = sorted(names(store, ".flac"))
    store.objects.pop(flacs[0])
    store.objects[flacs[1]] = store.objects[flacs[1]][:-1] + b"?"
    given = told("submit", "lines.jsonl", *QUEUE, *THERE, folder=folder)
    check("s3: what is damaged", given.get("submitted") == 2, given)
    given = told("submit", "lines.jsonl", *QUEUE, *THERE, "--quick", folder=folder)
    check("s3: what is gone", given.get("submitted") == 1, given)
    store.objects.clear()


def check_list(store):
    """What is there is asked for page by page: a line that has nothing costs no question, nor one that is believed."""
    folder = fresh("s3-list")
    lines = spoken_lines(40)
    write_manifest(folder, lines)
    store.page = 7

    def asked(*arguments):
        before = store.n_requests
        return told(*arguments, folder=folder), store.n_requests - before

    given, n = asked("submit", "lines.jsonl", *QUEUE, *THERE)
    check("s3: list: nothing is there", (given.get("submitted"), n) == (40, 1), given, n)
    write_manifest(folder, lines[:20], "half.jsonl")
    told("submit", "half.jsonl", "--queue", "half", *THERE, folder=folder)
    told("work", "--queue", "half", *THERE, "--until-empty", folder=folder)
    store.objects["/bucket/a/prefix/0a1/<&>.json"] = b"what others keep there"
    store.objects["/bucket/a/prefix2"] = b"and beside it"
    first = sorted(names(store, ".flac"))[0]
    pages = -(-41 // 7)
    given, n = asked("submit", "lines.jsonl", *QUEUE, *THERE, "--quick")
    check("s3: list: believed", (given.get("submitted"), given.get("done"), n) == (20, 20, pages), given, n)
    given, n = asked("submit", "lines.jsonl", *QUEUE, *THERE)
    check("s3: list: read", (given.get("submitted"), n) == (20, pages + 40), given, n)
    kept = store.objects.pop(first)
    given, n = asked("submit", "lines.jsonl", *QUEUE, *THERE, "--quick")
    check("s3: list: a sound is gone", (given.get("submitted"), n) == (21, pages + 1), given, n)
    status, n = asked("status", "lines.jsonl", *THERE, "--quick")
    said = status.get("results", {})
    check("s3: list: status", (said.get("done"), said.get("missing"), n) == (19, 21, pages + 20), status, n)
    store.objects[first] = kept[:-1]
    status, n = asked("status", "lines.jsonl", *THERE, "--quick")
    check("s3: list: another length", status.get("results", {}).get("done") == 19, status)
    write_manifest(folder, lines[:2], "two.jsonl")
    status, n = asked("status", "two.jsonl", *THERE, "--quick")
    check("s3: list: a few lines of many", status.get("results", {}).get("done", 0) >= 1 and n <= 3 + 2 * 2, status, n)
    for kind, what in (("forgets", "not how it goes on"), ("other", "answers no list")):
        store.goes_wrong(kind, 1)
        result = job("status", "lines.jsonl", *THERE, folder=folder)
        check(f"s3: list: {kind}", result.returncode == 2 and what in result.stderr, result)
    for kind in ("busy", "cut"):
        store.goes_wrong(kind, 3)
        status = told("status", "lines.jsonl", *THERE, "--quick", folder=folder)
        check(f"s3: list: {kind} in the middle", status.get("results", {}).get("done") == 19, status)
    store.goes_wrong(None, 0)
    store.order = lambda name: name[::-1]  # some stores keep none
    status = told("status", "lines.jsonl", *THERE, "--quick", folder=folder)
    check("s3: list: in any order", status.get("results", {}).get("done") == 19, status)
    store.order = None
    store.page = 1000
    store.objects.clear()


def check_faults(store):
    """Busy, slow, cut in the middle: tried again, and never half written."""
    for kind in ("busy", "slow", "cut"):
        folder = fresh("s3-" + kind)
        write_manifest(folder, spoken_lines(N))
        store.goes_wrong(kind, 3)
        given = told("submit", "lines.jsonl", *QUEUE, *THERE, folder=folder)
        done = told("work", *QUEUE, *THERE, "--until-empty", folder=folder)
        result = job("collect", "lines.jsonl", *THERE, "-o", "sounds", folder=folder)
        store.goes_wrong(None, 0)
        check(f"s3: {kind}: all", given.get("submitted") == N and done.get("made") == N, given, done)
        check(f"s3: {kind}: whole", whole(store) and result.returncode == 0, result.stderr)
        check(f"s3: {kind}: as they are", len(sounds(folder, "sounds")) == N)
        store.objects.clear()


def check_refused(store):
    folder = fresh("s3-refused")
    write_manifest(folder, spoken_lines(2))
    job("submit", "lines.jsonl", *QUEUE, *THERE, folder=folder)
    kept = dict(environment)
    for name, value, code, wanted in (
        ("AWS_SECRET_ACCESS_KEY", "wrong", 2, "SignatureDoesNotMatch"),
        ("AWS_ACCESS_KEY_ID", "nobody", 2, "check AWS_ACCESS_KEY_ID"),
        ("AWS_ACCESS_KEY_ID", "", 1, "are not set"),
        ("AWS_ENDPOINT_URL", "ftp://127.0.0.1", 2, "AWS_ENDPOINT_URL"),
    ):
        environment[name] = value
        result = job("work", *QUEUE, *THERE, "--until-empty", folder=folder)
        check(f"s3: {name}={value}", result.returncode == code and wanted in result.stderr, result.stderr)
        check("s3: no secret is told", kept["AWS_SECRET_ACCESS_KEY"] not in result.stderr)
        environment.update(kept)
    result = job("work", *QUEUE, "--results", "s3://nowhere", "--until-empty", folder=folder)
    check("s3: no bucket", result.returncode == 2 and "NoSuchBucket" in result.stderr, result.stderr)
    for url in ("s3://", "s3:///a", "s3://a b/c"):
        result = job("work", *QUEUE, "--results", url, folder=folder)
        check("s3: an address", result.returncode == 1 and "is not s3://BUCKET" in result.stderr, result.stderr)
    # A store that is away is told after some tries, and waited for, but not by who only asks, and not behind Ctrl-C.
    store.goes_wrong("busy", 1)
    if not sanitized:
        result = job("status", "lines.jsonl", *THERE, folder=folder)
        check("s3: away", result.returncode == 2 and "503, SlowDown" in result.stderr, result.stderr)
        worker = start("work", *QUEUE, *THERE, "--until-empty", folder=folder)
        first = worker.stderr.readline()
        check("s3: away: told", "503, SlowDown" in first and "waited for" in first, first)
        store.goes_wrong(None, 0)
        said = worker.communicate()[1]
        check("s3: away: waited for", worker.returncode == 0 and len(store.objects) == 4, worker.returncode, said)
        store.objects.clear()
        store.goes_wrong("busy", 1)
    write_manifest(folder, spoken_lines(2, seed=9))
    store.goes_wrong(None, 0)
    job("submit", "lines.jsonl", *QUEUE, *THERE, folder=folder)
    store.goes_wrong("busy", 1)
    before = store.n_requests
    worker = start("work", *QUEUE, *THERE, folder=folder)
    wait_for(lambda: store.n_requests >= before + 2)  # it tries, and tries again
    begin = time.monotonic()
    worker.terminate()
    worker.communicate()
    took = time.monotonic() - begin
    check("s3: SIGTERM", worker.returncode == 143 and took < 10, worker.returncode, took)
    status = told("status", *QUEUE, folder=folder)["queue"]
    check("s3: the lines wait", (status["waiting"], status["claimed"]) == (2, 0), status)
    check("s3: nothing half written", not store.objects, store.objects.keys())
    store.goes_wrong(None, 0)


def check_signal(store):
    """A sound that is on its way when a signal comes gets there, and its JSON."""
    folder = fresh("s3-signal")
    write_manifest(folder, spoken_lines(1))
    job("submit", "lines.jsonl", *QUEUE, *THERE, folder=folder)
    before = store.n_requests
    store.goes_wrong("slow", 1)
    worker = start("work", *QUEUE, *THERE, "-q", folder=folder)
    wait_for(lambda: store.n_requests >= before + 3)  # two looks, and the sound
    worker.terminate()
    worker.communicate()
    store.goes_wrong(None, 0)
    check("s3: a signal while it is put", worker.returncode == 143 and len(store.objects) == 2 and whole(store))
    status = told("status", *QUEUE, folder=folder)["queue"]
    check("s3: it is done", (status["waiting"], status["done"]) == (0, 1), status)
    store.objects.clear()


def check_still(store):
    """Who waits for a store that takes its time takes no processor meanwhile."""
    folder = fresh("s3-still")
    write_manifest(folder, spoken_lines(1))
    job("submit", "lines.jsonl", *QUEUE, *THERE, folder=folder)
    n_held = store.n_held
    store.goes_wrong("held", 1)
    worker = start("work", *QUEUE, *THERE, "--until-empty", "-q", folder=folder)
    held = wait_for(lambda: store.n_held > n_held or worker.poll() is not None) and worker.poll() is None
    before = spent(worker) if held else 0
    time.sleep(1)
    used = spent(worker) - before if held else 0
    store.goes_wrong(None, 0)
    worker.communicate()
    check("s3: still", held and used < (0.3 if sanitized else 0.05), held, used)
    check("s3: still: done", worker.returncode == 0 and whole(store), worker.returncode)
    store.objects.clear()


def check_voices(store):
    """A worker's voices come from the store, and one that is there by now comes when a line asks for it."""
    folder = fresh("s3-voices")
    model = ["-m", os.path.join(models, "tiny06-base")]
    for command in (["say", "-o", "ann.wav", "One voice it is."], ["clone", *model, "ann.wav", "-o", "ann.voice"]):
        subprocess.run([utter, *command, "-q"], cwd=folder, env=environment, check=True)
    with open(os.path.join(folder, "ann.voice"), "rb") as file:
        voice = file.read()
    here = {**environment, "XDG_CACHE_HOME": folder}
    there = ["--voices", "s3://bucket/v", "-q"]

    def run(*arguments):
        return subprocess.run([utter, "job", *arguments, *model, *there], cwd=folder, env=here, capture_output=True,
                              text=True)

    write_manifest(folder, [{"id": "a", "text": "Hello.", "voice": "ann"}])
    nobody = run("submit", "lines.jsonl", *QUEUE, "--results", "results")
    check("s3: voices: nobody", nobody.returncode == 1 and 'voice "ann"' in nobody.stderr, nobody)
    store.objects["/bucket/v/ann.voice"] = voice
    check("s3: voices: submitted", run("submit", "lines.jsonl", *QUEUE, "--results", "results").returncode == 0)
    store.goes_wrong("busy", 1)
    worker = run("work", *QUEUE, "--results", "results", "--until-empty")
    check("s3: voices: by the copy", worker.returncode == 0 and worker.stderr == "", worker)
    store.goes_wrong(None, 0)
    write_manifest(folder, [{"id": "b", "text": "Hello to you.", "voice": "bob"}])
    before = store.n_pages
    work = [utter, "job", "work", *QUEUE, "--results", "results"]
    waits = subprocess.Popen([*work, *model, *there], cwd=folder, env=here)
    wait_for(lambda: store.n_pages > before)  # it has looked, and finds bob when it looks again
    store.objects["/bucket/v/bob.voice"] = voice
    here["XDG_CACHE_HOME"] = folder + "/other"
    given = run("submit", "lines.jsonl", *QUEUE, "--results", "results")
    made = wait_for(lambda: len(glob.glob(os.path.join(folder, "results", "???", "*.json"))) == 2)
    waits.terminate()
    check("s3: voices: one that has come", made and waits.wait() == 143, given, waits.wait(), made)
    store.objects.clear()


def run():
    store = Store()
    temporary = fresh("s3-temporary")  # of ours alone, since others may run beside this
    environment.update(store.environment, TMPDIR=temporary)
    try:
        check_store(store)
        check_list(store)
        check_faults(store)
        check_signal(store)
        check_still(store)
        check_voices(store)
        check_refused(store)
    finally:
        store.close()
    left = os.listdir(temporary)
    check("s3: no folder is left", not left, left)
