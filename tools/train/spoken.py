"""Numbers to words: what the teacher is made to say, and what the judge expects to hear.

The talker is trained on the text as written ("May 11, 1905"); the teacher receives the spoken form ("May eleventh,
nineteen oh five"), because its own reading of digits changes with the context.
"""
import re

ONES = ("zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen").split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
            "twelve": "twelfth"}
MONTHS = ("January February March April May June July August September October November December").split()


def cardinal(n):
    if n < 20:
        return ONES[n]
    if n < 100:
        return TENS[n // 10] + (" " + ONES[n % 10] if n % 10 else "")
    if n < 1000:
        return ONES[n // 100] + " hundred" + (" " + cardinal(n % 100) if n % 100 else "")
    return cardinal(n // 1000) + " thousand" + (" " + cardinal(n % 1000) if n % 1000 else "")


def ordinal(n):
    words = cardinal(n).split()
    last = words[-1]
    words[-1] = ORDINALS.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    return " ".join(words)


def year(n):
    if 2000 <= n < 2010:
        return cardinal(n)
    high, low = divmod(n, 100)
    if low == 0:
        return cardinal(high) + " hundred"
    return cardinal(high) + (" oh " if low < 10 else " ") + cardinal(low)


def number(digits):
    n = int(digits)
    if digits[0] == "0" and len(digits) > 1 or len(digits) > 6:
        return " ".join(ONES[int(d)] for d in digits)
    return year(n) if 1900 <= n < 2100 else cardinal(n)


def spoken(text):
    """The text with every number written out."""
    text = re.sub(r"\b(%s) (\d{1,2})\b" % "|".join(MONTHS), lambda m: f"{m[1]} {ordinal(int(m[2]))}", text)
    return re.sub(r"\d+", lambda m: number(m[0]), text)


def words(text):
    """The words of a text as the judge sees them: lower case, numbers written out, no punctuation."""
    return re.findall(r"[a-z]+(?:'[a-z]+)?", spoken(text).lower())
