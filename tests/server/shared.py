# Servers that share their voices through a store that speaks S3: that of the tests of utter job.
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import time

from client import PATIENCE, Server, form, tone, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "job"))
from store import Store  # noqa: E402 (the line before says where it is)

TEXT = "The train left the old station at noon."


def soon(condition):
    """Servers look every five seconds; on a machine at other work it takes longer."""
    return wait_for(condition, 60)


def keep(s, name, **fields):
    return s.ask("POST", "/v1/audio/voices", *form({"name": name, "audio_sample": tone(1), **fields}))


def drop(s, name):
    return s.ask("DELETE", "/v1/audio/voices/" + name)


def names(s):
    return set(json.loads(s.ask("GET", "/v1/audio/voices?legacy=true")[2])["voices"])


def message(answer):
    return json.loads(answer[2])["error"]["message"]


def whole(store):
    """What is there has no name but those of voices and of what is told of them."""
    return all(path.startswith("/bucket/v/") and path.endswith((".voice", ".json")) for path in store.objects)


class Two:
    """Servers of one store, each with a copy of its own."""

    def __init__(self, store, program, model, folder):
        self.store, self.program, self.model, self.folder = store, program, model, folder
        self.a, self.b = self.start("a"), self.start("b")

    def start(self, name):
        env = {**os.environ, **self.store.environment, "XDG_CACHE_HOME": os.path.join(self.folder, name)}
        return Server(self.program, "--lanes", "1", "-m", self.model, "--voices", "s3://bucket/v", env=env)

    def copies(self, name):
        return sorted(os.listdir(os.path.join(self.folder, name, "utter", "voices", "bucket+v")))


def write_through(store, a, b):
    """Returns how Anna sounds in the end."""
    # Written through, and known to the other within seconds, with what was said of it; the same bytes are spoken.
    assert keep(a, "Anna", consent="Anna said so")[0] == 200 and len(store.objects) == 2 and whole(store)
    assert soon(lambda: "Anna" in names(b)), b.said()
    assert json.loads(b.ask("GET", "/v1/audio/voices/Anna")[2])["consent"] == "Anna said so"
    spoken = [s.speak(input=TEXT, voice="Anna", seed=1) for s in (a, b)]
    assert spoken[0][0] == 200 and spoken[0][2] == spoken[1][2] != b""
    # Another in its place, from the other side.
    again = keep(b, "Anna", ref_text="One tone.", overwrite="true")
    assert again[0] == 200 and whole(store), again
    new = b.speak(input=TEXT, voice="Anna", seed=1)[2]
    assert new != spoken[0][2] and soon(lambda: a.speak(input=TEXT, voice="Anna", seed=1)[2] == new)
    # The file is spoken as soon as it is there; what is told of it follows when the whole store has been looked at.
    assert soon(lambda: "consent" not in json.loads(a.ask("GET", "/v1/audio/voices/Anna")[2]))
    # Nothing is fetched that is here already.
    before = store.n_pages
    assert soon(lambda: store.n_pages >= before + 3)  # who has put something looks at it once more
    # Nor is it asked what lies further down, as results of utter job may.
    store.objects |= {f"/bucket/v/results/{i}.json": b"{}" for i in range(3000)}
    before, told, gets = store.n_pages, store.n_told, store.n_gets
    assert soon(lambda: store.n_pages >= before + 3) and store.n_gets == gets, (gets, store.n_gets)
    assert store.n_told - told <= 3 * (store.n_pages - before), (before, told, store.n_pages, store.n_told)
    store.objects = {path: data for path, data in store.objects.items() if "/results/" not in path}
    return new


def be_away(store, two, new):
    a = two.a
    # The store is away: what is here is spoken, the rest is not unknown but away; nothing is kept by halves.
    store.goes_wrong("busy", 1)
    assert soon(lambda: "voices_store_away" in a.said()), a.said()
    assert a.speak(input=TEXT, voice="Anna", seed=1)[2] == new
    for answer in (a.speak(input=TEXT, voice="nobody"), keep(a, "Bea"), keep(a, "Anna", overwrite="true"),
                   drop(a, "Anna")):
        assert answer[0] == 503 and "store of voices cannot be reached" in message(answer), answer
    assert int(answer[1]["Retry-After"]) > 0 and "Anna" in names(a) and "Bea" not in names(a)
    assert not [name for name in two.copies("a") if name.startswith("bea")], two.copies("a")
    assert a.speak(input=TEXT, voice="Anna", seed=1)[2] == new  # the one that was to be replaced
    # One that is started meanwhile has what it had.
    assert a.stop() == 0
    a = two.a = two.start("a")
    assert a.speak(input=TEXT, voice="Anna", seed=1)[2] == new and "voices_store_away" in a.said(), a.said()
    assert "voices_store_left_out" not in a.said(), a.said()  # that is of what a store has
    store.goes_wrong(None, 0)
    assert soon(lambda: "voices_store_back" in a.said()), a.said()
    unknown = a.speak(input=TEXT, voice="nobody")
    assert unknown[0] == 400 and "no voice" in message(unknown), unknown


