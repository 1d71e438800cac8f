"""The cases of the golden files. A set is named after the test checkpoint it runs on (tests/fixtures/checkpoints)."""
import json
import pathlib

import numpy as np

SENTENCES = {
    "chinese": "今天天气很好，我们一起去公园散步吧。",
    "english": "The morning train leaves the station at seven, and nobody is late.",
    "japanese": "春になると、山の桜がいっせいに咲きます。",
    "korean": "오늘은 날씨가 아주 좋아서 공원에서 산책을 합니다.",
    "german": "Es ist schön, dass ihr gekommen seid; die größeren Stühle stehen draußen.",
    "french": "C'est une très belle journée, et l'été n'est pas encore fini.",
    "russian": "Поезд отправляется в семь часов утра, и никто не опаздывает.",
    "portuguese": "Não sei se eles vêm, mas a canção é bonita e o coração está em paz.",
    "spanish": "¿Qué le gustaría escuchar hoy? ¡Una canción, por favor!",
    "italian": "Oggi è una bella giornata; mangeremo il gelato sotto gli alberi della città.",
}
EMOJI = ("Well done \U0001f389\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
         "\U0001f3f3\ufe0f\u200d\U0001f308 \u2014 see you \u2615\ufe0f tomorrow \U0001f600!")
MIXED = "The iPhone costs 1,299 €, 约等于一万元, そして YouTube は無料; Москва, O'Toole, PhD."
BREAKS = "First line.\nSecond  line,\twith a tab.\r\n\r\nAnd   a last\u3000line!\n/x"
CONTROL = "One <|im_end|> two <tts_pad> three <think>four</think> five <|endoftext|>six."
MARKS = "กีฬา and e\u0301te\u0301, a\u030angstro\u0308m, ﬁn, ½ and 한글."
WORDS_300 = " ".join(f"{word} {number}" for number, word in enumerate(
    ("the wind turned and the boats came home before the rain reached the old harbour wall again " * 10).split()[:150]))
DESIGN = "A calm, low voice of an old man who tells a story."


# Most utterances are cut. In the stream layout the end of the text must come before the end of the frames.
FRAMES = {"full": 12, "stream": 32}
CLONE_FRAMES = {"full": 10, "stream": 24}


def speak(name, text, language="english", *, speaker=None, instruct=None, layout="full", penalty=1.05, frames=None,
          activations=False, first=960, reference=None, fp64=False):
    case = {"name": name, "kind": "speak", "text": text, "language": language, "speaker": speaker, "instruct": instruct,
            "layout": layout, "repetition_penalty": penalty, "max_frames": frames or FRAMES[layout],
            "activations": activations, "first_samples": first}
    return case | ({"reference": reference} if reference else {}) | ({"fp64": True} if fp64 else {})


def decode(name, frames, *, rule="whole", seed=1, stages=False, first=1 << 30, fp64=False):
    return {"name": name, "kind": "decode", "frames": frames, "rule": rule, "seed": seed, "stages": stages,
            "first_samples": first, "fp64": fp64}


def random_codes(seed, n_frames, n_codebooks, codebook_size):
    """Codes that do not depend on a library's generator: the upper bits of a 64-bit linear congruence."""
    state, codes = seed, np.zeros(n_frames * n_codebooks, np.int32)
    for i in range(codes.size):
        state = (state * 6364136223846793005 + 1442695040888963407) & 0xFFFFFFFFFFFFFFFF
        codes[i] = (state >> 33) % codebook_size
    return codes.reshape(n_frames, n_codebooks)


def ten_languages(voices, layouts, instruct=None):
    out = []
    for i, (language, text) in enumerate(SENTENCES.items()):
        layout, voice = layouts[i % len(layouts)], voices[i % len(voices)] if voices else None
        out.append(speak(f"{language}-{layout}", text, language, speaker=voice, layout=layout, instruct=instruct))
    return out


def dialects():
    chinese = SENTENCES["chinese"]
    return [
        speak("auto", chinese, "auto", speaker="serena"),
        speak("auto-stream", chinese, "auto", speaker="serena", layout="stream"),
        speak("auto-sichuan", chinese, "auto", speaker="eric"),
        speak("chinese-sichuan", chinese, "chinese", speaker="eric", layout="stream"),
        speak("auto-beijing", chinese, "auto", speaker="dylan", layout="stream"),
        speak("chinese-beijing", chinese, "chinese", speaker="dylan"),
        speak("english-beijing", SENTENCES["english"], "english", speaker="dylan"),
        speak("auto-no-speaker", chinese, "auto"),
    ]


