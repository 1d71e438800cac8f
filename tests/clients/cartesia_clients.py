# Cartesia's own package, Pipecat's and LiveKit's classes for it, pointed at the server as they are.
import importlib.util

TEXT = "Hello there, how are you today?"
VOICE = "f786b574-daa5-4673-aa0c-cbe3e8534c02"  # theirs; stands for one of ours
RAW = {"container": "raw", "encoding": "pcm_s16le", "sample_rate": 24000}


def client_of(s):
    from cartesia import Cartesia
    return Cartesia(base_url=f"http://127.0.0.1:{s.port}", websocket_base_url=f"ws://127.0.0.1:{s.port}",
                    api_key="none", max_retries=0)


def cartesia_speaks_over_http(s):
    import cartesia
    client = client_of(s)
    ask = {"model_id": "sonic-3", "voice": {"mode": "id", "id": VOICE}, "transcript": TEXT}
    sound = b"".join(client.tts.bytes(output_format=RAW, **ask))
    assert sound == s.speak(input=TEXT, voice="sage")[2]
    for kind in ({"container": "mp3", "bit_rate": 32000, "sample_rate": 22050},
                 {"container": "wav", "encoding": "pcm_f32le", "sample_rate": 44100},
                 {"container": "raw", "encoding": "pcm_mulaw", "sample_rate": 8000}):
        assert len(b"".join(client.tts.bytes(output_format=kind, **ask))) > 5000, kind
    events = list(client.tts.generate_sse(output_format=RAW, add_timestamps=True, **ask))
    assert events[-1].type == "done" and b"".join(e.audio for e in events if e.type == "chunk") == sound
    assert [w for e in events if e.type == "timestamps" for w in e.word_timestamps.words] == TEXT.split()
    try:
        list(client.tts.bytes(output_format=RAW, **{**ask, "voice": {"mode": "id", "id": "nobody"}}))
        raise AssertionError("an unknown voice spoke")
    except cartesia.NotFoundError as e:
        assert "nobody" in str(e), e


def cartesia_contexts(s):
    client = client_of(s)
    with client.tts.websocket_connect() as w:
        def begin(voice=VOICE):
            return w.context(model_id="sonic-3", voice={"mode": "id", "id": voice}, add_timestamps=True)
        one, two = begin(), begin()
        for word in TEXT.split():
            one.push(word + " ")
        two.push("The quick brown fox jumps over the lazy dog. " * 5)
        one.no_more_inputs()
        events = list(one.receive())
        assert [w for e in events if e.type == "timestamps" for w in e.word_timestamps.words] == TEXT.split()
        sound = b"".join(e.audio for e in events if e.type == "chunk")
        assert 44100 * 4 < len(sound) < 44100 * 4 * 8  # floats are the package's own choice
        two.cancel()
        wrong = begin("nobody")
        wrong.push("Hi.")
        assert [e.type for e in wrong.receive()][-1] == "error"
        again = begin()
        again.push("And again.", flush=True)
        again.no_more_inputs()
        types = [e.type for e in again.receive()]
        assert "flush_done" in types and types[-1] == "done", types


def pipecat_cartesia(s):
    from agents import pipecat_drive
    from pipecat.services.cartesia.tts import CartesiaTTSService
    pipecat_drive(lambda voice: CartesiaTTSService(
        api_key="none", url=f"ws://127.0.0.1:{s.port}/tts/websocket",
        settings=CartesiaTTSService.Settings(voice=voice or VOICE)), words=True)


def pipecat_cartesia_http(s):
    from agents import LONG, pipecat_drive
    from pipecat.services.cartesia.tts import CartesiaHttpTTSService
    pipecat_drive(lambda voice: CartesiaHttpTTSService(
        api_key="none", base_url=f"http://127.0.0.1:{s.port}",
        settings=CartesiaHttpTTSService.Settings(voice=voice or VOICE)),
        long=LONG[:130])  # it reads the whole answer before it plays, and has no patience for a long one


def livekit_cartesia(s):
    from agents import livekit_drive
    from livekit.plugins import cartesia as plugin
    livekit_drive(lambda http, voice: plugin.TTS(base_url=f"http://127.0.0.1:{s.port}", api_key="none",
                                                 voice=voice or VOICE, http_session=http))


TESTS = [cartesia_speaks_over_http, cartesia_contexts]
if importlib.util.find_spec("pipecat"):
    TESTS += [pipecat_cartesia, pipecat_cartesia_http]
if importlib.util.find_spec("livekit.plugins.cartesia"):
    TESTS.append(livekit_cartesia)
