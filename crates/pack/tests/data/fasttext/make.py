"""Writes pruned.ftz, whole.ftz and golden.json: quantised fastText models and the vectors that
fastText gives words, listed and not.

Run in this folder with fasttext-wheel 0.9.2: python3 make.py
"""

import json
import os
import random

import fasttext

draw = random.Random(20261122)
SYLLABLES = ["ka", "lo", "mi", "tu", "re", "ßa", "né", "日"]
words = ["".join(draw.choice(SYLLABLES) for _ in range(draw.randint(1, 4))) for _ in range(160)]
with open("text.txt", "w") as out:
    for line in range(900):
        label = line % 3
        text = [draw.choice(words[label * 40 : label * 40 + 80]) for _ in range(6)]
        out.write(f"__label__{label} {' '.join(text)}\n")

ASKED = ["kalo", "mikato", "日né", "tutututu", "</s>", "zzzz", "reßa", *"abcdefghijklmnopqrstuvwxyz"]


def trained():
    return fasttext.train_supervised(
        "text.txt", dim=5, minn=2, maxn=3, bucket=300, epoch=20, thread=1, verbose=0
    )


golden = {}
for name, options in {
    "pruned": {"cutoff": 280, "qnorm": True, "dsub": 2},
    "whole": {"dsub": 3},
}.items():
    model = trained()
    model.quantize(input="text.txt", thread=1, **options)
    model.save_model(f"{name}.ftz")
    listed = model.get_words()
    asked = listed[:20] + ASKED
    vectors = {word: [float(x) for x in model.get_word_vector(word)] for word in asked}
    golden[name] = {"listed": len(listed), "vectors": vectors}
with open("golden.json", "w") as out:
    json.dump(golden, out, ensure_ascii=False, indent=1)
    out.write("\n")
os.remove("text.txt")
