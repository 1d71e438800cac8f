"""A small trigram model (ARPA) for the judge, made from the project's own training sentences.

Interpolated absolute discounting, written in back-off form. Held-out sentences are never in the input, because
tools/train/sentences.py keeps them out of the training files.
"""
import collections
import math

DISCOUNT = .75


def count_ngrams(sentences, vocabulary):
    counts = [collections.Counter() for _ in range(3)]
    for words in sentences:
        padded = ["<s>"] + [w if w in vocabulary else "<unk>" for w in words] + ["</s>"]
        for i in range(len(padded)):
            for n in range(3):
                if i >= n and (n or padded[i] != "<s>"):
                    counts[n][tuple(padded[i - n:i + 1])] += 1
    return counts


def contexts(counts):
    """Total and number of different followers of each context."""
    total, kinds = collections.Counter(), collections.Counter()
    for gram, n in counts.items():
        total[gram[:-1]] += n
        kinds[gram[:-1]] += 1
    return total, kinds


def interpolate(counts, lower):
    """Probabilities of the seen n-grams and the back-off weight of each context."""
    total, kinds = contexts(counts)
    backoff = {h: DISCOUNT * kinds[h] / total[h] for h in total}
    return {g: (n - DISCOUNT) / total[g[:-1]] + backoff[g[:-1]] * lower(g[1:]) for g, n in counts.items()}, backoff


def unigrams(counts, vocabulary):
    words = set(vocabulary) | {"</s>"}
    floor = .5
    mass = sum(counts[(w,)] + floor for w in words)
    return {(w,): (counts[(w,)] + floor) / mass for w in words}


def build(sentences, vocabulary, path):
    counts = count_ngrams(sentences, vocabulary)
    one = unigrams(counts[0], vocabulary)
    pairs = {g: n for g, n in counts[1].items() if "<unk>" not in g}
    two, backoff_one = interpolate(pairs, lambda g: one[g])
    triples = {g: n for g, n in counts[2].items() if "<unk>" not in g}
    three, backoff_two = interpolate(triples, lambda g: two[g])
    one[("<s>",)] = 1e-10
    tables = [(one, backoff_one), (two, backoff_two), (three, {})]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\\data\\\n" + "".join(f"ngram {i + 1}={len(t)}\n" for i, (t, _) in enumerate(tables)))
        for i, (table, backoff) in enumerate(tables):
            file.write(f"\n\\{i + 1}-grams:\n")
            for gram, p in sorted(table.items()):
                tail = f"\t{math.log10(backoff[gram]):.4f}" if gram in backoff else "\t0.0000" if i < 2 else ""
                file.write(f"{math.log10(p):.4f}\t{' '.join(gram)}{tail}\n")
        file.write("\n\\end\\\n")
