# What every class of Pipecat and LiveKit is put through: it speaks, is interrupted, speaks again, and meets an error.
import asyncio

SAYS = "Hello there, how are you today? I am fine."
LONG = "The quick brown fox jumps over the lazy dog near the river bank. " * 6


def pipecat_ear():
    from pipecat.frames.frames import ErrorFrame, TTSAudioRawFrame, TTSStoppedFrame, TTSTextFrame
    from pipecat.processors.frame_processor import FrameProcessor

    class Ear(FrameProcessor):
        def __init__(self):
            super().__init__()
            self.seconds, self.stopped, self.said, self.errors, self.heard = 0, 0, [], [], asyncio.Event()

        async def process_frame(self, frame, direction):
            await super().process_frame(frame, direction)
            if isinstance(frame, TTSAudioRawFrame):
                self.seconds += len(frame.audio) / 2 / frame.sample_rate
                self.heard.set()
            elif isinstance(frame, TTSTextFrame):
                self.said.append(frame.text)
            elif isinstance(frame, ErrorFrame):
                self.errors.append(frame.error)
            self.stopped += isinstance(frame, TTSStoppedFrame)
            await self.push_frame(frame, direction)
    return Ear()


def pipecat_drive(make, words=False, long=LONG):
    """make(voice): the service; voice None is a good one. words: it tells them as they are heard."""
    from pipecat.frames.frames import EndFrame, InterruptionTaskFrame, TTSSpeakFrame
    from pipecat.pipeline.pipeline import Pipeline
    from pipecat.pipeline.runner import PipelineRunner
    from pipecat.pipeline.task import PipelineTask

    async def settle(ear, quiet=1.0):
        """Until no more sound has come for a while."""
        was = -1
        while was != ear.seconds:
            was = ear.seconds
            await asyncio.sleep(quiet)

    async def begin(voice):
        ear, above = pipecat_ear(), pipecat_ear()
        above.errors = ear.errors  # which go up
        task = PipelineTask(Pipeline([above, make(voice), ear]))
        return ear, task, asyncio.create_task(PipelineRunner(handle_sigint=False).run(task))

    async def talk():
        ear, task, runner = await begin(None)
        await task.queue_frame(TTSSpeakFrame(SAYS))
        await asyncio.wait_for(ear.heard.wait(), 20)
        await settle(ear)
        first = ear.seconds
        assert 1 < first < 12 and not ear.errors, (first, ear.errors)
        if words:
            assert "".join("".join(ear.said).split()) == "".join(SAYS.split()), ear.said
        ear.heard.clear()
        await task.queue_frame(TTSSpeakFrame(long))
        await asyncio.wait_for(ear.heard.wait(), 20)
        await task.queue_frame(InterruptionTaskFrame())
        await asyncio.sleep(0.5)
        await settle(ear, 0.3)
        ear.seconds, ear.said = 0, []
        ear.heard.clear()
        await task.queue_frame(TTSSpeakFrame(SAYS))
        await asyncio.wait_for(ear.heard.wait(), 20)
        await settle(ear)
        assert abs(ear.seconds - first) < 0.5 * first and not ear.errors, (ear.seconds, first, ear.errors)
        await task.queue_frame(EndFrame())
        await asyncio.wait_for(runner, 15)
        ear, task, runner = await begin("nobody")
        await task.queue_frame(TTSSpeakFrame(SAYS))
        await task.queue_frame(EndFrame())
        await asyncio.wait_for(runner, 30)
        assert ear.errors and ear.seconds == 0, (ear.errors, ear.seconds)
    asyncio.run(asyncio.wait_for(talk(), 90))


def livekit_drive(make):
    """make(http, voice): the plugin's TTS; voice None is a good one."""
    import aiohttp
    from livekit.agents import APIConnectOptions, APIError

    async def talk():
        once = APIConnectOptions(max_retry=0, timeout=10)
        async with aiohttp.ClientSession() as http:
            service = make(http, None)

            async def whole(text):
                seconds = 0
                async with service.synthesize(text, conn_options=once) as stream:
                    async for piece in stream:
                        seconds += piece.frame.duration
                return seconds

            async def streamed(text, most=1e9):
                seconds = 0
                async with service.stream(conn_options=once) as stream:
                    for word in text.split():
                        stream.push_text(word + " ")
                    stream.end_input()
                    async for piece in stream:
                        seconds += piece.frame.duration
                        if seconds > most:
                            break
                return seconds
            first = await whole(SAYS)
            assert 1 < first < 12, first
            if service.capabilities.streaming:
                assert 1 < await streamed(SAYS) < 12
                assert await streamed(LONG, most=0.3) < 12  # interrupted: the stream is closed in the middle
                assert 1 < await streamed(SAYS) < 12
            await service.aclose()
            service = make(http, "nobody")
            try:
                await whole(SAYS)
                raise AssertionError("an unknown voice spoke")
            except APIError:
                pass
            await service.aclose()
            service = make(http, None)
            assert 1 < await whole(SAYS) < 12
            await service.aclose()
    asyncio.run(asyncio.wait_for(talk(), 90))
