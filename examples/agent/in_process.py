#!/usr/bin/env python3
"""A small voice agent in one process, with asyncio and the Python package: no server between.

    pip install ./bindings/python
    examples/agent/in_process.py "hello" "what time is it" "goodbye"

A line is what the user says. The answer is spoken while its words are still coming; the next line interrupts it, as
people do, and the lane is free again within a frame. What the user would hear goes to a WAV file. Put a recogniser in
the place of `listen`, a language model in that of `think`, a loudspeaker in that of `Ear`.
"""
import argparse
import asyncio
import time
import wave

import utter

ANSWERS = {"hello": "Hello there. How can I help you today?", "goodbye": "Goodbye. It was good to talk to you."}


async def think(said):
    """The words of an answer, one after the other, as a language model gives them."""
    answer = time.strftime("It is %H hours and %M minutes.") if "time" in said else ANSWERS.get(
        said.lower(), "I do not know that yet.")
    for word in answer.split():
        await asyncio.sleep(0.02)
        yield word + " "


class Ear:
    """Where the sound goes: here, a WAV file."""

    def __init__(self, path, rate):
        self.file = wave.open(path, "wb")
        self.file.setparams((1, 2, rate, 0, "NONE", ""))

    def hear(self, samples):
        self.file.writeframes((samples.clip(-1, 1) * 32767).astype("<i2").tobytes())


async def answer(model, said, ear):
    """Speaks; says when the first sound was there, and whether it came to its end."""
    begin, seconds, first = time.monotonic(), 0.0, 0.0
    try:
        async for samples in model.astream(think(said), layout="stream"):
            first = first or time.monotonic() - begin
            seconds += len(samples) / model.sample_rate
            ear.hear(samples)
        print(f"{said!r}: {seconds:.1f} s, the first sound after {1000 * first:.0f} ms")
    except asyncio.CancelledError:
        print(f"{said!r}: interrupted after {seconds:.1f} s")


async def listen(lines, pause):
    """What the user says, and when."""
    for line in lines:
        yield line
        await asyncio.sleep(pause)


async def talk(options):
    model = utter.Model(options.model)
    ear, speaking = Ear(options.out, model.sample_rate), None
    async for line in listen(options.said, options.pause):
        if speaking and not speaking.done():
            speaking.cancel()
            await speaking
        speaking = asyncio.ensure_future(answer(model, line, ear))
    await speaking


def main():
    parser = argparse.ArgumentParser(description="Answers lines of text by voice, in this process.")
    parser.add_argument("--model", help="a name or folder; default: the voice that comes with the package")
    parser.add_argument("--out", default="agent.wav")
    parser.add_argument("--pause", type=float, default=3, help="seconds until the user says the next line")
    parser.add_argument("said", nargs="+", help="what the user says")
    asyncio.run(talk(parser.parse_args()))


main()
