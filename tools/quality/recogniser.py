"""The judge: pocketsphinx with Debian's en-us acoustic model and a small language model of the project's own.

In: sound files and their texts. Out: for each the number of word errors and of words.
"""
import os
import subprocess
import sys
import tempfile
import wave

import numpy as np
from scipy.signal import resample_poly

import language_model

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
import spoken  # noqa: E402  (the trainer owns how numbers are read)

MODEL = os.environ.get("POCKETSPHINX_MODEL", "/usr/share/pocketsphinx/model/en-us")
PROGRAM = os.environ.get("POCKETSPHINX", "pocketsphinx_batch").split()
RATE = 16000
LANGUAGE_WEIGHT = "6.5"


def read_wav(path):
    """Mono float samples and the rate."""
    with wave.open(path) as file:
        if file.getsampwidth() != 2 or file.getnchannels() != 1:
            raise ValueError(f"{path}: wanted mono 16-bit sound")
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        return samples.astype(np.float32) / 32768, file.getframerate()


def write_for_judge(samples, rate, path):
    if rate != RATE:
        divisor = np.gcd(rate, RATE)
        samples = resample_poly(samples, RATE // divisor, rate // divisor)
    quiet = np.zeros(RATE // 5, np.float32)
    samples = np.concatenate((quiet, samples, quiet))
    (np.clip(samples, -1, 1) * 32767).astype(np.int16).tofile(path)


def dictionary_words():
    with open(os.path.join(MODEL, "cmudict-en-us.dict"), encoding="utf-8") as file:
        return {line.split()[0].split("(")[0] for line in file}


def prepare(training_files, folder):
    """Writes the language model and the dictionary of its words; returns their paths."""
    sentences = []
    for path in training_files:
        with open(path, encoding="utf-8") as file:
            sentences += [spoken.words(line) for line in file]
    vocabulary = {w for words in sentences for w in words} & dictionary_words()
    arpa, small = os.path.join(folder, "judge.lm"), os.path.join(folder, "judge.dict")
    language_model.build(sentences, vocabulary, arpa)
    with open(os.path.join(MODEL, "cmudict-en-us.dict"), encoding="utf-8") as source, \
            open(small, "w", encoding="utf-8") as out:
        out.writelines(line for line in source if line.split()[0].split("(")[0] in vocabulary)
    return arpa, small


def run_batches(names, folder, arpa, small, processes):
    control = os.path.join(folder, "control")
    with open(control, "w", encoding="utf-8") as file:
        file.write("\n".join(names) + "\n")
    share = -(-len(names) // processes)
    running = []
    for k in range(0, len(names), share):
        command = PROGRAM + ["-hmm", os.path.join(MODEL, "en-us"), "-lm", arpa, "-dict", small, "-lw", LANGUAGE_WEIGHT,
                             "-adcin", "yes", "-cepdir", folder, "-cepext", ".raw", "-ctl", control, "-ctloffset",
                             str(k), "-ctlcount", str(share), "-hyp", os.path.join(folder, f"hyp{k}"), "-remove_noise",
                             "no", "-samprate", str(RATE)]
        running.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    for process in running:
        if process.wait():
            raise RuntimeError(f"{PROGRAM[0]} failed (is it installed, with its en-us model?)")
    heard = {}
    for k in range(0, len(names), share):
        with open(os.path.join(folder, f"hyp{k}"), encoding="utf-8") as file:
            for line in file:
                text, _, tail = line.rpartition("(")
                heard[tail.split()[0]] = [w.split("(")[0] for w in text.split()]
    return heard


def edit_distance(wanted, heard):
    row = list(range(len(heard) + 1))
    for i, w in enumerate(wanted):
        previous, row[0] = row[0], i + 1
        for j, h in enumerate(heard):
            previous, row[j + 1] = row[j + 1], min(row[j + 1] + 1, row[j] + 1, previous + (w != h))
    return row[-1]


def judge(items, language, processes=2):
    """items: (samples, rate, text); language: the pair from prepare(). Returns [(errors, words, heard)]."""
    with tempfile.TemporaryDirectory() as folder:
        names = [f"u{i:05d}" for i in range(len(items))]
        for name, (samples, rate, _) in zip(names, items):
            write_for_judge(samples, rate, os.path.join(folder, name + ".raw"))
        heard = run_batches(names, folder, *language, processes)
    out = []
    for name, (_, _, text) in zip(names, items):
        wanted, got = spoken.words(text), heard.get(name, [])
        out.append((edit_distance(wanted, got), len(wanted), " ".join(got)))
    return out
