"""The shared library as ctypes sees it: structs, prototypes, and its failures as exceptions. ctypes lets other
threads run during every call."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_bool, c_char, c_char_p, c_double, c_float, c_int, c_int32, c_size_t, c_uint32, c_uint64
from ctypes import c_void_p
from typing import Any, List, Optional, Type

HERE = os.path.dirname(os.path.abspath(__file__))

AGAIN, END = 1, 2


class Error(Exception):
    """Why the engine refused or failed: one sentence."""


class ArgumentError(Error, ValueError):
    """What was asked for is wrong: a value out of range, an unknown voice."""


class FileError(Error, OSError):
    """A file is missing, cannot be read or written, or is not what it should be."""


class ModelError(Error):
    """The checkpoint cannot do this, or its parts do not fit together."""


class OutOfMemory(Error, MemoryError):
    """There is no more memory."""


class DeviceError(Error):
    """The device failed; every later call on the model says so too."""


class Cancelled(Error):
    """Somebody stopped it."""


class Busy(Error):
    """All lanes of the model speak (Model(lanes=N) has more)."""


ERRORS: dict[int, Type[Error]] = {-1: ArgumentError, -2: FileError, -3: ModelError, -4: OutOfMemory, -5: FileError,
                                  -6: DeviceError, -8: Cancelled, AGAIN: Busy}


class ErrorRecord(ctypes.Structure):
    """utter_error"""
    _fields_ = [("code", c_int), ("text", c_char * 4096)]


class Sampling(ctypes.Structure):
    """utter_sampling"""
    _fields_ = [("temperature", c_float), ("top_k", c_int), ("top_p", c_float), ("repetition_penalty", c_float)]


LOG = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)
PROGRESS = ctypes.CFUNCTYPE(c_bool, c_void_p, c_double)


class ModelOptions(ctypes.Structure):
    """utter_model_options"""
    _fields_ = [("size", c_size_t), ("device", c_char_p), ("n_threads", c_int), ("n_lanes", c_int),
                ("pretokenizer", c_int), ("cpu_kernels", c_char_p), ("log", LOG), ("log_user", c_void_p),
                ("snapshot_bytes", c_uint64), ("weights", c_int), ("prompt_seconds", c_double)]


class ModelInfo(ctypes.Structure):
    """utter_model_info"""
    _fields_ = [("size", c_size_t), ("kind", c_int), ("kind_name", c_char_p), ("size_name", c_char_p),
                ("device", c_char_p), ("kernels", c_char_p), ("all_kernels", c_char_p), ("takes_instructions", c_bool),
                ("sample_rate", c_int), ("frame_samples", c_int), ("n_codebooks", c_int), ("codebook_size", c_int),
                ("n_threads", c_int), ("n_lanes", c_int), ("n_voices", c_int), ("n_languages", c_int),
                ("width", c_int), ("n_layers", c_int), ("predictor_width", c_int), ("predictor_layers", c_int),
                ("max_positions", c_int), ("talker_parameters", c_uint64), ("predictor_parameters", c_uint64),
                ("vocoder_parameters", c_uint64), ("all_parameters", c_uint64), ("file_bytes", c_uint64),
                ("memory_bytes", c_uint64), ("frame_bytes", c_uint64), ("weights", c_char_p), ("n_snapshots", c_int),
                ("snapshot_bytes", c_uint64), ("most_lanes", c_int), ("device_gb_per_s", c_double),
                ("talker_frame_bytes", c_uint64), ("predictor_frame_bytes", c_uint64),
                ("vocoder_frame_bytes", c_uint64)]


class CloneOptions(ctypes.Structure):
    """utter_clone_options"""
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("transcript", c_char_p), ("language", c_char_p),
                ("max_seconds", c_double), ("progress", PROGRESS), ("progress_user", c_void_p),
                ("from_seconds", c_double), ("to_seconds", c_double)]


class DesignOptions(ctypes.Structure):
    """utter_design_options"""
    _fields_ = [("size", c_size_t), ("name", c_char_p), ("text", c_char_p), ("language", c_char_p), ("seed", c_uint64),
                ("progress", PROGRESS), ("progress_user", c_void_p)]


class VoiceInfo(ctypes.Structure):
    """utter_voice_info"""
    _fields_ = [("size", c_size_t), ("kind", c_int), ("name", c_char_p), ("language", c_char_p),
                ("transcript", c_char_p), ("provenance", c_char_p), ("width", c_int), ("x_vector", POINTER(c_float)),
                ("n_frames", c_int), ("n_codebooks", c_int), ("codes", POINTER(c_int32))]


class StreamOptions(ctypes.Structure):
    """utter_stream_options"""
    _fields_ = [("size", c_size_t), ("voice", c_void_p), ("language", c_char_p), ("instruct", c_char_p),
                ("layout", c_int), ("talker", Sampling), ("predictor", Sampling), ("seed", c_uint64),
                ("max_frames", c_int), ("guard", c_bool), ("words", c_bool), ("plain", c_bool)]


class StreamStats(ctypes.Structure):
    """utter_stream_stats"""
    _fields_ = [("size", c_size_t), ("finish", c_int), ("n_frames", c_int), ("n_text_tokens", c_int),
                ("n_rows", c_int), ("prompt_s", c_double), ("prefill_s", c_double), ("talker_s", c_double),
                ("predictor_s", c_double), ("vocoder_s", c_double), ("first_sound_s", c_double),
                ("n_kept_rows", c_int), ("wait_s", c_double), ("words_approximate", c_bool)]


# utter.h's names of the structs above, for the test that compares them with the header.
STRUCTS = {"utter_error": ErrorRecord, "utter_sampling": Sampling, "utter_model_options": ModelOptions,
           "utter_model_info": ModelInfo, "utter_clone_options": CloneOptions, "utter_design_options": DesignOptions,
           "utter_voice_info": VoiceInfo, "utter_stream_options": StreamOptions, "utter_stream_stats": StreamStats}

_P, _E = c_void_p, POINTER(ErrorRecord)
# Name: what it gives, what it takes.
PROTOTYPES: dict[str, tuple[Any, List[Any]]] = {
    "version_number": (c_uint32, []),
    "version_text": (c_char_p, []),
    "model_options_init_sized": (None, [POINTER(ModelOptions), c_size_t]),
    "model_find": (c_int, [c_char_p, c_size_t, c_char_p, c_char_p, _E]),
    "model_open": (c_int, [POINTER(_P), c_char_p, POINTER(ModelOptions), _E]),
    "model_close": (None, [POINTER(_P)]),
    "model_get_info": (c_int, [_P, POINTER(ModelInfo)]),
    "model_voice_name": (c_char_p, [_P, c_int]),
    "model_language_name": (c_char_p, [_P, c_int]),
    "model_tokenize": (c_int, [_P, c_char_p, c_size_t, POINTER(POINTER(c_int32)), POINTER(c_size_t), _E]),
    "memory_free": (None, [c_void_p]),
    "voice_preset": (c_int, [POINTER(_P), _P, c_char_p, _E]),
    "voice_load": (c_int, [POINTER(_P), c_char_p, _E]),
    "voice_save": (c_int, [_P, c_char_p, _E]),
    "voice_mix": (c_int, [POINTER(_P), POINTER(_P), POINTER(c_double), c_size_t, c_char_p, _E]),
    "voice_fits": (c_int, [_P, _P, _E]),
    "voice_get_info": (c_int, [_P, POINTER(VoiceInfo)]),
    "voice_free": (None, [POINTER(_P)]),
    "clone_options_init_sized": (None, [POINTER(CloneOptions), c_size_t]),
    "voice_clone": (c_int, [POINTER(_P), _P, c_char_p, POINTER(CloneOptions), c_void_p, _E]),
    "voice_clone_samples": (c_int, [POINTER(_P), _P, c_void_p, c_size_t, POINTER(CloneOptions), _E]),
    "design_options_init_sized": (None, [POINTER(DesignOptions), c_size_t]),
    "voice_design": (c_int, [POINTER(_P), _P, c_char_p, _P, POINTER(DesignOptions), _E]),
    "stream_options_init_sized": (c_int, [POINTER(StreamOptions), c_size_t, _P]),
    "stream_open": (c_int, [POINTER(_P), _P, POINTER(StreamOptions), _E]),
    "stream_text": (c_int, [_P, c_char_p, c_size_t, _E]),
    "stream_finish": (c_int, [_P, _E]),
    "stream_read": (c_int, [_P, c_void_p, c_size_t, POINTER(c_size_t), _E]),
    "stream_codes": (POINTER(c_int32), [_P, POINTER(c_size_t)]),
    "stream_cancel": (None, [_P]),
    "stream_free": (None, [POINTER(_P)]),
    "finish_text": (c_char_p, [c_int]),
    "stream_get_stats": (c_int, [_P, POINTER(StreamStats)]),
    "sound_create": (c_int, [POINTER(_P), c_char_p, c_char_p, c_int, c_int, _E]),
    "sound_write": (c_int, [_P, c_void_p, c_size_t, _E]),
    "sound_close": (c_int, [POINTER(_P), _E]),
    "sound_abort": (None, [POINTER(_P)]),
}


def _load() -> Any:
    """The library beside this file, as wheels have it; else the one that the system has."""
    beside = os.path.join(HERE, "lib", "libutter.so.0")
    try:
        library = ctypes.CDLL(beside if os.path.exists(beside) else "libutter.so.0")
    except OSError as why:
        raise ImportError(f"the library of utter cannot be loaded: {why} "
                          "(install the wheel, or make install)") from why
    for name, (gives, takes) in PROTOTYPES.items():
        call = getattr(library, "utter_" + name)
        call.restype, call.argtypes = gives, takes
    return library


lib = _load()


def call(name: str, *arguments: Any) -> int:
    """utter_NAME(arguments..., error): its status, where that is no failure."""
    record = ErrorRecord()
    status: int = getattr(lib, "utter_" + name)(*arguments, ctypes.byref(record))
    if status < 0:
        raise ERRORS.get(status, Error)(record.text.decode())
    return status


def path_bytes(path: Any) -> bytes:
    """A path as the system takes it."""
    return os.fsencode(os.fspath(path))


def optional(text: Optional[str]) -> Optional[bytes]:
    """UTF-8, or NULL."""
    return None if text is None else text.encode()
