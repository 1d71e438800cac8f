# Deepgram's own package, Pipecat's and LiveKit's classes for it, pointed at the server as they are.
import importlib.util

TEXT = "Hello there, how are you today?"
LONG = "The quick brown fox jumps over the lazy dog near the river bank. " * 6
VOICE = "aura-2-thalia-en"  # theirs; stands for one of ours


def client_of(s):
    from deepgram import DeepgramClient
    from deepgram.environment import DeepgramClientEnvironment
    http, ws = f"http://127.0.0.1:{s.port}", f"ws://127.0.0.1:{s.port}"
    return DeepgramClient(api_key="none", environment=DeepgramClientEnvironment(
        base=http, production=ws, agent=ws, agent_rest=http))


def deepgram_speaks_over_http(s):
    from deepgram.core.api_error import ApiError
    client = client_of(s)
    sound = b"".join(client.speak.v1.audio.generate(text=TEXT, model=VOICE, encoding="linear16", container="none",
                                                    sample_rate=24000))
    assert sound == s.speak(input=TEXT, voice="sage")[2]
    for encoding in ("mp3", "opus", "flac", "aac", "mulaw", "alaw"):
        assert len(b"".join(client.speak.v1.audio.generate(text=TEXT, model=VOICE, encoding=encoding))) > 4000, encoding
    try:
        list(client.speak.v1.audio.generate(text=TEXT, model="nobody"))
        raise AssertionError("an unknown voice spoke")
    except ApiError as e:
        assert e.status_code == 404 and "nobody" in e.body["err_msg"], e


def until(w, kind):
    """(the message of this type, sound before it)"""
    sound = b""
    while True:
        m = w.recv()
        if isinstance(m, bytes):
            sound += m
        elif m.type == kind:
            return m, sound


def deepgram_aura(s):
    from deepgram.speak.v1.types import SpeakV1Text
    with client_of(s).speak.v1.connect(model=VOICE, encoding="linear16", sample_rate=24000) as w:
        for word in TEXT.split():
            w.send_text(SpeakV1Text(text=word + " "))
        w.send_flush()
        first = until(w, "Flushed")[1]
        assert 48000 < len(first) < 48000 * 8
        w.send_text(SpeakV1Text(text=LONG))
        w.send_flush()
        while not isinstance(w.recv(), bytes):
            pass
        w.send_clear()
        until(w, "Cleared")
        w.send_text(SpeakV1Text(text=TEXT))
        w.send_flush()
        assert abs(len(until(w, "Flushed")[1]) - len(first)) < 48000
        w.send_close()


def deepgram_flux(s):
    from deepgram.speak.v2.types import SpeakV2Interrupt, SpeakV2InterruptPlaybackOffset, SpeakV2Speak
    with client_of(s).speak.v2.connect(model="flux-alexis-en", encoding="linear16", sample_rate=24000) as w:
        w.send_speak(SpeakV2Speak(text=LONG))
        w.send_flush()
        got = 0
        while got < 48000 * 3:
            m = w.recv()
            got += len(m) if isinstance(m, bytes) else 0
        w.send_interrupt(SpeakV2Interrupt(playback_offset=SpeakV2InterruptPlaybackOffset(type="time_ms", value=2000)))
        m = until(w, "SpeechInterrupted")[0]
        assert m.text_spoken and (m.text_spoken + " " + m.text_remaining).split() == LONG.split(), m
        w.send_speak(SpeakV2Speak(text=TEXT))
        w.send_flush()
        assert until(w, "SpeechMetadata")[0].audio_duration_ms > 1000
        w.send_close()
        assert until(w, "SessionMetadata")


def pipecat_deepgram(s):
    from agents import pipecat_drive
    from pipecat.services.deepgram.tts import DeepgramTTSService
    pipecat_drive(lambda voice: DeepgramTTSService(
        api_key="none", base_url=f"ws://127.0.0.1:{s.port}",
        settings=DeepgramTTSService.Settings(voice=voice or VOICE)))


def pipecat_deepgram_http(s):
    import aiohttp
    from agents import pipecat_drive
    from pipecat.services.deepgram.tts import DeepgramHttpTTSService
    pipecat_drive(lambda voice: DeepgramHttpTTSService(
        api_key="none", base_url=f"http://127.0.0.1:{s.port}", aiohttp_session=aiohttp.ClientSession(),
        settings=DeepgramHttpTTSService.Settings(voice=voice or VOICE)))


def pipecat_deepgram_flux(s):
    from agents import pipecat_drive
    from pipecat.services.deepgram.flux.tts import DeepgramFluxTTSService
    pipecat_drive(lambda voice: DeepgramFluxTTSService(
        api_key="none", url=f"ws://127.0.0.1:{s.port}/v2/speak",
        settings=DeepgramFluxTTSService.Settings(voice=voice or "flux-alexis-en")))


def livekit_deepgram(s):
    from agents import livekit_drive
    from livekit.plugins import deepgram as plugin
    livekit_drive(lambda http, voice: plugin.TTS(base_url=f"http://127.0.0.1:{s.port}/v1/speak", api_key="none",
                                                 model=voice or "aura-2-andromeda-en", http_session=http))


TESTS = [deepgram_speaks_over_http, deepgram_aura, deepgram_flux]
if importlib.util.find_spec("pipecat"):
    TESTS += [pipecat_deepgram, pipecat_deepgram_http, pipecat_deepgram_flux]
if importlib.util.find_spec("livekit.plugins.deepgram"):
    TESTS.append(livekit_deepgram)