def be_killed(store, two, new):
    a, b = two.a, two.b
    # Nobody has another voice than the rest, whenever he is killed; and none takes a name that is on its way.
    store.goes_wrong("held", 1)
    asks = threading.Thread(target=keep_killed, args=(a,))
    asks.start()
    assert soon(lambda: store.n_held > 0), a.said()
    meanwhile = keep(a, "Anna", overwrite="true")
    assert meanwhile[0] == 409 and "is being made" in message(meanwhile), meanwhile
    a.stop(signal.SIGKILL)
    store.goes_wrong(None, 0)
    asks.join()
    # What cannot be had is left out and told, and keeps nothing else away.
    store.denied.add("/bucket/v/aaa.voice")
    store.objects["/bucket/v/aaa.voice"] = b"x"
    store.objects["/bucket/v/zoe.voice"] = next(v for k, v in store.objects.items() if "/anna" in k)
    a = two.a = two.start("a")
    assert soon(lambda: "zoe.voice" in two.copies("a") and "voices_store_left_out" in a.said()), a.said()
    assert "aaa.voice" in a.said() and soon(lambda: a.speak(input=TEXT, voice="unheard")[0] == 400), a.said()
    for name in ("aaa", "zoe"):
        store.objects.pop(f"/bucket/v/{name}.voice")
    assert a.speak(input=TEXT, voice="Anna", seed=1)[2] == new == b.speak(input=TEXT, voice="Anna", seed=1)[2]


def go(store, two):
    a, b = two.a, two.b
    # Gone here, gone there.
    assert drop(a, "Anna")[0] == 200 and not store.objects, store.objects
    assert not [name for name in two.copies("a") if "anna" in name], two.copies("a")
    assert soon(lambda: "Anna" not in names(b) and two.copies("a") == two.copies("b") == []), two.copies("b")
    assert drop(a, "Anna")[0] == 404
    # Answers that are cut come again, and nothing of half a file is ever a voice.
    store.goes_wrong("cut", 3)
    assert keep(a, "Cleo")[0] == 200 and soon(lambda: "Cleo" in names(b))
    store.goes_wrong(None, 0)
    assert a.speak(input=TEXT, voice="Cleo", seed=1)[2] == b.speak(input=TEXT, voice="Cleo", seed=1)[2] != b""
    for pid in a.workers():  # the keys of the store are the front end's
        with open(f"/proc/{pid}/environ", encoding="utf-8") as file:
            assert "AWS_SECRET" not in file.read()


def share(store, program, model, folder):
    two = Two(store, program, model, folder)
    try:
        new = write_through(store, two.a, two.b)
        be_away(store, two, new)
        be_killed(store, two, new)
        go(store, two)
        assert two.a.stop() == 0 and two.b.stop() == 0
    finally:
        two.a.stop()
        two.b.stop()


def keep_killed(s):
    try:
        keep(s, "Anna", overwrite="true")
    except OSError:  # it was
        pass


def a_silent_store_holds_nobody_up(program, model):
    """Health is there within seconds; a liveness probe would end the server otherwise, again and again."""
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        env = {**os.environ, "AWS_ENDPOINT_URL": address, "XDG_CACHE_HOME": folder, "AWS_ACCESS_KEY_ID": "x",
               "AWS_SECRET_ACCESS_KEY": "y"}
        began = time.time()
        s = Server(program, "--lanes", "1", "-m", model, "--voices", "s3://bucket/v", env=env)
        try:
            assert s.ask("GET", "/health")[0] == 200 and time.time() - began < 15 * PATIENCE, time.time() - began
            assert "voices_store_away" in s.said() and s.speak(input=TEXT, voice="Anna")[0] == 503, s.said()
        finally:
            assert s.stop() == 0


def voices_are_shared(program, model):
    store = Store()
    try:
        with tempfile.TemporaryDirectory() as folder:
            share(store, program, model, folder)
    finally:
        store.close()


def stores_that_are_wrong_are_told(program, model):
    for address, more, what in (("s3://", {}, "is not s3://BUCKET"),
                                ("s3://bucket/v", {"AWS_ACCESS_KEY_ID": ""}, "are not set")):
        env = {**os.environ, "AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "y", **more}
        s = Server(program, "-m", model, "--voices", address, env=env)
        assert s.stop() == 1 and what in s.said(), s.said()


TESTS = (voices_are_shared, a_silent_store_holds_nobody_up, stores_that_are_wrong_are_told)
