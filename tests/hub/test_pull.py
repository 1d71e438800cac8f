#!/usr/bin/env python3
"""utter pull against a stand-in for the hub: whole, killed, cut, refused. Usage: test_pull.py UTTER CHECKPOINT.
Run by tests/hub/run."""
import contextlib
import os
import pty
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import hub as stand_in

UTTER, CHECKPOINT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])


class Pull(unittest.TestCase):
    """Each with a hub and a cache of its own."""

    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.hub = stand_in.Hub(stand_in.files_of(CHECKPOINT))
        self.addCleanup(self.hub.server_close)
        self.addCleanup(self.hub.shutdown)
        self.cache = f"{self.folder}/hub"
        self.repository = f"{self.cache}/models--me--mine"
        self.environment = {"HF_HUB_CACHE": self.cache, "HF_ENDPOINT": self.hub.address + "/",
                            "PATH": os.environ["PATH"], "HOME": self.folder, "no_proxy": "*"}
        for name, value in os.environ.items():
            if name.endswith("SAN_OPTIONS") or name.startswith(("QEMU_", "WRONG")):  # packaging/arm, tools/draw_mutants
                self.environment[name] = value

    def command(self, *words, **more):
        """The program, in an environment of its own."""
        return subprocess.run([UTTER, *words], env={**self.environment, **more}, capture_output=True, text=True,
                              timeout=600, check=False)

    def pull(self, code, *said, **more):
        """One command, its exit code, and what it must say."""
        done = self.command("pull", "me/mine", **more)
        self.assertEqual(done.returncode, code, done.stderr)
        self.assertLessEqual(done.stderr.count("\n"), 1)
        for text in said:
            self.assertIn(text, done.stderr)
        return done

    def whole(self):
        """It is here as the hub's client has it, and speaks."""
        snapshot = f"{self.repository}/snapshots/{self.hub.revision}"
        with open(f"{self.repository}/refs/main", encoding="ascii") as file:
            self.assertEqual(file.read(), self.hub.revision)
        for path, data in self.hub.files.items():
            self.assertTrue(os.path.islink(f"{snapshot}/{path}"))
            self.assertTrue(os.readlink(f"{snapshot}/{path}").startswith("../../"))
            with open(f"{snapshot}/{path}", "rb") as file:
                self.assertEqual(file.read(), data)
        self.assertFalse([name for name in os.listdir(f"{self.repository}/blobs") if "." in name])
        self.assertFalse(os.path.exists(f"{self.folder}/escape.json"))
        self.assertFalse(os.path.exists(f"{snapshot}/README.md"))
        for name in ("me/mine", self.repository, snapshot):
            done = self.command("voices", "-m", name)
            self.assertEqual(done.returncode, 0, done.stderr)

    def nothing_under_its_name(self):
        """Whoever looks for the model finds none."""
        self.assertFalse(os.path.exists(f"{self.repository}/refs/main"))
        done = self.command("voices", "-m", "me/mine")
        self.assertEqual(done.returncode, 1)
        self.assertIn("utter pull me/mine", done.stderr)

    def test_whole(self):
        """And a second time nothing but the list is read."""
        self.pull(0, "me/mine is here", "utter say -m me/mine")
        self.whole()
        del self.hub.asked[:]
        self.pull(0)
        self.assertEqual(len(self.hub.asked), 2)
        done = self.command("models")
        self.assertIn("me/mine", done.stdout)
        self.assertIn("0.6b", done.stdout)

    def wait_for_begin(self):
        """Until a big file is asked for."""
        end = time.monotonic() + 300
        while not any(path.startswith("/cdn/") for path, _ in self.hub.asked) and time.monotonic() < end:
            time.sleep(0.01)

    def test_killed_twenty_times(self):
        """It goes on where it was."""
        self.hub.pace, ranges = 0.06, []
        random.seed(1)
        for _ in range(20):
            with subprocess.Popen([UTTER, "pull", "me/mine"], env=self.environment, stderr=subprocess.PIPE) as child:
                self.wait_for_begin()
                time.sleep(random.uniform(0.05, 0.2))
                self.assertIsNone(child.poll(), "too quick to be killed")
                child.kill()
            self.nothing_under_its_name()
            ranges += [r for _, r in self.hub.asked if r and r != "bytes=0-"]
            del self.hub.asked[:]
        self.hub.pace = 0
        self.pull(0)
        self.whole()
        self.assertGreater(len(ranges), 10, "nothing went on")

    def test_interrupted(self):
        """Ctrl-C says what to do."""
        self.hub.pace = 0.05
        with subprocess.Popen([UTTER, "pull", "me/mine"], env=self.environment, stderr=subprocess.PIPE,
                              text=True) as child:
            self.wait_for_begin()
            time.sleep(0.2)
            child.send_signal(2)
            self.assertIn("goes on where this ended", child.communicate()[1])
            self.assertEqual(child.returncode, 130)

    def test_cut_short(self):
        """Answers that end early are gone on with, in one run."""
        self.hub.mishap = "cut"
        self.pull(0)
        self.whole()

    def test_list_cut_short(self):
        """It is read again, from the beginning."""
        self.hub.mishap = "list"
        self.pull(0)
        self.whole()

    def test_progress(self):
        """On a terminal: how much has come, of what is to come."""
        ours, its = pty.openpty()
        self.addCleanup(os.close, ours)
        self.hub.pace = 0.02
        with subprocess.Popen([UTTER, "pull", "me/mine"], env=self.environment, stderr=its) as child:
            os.close(its)
            shown = b""
            with contextlib.suppress(OSError):  # the last who had the terminal is gone
                while True:
                    shown += os.read(ours, 1 << 16)
        self.assertEqual(child.returncode, 0, shown)
        told = re.findall(rb": ([0-9]+) of ([0-9]+) MB, [0-9.]+ MB/s, [0-9]+ s to go", shown)
        whole = sum(map(len, self.hub.files.values())) / 1e6
        self.assertTrue(told, shown)
        for done, everything in told:
            self.assertEqual(int(everything), round(whole))
            self.assertLessEqual(int(done), round(whole))

    def test_no_ranges(self):
        """A server that always begins anew."""
        self.hub.pace = 0.02
        with subprocess.Popen([UTTER, "pull", "me/mine"], env=self.environment) as child:
            self.wait_for_begin()
            time.sleep(0.2)
            child.kill()
        self.hub.pace, self.hub.mishap = 0, "no range"
        self.pull(0)
        self.whole()

    def test_wrong_hash(self):
        """Refused, removed, and good the next time."""
        self.hub.mishap = "wrong"
        self.pull(1, "hash is wrong", "run it again")
        self.nothing_under_its_name()
        self.hub.mishap = None
        self.pull(0)
        self.whole()

    def test_redirects(self):
        """To other hosts and paths in every other test. Those that lead nowhere, or to this machine's files, end it."""
        # A libcurl that was built without files has other words for them.
        for mishap, said in (("around", "edirect"), ("to a file", "rotocol|illegal format")):
            self.hub.mishap = mishap
            begin = time.monotonic()
            self.assertRegex(self.pull(1).stderr, said)
            self.assertLess(time.monotonic() - begin, 25)
            self.nothing_under_its_name()

    def test_slow(self):
        """A server that sends nothing for 30 s is asked again, and goes on; one that is only slow is waited for."""
        self.hub.mishap, begin = "stalls", time.monotonic()
        done = self.pull(0)
        self.hub.patience.set()
        self.assertGreater(time.monotonic() - begin, 25)
        self.assertTrue([r for _, r in self.hub.asked if r and r != "bytes=0-"], done.stderr)
        self.whole()

    def test_longer_than_said(self):
        """Refused."""
        self.hub.mishap = "longer"
        self.pull(1, "more than")
        self.nothing_under_its_name()

    def test_refusals(self):
        """Say what to do."""
        for mishap, said in (("401", "HF_TOKEN"), ("404", "check the name"), ("json", "no JSON")):
            self.hub.mishap = mishap
            self.pull(1, said)
            self.nothing_under_its_name()

    def test_later(self):
        """A server that is busy for a moment."""
        self.hub.mishap = "503"
        self.pull(0)
        self.whole()

    def test_token(self):
        """It goes to the hub, and not to other hosts where that redirects to."""
        self.hub.token = "secret"
        self.pull(1, "HF_TOKEN")
        del self.hub.tokens[:], self.hub.hosts[:]
        self.pull(0, HF_TOKEN="secret")
        self.whole()
        self.assertEqual(len({host.partition(":")[0] for host in self.hub.hosts}), 2)
        for host, token in zip(self.hub.hosts, self.hub.tokens):
            self.assertEqual(token, None if host.startswith("localhost") else "Bearer secret")

    def test_no_hub(self):
        """Nobody there."""
        self.environment["HF_ENDPOINT"] = "http://127.0.0.1:9"
        self.pull(2, "127.0.0.1:9")
        self.nothing_under_its_name()

    def test_full_disk(self):
        """A file that may not grow stands for it; what is there is gone on with."""
        done = subprocess.run(["bash", "-c", f"ulimit -f 40; exec {UTTER} pull me/mine"], env=self.environment,
                              capture_output=True, text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("cannot write", done.stderr)
        self.nothing_under_its_name()
        self.pull(0)
        self.whole()

    def test_disk_that_fills(self):
        """A disk of 3 MB: too small from the start, and filled by another program on the way."""
        script = """
            mkdir "$HOME/disk" && mount -t tmpfs -o size=3m disk "$HOME/disk" || exit 77
            export HF_HUB_CACHE=$HOME/disk
            head -c 1500000 /dev/zero >"$HOME/disk/other"; "$0" pull me/mine; echo "exit $?" >&2
            rm "$HOME/disk/other"; "$0" pull me/mine & pull=$!
            until [ "$(du -sk "$HOME/disk" | cut -f 1)" -gt 200 ] || ! kill -0 $pull; do sleep 0.05; done
            cat /dev/zero >"$HOME/disk/other" 2>/dev/null; wait $pull; echo "exit $?" >&2
            ls "$HOME/disk/models--me--mine"; rm "$HOME/disk/other"; "$0" pull me/mine && "$0" voices -m me/mine"""
        self.hub.pace = 0.03
        done = subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "bash", "-c", script, UTTER],
                              env=self.environment, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode == 77 or "unshare" in done.stderr:
            self.skipTest("no mounts of its own here")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text in ("are to come and", "HF_HUB_CACHE names another folder", "No space left on device"):
            self.assertIn(text, done.stderr)
        self.assertEqual(done.stderr.count("exit 2"), 2, done.stderr)
        self.assertTrue(done.stdout.startswith("blobs\n"), done.stdout)
        self.assertNotIn("refs", done.stdout)
        self.assertIn("serena", done.stdout)

    def test_readme(self):
        """The README's way to a released model, word for word."""
        with open(f"{os.path.dirname(os.path.abspath(__file__))}/../../README.md", encoding="utf-8") as file:
            ways = re.search(r"\n\n((?:    utter .*-m 0\.6b.*\n|    utter pull 0\.6b\n)+)", file.read())
        self.assertEqual(ways[1].count("\n"), 3)
        other = stand_in.Hub(stand_in.files_of(CHECKPOINT), "Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice")
        self.addCleanup(other.server_close)
        self.addCleanup(other.shutdown)
        environment = {**self.environment, "HF_ENDPOINT": other.address,
                       "PATH": f"{os.path.dirname(UTTER)}:{os.environ['PATH']}"}
        done = subprocess.run(["bash", "-e", "-c", ways[1]], cwd=self.folder, env=environment, capture_output=True,
                              text=True, timeout=600, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("ryan", done.stdout)
        self.assertGreater(os.path.getsize(f"{self.folder}/hello.wav"), 3000)

    def test_two_at_once(self):
        """The second is told."""
        self.hub.pace = 0.05
        with subprocess.Popen([UTTER, "pull", "me/mine"], env=self.environment, stderr=subprocess.DEVNULL) as child:
            self.wait_for_begin()
            self.pull(1, "another program")
            child.kill()

    def test_names(self):
        """That are none."""
        for name in ("nothing", "a/b/c", "../a", "0.7b"):
            done = self.command("pull", name)
            self.assertEqual(done.returncode, 1)
            self.assertIn("utter models", done.stderr)


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main()
