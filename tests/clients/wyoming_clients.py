# The Wyoming package on the two paths of Home Assistant's integration: whole texts, and texts in pieces. Runs alone
# with another version of the package: wyoming_clients.py PROGRAM.
import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from client import Checks, Server, free_port  # noqa: E402

TEXT = "Hello there, how are you today?"


async def one_shot(uri, voice, leave_early=False):
    from wyoming.audio import AudioChunk, AudioStart, AudioStop
    from wyoming.client import AsyncClient
    from wyoming.error import Error
    from wyoming.tts import Synthesize, SynthesizeVoice
    sound, rate = b"", 0
    async with AsyncClient.from_uri(uri) as client:
        await client.write_event(Synthesize(text=TEXT, voice=SynthesizeVoice(name=voice)).event())
        while True:
            event = await client.read_event()
            if event is None or Error.is_type(event.type):
                return None
            if AudioStop.is_type(event.type):
                return len(sound) / 2 / rate
            if AudioStart.is_type(event.type):
                rate = AudioStart.from_event(event).rate
            if AudioChunk.is_type(event.type):
                sound += AudioChunk.from_event(event).audio
                if leave_early:
                    return 0


async def streamed(uri):
    from wyoming.audio import AudioChunk, AudioStart
    from wyoming.client import AsyncClient
    from wyoming.tts import (Synthesize, SynthesizeChunk, SynthesizeStart, SynthesizeStop, SynthesizeStopped,
                             SynthesizeVoice)
    sound, starts = b"", 0
    async with AsyncClient.from_uri(uri) as client:
        await client.write_event(SynthesizeStart(voice=SynthesizeVoice(name="clara")).event())
        for word in TEXT.split():
            await client.write_event(SynthesizeChunk(text=word + " ").event())
        await client.write_event(Synthesize(text=TEXT).event())
        await client.write_event(SynthesizeStop().event())
        while True:
            event = await client.read_event()
            assert event, "closed before its end"
            if SynthesizeStopped.is_type(event.type):
                assert starts == 1, starts
                return len(sound) / 48000
            starts += AudioStart.is_type(event.type)
            sound += AudioChunk.from_event(event).audio if AudioChunk.is_type(event.type) else b""


async def talk(uri):
    from wyoming.client import AsyncClient
    from wyoming.info import Describe, Info
    async with AsyncClient.from_uri(uri) as client:
        await client.write_event(Describe().event())
        info = Info.from_event(await asyncio.wait_for(client.read_event(), 1))
    program = info.tts[0]
    assert program.installed and program.supports_synthesize_streaming
    assert {v.name for v in program.voices if v.installed and "en" in v.languages} == {"clara", "miles"}
    whole = await one_shot(uri, "clara")
    assert 1 < whole < 8 and 1 < await streamed(uri) < 8
    assert await one_shot(uri, "clara", leave_early=True) == 0
    assert await one_shot(uri, "nobody") is None
    assert await one_shot(uri, "clara") == whole


def home_assistant(program):
    port = free_port()
    s = Server(program, "--wyoming", f"tcp://127.0.0.1:{port}")
    try:
        asyncio.run(asyncio.wait_for(talk(f"tcp://127.0.0.1:{port}"), 60))
    finally:
        assert s.stop() == 0


if __name__ == "__main__":
    checks = Checks()
    checks.run("home_assistant", home_assistant, sys.argv[1])
    sys.exit(checks.end())
