"""Model, Voice and Stream: the three nouns of the library."""
from __future__ import annotations

import asyncio
import ctypes
import logging
import os
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import (TYPE_CHECKING, Any, AsyncIterable, AsyncIterator, Callable, Dict, Iterable, Iterator, List,
                    NamedTuple, Optional, Sequence, Tuple, Union)

import numpy as np

from . import _library as c
from ._library import AGAIN, END, Busy, Cancelled, call, lib, optional, path_bytes

if TYPE_CHECKING:
    import numpy.typing as npt
    Samples = npt.NDArray[np.float32]
    Codes = npt.NDArray[np.int32]

Path = Union[str, "os.PathLike[str]"]
Progress = Callable[[float], Optional[bool]]

_log = logging.getLogger("utter")
_WEIGHTS = {None: 0, "stored": 0, "q8": 1, "q4": 2, "q8-predictor": 3, "bf16": 4}
_LAYOUTS = {"auto": 0, "full": 1, "stream": 2}
_READ = 1920 * 8  # samples: what a read gives at most


def _choice(what: str, known: Dict[Any, int], value: Any) -> int:
    if value not in known:
        words = ", ".join(str(word) for word in known if word)
        raise c.ArgumentError(f"unknown {what} {value!r} (known: {words})")
    return known[value]


def _cache() -> bytes:
    """The folder where the hub's client keeps what it has downloaded."""
    get = os.environ.get
    home = get("HF_HOME") or os.path.join(get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "huggingface")
    return path_bytes(get("HF_HUB_CACHE") or os.path.join(home, "hub"))


def _note(_user: Any, line: bytes) -> None:
    _log.info(line.decode(errors="replace"))


_take_note = c.LOG(_note)


class _Watch:
    """Progress as C asks for it. What the callable raises stops the work and is raised again by `check`."""

    def __init__(self, progress: Optional[Progress]) -> None:
        self.raised: Optional[BaseException] = None

        def tell(_user: Any, done: float) -> bool:
            try:
                return progress is None or progress(done) is not False
            except BaseException as why:  # pylint: disable=broad-except
                self.raised = why
                return False
        self.function = c.PROGRESS(tell)

    def run(self, name: str, *arguments: Any) -> int:
        """call(), raising what the callable has raised."""
        try:
            return call(name, *arguments)
        except Cancelled:
            if self.raised:
                raise self.raised from None
            raise


class Voice:
    """Who speaks. Made by Model.clone, Model.design, Model.voice, Voice.load and Voice.mix; it never changes."""

    def __init__(self, handle: ctypes.c_void_p) -> None:
        self._handle = handle

    def __del__(self) -> None:
        if lib and getattr(self, "_handle", None):
            lib.utter_voice_free(ctypes.byref(self._handle))

    def _info(self) -> c.VoiceInfo:
        info = c.VoiceInfo(size=ctypes.sizeof(c.VoiceInfo))
        lib.utter_voice_get_info(self._handle, ctypes.byref(info))
        return info

    @classmethod
    def load(cls, path: Path) -> "Voice":
        """The voice in a file that `save` or `utter clone` has written."""
        handle = ctypes.c_void_p()
        call("voice_load", ctypes.byref(handle), path_bytes(path))
        return cls(handle)

    @classmethod
    def mix(cls, parts: Sequence[Tuple["Voice", float]], name: Optional[str] = None) -> "Voice":
        """The weighted mean of cloned voices: Voice.mix([(ann, 0.7), (bob, 0.3)])."""
        handle, n = ctypes.c_void_p(), len(parts)
        voices = (ctypes.c_void_p * n)(*(voice._handle for voice, _ in parts))
        weights = (ctypes.c_double * n)(*(weight for _, weight in parts))
        call("voice_mix", ctypes.byref(handle), voices, weights, n, optional(name))
        return cls(handle)

    def save(self, path: Path) -> None:
        """Writes a voice file, whole or not at all."""
        call("voice_save", self._handle, path_bytes(path))

    def fits(self, model: "Model") -> bool:
        """Whether the model can speak with it."""
        return bool(lib.utter_voice_fits(self._handle, model._open(), None) == 0)

    def _text(self, field: str) -> Optional[str]:
        value = getattr(self._info(), field)
        return value.decode() if value is not None else None

    @property
    def name(self) -> str:
        """Its name, for people."""
        return self._text("name") or ""

    @property
    def kind(self) -> str:
        """"preset", "vector" (an x-vector) or "context" (the recording's codes and transcript too)."""
        return ("preset", "vector", "context")[self._info().kind]

    @property
    def language(self) -> Optional[str]:
        """Of its recording, if that was said."""
        return self._text("language")

    @property
    def transcript(self) -> Optional[str]:
        """What its recording says, if that was said."""
        return self._text("transcript")

    @property
    def x_vector(self) -> "Samples":
        """A copy of the x-vector; empty for presets."""
        info = self._info()
        return np.array(info.x_vector[:info.width] if info.width else [], np.float32)

    @property
    def codes(self) -> "Codes":
        """A copy of the codes, a row a frame; empty where there are none."""
        info = self._info()
        n = info.n_frames * info.n_codebooks
        return np.array(info.codes[:n] if n else [], np.int32).reshape(info.n_frames, info.n_codebooks)

    def __repr__(self) -> str:
        return f"<utter.Voice {self.name!r}, {self.kind}>"


