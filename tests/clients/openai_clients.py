# The package openai as it is, newest and 1.40: every format and voice, errors, an interruption, speech after it. By
# itself: openai_clients.py PROGRAM.
import asyncio
import importlib.util
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from client import Checks, Server, wait_for  # noqa: E402

TEXT = "Hello there, how are you today?"


def openai_speaks_all_formats(s):
    import openai
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{s.port}/v1", api_key="none")
    assert "tts-1" in [m.id for m in client.models.list()]
    for voice in ("alloy", "ash", "ballad", "coral", "echo", "fable", "onyx", "nova", "sage", "shimmer", "verse",
                  "marin", "cedar"):
        with client.audio.speech.with_streaming_response.create(
                model="gpt-4o-mini-tts", voice=voice, input="Hi.", response_format="pcm") as answer:
            assert sum(len(piece) for piece in answer.iter_bytes(24000)) > 3000
    for kind in ("mp3", "opus", "aac", "flac", "wav", "pcm"):
        sound = client.audio.speech.create(model="tts-1", voice="nova", input=TEXT, response_format=kind).content
        assert len(sound) > 5000, kind
    for wrong, kind in (({"voice": "nobody"}, openai.BadRequestError), ({"model": "x"}, openai.NotFoundError),
                        ({"speed": 9}, openai.BadRequestError)):
        try:
            client.audio.speech.create(**{"model": "tts-1", "voice": "nova", "input": TEXT, **wrong})
            raise AssertionError(wrong)
        except kind as e:
            assert e.body["param"] in wrong and e.request_id, e.body


def openai_is_interrupted_and_goes_on(s):
    import openai

    async def talk():
        client = openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{s.port}/v1", api_key="none")
        async with client.audio.speech.with_streaming_response.create(
                model="tts-1", voice="nova", input=TEXT * 40, response_format="pcm") as answer:
            async for _ in answer.iter_bytes(4800):
                break
        sound = await client.audio.speech.create(model="tts-1", voice="nova", input=TEXT, response_format="pcm")
        assert len(sound.content) > 50000
        await client.close()
    asyncio.run(asyncio.wait_for(talk(), 60))
    assert wait_for(lambda: s.metric("requests_running") == 0)


def pipecat_openai(s):
    from agents import pipecat_drive
    from pipecat.services.openai.tts import OpenAITTSService
    pipecat_drive(lambda voice: OpenAITTSService(
        api_key="none", base_url=f"http://127.0.0.1:{s.port}/v1",
        settings=OpenAITTSService.Settings(voice="nova", model="x" if voice else "tts-1")))  # it checks voices itself


def livekit_openai(s):
    from agents import livekit_drive
    from livekit.plugins import openai as plugin
    livekit_drive(lambda http, voice: plugin.TTS(
        base_url=f"http://127.0.0.1:{s.port}/v1", api_key="none", voice=voice or "ash"))


TESTS = [openai_speaks_all_formats, openai_is_interrupted_and_goes_on]
ALONE = list(TESTS)  # also with the oldest version, which those below do not take
if importlib.util.find_spec("pipecat"):
    TESTS.append(pipecat_openai)
if importlib.util.find_spec("livekit"):
    TESTS.append(livekit_openai)

if __name__ == "__main__":
    import openai
    checks, server = Checks(), Server(sys.argv[1], "-q")
    for test in ALONE:
        checks.run(f"{test.__name__} ({openai.__version__})", test, server)
    server.stop()
    sys.exit(checks.end())
