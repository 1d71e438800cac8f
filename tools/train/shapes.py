"""Shapes and ids of the built-in voice: one place for everything that config.json will say.

`codec()` and `talker()` give plain dictionaries; keyword arguments override single values, so that a training run
can be started with `--set decoder_dim=192`.
"""

SAMPLE_RATE = 24000
FRAME = 1920                      # samples a codec frame: 12.5 frames a second
LEAD = 2                          # frames of silence before the speech in the streaming layout
CONTROL_IDS = 1024                # the official code suppresses the last 1024 codec ids, except EOS

CODEC = dict(
    codebooks=8, entries=512, width=40,                 # width of one table row; the decoder's input is twice that
    latent=128, hidden=128, intermediate=320, layers=2, heads=4, head_dim=32, window=24,
    decoder_dim=256, rates=[8, 5, 4, 3], latent_rates=[2, 2],
    filters=8, encoder_hidden=96, encoder_intermediate=192, encoder_layers=2, encoder_heads=4, encoder_head_dim=24,
    encoder_rates=[8, 6, 5, 4])

TALKER = dict(
    codebooks=8, entries=512, hidden=256, intermediate=512, layers=5, heads=4, kv_heads=2, head_dim=64,
    text_hidden=96, text_vocabulary=1024,
    predictor_hidden=160, predictor_intermediate=384, predictor_layers=2, predictor_heads=4, predictor_kv_heads=2,
    predictor_head_dim=32)

SPEAKERS = {"clara": ("slt", 44), "miles": ("rms", 45)}  # preset: (source voice, offset from `entries`)


def codec(**overrides):
    return checked(dict(CODEC), overrides)


def talker(**overrides):
    return checked(dict(TALKER), overrides)


def checked(shape, overrides):
    for key, value in overrides.items():
        if key not in shape:
            raise KeyError(f"no such shape: {key} (known: {', '.join(shape)})")
        shape[key] = value
    return shape


def overrides(pairs):
    """["decoder_dim=192", ...] -> {"decoder_dim": 192, ...}"""
    return {k: int(v) for k, v in (p.split("=") for p in pairs)}


def control_ids(entries):
    """Codec ids above the codes: all of them lie in the suppressed range."""
    names = "pad bos eos spare think nothink think_bos think_eos".split()
    ids = {name: entries + i for i, name in enumerate(names)}
    ids["english"] = entries + 14
    ids["speakers"] = {preset: entries + offset for preset, (_, offset) in SPEAKERS.items()}
    ids["size"] = entries + CONTROL_IDS
    return ids