class Stats(NamedTuple):
    """How a speech went; times in seconds."""
    finish: str
    frames: int
    text_tokens: int
    first_sound: float
    prefill: float
    talker: float
    predictor: float
    vocoder: float


class Stream:
    """One utterance: iterate over it for samples while they are made.

    >>> model = Model()
    >>> with model.stream("Hello.") as stream:
    ...     n = sum(len(samples) for samples in stream)
    >>> stream.finish, n == 1920 * stream.stats.frames
    ('eos', True)

    Text may also come in pieces: `model.stream()`, then `write` and, at the end, `end`.
    """

    def __init__(self, model: "Model", handle: ctypes.c_void_p) -> None:
        self._model = model
        self._handle = handle
        self._buffer = np.empty(_READ, np.float32)
        self._address = self._buffer.ctypes.data
        self._text: Optional[Iterator[str]] = None
        self._stats: Optional[Stats] = None
        model._streams.add(self)

    def _live(self) -> ctypes.c_void_p:
        if not self._handle:
            raise ValueError("the stream is closed")
        return self._handle

    def write(self, text: str) -> None:
        """Gives the next piece of the text, cut anywhere."""
        data = text.encode()
        if data:
            with self._model._lock:
                call("stream_text", self._live(), data, len(data))

    def end(self) -> None:
        """No more text will come."""
        with self._model._lock:
            call("stream_finish", self._live())

    def _read(self) -> Union[int, "Samples"]:
        """Samples, or AGAIN, or END."""
        n = ctypes.c_size_t()
        with self._model._lock:
            status = call("stream_read", self._live(), self._address, _READ, ctypes.byref(n))
        return status if status else self._buffer[:n.value].copy()

    def read(self) -> Optional["Samples"]:
        """The next samples; None at the end. Raises Busy where the text so far is not enough."""
        got = self._read()
        if isinstance(got, int):
            if got == AGAIN:
                raise Busy("more text is needed (write, or end)")
            return None
        return got

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> "Samples":
        while True:
            got = self._read()
            if not isinstance(got, int):
                return got
            if got == END or self._text is None:
                if got == END:
                    raise StopIteration
                raise Busy("more text is needed (write, or end)")
            self._feed()

    def _feed(self) -> None:
        """The next piece of the text that it was given as an iterable."""
        assert self._text is not None
        piece = next(self._text, None)
        if piece is None:
            self._text = None
            self.end()
        else:
            self.write(piece)

    def cancel(self) -> None:
        """Ends the speech; may be called from any thread."""
        if self._handle:
            lib.utter_stream_cancel(self._handle)

    @property
    def stats(self) -> Stats:
        """How it went so far; also when it is closed."""
        if self._handle:
            s = c.StreamStats(size=ctypes.sizeof(c.StreamStats))
            lib.utter_stream_get_stats(self._handle, ctypes.byref(s))
            self._stats = Stats(lib.utter_finish_text(s.finish).decode(), s.n_frames, s.n_text_tokens,
                                s.first_sound_s, s.prefill_s, s.talker_s, s.predictor_s, s.vocoder_s)
        assert self._stats is not None
        return self._stats

    @property
    def finish(self) -> str:
        """How it ended: "eos" where the model ended it by itself, "none" while it speaks."""
        return self.stats.finish

    @property
    def codes(self) -> "Codes":
        """A copy of the codes of the frames whose sound there is, a row a frame."""
        n = ctypes.c_size_t()
        with self._model._lock:
            codes = lib.utter_stream_codes(self._live(), ctypes.byref(n))
            wide = self._model._info.n_codebooks
            return np.array(codes[:n.value * wide] if n.value else [], np.int32).reshape(n.value, wide)

    def close(self) -> None:
        """Frees its lane."""
        if self._handle:
            with self._model._lock:
                self.stats  # pylint: disable=pointless-statement # keeps them
                lib.utter_stream_free(ctypes.byref(self._handle))

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if lib and getattr(self, "_handle", None):
            self.close()

    def __repr__(self) -> str:
        return f"<utter.Stream, {self.stats.frames} frames, {'closed' if not self._handle else self.finish}>"


