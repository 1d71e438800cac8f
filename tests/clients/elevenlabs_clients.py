# ElevenLabs' own package, Pipecat's and LiveKit's classes for it, pointed at the server as they are.
import base64
import importlib.util

from client import wait_for

TEXT = "Hello there, how are you today?"
VOICE = "21m00Tcm4TlvDq8ikWAM"  # theirs; stands for one of ours


def client_of(s):
    from elevenlabs import ElevenLabs
    return ElevenLabs(base_url=f"http://127.0.0.1:{s.port}", api_key="none")


def elevenlabs_speaks_all_formats(s):
    from elevenlabs.core.api_error import ApiError
    client = client_of(s)
    formats = ("mp3_22050_32 mp3_24000_48 mp3_44100_32 mp3_44100_64 mp3_44100_96 mp3_44100_128 mp3_44100_192 pcm_8000 "
               "pcm_16000 pcm_22050 pcm_24000 pcm_32000 pcm_44100 pcm_48000 ulaw_8000 alaw_8000 opus_48000_32 "
               "opus_48000_64 opus_48000_96 opus_48000_128 opus_48000_192").split()
    seconds = len(s.speak(input=TEXT, seed=0)[2]) / 48000
    for kind in formats:
        coder, rate, *kbit = kind.split("_")
        sound = b"".join(client.text_to_speech.convert(VOICE, text=TEXT, output_format=kind, seed=0))
        rate = int(kbit[0]) * 125 if kbit else int(rate) * (2 if coder == "pcm" else 1)
        want = seconds * rate
        # Opus takes fewer bits than it may, and 28 bytes for each page of 20 ms; mp3 has a few frames more than there
        # are samples.
        least, more = (0.3, 1600 * seconds) if coder == "opus" else (0.99, 0)
        assert least * want < len(sound) < 1.1 * want + 2000 + more, (kind, len(sound), want)
    assert sum(map(len, client.text_to_speech.stream(VOICE, text=TEXT))) > 10000
    for wrong in ({"voice_id": "nobody"}, {"output_format": "mp3_1_1"}, {"text": ""}, {"text": "a" * 9000000}):
        try:
            list(client.text_to_speech.convert(**{"voice_id": VOICE, "text": TEXT, **wrong}))
            raise AssertionError(wrong)
        except ApiError as e:
            assert e.status_code in (400, 404, 413, 422) and e.body["detail"]["message"], (wrong, e.body)


def elevenlabs_tells_times_and_lists(s):
    client = client_of(s)
    whole = client.text_to_speech.convert_with_timestamps(VOICE, text=TEXT, output_format="pcm_24000")
    seconds = len(base64.b64decode(whole.audio_base_64)) / 48000
    pieces = list(client.text_to_speech.stream_with_timestamps(VOICE, text=TEXT, output_format="pcm_24000"))
    assert b"".join(base64.b64decode(p.audio_base_64) for p in pieces) == base64.b64decode(whole.audio_base_64)
    told = [p.alignment for p in pieces if p.alignment]  # a few words each
    for alignments in [whole.alignment], told:
        ends = [t for a in alignments for t in a.character_end_times_seconds]
        assert "".join(c for a in alignments for c in a.characters).strip() == TEXT
        assert ends == sorted(ends) and abs(ends[-1] - seconds) < 0.1, (ends, seconds)
    assert {v.voice_id for v in client.voices.get_all().voices} >= {"clara", "miles"}
    assert client.models.list()[0].can_do_text_to_speech
    assert client.voices.get("clara").name == "clara"


def elevenlabs_is_interrupted_and_goes_on(s):
    client = client_of(s)
    before = list(client.text_to_speech.stream(VOICE, text=TEXT, output_format="pcm_24000"))
    for begin in (lambda: client.text_to_speech.stream(VOICE, text=TEXT * 40),
                  lambda: client.text_to_speech.stream_with_timestamps(VOICE, text=TEXT * 40),
                  lambda: client.text_to_speech.convert_realtime(VOICE, text=iter([TEXT * 40]), model_id="x")):
        with OverPlainWebSocket():
            pieces = begin()
            assert next(pieces)
            pieces.close()  # in the middle
    assert wait_for(lambda: s.metric("requests_running") == 0)
    again = list(client.text_to_speech.stream(VOICE, text=TEXT, output_format="pcm_24000"))
    assert b"".join(again) == b"".join(before)


class OverPlainWebSocket:
    """The package's own WebSocket helper sets wss whatever the address is; this gives it the address that was meant."""

    def __enter__(self):
        from elevenlabs import realtime_tts
        self.module, self.was = realtime_tts, realtime_tts.connect
        realtime_tts.connect = lambda url, **more: self.was(url.replace("wss://", "ws://"), **more)

    def __exit__(self, *_):
        self.module.connect = self.was


def elevenlabs_streams_text(s):
    client = client_of(s)
    with OverPlainWebSocket():
        for _ in range(2):
            sound = b"".join(client.text_to_speech.convert_realtime(
                VOICE, text=iter(["Hello there, ", "how are ", "you today?"]), model_id="eleven_flash_v2_5",
                output_format="pcm_24000"))
            assert 48000 < len(sound) < 400000, len(sound)
        from elevenlabs.core.api_error import ApiError
        try:
            list(client.text_to_speech.convert_realtime("nobody", text=iter(["Hi "]), model_id="x"))
            raise AssertionError("an unknown voice spoke")
        except ApiError as e:
            assert "nobody" in str(e.body), e.body


def pipecat_elevenlabs(s):
    from agents import pipecat_drive
    from pipecat.services.elevenlabs.tts import ElevenLabsTTSService
    pipecat_drive(lambda voice: ElevenLabsTTSService(
        api_key="none", url=f"ws://127.0.0.1:{s.port}",
        settings=ElevenLabsTTSService.Settings(voice=voice or VOICE, model="eleven_flash_v2_5")), words=True)


def pipecat_elevenlabs_http(s):
    import aiohttp
    from agents import pipecat_drive
    from pipecat.services.elevenlabs.tts import ElevenLabsHttpTTSService

    pipecat_drive(lambda voice: ElevenLabsHttpTTSService(
        api_key="none", base_url=f"http://127.0.0.1:{s.port}", aiohttp_session=aiohttp.ClientSession(),
        settings=ElevenLabsHttpTTSService.Settings(voice=voice or VOICE)), words=True)


def livekit_elevenlabs(s):
    from agents import livekit_drive
    from livekit.plugins import elevenlabs as plugin
    livekit_drive(lambda http, voice: plugin.TTS(base_url=f"http://127.0.0.1:{s.port}/v1", api_key="none",
                                                 voice_id=voice or VOICE, http_session=http))


TESTS = [elevenlabs_speaks_all_formats, elevenlabs_tells_times_and_lists, elevenlabs_streams_text,
         elevenlabs_is_interrupted_and_goes_on]
if importlib.util.find_spec("pipecat"):
    TESTS += [pipecat_elevenlabs, pipecat_elevenlabs_http]
if importlib.util.find_spec("livekit.plugins.elevenlabs"):
    TESTS.append(livekit_elevenlabs)
