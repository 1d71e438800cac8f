#!/usr/bin/env python3
"""The Python package against the test checkpoints in $MODELS and the program: the same samples, voices, errors,
threads, asyncio. Run by tests/python/run."""
import asyncio
import ctypes
import gc
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np

import utter
from utter import _library as c

ROOT, MODELS = os.environ["ROOT"], os.environ["MODELS"]
BASE, DESIGNER = os.path.join(MODELS, "tiny06-base"), os.path.join(MODELS, "tiny06-voice_design")
PRESETS = os.path.join(MODELS, "tiny06-custom_voice")
TEXT = "Hello there, and welcome to this."


def noise(seconds):
    """Something that comes and goes as speech does."""
    n = int(24000 * seconds)
    return (np.random.default_rng(1).standard_normal(n) * 0.1 * np.sin(np.arange(n) * 0.0007)).astype(np.float32)


class Layout(unittest.TestCase):
    """What ctypes believes of utter.h."""

    def test_structs_are_those_of_the_header(self):
        """Places and sizes, as the compiler has them."""
        spec = importlib.util.spec_from_file_location("abi", f"{ROOT}/tests/api/abi.py")
        abi = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(abi)
        rows = {row.split()[1]: [int(n) for n in row.split()[2:]] for row in abi.layout(f"{ROOT}/include/utter.h")
                if not row.startswith("constant")}
        for name, struct in c.STRUCTS.items():
            for field, *_ in struct._fields_:
                member = getattr(struct, field)
                self.assertEqual([member.offset, member.size], rows[f"{name}.{field}"], f"{name}.{field}")
            if struct._fields_[0][0] != "size":
                self.assertEqual([ctypes.sizeof(struct)], rows[name])


class Speech(unittest.TestCase):
    """Models and streams."""

    def test_samples_are_those_of_the_program(self):
        """Bit for bit."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([f"{ROOT}/build/release/utter", "say", "-q", "--seed", "3", "-o", f"{folder}/a.raw",
                            "--sample", "f32", "--format", "raw", TEXT], check=True)
            want = np.fromfile(f"{folder}/a.raw", "<f4")
        got = utter.Model().say(TEXT, seed=3)
        self.assertEqual(got.dtype, np.float32)
        self.assertTrue(np.array_equal(got, want))

    def test_two_streams_of_one_model(self):
        """Read in turns, each is what it is alone; a third has no lane."""
        with utter.Model(lanes=2) as model:
            alone = [model.say(text) for text in ("One.", "Two or more.")]
            streams = [model.stream(text) for text in ("One.", "Two or more.")]
            with self.assertRaises(utter.Busy):
                model.stream("Three.")
            parts = [[], []]
            while any(stream.finish == "none" for stream in streams):
                for stream, part in zip(streams, parts):
                    samples = stream.read()
                    part += [] if samples is None else [samples]
            for want, part, stream in zip(alone, parts, streams):
                part += list(stream)
                self.assertTrue(np.array_equal(want, np.concatenate(part)))

    def test_text_in_pieces(self):
        """Busy where text is missing; codes and stats at the end."""
        with utter.Model().stream(layout="stream") as stream:
            with self.assertRaises(utter.Busy):
                stream.read()
            stream.write("Hel")
            stream.write("lo.")
            stream.end()
            n = sum(len(samples) for samples in stream)
            self.assertEqual((stream.stats.frames, 8), stream.codes.shape)
            self.assertEqual(n, 1920 * stream.stats.frames)
        self.assertIn("closed", repr(stream))
        with self.assertRaises(ValueError):
            stream.read()

    def test_errors_are_exceptions_of_python(self):
        """By kind."""
        model = utter.Model(PRESETS)
        for kind, also, wrong in ((utter.FileError, OSError, lambda: utter.Model("/nowhere")),
                                  (utter.ArgumentError, ValueError, lambda: model.say("")),
                                  (utter.ArgumentError, ValueError, lambda: model.say("x", language="klingon")),
                                  (utter.ArgumentError, ValueError, lambda: model.say("x", layout="round")),
                                  (utter.ArgumentError, ValueError, lambda: utter.Model(weights="q5")),
                                  (utter.ArgumentError, ValueError, lambda: model.clone(noise(3)))):
            with self.assertRaises(kind) as caught:
                wrong()
            self.assertIsInstance(caught.exception, also)
            self.assertIsInstance(caught.exception, utter.Error)
        model.close()
        model.close()
        for late in (lambda: model.say("x"), lambda: model.voice("ryan"), lambda: model.tokenize("x")):
            with self.assertRaises(ValueError):
                late()

    def test_other_threads_go_on(self):
        """A call into the library holds no interpreter lock: beside one, this thread still counts."""
        model, done = utter.Model(), threading.Event()

        def speak():
            model.say("A longer sentence than the others, so that it takes a while. " * 3)
            done.set()
        thread = threading.Thread(target=speak)
        longest, last = 0.0, time.monotonic()
        thread.start()
        while not done.is_set():
            time.sleep(0.001)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        thread.join()
        self.assertLess(longest, 0.5)

    def test_cancel_from_another_thread(self):
        """What was made can still be read."""
        with utter.Model().stream("A sentence. " * 30) as stream:
            next(stream)
            threading.Thread(target=stream.cancel).start()
            for _ in stream:
                pass
            self.assertEqual(stream.finish, "cancelled")

    def test_names_come_from_the_environment(self):
        """$UTTER_MODEL, and a repository in the cache of the hub's client."""
        with tempfile.TemporaryDirectory() as folder:
            snapshots = f"{folder}/hub/models--me--mine/snapshots"
            os.makedirs(snapshots)
            os.symlink(PRESETS, f"{snapshots}/abc")
            os.environ["HF_HOME"], os.environ["UTTER_MODEL"] = folder, "me/mine"
            try:
                self.assertEqual(utter.Model().path, f"{snapshots}/abc")
            finally:
                del os.environ["HF_HOME"], os.environ["UTTER_MODEL"]

    def test_nothing_is_left(self):
        """Streams and models that nobody holds are freed."""
        def speak():
            for _ in range(3):
                stream = utter.Model().stream("Hello.")
                next(stream)
        speak()
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        speak()
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)

    def test_sound_files(self):
        """Written whole, or an error and nothing."""
        with tempfile.TemporaryDirectory() as folder:
            utter.save(f"{folder}/a.flac", noise(1), 24000)
            with open(f"{folder}/a.flac", "rb") as file:
                self.assertEqual(file.read(4), b"fLaC")
            with self.assertRaises(utter.Error):
                utter.save(f"{folder}/a.txt", noise(1), 24000)
            self.assertEqual(os.listdir(folder), ["a.flac"])