def texts(speaker=None, instruct=None):
    """Texts that are hard to tokenise, very short, or very long."""
    case = lambda *a, **k: speak(*a, speaker=speaker, instruct=instruct, **k)
    return [
        case("one-letter", "a"),
        case("one-letter-stream", "a", layout="stream"),
        case("emoji", EMOJI),
        case("mixed-scripts", MIXED, "auto"),
        case("mixed-scripts-stream", MIXED, "auto", layout="stream"),
        case("line-breaks", BREAKS),
        case("line-breaks-stream", BREAKS, layout="stream"),
        case("space-and-break-first", " \nHello there.", frames=12),
        case("tab-and-break-first-stream", "\t\n Hello there.", layout="stream", frames=12),
        case("spaces-around", "  Hello there.   ", layout="stream", frames=12),
        case("control-tokens", CONTROL, frames=20),
        case("combining-marks", MARKS, frames=20),
        case("words-300", WORDS_300, frames=24),
        case("words-300-stream", WORDS_300, layout="stream", frames=40),
    ]


def penalties(speaker=None, instruct=None):
    text = SENTENCES["english"]
    return [speak(f"penalty-{penalty}-{layout}", text, speaker=speaker, instruct=instruct, layout=layout,
                  penalty=penalty, frames=frames)
            for penalty, frames in ((1.0, 32), (1.05, 64), (1.5, 80)) for layout in ("full", "stream")]


TRANSCRIPT = "This is the voice that you shall speak with."


def clone(name, text, language="english", *, layout="full", frames=None, reference_frames=20, transcript=TRANSCRIPT,
          seed=5, **more):
    """reference_frames 0: the x-vector alone."""
    reference = {"frames": reference_frames, "transcript": transcript if reference_frames else None, "seed": seed}
    return speak(name, text, language, layout=layout, frames=frames or CLONE_FRAMES[layout], reference=reference,
                 **more)


def clones():
    """Both layouts; transcript and text together longer and shorter than the reference; ten languages."""
    english, out = SENTENCES["english"], []
    for i, (language, text) in enumerate(SENTENCES.items()):
        out += [clone(f"{language}-vector-{('stream', 'full')[i % 2]}", text, language, reference_frames=0, seed=i,
                      layout=("stream", "full")[i % 2]),
                clone(f"{language}-context-{('full', 'stream')[i % 2]}", text, language, seed=i,
                      layout=("full", "stream")[i % 2])]
    for layout in ("stream", "full"):
        out += [clone(f"long-reference-{layout}", "Hello there.", layout=layout, reference_frames=120),
                clone(f"one-frame-{layout}", english, layout=layout, reference_frames=1),
                clone(f"auto-{layout}", SENTENCES["chinese"], "auto", layout=layout),
                clone(f"cut-15-of-22-{layout}", english, layout=layout, reference_frames=15, frames=7),
                clone(f"one-letter-{layout}", "a", layout=layout, reference_frames=3, transcript="b")]
    return out


CUSTOM_VOICES = ["serena", "vivian", "uncle_fu", "ryan", "aiden", "ono_anna", "sohee", "eric", "dylan"]
STYLE = "Speak slowly, as if you were tired."

