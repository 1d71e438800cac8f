"""Sentences: the text that the voice is trained and judged on.

In: text/words.json (word lists), text/everyday.txt (templates), text/heldout_unseen.txt (hand-written, of no
template) and, for wide vocabulary, Debian's `scowl` word lists. Out, in one folder: heldout_words.txt (300 sentences
for word errors: 150 easy everyday ones, 150 others), heldout_unseen.txt (150), heldout_endings.txt (2,000), and
train_SPEAKER.txt.
Held-out sentences are drawn first and never occur in a training file.
"""
import argparse
import json
import os
import random
import re

HERE = os.path.dirname(os.path.abspath(__file__))
SCOWL = "/usr/share/dict/scowl/english-words.%d"
MAX_CHARACTERS = 150
MAX_JOINED = 230                      # a few long utterances, made of two sentences


def read_lines(path, encoding="utf-8"):
    with open(path, encoding=encoding) as file:
        return [line.rstrip("\n") for line in file if line.strip()]


def load_words():
    with open(os.path.join(HERE, "text", "words.json"), encoding="utf-8") as file:
        lists = json.load(file)
    return {key: value.split("|") if "|" in value else value.split() for key, value in lists.items()}


def load_scowl(level):
    words = read_lines(SCOWL % level, "latin-1")
    return [w for w in words if w.isascii() and w.isalpha() and w.islower()]


class Grammar:
    """A seeded source of English sentences. `sentence()` gives one; grammatical more often than sensible."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.words = load_words()
        self.scowl = [load_scowl(10), load_scowl(20), load_scowl(35)]
        self.everyday = read_lines(os.path.join(HERE, "text", "everyday.txt"))

    # -- words ------------------------------------------------------------------------------------------------
    def pick(self, kind):
        return self.random.choice(self.words[kind])

    def chance(self, p):
        return self.random.random() < p

    def wide_word(self):
        x = self.random.random()
        return self.random.choice(self.scowl[0 if x < .40 else 1 if x < .65 else 2])

    def noun(self):
        return self.pick("noun") if self.chance(.5) else self.wide_word()

    def adjective(self):
        return self.pick("adjective") if self.chance(.6) else self.wide_word()

    def number(self):
        x = self.random.random()
        if x < .5:
            return str(self.random.randint(0, 100))
        if x < .6:
            return str(self.random.randint(101, 999))
        if x < .7:
            return str(self.random.randint(1900, 2030))
        if x < .9:
            return self.pick("number_word")
        return f"{self.pick('tens')} {self.pick('small')}"

    # -- phrases ----------------------------------------------------------------------------------------------
    def noun_phrase(self):
        x = self.random.random()
        if x < .12:
            return self.pick("name")
        if x < .22:
            return self.pick("pronoun")
        words = [self.pick("determiner"), self.noun()]
        if self.chance(.5):
            words.insert(1, self.adjective())
        if words[0] == "a" and words[1][0] in "aeiou":
            words[0] = "an"
        return " ".join(words)

    def place_phrase(self):
        return f"{self.pick('preposition')} {self.noun_phrase()}"

    def clause(self):
        x = self.random.random()
        subject = self.noun_phrase()
        if x < .35:
            return f"{subject} {self.pick('verb')} {self.noun_phrase()}"
        if x < .60:
            return f"{subject} {self.pick('verb')} {self.noun_phrase()} {self.place_phrase()}"
        if x < .70:
            return f"{subject} {self.pick('verb')} {self.pick('adverb')}"
        if x < .80:
            verb = self.random.choice(['is', 'was', 'are', 'were', 'will be', 'seems', 'looks'])
            return f"{subject} {verb} {self.adjective()}"
        if x < .90:
            return f"{subject} {self.pick('modal')} {self.pick('verb_base')} {self.noun_phrase()}"
        verb = self.random.choice(["is", "was", "are", "were"])
        return f"there {verb} {self.number()} {self.noun()} {self.place_phrase()}"

    # -- kinds of sentence --------------------------------------------------------------------------------------
    def statement(self):
        return self.clause() + "."

    def compound(self):
        return f"{self.clause()}{self.random.choice([',', ''])} {self.pick('conjunction')} {self.clause()}."

    def open_question(self):
        return (f"{self.pick('question')} {self.pick('auxiliary_past')} {self.noun_phrase()} "
                f"{self.pick('verb_base')} {self.noun_phrase()}?")

    def closed_question(self):
        return (f"{self.random.choice('do did does will would can could'.split())} {self.noun_phrase()} "
                f"{self.pick('verb_base')} {self.noun_phrase()} {self.place_phrase()}?")

    def command(self):
        return (f"{self.random.choice(['please', 'now', 'then', 'first', 'next'])} {self.pick('verb_base')} "
                f"{self.noun_phrase()} {self.place_phrase()}.")

    def adverb_first(self):
        return f"{self.pick('adverb')}, {self.clause()}."

    def appointment(self):
        return (f"{self.random.choice(['on', 'every', 'last', 'next'])} {self.pick('day')} "
                f"{self.random.choice(['at', 'around', 'before', 'after'])} {self.number()}, {self.clause()}.")

    def date(self):
        return (f"{self.pick('month')} {self.random.randint(1, 31)}, {self.random.randint(1900, 2030)} was "
                f"{self.pick('determiner')} {self.adjective()} {self.noun()}.")

    def number_list(self):
        return ", ".join(self.number() for _ in range(self.random.randint(2, 6))) + "."

    def fragment(self):
        kinds = [self.noun, self.adjective, lambda: self.pick("adverb")]
        words = [self.random.choice(kinds)() for _ in range(self.random.randint(1, 3))]
        return " ".join(words) + self.random.choice(".?!")

    def random_words(self):
        count = self.random.randint(4, 14)
        return " ".join(self.wide_word() if self.chance(.7) else self.pick("function") for _ in range(count)) + "."

    def triple(self):
        return f"{self.clause()}, {self.clause()}, and {self.clause()}."

    def slots(self):
        """Values for the slots of one everyday template."""
        r = self.random
        count = r.choice(self.words["number_word"]) if self.chance(.5) else str(r.randint(2, 99))
        return dict(
            count=lambda: count, sum=lambda: str(r.randint(4, 198)), dayofmonth=lambda: str(r.randint(1, 31)),
            year=lambda: str(r.randint(1920, 2025)), hour=lambda: r.choice(self.words["number_word"][:12]),
            clock=lambda: f"{r.choice(self.words['number_word'][:12])} "
                          f"{r.choice(['thirty', 'fifteen', 'twenty', 'forty five', 'ten', 'fifty'])}",
            digits=lambda: " ".join(r.choice(self.words["small"]) for _ in range(r.randint(4, 7))),
            when=lambda: r.choice(["today", "tomorrow", "tonight", "next week", f"on {self.pick('day')}"]),
            past=lambda: r.choice(["yesterday", "last week", "last night", f"on {self.pick('day')}"]),
            done=lambda: self.pick("thing_done"), side=lambda: r.choice(["left", "right"]),
            taste=lambda: r.choice(["sweet", "salty", "hot", "cold", "sour", "spicy", "dry"]),
            job=lambda: r.choice("doctor teacher pilot baker farmer driver singer painter nurse lawyer".split()))

    def everyday_sentence(self):
        slots = self.slots()
        return re.sub(r"\{(\w+)\}", lambda m: slots[m[1]]() if m[1] in slots else self.pick(m[1]),
                      self.random.choice(self.everyday))

    KINDS = [(.24, "everyday_sentence"), (.22, "statement"), (.09, "compound"), (.06, "open_question"),
             (.05, "closed_question"), (.05, "command"), (.03, "adverb_first"), (.04, "appointment"), (.03, "date"),
             (.03, "number_list"), (.03, "fragment"), (.10, "random_words"), (.03, "triple")]

    def sentence(self, kind=None):
        kind = kind or self.random.choices([k for _, k in self.KINDS], [p for p, _ in self.KINDS])[0]
        text = getattr(self, kind)()
        text = re.sub(r"\bi\b", "I", text[0].upper() + text[1:])
        return re.sub(r"\bA (?=[aeiou])", "An ", re.sub(r"\ba (?=[aeiou])", "an ", text))


def draw(grammar, count, taken, longest=MAX_CHARACTERS, kind=None):
    """`count` different sentences that are not in `taken`, which grows by them."""
    out = []
    while len(out) < count:
        text = grammar.sentence(kind)
        if len(text) <= longest and text.lower() not in taken:
            taken.add(text.lower())
            out.append(text)
    return out


def join_some(grammar, lines, share=.04):
    """Glues a few neighbours together so that utterances of more than one sentence are seen as well."""
    out, i = [], 0
    while i < len(lines):
        if i + 1 < len(lines) and len(lines[i]) + len(lines[i + 1]) < MAX_JOINED and grammar.chance(share):
            out.append(lines[i] + " " + lines[i + 1])
            i += 2
        else:
            out.append(lines[i])
            i += 1
    return out


def known_to(judge_words, lines):
    """The lines whose words the judge's dictionary holds, so that a word error is never a missing entry."""
    return [l for l in lines if all(w in judge_words for w in re.findall(r"[a-z']+", l.lower()))]