class Voices(unittest.TestCase):
    """Clones, designs, mixtures."""

    def test_clone(self):
        """From samples and from a file; kept, and speaking."""
        told = []
        model = utter.Model(BASE)
        voice = model.clone(noise(3), "What I said.", name="me", language="english", progress=told.append)
        self.assertEqual((voice.name, voice.kind, voice.transcript), ("me", "context", "What I said."))
        self.assertEqual(told[-1], 1)
        self.assertTrue(voice.fits(model) and len(voice.x_vector) and voice.codes.shape[1] == 16)
        with tempfile.TemporaryDirectory() as folder:
            voice.save(f"{folder}/me.voice")
            utter.save(f"{folder}/me.wav", noise(3), 24000)
            again = utter.Voice.load(f"{folder}/me.voice")
            self.assertTrue(np.array_equal(again.codes, voice.codes))
            one = model.say("Hi.", voice=voice, max_frames=3)
            self.assertTrue(np.array_equal(one, model.say("Hi.", voice=f"{folder}/me.voice", max_frames=3)))
            plain = model.clone(f"{folder}/me.wav")
        self.assertEqual((plain.kind, plain.codes.shape[0]), ("vector", 0))
        mixed = utter.Voice.mix([(plain, 1), (voice, 3)], "both")
        want = 0.25 * plain.x_vector + 0.75 * voice.x_vector
        self.assertTrue(np.allclose(mixed.x_vector, want, atol=1e-5))

    def test_progress_stops(self):
        """By False, and by what it raises."""
        model = utter.Model(BASE)
        with self.assertRaises(utter.Cancelled):
            model.clone(noise(3), "What I said.", progress=lambda done: False)

        def fail(_done):
            raise KeyError("mine")
        with self.assertRaises(KeyError):
            model.clone(noise(3), "What I said.", progress=fail)
        with self.assertRaises(utter.ArgumentError):
            model.clone(noise(4).reshape(2, -1))

    def test_design_needs_a_designer(self):
        """Another model says why not."""
        base = utter.Model(BASE)
        with self.assertRaises(utter.Error):
            base.design("An old man.", base)


class Asyncio(unittest.TestCase):
    """Samples and text of other tasks."""

    def test_text_while_it_is_written(self):
        """The same samples, with sound before the text is complete, and other tasks that go on."""
        beats = []

        async def words(model_spoke):
            for word in TEXT.split(" ")[:-1]:
                yield word + " "
                await asyncio.sleep(0.001)
            await asyncio.wait_for(model_spoke.wait(), 20)
            yield TEXT.split(" ")[-1]

        async def beat():
            while True:
                beats.append(time.monotonic())
                await asyncio.sleep(0.001)

        async def main():
            model, spoke, parts = utter.Model(), asyncio.Event(), []
            heart = asyncio.ensure_future(beat())
            async for samples in model.astream(words(spoke), layout="stream"):
                spoke.set()
                parts.append(samples)
            heart.cancel()
            return np.concatenate(parts), model.say(TEXT, layout="stream")
        got, want = asyncio.run(main())
        self.assertTrue(np.array_equal(got, want))
        self.assertGreater(len(beats), 20)

    def test_leaving_early_frees_the_lane(self):
        """As when a listener hangs up."""
        async def main():
            model = utter.Model()
            speech = model.astream("A sentence. " * 20)
            async for _ in speech:
                break
            await speech.aclose()
            return [len(samples) async for samples in model.astream("Hello.")]
        self.assertGreater(sum(asyncio.run(main())), 1000)


class Promptness(unittest.TestCase):
    """What Python adds to C."""

    def test_first_sound(self):
        """2 ms at most, the median of 15; the library tells its own time."""
        model, added = utter.Model(), []
        for _ in range(15):
            begin = time.monotonic()
            with model.stream("Hello there, this is a sentence.") as stream:
                next(stream)
                added.append(time.monotonic() - begin - stream.stats.first_sound)
        print(json.dumps({"python_adds_ms": round(1000 * sorted(added)[7], 3)}), file=sys.stderr)
        self.assertLess(sorted(added)[7], 0.002)


if __name__ == "__main__":
    unittest.main()
