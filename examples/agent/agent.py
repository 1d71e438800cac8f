#!/usr/bin/env python3
"""A small voice agent with Pipecat and `utter serve`, without any network beyond this machine.

    utter serve &
    pip install pipecat-ai
    examples/agent/agent.py "hello" "what time is it" "goodbye"

The words of the user come from the command line, the answers from a table, the voice from the server; what the user
would hear goes to a WAV file. Put a microphone, a recogniser and a language model in the places of the first two.
"""
import argparse
import asyncio
import time
import wave

from pipecat.frames.frames import EndFrame, ErrorFrame, TextFrame, TTSAudioRawFrame, TTSSpeakFrame
from pipecat.pipeline.pipeline import Pipeline
from pipecat.pipeline.runner import PipelineRunner
from pipecat.pipeline.task import PipelineTask
from pipecat.processors.frame_processor import FrameProcessor
from pipecat.services.openai.tts import OpenAITTSService

ANSWERS = {"hello": "Hello there. How can I help you?", "goodbye": "Goodbye. It was good to talk to you."}


class Mind(FrameProcessor):
    """Hears text, says what to answer."""

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if type(frame) is not TextFrame:
            await self.push_frame(frame, direction)
        elif "time" in frame.text:
            await self.push_frame(TTSSpeakFrame(time.strftime("It is %H hours and %M minutes.")))
        else:
            await self.push_frame(TTSSpeakFrame(ANSWERS.get(frame.text.lower(), "I do not know that yet.")))


class Recorder(FrameProcessor):
    """Keeps what the user would hear."""

    def __init__(self):
        super().__init__()
        self.sound, self.rate, self.error = bytearray(), 24000, None

    async def process_frame(self, frame, direction):
        await super().process_frame(frame, direction)
        if isinstance(frame, TTSAudioRawFrame):
            self.sound += frame.audio
            self.rate = frame.sample_rate
        elif isinstance(frame, ErrorFrame):
            self.error = frame.error
        await self.push_frame(frame, direction)


async def talk(options):
    recorder = Recorder()
    voice = OpenAITTSService(api_key="none", base_url=options.url,
                             settings=OpenAITTSService.Settings(voice=options.voice))
    task = PipelineTask(Pipeline([Mind(), voice, recorder]))
    await task.queue_frames([TextFrame(text) for text in options.said] + [EndFrame()])
    await PipelineRunner(handle_sigint=False).run(task)
    if recorder.error or not recorder.sound:
        raise SystemExit(f"agent: {recorder.error or 'nothing was said'}")
    with wave.open(options.out, "wb") as out:
        out.setparams((1, 2, recorder.rate, 0, "NONE", ""))
        out.writeframes(bytes(recorder.sound))
    print(f"{options.out}: {len(recorder.sound) / 2 / recorder.rate:.1f} s of answers")


def main():
    parser = argparse.ArgumentParser(description="Answers lines of text by voice.")
    parser.add_argument("--url", default="http://127.0.0.1:8080/v1")
    parser.add_argument("--voice", default="alloy")
    parser.add_argument("--out", default="agent.wav")
    parser.add_argument("said", nargs="+", help="what the user says")
    asyncio.run(talk(parser.parse_args()))


main()
