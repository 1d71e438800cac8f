"""Training states from a checkpoint: training goes on from a voice without the files that its training left.

    python3 resume.py --voice ../../voice/builtin --out run

Writes OUT/codec.pt, OUT/talker.pt and OUT/tokenizer: export.py turned round; the heads get their own sharpness back.
"""
import argparse
import os
import shutil

import pieces
from checkpoint import Voice
from export import HEAD_GAIN, TOKENIZER_FILES, sharpened


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--voice", required=True)
    options.add_argument("--gains", nargs=2, type=float, default=[HEAD_GAIN, HEAD_GAIN], help="as given to export.py")
    options.add_argument("--out", required=True)
    args = options.parse_args()
    os.makedirs(os.path.join(args.out, "tokenizer"), exist_ok=True)
    for name in TOKENIZER_FILES:
        shutil.copy(os.path.join(args.voice, name), os.path.join(args.out, "tokenizer"))
    voice = Voice(args.voice)
    gains = [1 / g for g in args.gains]
    pieces.save(os.path.join(args.out, "codec.pt"), shape=voice.codec.shape, codec=voice.codec.state_dict())
    pieces.save(os.path.join(args.out, "talker.pt"), shape=voice.talker.shape, text=voice.tokenizer.special,
                talker={k: sharpened(k, v, gains) for k, v in voice.talker.state_dict().items()})


if __name__ == "__main__":
    main()