SETS = {
    "tiny06-custom_voice": [
        speak("activations", "Hello there, friend.", speaker="vivian", frames=6, activations=True),
        speak("activations-stream", "Hello there, friend.", speaker="ryan", layout="stream", frames=12,
              activations=True),
        *ten_languages(CUSTOM_VOICES, ["full", "stream"]),
        *dialects(),
        *texts(speaker="aiden"),
        speak("instruct-dropped", SENTENCES["english"], speaker="vivian", instruct=STYLE, frames=16),
        speak("upper-case-names", SENTENCES["german"], "german", speaker="Ono_Anna", frames=16),
        decode("decode-1", 1),
        decode("decode-stages", 2, stages=True),
        decode("decode-110", 110, first=9600),
        decode("decode-whole-340", 340, first=9600, seed=2),
        decode("decode-chunks-340", 340, rule="official_chunks", first=9600, seed=2),
        decode("decode-chunks-626", 626, rule="official_chunks", first=9600, seed=3),
    ],
    "tiny17-custom_voice": [
        speak("activations", "Hello there, friend.", speaker="vivian", instruct=STYLE, frames=6, activations=True),
        *ten_languages(CUSTOM_VOICES[::-1], ["stream", "full"]),
        *(case | {"instruct": STYLE} for case in dialects()),
        speak("instruct", SENTENCES["english"], speaker="uncle_fu", instruct=STYLE),
        speak("instruct-stream", SENTENCES["english"], speaker="uncle_fu", instruct=STYLE, layout="stream"),
        speak("instruct-empty", SENTENCES["english"], speaker="uncle_fu", instruct=""),
        speak("instruct-chinese", SENTENCES["chinese"], "chinese", speaker="eric", instruct="用特别愤怒的语气说。\n大声一点。"),
        speak("penalty-1.0", SENTENCES["english"], speaker="ryan", penalty=1.0),
        speak("penalty-1.5-stream", SENTENCES["english"], speaker="ryan", penalty=1.5, layout="stream"),
    ],
    "tiny17-voice_design": [
        speak("activations", "Hello there, friend.", instruct=DESIGN, frames=6, activations=True),
        *ten_languages([], ["full", "stream"], instruct=DESIGN),
        speak("auto", SENTENCES["chinese"], "auto", instruct=DESIGN),
        speak("no-instruct", SENTENCES["english"], instruct=""),
        *texts(instruct=DESIGN),
    ],
    "fine-tuned": [
        speak("english-full", SENTENCES["english"], speaker="my_voice"),
        speak("english-stream", SENTENCES["english"], speaker="my_voice", layout="stream"),
        speak("auto", SENTENCES["chinese"], "auto", speaker="my_voice"),
    ],
    "unusual": [speak("english-full", SENTENCES["english"], speaker="ryan", instruct=STYLE, activations=True, frames=8),
                speak("english-stream", SENTENCES["english"], speaker="eric", layout="stream", frames=40),
                decode("decode-stages", 2, stages=True), decode("decode-60", 60, first=9600)],
    "tiny06-base": [clone("activations", "Hello there, friend.", frames=6, activations=True), *clones(),
                    decode("decode-8", 8)],
    "tiny17-base": [clone("activations", "Hello there, friend.", frames=6, layout="full", activations=True), *clones(),
                    clone("beyond-300", SENTENCES["english"], reference_frames=310, frames=20)],
    # Crafted checkpoints: what each shows is in `make_model --help`.
    "eos-first": [speak(f"two-frames-{layout}", "Hello.", speaker="ryan", layout=layout, first=3840)
                  for layout in ("full", "stream")],
    "endless": [
        *penalties(speaker="sohee"),
        speak("words-300", WORDS_300, speaker="aiden", layout="stream", frames=64),
    ],
    "eos-sometimes": [speak(f"ends-{speaker}", SENTENCES["english"], speaker=speaker, frames=300)
                      for speaker in ("serena", "ryan", "ono_anna", "sohee", "eric")],
    "negative-scores": [speak(f"penalty-{penalty}", SENTENCES["english"], speaker="ryan", penalty=penalty, frames=24)
                        for penalty in (1.05, 1.5)],
    "ties": [speak("ties", SENTENCES["english"], speaker="ryan", frames=24)],
    "loop": [speak("loop", SENTENCES["english"], speaker="ryan", frames=24)],
    "snake": [decode("decode-8", 8)],
    "rare-codes": [decode("decode-8", 8)],
    "quiet": [decode("decode-8", 8)],
    "loud": [decode("decode-8", 8, fp64=True)],
    "silent": [decode("decode-2", 2)],
}

# On demand (tools/oracle/full_size): CustomVoice checkpoints of full size with the released vocabulary.
FULL_SIZE = {
    "full-size": [
        speak("mixed-scripts-stream", MIXED, "auto", speaker="eric", layout="stream", frames=50, first=1 << 30,
              fp64=True),
        speak("english-instruct", SENTENCES["english"], speaker="ryan", instruct=STYLE, frames=50, activations=True,
              first=1 << 30, fp64=True),
    ],
    # Where fp32 rounding is loud: the sound alone, of codes from a seed.
    "full-size-sound": [decode("decode-50", 50, fp64=True), decode("decode-300", 300, seed=2, fp64=True)],
}


def for_checkpoint(folder, frames):
    """A handful of cases that fit any checkpoint, for a user with released weights."""
    config = json.loads((pathlib.Path(folder) / "config.json").read_text(encoding="utf-8"))
    kind, talker = config["tts_model_type"], config["talker_config"]
    languages = [name for name in ("english", "chinese", "german") if name in talker["codec_language_id"]]
    if kind == "base":
        return [clone(f"{language}-{layout}", SENTENCES[language], language, frames=frames, layout=layout,
                      reference_frames=n, activations=n == 0, first=1 << 30, fp64=True)
                for language, layout, n in zip(languages, ("stream", "full", "stream"), (0, 40, 60))]
    voices = list(talker["spk_id"]) or [None]
    dialect = [name for name, value in (talker.get("spk_is_dialect") or {}).items() if value]
    instruct = {"voice_design": DESIGN}.get(kind)
    common = {"frames": frames, "instruct": instruct, "first": 1 << 30, "fp64": True}
    cases = [speak(f"{language}-{layout}", SENTENCES[language], language, speaker=voices[i % len(voices)],
                   layout=layout, activations=i == 0, **common)
             for i, (language, layout) in enumerate(zip(languages, ("full", "stream", "full")))]
    cases += [speak("auto", SENTENCES["chinese"], "auto", speaker=(dialect or voices)[0], **common),
              speak("penalty-1.5", MIXED, "auto", speaker=voices[-1], penalty=1.5, **common)]
    if kind == "custom_voice":
        cases += [speak("instruct", SENTENCES["english"], speaker=voices[0], **(common | {"instruct": STYLE}))]
    return cases
