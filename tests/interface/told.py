# What `utter serve` is told by the command line, the environment and files, and which of them wins; and that a server
# nobody asks gives its memory back.
import concurrent.futures
import json
import os
import re
import resource
import shutil
import subprocess
import tempfile

import wyoming_replay
from client import PATIENCE, SANITIZED, Server, Socket, free_port, wait_for

TEXT = "Hello there."


class Told(Server):
    """A server with variables of its own, and none of ours."""

    def __init__(self, program, *options, home, **variables):
        self.variables = {"PATH": os.environ["PATH"], "XDG_CONFIG_HOME": home, **variables}
        saved = dict(os.environ)
        os.environ.clear()
        os.environ.update(self.variables)
        try:
            super().__init__(program, *options)
        finally:
            os.environ.clear()
            os.environ.update(saved)


def flags_win_then_variables_then_the_file(program):
    with tempfile.TemporaryDirectory() as home:
        os.mkdir(f"{home}/utter")
        keys = f"{home}/keys"
        with open(keys, "w") as f:
            f.write("sesame\n")
        with open(f"{home}/utter/serve.conf", "w") as f:
            f.write("# of this machine\n\nlanes = 3\nqueue=5\n  default-format = wav\nquiet = yes\n"
                    f"api-key-file = {keys}\n")
        for options, variables, lanes, queue, begin in (
                ((), {}, 3, 5, b"RIFF"),
                ((), {"UTTER_SERVE_QUEUE": "6", "UTTER_SERVE_DEFAULT_FORMAT": "flac"}, 3, 6, b"fLaC"),
                (("--lanes", "2", "--default-format", "flac"),
                 {"UTTER_SERVE_LANES": "4", "UTTER_SERVE_QUIET": "no"}, 2, 5, b"fLaC")):
            s = Told(program, *options, home=home, **variables)
            try:
                assert f"{lanes} lanes, {queue} may wait" in s.ready and "keys asked for" in s.ready, s.ready
                key = {"Authorization": "Bearer sesame"}
                status, _, sound = s.ask("POST", "/v1/audio/speech", {"input": TEXT}, key)
                assert status == 200 and sound[:4] == begin, (options, variables, status, sound[:4])
                assert s.speak(input=TEXT)[0] == 401
            finally:
                assert s.stop() == 0
            assert ("speech" in s.said()) == ("UTTER_SERVE_QUIET" in variables), s.said()
        other = f"{home}/other.conf"
        with open(other, "w") as f:
            f.write("queue = 7\nlanes = 1\n")
        for options, variables in ((("--config", other), {}), ((), {"UTTER_SERVE_CONFIG": other})):
            s = Told(program, *options, home=home, **variables)
            assert "1 lanes, 7 may wait" in s.ready and "keys off" in s.ready, s.ready
            assert s.stop() == 0


def the_environment_names_the_model(program, checkpoints):
    with tempfile.TemporaryDirectory() as home:
        with open(f"{home}/serve.conf", "w") as f:
            f.write("lanes = 1\nmodel = /nowhere\n")
        small = os.path.join(checkpoints, "tiny06-custom_voice")
        for variable in ("UTTER_MODEL", "UTTER_SERVE_MODEL"):
            s = Told(program, "--config", f"{home}/serve.conf", home=home, **{variable: small})
            assert "model tiny06-custom_voice" in s.ready, (variable, s.ready, s.said())
            assert s.stop() == 0


def beside_a_worker_that_rests(s):
    """A session whose server has given the worker's memory back meanwhile, however long that took."""
    x = Socket(s)
    assert wait_for(lambda: x.configure(seed=5) and not s.workers(), 20, 0.1), "the worker is still there"
    return x


