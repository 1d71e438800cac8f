"""Text to speech with the Qwen3-TTS family.

>>> import utter
>>> model = utter.Model()                  # the voice that comes with it; Model("0.6b"), Model("folder") open others
>>> speech = model.say("Hello.")           # numpy float32, 24,000 samples a second
>>> speech.dtype, model.sample_rate
(dtype('float32'), 24000)
>>> utter.save("hello.wav", speech, model.sample_rate)

Sound while it is made, and text while it is written:

>>> n = 0
>>> for samples in model.stream("Hello there."):
...     n += len(samples)
>>> n > 20000
True

The same for asyncio (`async for samples in model.astream(words())`) takes text from an async generator.
"""
from ._library import (ArgumentError, Busy, Cancelled, DeviceError, Error, FileError, ModelError, OutOfMemory, lib)
from ._model import Model, Stats, Stream, Voice, save

__version__: str = lib.utter_version_text().decode()
__all__ = ["ArgumentError", "Busy", "Cancelled", "DeviceError", "Error", "FileError", "Model", "ModelError",
           "OutOfMemory", "Stats", "Stream", "Voice", "save"]
