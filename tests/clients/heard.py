# What a conversation's context holds after an interruption, against what was heard: Pipecat and LiveKit as they are,
# with a loudspeaker that plays in real time. The judge of what was heard is pocketsphinx, which aligns the text with
# the whole sound. Usage: heard.py PROGRAM [PLACES [NAME ...] [-v]]; prints a line for each service and ends with 1
# where more than a word differs. Minutes of real time, next to no work: it waits while it listens.
import array
import asyncio
import pathlib
import random
import re
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server"))
from client import Server  # noqa: E402

RATE = 16000  # which pocketsphinx takes
VOICE = "21m00Tcm4TlvDq8ikWAM"
TEXT = ("The quick brown fox jumps over the lazy dog near the river bank. After the rain, many people walked slowly "
        "along the old road. Nobody knew the name of the little town, but everybody liked it very much.")


def words_of(text):
    return re.findall(r"[a-z']+", text.lower())


def aligned(sound):
    """When each word of the text begins and ends in the sound, in seconds, as an outside judge hears it."""
    from pocketsphinx import Decoder, get_model_path
    d = Decoder(lm=None, hmm=get_model_path("en-us/en-us"), dict=get_model_path("en-us/cmudict-en-us.dict"),
                samprate=RATE, loglevel="FATAL")
    d.set_align_text(" ".join(words_of(TEXT)))
    d.start_utt()
    d.process_raw(sound, full_utt=True)
    d.end_utt()
    assert d.seg(), "the judge does not find the text in the sound: is it whole?"
    times = [(s.start_frame / 100, (s.end_frame + 1) / 100) for s in d.seg()
             if re.sub(r"\(\d\)", "", s.word) in words_of(TEXT)]
    assert len(times) == len(words_of(TEXT)), len(times)
    return times


def is_alike(part, whole):
    """Whether it is the beginning of the same sound, but for what a resampler makes of the pieces it is given."""
    a, b = array.array("h", part), array.array("h", whole[:len(part)])
    energy = sum(x * x for x in b)
    return sum((x - y) ** 2 for x, y in zip(a, b)) < 0.05 * energy


class Played:
    """What a loudspeaker without a buffer has played."""

    def __init__(self):
        self.sound, self.due, self.stalled, self.heard = b"", 0, 0, asyncio.Event()

    def clear(self):
        self.sound, self.due, self.stalled = b"", 0, 0
        self.heard.clear()

    @property
    def seconds(self):
        return len(self.sound) / 2 / RATE

    async def play(self, sound):
        now = asyncio.get_running_loop().time()
        if now > self.due + 0.1:  # late by less: a device has a little in hand
            self.stalled += now - self.due if self.due else 0
            self.due = now
        self.due += len(sound) / 2 / RATE
        self.heard.set()
        await asyncio.sleep(max(self.due - now, 0))
        self.sound += sound


async def all_places(say, places):
    """The whole, then each place; again where a machine at work let the loudspeaker run dry, as clients cannot know."""
    results = [await say(None)]
    for seconds in places:
        for _ in range(6):
            result = await say(seconds)
            if result[2] == 0:
                break
        results.append(result)
    return results


# ---- Pipecat ----

async def pipecat(make, places):
    from pipecat.frames.frames import (InterruptionTaskFrame, LLMFullResponseEndFrame, LLMFullResponseStartFrame,
                                       LLMTextFrame)
    from pipecat.pipeline.pipeline import Pipeline
    from pipecat.pipeline.runner import PipelineRunner
    from pipecat.pipeline.task import PipelineParams, PipelineTask
    from pipecat.processors.aggregators.llm_context import LLMContext
    from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
    from pipecat.transports.base_output import BaseOutputTransport
    from pipecat.transports.base_transport import TransportParams

    class Loudspeaker(BaseOutputTransport):
        def __init__(self):
            super().__init__(TransportParams(audio_out_enabled=True, audio_out_10ms_chunks=2))
            self.played = Played()

        async def start(self, frame):
            await super().start(frame)
            await self.set_transport_ready(frame)

        async def write_audio_frame(self, frame):
            await self.played.play(frame.audio)
            return True

    context, loudspeaker = LLMContext(), Loudspeaker()
    played, pair = loudspeaker.played, LLMContextAggregatorPair(context)
    task = PipelineTask(Pipeline([make(), loudspeaker, pair.assistant()]),
                        params=PipelineParams(audio_out_sample_rate=RATE))
    runner = asyncio.create_task(PipelineRunner(handle_sigint=False).run(task))

    async def say(seconds):
        """(sound that was played, text in the context, seconds it stood still); seconds None: to the end."""
        before = len(context.messages)
        played.clear()
        await task.queue_frames([LLMFullResponseStartFrame()] +
                                [LLMTextFrame(word + " ") for word in TEXT.split()] + [LLMFullResponseEndFrame()])
        await asyncio.wait_for(played.heard.wait(), 10)
        if seconds is None:
            was = -1
            while was != played.seconds:
                was = played.seconds
                await asyncio.sleep(4)
        else:
            while played.seconds < seconds:
                await asyncio.sleep(0.005)
            await task.queue_frame(InterruptionTaskFrame())
            await asyncio.sleep(0.3)
        sound, stalled = played.sound, played.stalled
        await asyncio.sleep(0.7)
        return sound, " ".join(m["content"] for m in context.messages[before:]), stalled
    results = await all_places(say, places)
    await task.cancel()
    await asyncio.wait_for(runner, 15)
    return results


# ---- LiveKit ----