def a_server_that_nobody_asks_gives_its_memory_back(program):
    s = Server(program, "--lanes", "4", "--idle", "0.015")
    try:
        before = s.speak(input=TEXT, seed=5)[2]
        beside_a_worker_that_rests(s).close()
        status, _, body = s.ask("GET", "/ready")
        assert status == 200 and json.loads(body)["status"] == "resting" and s.ask("GET", "/health")[0] == 200
        assert s.metric("worker_memory_bytes") == 0 and s.metric("worker_deaths_total") == 0
        assert any(v["name"] == "clara" for v in json.loads(s.ask("GET", "/v1/audio/voices")[2])["voices"])
        assert s.speak(input=TEXT, voice="nobody")[0] == 400 and not s.workers()  # no reason to wake
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            sounds = list(pool.map(lambda _: s.speak(input=TEXT, seed=5), range(3)))
        assert all(a[0] == 200 and a[2] == before for a in sounds), [a[0] for a in sounds]
        x = beside_a_worker_that_rests(s)
        x.send({"type": "input.text", "text": TEXT})
        x.send({"type": "input.done"})
        messages, sound = x.until("session.done")
        assert len(sound) > 20000 and not any(m["type"] == "error" for m in messages), messages
        # On a slow machine it rests more often.
        starts, rests = s.metric("worker_starts_total"), s.said().count('"resting"')
        assert s.metric("worker_deaths_total") == 0 and rests >= 2 and 3 <= starts <= rests + 1, (starts, rests)
        assert "worker_killed" not in s.said()
    finally:
        assert s.stop() == 0


def a_model_that_has_gone_meanwhile_is_told(program, checkpoints):
    with tempfile.TemporaryDirectory() as folder:
        model = os.path.join(folder, "model")
        shutil.copytree(os.path.join(checkpoints, "tiny06-custom_voice"), model)
        s = Server(program, "--lanes", "2", "--idle", "0.01", "-m", model)
        try:
            assert wait_for(lambda: not s.workers(), 20)
            os.rename(model, model + ".away")
            status, _, body = s.speak(input=TEXT, max_new_tokens=3)
            assert status == 503, (status, body)
            os.rename(model + ".away", model)
            assert wait_for(lambda: s.speak(input=TEXT, max_new_tokens=3)[0] == 200, 20, 0.2)
        finally:
            assert s.stop() == 0


def a_worker_that_cannot_be_started_is_told(program):
    """No descriptor is left for it: who waits is told, and the next one is served when there are some again."""
    s = Server(program, "--lanes", "2", "--idle", "0.01")
    try:
        assert wait_for(lambda: not s.workers(), 20)
        most = resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE)
        used = len(os.listdir(f"/proc/{s.process.pid}/fd"))
        resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE, (used + 1, most[1]))
        status, _, body = s.speak(input=TEXT, max_new_tokens=3, timeout=10 * PATIENCE)
        assert status == 503 and b"no process" in body, (status, body)
        resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE, most)
        assert wait_for(lambda: s.speak(input=TEXT, max_new_tokens=3)[0] == 200, 20, 0.2)
        assert s.said().count('"worker_not_started"') == 1, s.said()
    finally:
        assert s.stop() == 0


def a_model_that_is_not_opened_in_time_is_told(program):
    opening = "30" if SANITIZED else "6"
    s = Server(program, "--lanes", "2", "--opening", opening, held=True)  # the second worker opens it
    try:
        s.read_line()
        assert "ready" in s.ready and s.metric("worker_deaths_total") >= 1, (s.ready, s.said())
    finally:
        assert s.stop() == 0
    s = Server(program, "--lanes", "2", "--opening", opening, "--idle", "0.02")
    ready = lambda: (lambda answer: (answer[0], json.loads(answer[2])["status"]))(s.ask("GET", "/ready"))  # noqa: E731
    try:
        x = beside_a_worker_that_rests(s)
        x.send({"type": "input.text", "text": TEXT})
        x.send({"type": "input.done"})  # one that has more to say would be asked for it after 30 s
        s.hold_worker()
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            asked = [pool.submit(s.speak, input=TEXT, max_new_tokens=3) for _ in range(3)]
            assert wait_for(lambda: s.metric("requests_queued") == 4) and ready() == (200, "waking"), ready()
            assert s.ask("GET", "/health")[0] == 200
            for answer in asked:
                status, headers, body = answer.result()
                assert status == 503 and int(headers["Retry-After"]) > 0, (status, body)
                assert b"could not be opened: it took too long" in body, body
        messages, sound = x.until("session.done")
        assert any(m["type"] == "error" and "took too long" in m["message"] for m in messages) and not sound, messages
        assert wait_for(lambda: s.speak(input=TEXT, max_new_tokens=3)[0] == 200, 20, 0.05)
        assert '"it took too long"' in s.said()
    finally:
        assert s.stop() == 0


