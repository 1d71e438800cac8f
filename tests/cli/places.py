"""places.py SOURCE: the words of `utter say --times -`, each with what stands at its place in the source where that is
something else."""
import json
import sys

source, said = sys.argv[1].encode(), []
for word in json.load(sys.stdin)["words"]:
    there = source[word["at"]:word["at"] + word["bytes"]].decode()
    said.append(word["text"] if word["text"] == there else f"{word['text']} ({there})")
print(", ".join(said))