class Model:
    """A checkpoint on a device.

    `name` is a folder, a file of `utter quantize`, a repository ("Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice") or a short
    name ("0.6b", "1.7b-base", "design"), looked up where the hub's client keeps its files. Without one, $UTTER_MODEL
    speaks, or the voice that comes with the library. `lanes` streams may be open at once.

    >>> model = Model()
    >>> model
    <utter.Model custom_voice, 12 M parameters, voices clara, miles, on cpu>
    >>> Model("0.7b")
    Traceback (most recent call last):
    utter._library.FileError: 0.7b: no such folder, file or model (did you mean 0.6b? utter models lists them)
    >>> model.say("Hello.", voice="carla")
    Traceback (most recent call last):
    utter._library.ArgumentError: unknown voice "carla" (did you mean clara? known: clara, miles)
    """

    def __init__(self, name: Optional[Path] = None, *, device: str = "auto", threads: int = 0, lanes: int = 1,
                 weights: Optional[str] = None, snapshot_mb: int = 256) -> None:
        self._handle = ctypes.c_void_p()
        self._lock = threading.RLock()
        self._streams: "weakref.WeakSet[Stream]" = weakref.WeakSet()
        self._executor: Optional[ThreadPoolExecutor] = None
        options = c.ModelOptions()
        lib.utter_model_options_init_sized(ctypes.byref(options), ctypes.sizeof(options))
        options.device, options.n_threads, options.n_lanes = device.encode(), threads, lanes
        options.weights, options.log = _choice("weights", _WEIGHTS, weights), _take_note
        options.snapshot_bytes = snapshot_mb << 20
        given = name if name is not None else os.environ.get("UTTER_MODEL") or None
        path = ctypes.create_string_buffer(4096)
        call("model_find", path, len(path), None if given is None else path_bytes(given), _cache())
        call("model_open", ctypes.byref(self._handle), path.value, ctypes.byref(options))
        self.path = os.fsdecode(path.value)
        self._info = c.ModelInfo(size=ctypes.sizeof(c.ModelInfo))
        lib.utter_model_get_info(self._handle, ctypes.byref(self._info))
        self.voices = self._names(lib.utter_model_voice_name)
        self.languages = self._names(lib.utter_model_language_name)
        self.kind: str = self._info.kind_name.decode()
        self.device: str = self._info.device.decode()
        self.sample_rate: int = self._info.sample_rate
        self.lanes: int = self._info.n_lanes

    def _names(self, name_at: Callable[[Any, int], Optional[bytes]]) -> Tuple[str, ...]:
        names: List[str] = []
        while True:
            name = name_at(self._handle, len(names))
            if name is None:
                return tuple(names)
            names.append(name.decode())

    def _open(self) -> ctypes.c_void_p:
        if not self._handle:
            raise ValueError("the model is closed")
        return self._handle

    # ---- Speaking

    def _voice(self, voice: Union[None, str, "os.PathLike[str]", Voice]) -> Optional[Voice]:
        """Presets by name, voice files by path; without one the first preset, where there are some."""
        if isinstance(voice, Voice):
            return voice
        if voice is None:
            return self.voice(self.voices[0]) if self.voices else None
        text = os.fspath(voice)
        is_file = text.endswith(".voice") or os.sep in text or (not self.voices and os.path.exists(text))
        return Voice.load(text) if is_file else self.voice(text)

    def stream(self, text: Union[None, str, Iterable[str]] = None, *,
               voice: Union[None, str, "os.PathLike[str]", Voice] = None, language: Optional[str] = None,
               instruct: Optional[str] = None, seed: int = 0, layout: str = "auto",
               temperature: Optional[float] = None, top_k: Optional[int] = None, top_p: Optional[float] = None,
               greedy: bool = False, max_frames: Optional[int] = None, guard: bool = True) -> Stream:
        """Opens an utterance. `text` is a string, pieces of one, or None: then Stream.write takes it.

        >>> model = Model()
        >>> with model.stream(["Hel", "lo th", "ere."], layout="stream") as stream:
        ...     samples = np.concatenate(list(stream))
        >>> bool((samples == model.say("Hello there.", layout="stream")).all())
        True
        """
        options, handle = c.StreamOptions(), ctypes.c_void_p()
        lib.utter_stream_options_init_sized(ctypes.byref(options), ctypes.sizeof(options), self._open())
        who = self._voice(voice)
        options.voice = who._handle if who else None
        options.language, options.instruct, options.seed = optional(language), optional(instruct), seed
        options.layout, options.guard = _choice("layout", _LAYOUTS, layout), guard
        if greedy:
            options.talker.temperature = options.predictor.temperature = 0
        for field, value in (("temperature", temperature), ("top_k", top_k), ("top_p", top_p)):
            if value is not None:
                setattr(options.talker, field, value)
        if max_frames is not None:
            options.max_frames = max_frames
        with self._lock:
            if call("stream_open", ctypes.byref(handle), self._handle, ctypes.byref(options)) == AGAIN:
                raise Busy(f"all {self.lanes} lanes of the model speak (Model(lanes=N) has more)")
        stream = Stream(self, handle)
        if isinstance(text, str):
            stream.write(text)
            stream.end()
        elif text is not None:
            stream._text = iter(text)
        return stream

    def say(self, text: Union[str, Iterable[str]], **options: Any) -> "Samples":
        """Speaks to the end; options are those of `stream`.

        >>> Model().say("Hello.", seed=7).ndim
        1
        """
        with self.stream(text, **options) as stream:
            parts = list(stream)
        return np.concatenate(parts) if parts else np.empty(0, np.float32)

    async def astream(self, text: Union[str, Iterable[str], AsyncIterable[str]],
                      **options: Any) -> AsyncIterator["Samples"]:
        """The same for asyncio: samples while they are made, in a thread of the model; other tasks go on. Text from an
        async generator is spoken while it is written, with layout="stream" from its first words on.

        >>> async def words():
        ...     for word in ("Hello ", "there."):
        ...         await asyncio.sleep(0.01)
        ...         yield word
        >>> async def main():
        ...     return [len(samples) async for samples in Model().astream(words())]
        >>> sum(asyncio.run(main())) > 20000
        True
        """
        source = text.__aiter__() if isinstance(text, AsyncIterable) else None
        loop = asyncio.get_running_loop()
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "utter")
        stream = self.stream(None if source else text, **options)  # type: ignore[arg-type]
        coming: "Optional[asyncio.Future[Optional[str]]]" = None
        try:
            while True:
                if source and coming is None:
                    coming = asyncio.ensure_future(_next(source))
                    await asyncio.sleep(0)
                if coming is not None and coming.done():
                    piece, coming = coming.result(), None
                    if piece is None:
                        source = None
                        stream.end()
                    else:
                        stream.write(piece)
                    continue
                got = await loop.run_in_executor(self._executor, stream._read)
                if not isinstance(got, int):
                    yield got
                elif got == END:
                    return
                elif coming is not None:
                    await asyncio.wait([coming])
                else:
                    stream._feed()
        finally:
            if coming is not None:
                coming.cancel()
            stream.cancel()
            stream.close()

    def tokenize(self, text: str) -> List[int]:
        """Token ids of a text.

        >>> len(Model().tokenize("Hello.")) > 0
        True
        """
        ids, n, data = ctypes.POINTER(ctypes.c_int32)(), ctypes.c_size_t(), text.encode()
        call("model_tokenize", self._open(), data, len(data), ctypes.byref(ids), ctypes.byref(n))
        try:
            return list(ids[:n.value])
        finally:
            lib.utter_memory_free(ids)

    # ---- Voices

    def voice(self, name: str) -> Voice:
        """A preset voice, by name in any case.

        >>> Model().voice("Clara")
        <utter.Voice 'clara', preset>
        """
        handle = ctypes.c_void_p()
        call("voice_preset", ctypes.byref(handle), self._open(), name.encode())
        return Voice(handle)

    def clone(self, recording: Union[Path, "Samples"], transcript: Optional[str] = None, *,
              name: Optional[str] = None, language: Optional[str] = None,
              start: float = 0, end: float = 0, progress: Optional[Progress] = None) -> Voice:
        """A voice from a sound file, or from mono samples at the model's rate; for a base model. With what the
        recording says, word for word, the voice sounds more like it. Of a file the seconds from `start` to `end` are
        listened to (0: to its end). `progress` is told 0 to 1; False stops."""
        options, handle, watch = c.CloneOptions(), ctypes.c_void_p(), _Watch(progress)
        lib.utter_clone_options_init_sized(ctypes.byref(options), ctypes.sizeof(options))
        options.name, options.transcript, options.language = optional(name), optional(transcript), optional(language)
        options.from_seconds, options.to_seconds, options.progress = start, end, watch.function
        with self._lock:
            if isinstance(recording, (str, os.PathLike)):
                watch.run("voice_clone", ctypes.byref(handle), self._open(), path_bytes(recording),
                          ctypes.byref(options), None)
            else:
                pcm = np.ascontiguousarray(recording, np.float32)
                if pcm.ndim != 1:
                    raise c.ArgumentError(f"a recording is one row of samples, not an array of shape {pcm.shape}")
                watch.run("voice_clone_samples", ctypes.byref(handle), self._open(), pcm.ctypes.data, len(pcm),
                          ctypes.byref(options))
        return Voice(handle)

    def design(self, instruct: str, base: "Model", *, name: Optional[str] = None, text: Optional[str] = None,
               language: Optional[str] = None, seed: int = 0, progress: Optional[Progress] = None) -> Voice:
        """A voice from a description, for the model `base`; of a voice-design model."""
        options, handle, watch = c.DesignOptions(), ctypes.c_void_p(), _Watch(progress)
        lib.utter_design_options_init_sized(ctypes.byref(options), ctypes.sizeof(options))
        options.name, options.text, options.language = optional(name), optional(text), optional(language)
        options.seed, options.progress = seed, watch.function
        with self._lock, base._lock:
            if watch.run("voice_design", ctypes.byref(handle), self._open(), instruct.encode(), base._open(),
                         ctypes.byref(options)) == AGAIN:
                raise Busy(f"all {self.lanes} lanes of the model speak (Model(lanes=N) has more)")
        return Voice(handle)

    # ---- Its end

    def close(self) -> None:
        """Ends its streams and frees it."""
        if self._executor:
            self._executor.shutdown()
        self._free()

    def _free(self) -> None:
        self._executor = None
        with self._lock:
            for stream in list(self._streams):
                stream.close()
            if self._handle:
                lib.utter_model_close(ctypes.byref(self._handle))

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if lib and getattr(self, "_handle", None):
            self._free()

    def __repr__(self) -> str:
        voices = f", voices {', '.join(self.voices)}" if self.voices else ""
        state = f"on {self.device}" if self._handle else "closed"
        millions = round(self._info.all_parameters / 1e6)
        return f"<utter.Model {self.kind}, {millions} M parameters{voices}, {state}>"


async def _next(source: AsyncIterator[str]) -> Optional[str]:
    """The next piece; None at the end."""
    try:
        return await source.__anext__()
    except StopAsyncIteration:
        return None


def save(path: Path, samples: "Samples", sample_rate: int, *, format: Optional[str] = None) -> None:
    """Writes a sound file: wav, flac, ogg, opus, mp3 or raw, by its name or `format`; whole or not at all."""
    pcm, handle = np.ascontiguousarray(samples, np.float32), ctypes.c_void_p()
    call("sound_create", ctypes.byref(handle), path_bytes(path), optional(format), 0, sample_rate)
    try:
        call("sound_write", handle, pcm.ctypes.data, pcm.size)
        call("sound_close", ctypes.byref(handle))
    finally:
        lib.utter_sound_abort(ctypes.byref(handle))