def the_unit_is_one_for_systemd(program):
    """As it is, and as Debian's package has it (packaging/debian/rules); with this program as the installed one."""
    if not shutil.which("systemd-analyze") or not shutil.which("man"):
        print("SKIP server/the_unit_is_one_for_systemd: no systemd-analyze or no man here")
        return
    root = os.path.join(os.path.dirname(__file__), "../..")
    with open(f"{root}/examples/service/utter.service") as f:
        unit = f.read()
    with open(f"{root}/packaging/debian/rules") as f:
        edits = f.read().split("sed '")[1].split("'")[0]
    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(f"{folder}/man/man1")
        shutil.copy(f"{root}/docs/utter.1", f"{folder}/man/man1")
        for name, kept in ("utter", ""), ("utter-server", edits):
            path = f"{folder}/{name}.service"
            text = subprocess.run(["sed", kept], input=unit, capture_output=True, text=True, check=True).stdout
            with open(path, "w") as f:
                f.write(re.sub("ExecStart=[^ ]*", f"ExecStart={os.path.abspath(program)}", text))
            said = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, timeout=60 * PATIENCE,
                                  env={**os.environ, "MANPATH": f"{folder}/man:"})
            assert said.returncode == 0 and not said.stdout + said.stderr, (name, said)


def the_container_for_home_assistant_speaks(program):
    """What it starts, with the words of its CMD, on free ports of this machine alone."""
    service = os.path.join(os.path.dirname(__file__), "../../examples/service")
    with open(f"{service}/wyoming.containerfile") as f:
        words = json.loads(next(line for line in f if line.startswith("CMD "))[4:])
    port = free_port()
    words = [w.replace("0.0.0.0:10200", f"127.0.0.1:{port}") for w in words]
    assert f"tcp://127.0.0.1:{port}" in words, words
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.abspath(program), f"{folder}/utter")
        environment = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": folder}
        s = subprocess.Popen([f"{service}/start", *words, "--host", "127.0.0.1", "--port", "0", "-q"], env=environment,
                             stdout=subprocess.PIPE)
        try:
            assert b"ready on" in s.stdout.readline()
            w = wyoming_replay.ask(port, "describe")
            assert w.until("info")[-1][1]["tts"][0]["installed"]
            w.send("synthesize", {"text": TEXT})
            assert len(wyoming_replay.sound_of(w.until("audio-stop"))) > 20000
            w.close()
        finally:
            s.terminate()
            assert s.wait(20 * PATIENCE) == 0
            s.stdout.close()


def wrong_files_are_told(program):
    with tempfile.TemporaryDirectory() as home:
        path = f"{home}/serve.conf"
        for text, variables, word in (("prot = 80\n", {}, "line 1: prot: utter serve has no option 'prot' (did"),
                                      ("\nport = many\n", {}, "line 2: port: 'many' is not a whole number"),
                                      ("insecure = perhaps\n", {}, "'perhaps' is neither yes nor no"),
                                      ("port\n", {}, "line 1: is not OPTION = VALUE"),
                                      ("config = x\n", {}, "'config' cannot stand in a file"),
                                      ("host =\n", {}, "line 1: host: the value is empty"),
                                      ("# " + "x" * 4157 + "lanes = 2\n", {}, "line 1: is longer than 4158 bytes"),
                                      ("# x\n" * 300, {}, "has more than 256 lines"),
                                      ("", {"UTTER_SERVE_PORT": "99999"}, "UTTER_SERVE_PORT: '99999' is not")):
            with open(path, "w") as f:
                f.write(text)
            said = subprocess.run([program, "serve", "--config", path], capture_output=True, timeout=20 * PATIENCE,
                                  env={"XDG_CONFIG_HOME": home, **variables})
            assert said.returncode == 1 and word in said.stderr.decode(), (text, said)
        said = subprocess.run([program, "serve", "--config", home + "/no"], capture_output=True, timeout=20 * PATIENCE)
        assert said.returncode == 1 and b"cannot read: No such file" in said.stderr, said
        said = subprocess.run([program, "serve", "--config", path, "--help"], capture_output=True,
                              timeout=20 * PATIENCE, env={"UTTER_SERVE_PORT": "wrong"})
        assert said.returncode == 0 and b"--config FILE" in said.stdout
