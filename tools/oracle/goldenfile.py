"""Golden files: written, read and compared. tests/golden/README.md is the format."""
import json
import pathlib

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

STRIDE = 97  # of `strided`; no divisor of the 1920 samples of a frame


def fnv1a(data):
    h = 14695981039346656037
    for byte in data:
        h = (h ^ byte) * 1099511628211 & 0xFFFFFFFFFFFFFFFF
    return f"{h:016x}"


def edges(path):
    size = path.stat().st_size
    with open(path, "rb") as file:
        if size <= 131072:
            return {"bytes": size, "edges": fnv1a(file.read())}
        head = file.read(65536)
        file.seek(-65536, 2)
        return {"bytes": size, "edges": fnv1a(head + file.read())}


def checkpoint(folder, kind, size, recipe):
    folder = pathlib.Path(folder)
    names = ["config.json", "model.safetensors", "speech_tokenizer/model.safetensors"]
    return {"kind": kind, "size": size, "recipe": recipe,
            "files": {name: edges(folder / name) for name in names if (folder / name).exists()}}


def sound_entry(samples, first, rule, exact=None):
    """The `sound` object and the tensors that go with it; `exact` is the same sound from fp64."""
    first = min(first, len(samples))
    rms = float(np.sqrt(np.mean(samples.astype(np.float64) ** 2)))
    entry = {"n": len(samples), "first": first, "stride": STRIDE, "rms": rms, "rule": rule}
    tensors = {"samples": samples[:first].copy(), "strided": samples[::STRIDE].copy()}
    if exact is not None:
        rounded = exact.astype(np.float32)
        tensors |= {"samples_fp64": rounded[:first].copy(), "strided_fp64": rounded[::STRIDE].copy()}
    return entry, tensors


def save(path, made_with, checkpoint_entry, cases, tensors):
    text = lambda value: json.dumps(value, ensure_ascii=False)
    metadata = {"utter_golden": "1", "made_with": made_with, "checkpoint": text(checkpoint_entry), "cases": text(cases)}
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    save_file({name: np.ascontiguousarray(array) for name, array in tensors.items()}, str(path), metadata=metadata)
    pathlib.Path(path).chmod(0o644)


OFFICIAL_SPREAD = 1.25                # from AVX2 to AVX-512 the official fp32 sound went 1.22 times as far from fp64


def load(path):
    with safe_open(str(path), "np") as file:
        return file.metadata(), {name: file.get_tensor(name) for name in file.keys()}


def differences(old_path, new_path):
    """What a fresh golden says differently: a list of sentences, empty when they agree. Integers must be equal; floats
    may differ by what another CPU or thread count changes."""
    (old_meta, old), (new_meta, new) = load(old_path), load(new_path)
    found = []
    for key in sorted(set(old_meta) | set(new_meta) - {"made_with"}):
        if key not in ("made_with", "cases", "checkpoint") and old_meta.get(key) != new_meta.get(key):
            found.append(f"metadata {key} differs")
    if json.loads(old_meta.get("checkpoint", "{}")) != json.loads(new_meta.get("checkpoint", "{}")):
        found.append("it was made on another checkpoint")
    found += case_differences(json.loads(old_meta["cases"]), json.loads(new_meta["cases"]))
    for name in sorted(set(old) | set(new)):
        if name not in old or name not in new:
            found.append(f"{name}: only in the {'new' if name in new else 'committed'} file")
        elif old[name].shape != new[name].shape:
            found.append(f"{name}: {old[name].shape} is now {new[name].shape}")
        elif old[name].dtype.kind == "i":
            if not np.array_equal(old[name], new[name]):
                found.append(f"{name}: {np.count_nonzero(old[name] != new[name])} of {old[name].size} differ")
        elif not close(old[name], new[name]) and not as_close_to_fp64(name, old, new):
            found.append(f"{name}: differs by up to {np.max(np.abs(old[name] - new[name])):.3g}")
    return found


def close(a, b):
    size = np.sqrt(np.mean(np.square(a.astype(np.float64)))) if a.size else 0
    return np.allclose(a, b, rtol=1e-3, atol=1e-3 * max(size, 1e-6), equal_nan=True)


def as_close_to_fp64(name, old, new):
    """Whether a sound that has fp64 beside it is no further from it than another CPU makes it (docs/verify.md)."""
    if name + "_fp64" not in old:
        return False
    was, now = (np.abs(x[name].astype(np.float64) - old[name + "_fp64"]).max() for x in (old, new))
    return now <= OFFICIAL_SPREAD * was


def case_differences(old, new):
    strip = lambda case: {k: v for k, v in case.items() if k not in ("margin", "sound")}
    if len(old) != len(new):
        return [f"{len(old)} cases are now {len(new)}"]
    return [f"case {a['name']} differs: {a} is now {b}" for a, b in zip(old, new) if strip(a) != strip(b)]