def livekit_outputs():
    """(a loudspeaker, a text that nobody reads), as LiveKit wants them."""
    from livekit.agents.voice import io

    class Loudspeaker(io.AudioOutput):
        def __init__(self):
            super().__init__(label="loudspeaker", capabilities=io.AudioOutputCapabilities(pause=False),
                             sample_rate=RATE)
            self.played, self.queue, self.task = Played(), asyncio.Queue(), None

        async def capture_frame(self, frame):
            await super().capture_frame(frame)
            self.queue.put_nowait(bytes(frame.data))
            self.task = self.task or asyncio.create_task(self.run())

        async def run(self):
            self.on_playback_started(created_at=time.time())
            while (sound := await self.queue.get()) is not None:
                for i in range(0, len(sound), RATE // 25):  # 20 ms
                    await self.played.play(sound[i:i + RATE // 25])
            self.end(False)

        def end(self, interrupted):
            self.task, self.queue = None, asyncio.Queue()
            self.on_playback_finished(playback_position=self.played.seconds, interrupted=interrupted)

        def flush(self):
            super().flush()
            self.queue.put_nowait(None)

        def clear_buffer(self):
            if self.task:
                self.task.cancel()
                self.end(True)

    class Text(io.TextOutput):
        def __init__(self):
            super().__init__(label="text", next_in_chain=None)

        async def capture_text(self, text):
            pass

        def flush(self):
            pass
    return Loudspeaker(), Text()


async def livekit(make, places):
    import aiohttp
    from livekit.agents import Agent, AgentSession
    from livekit.agents.voice.transcription import TranscriptSynchronizer

    loudspeaker, text = livekit_outputs()
    async with aiohttp.ClientSession() as http:
        session = AgentSession(tts=make(http), use_tts_aligned_transcript=True)
        synchronizer = TranscriptSynchronizer(next_in_chain_audio=loudspeaker, next_in_chain_text=text)
        session.output.audio, session.output.transcription = synchronizer.audio_output, synchronizer.text_output
        await session.start(Agent(instructions=""))

        async def say(seconds):
            played = loudspeaker.played
            played.clear()
            before = len(session.history.items)
            handle = session.say(TEXT)
            await asyncio.wait_for(played.heard.wait(), 10)
            while seconds is not None and played.seconds < seconds:
                await asyncio.sleep(0.005)
            if seconds is not None:
                handle.interrupt()
            await asyncio.wait_for(handle.wait_for_playout(), 60)
            sound, stalled = played.sound, played.stalled
            await asyncio.sleep(0.5)
            said = [i.text_content for i in session.history.items[before:] if i.type == "message"]
            return sound, " ".join(said), stalled
        results = await all_places(say, places)
        await session.aclose()
    return results


def services(port):
    def pipecat_elevenlabs():
        from pipecat.services.elevenlabs.tts import ElevenLabsTTSService
        return ElevenLabsTTSService(api_key="none", url=f"ws://127.0.0.1:{port}",
                                    settings=ElevenLabsTTSService.Settings(voice=VOICE, model="eleven_flash_v2_5"))

    def pipecat_cartesia():
        from pipecat.services.cartesia.tts import CartesiaTTSService
        return CartesiaTTSService(api_key="none", url=f"ws://127.0.0.1:{port}/tts/websocket",
                                  settings=CartesiaTTSService.Settings(voice="clara"))

    def livekit_elevenlabs(http):
        from livekit.plugins import elevenlabs
        return elevenlabs.TTS(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", voice_id=VOICE,
                              http_session=http)

    def livekit_cartesia(http):
        from livekit.plugins import cartesia
        return cartesia.TTS(base_url=f"http://127.0.0.1:{port}", api_key="none", voice="clara", http_session=http)
    return {"pipecat elevenlabs": (pipecat, pipecat_elevenlabs), "pipecat cartesia": (pipecat, pipecat_cartesia),
            "livekit elevenlabs": (livekit, livekit_elevenlabs), "livekit cartesia": (livekit, livekit_cartesia)}


def measure(run, make, n_places):
    """By how many words the context differs from what was heard, at each place. A word of which a part was heard may be
    there (Pipecat) or not (LiveKit)."""
    rand = random.Random(20)
    places = [rand.uniform(0.3, 9) for _ in range(n_places)]
    whole, *cut = asyncio.run(run(make, places))
    times = aligned(whole[0])
    assert words_of(whole[1]) == words_of(TEXT), whole[1]
    differences = []
    for sound, text, stalled in cut:
        n = len(words_of(text))
        assert words_of(text) == words_of(TEXT)[:n], text
        assert is_alike(sound, whole[0]), "the same text sounds otherwise"
        seconds = len(sound) / 2 / RATE
        begun, ended = sum(start < seconds for start, _ in times), sum(end <= seconds for _, end in times)
        differences.append(max(n - begun, 0) or min(n - ended, 0))
        if "-v" in sys.argv:
            print(f"{seconds:.2f} s, still for {stalled:.2f} s, '{text}', the judge's words from",
                  max(n - 3, 0), times[max(n - 3, 0):n + 3], flush=True)
    return differences


def main():
    s = Server(sys.argv[1], "--lanes", "8")
    n_places, wanted, worst = int(sys.argv[2]) if len(sys.argv) > 2 else 20, " ".join(sys.argv[3:]), 0
    for name, (run, make) in services(s.port).items():
        if all(word in name for word in wanted.split() if word != "-v"):
            differences = measure(run, make, n_places)
            worst = max(worst, *map(abs, differences))
            print(f"{name}: {len(differences)} places, words more (less) in the context than were heard: {differences}",
                  flush=True)
    s.stop()
    return worst > 1


if __name__ == "__main__":
    sys.exit(main())