def write(path, lines):
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--out", required=True)
    options.add_argument("--speakers", nargs="+", default=["slt", "rms"])
    options.add_argument("--count", type=int, default=40000, help="training sentences a speaker")
    options.add_argument("--seed", type=int, default=100, help="of the training sentences; held-out ones are always the"
                         " same")
    options.add_argument("--dictionary", default="/usr/share/pocketsphinx/model/en-us/cmudict-en-us.dict")
    args = options.parse_args()
    os.makedirs(args.out, exist_ok=True)
    judge_words = {line.split()[0] for line in read_lines(args.dictionary)}
    unseen = read_lines(os.path.join(HERE, "text", "heldout_unseen.txt"))
    taken = {line.lower() for line in unseen}
    held = Grammar(1)
    easy = known_to(judge_words, draw(held, 200, taken, kind="everyday_sentence"))[:150]
    mixed = known_to(judge_words, draw(held, 400, taken))[:150]
    write(os.path.join(args.out, "heldout_words.txt"), easy + mixed)
    write(os.path.join(args.out, "heldout_unseen.txt"), unseen)
    write(os.path.join(args.out, "heldout_endings.txt"), join_some(held, draw(held, 2150, taken))[:2000])
    for i, speaker in enumerate(args.speakers):
        grammar = Grammar(args.seed + i)
        write(os.path.join(args.out, f"train_{speaker}.txt"), join_some(grammar, draw(grammar, args.count, taken)))


if __name__ == "__main__":
    main()
