"""Writes golden.json: vectors that model2vec computes from an exported folder.

Run in this folder with model2vec 0.10: python3 make.py FOLDER, where FOLDER is what
`cognate export models/default.safetensors --to model2vec` writes. Every text consists of words
that the folder knows, so that its vectors must be those of `avg-cos`. Of each vector the first
numbers are kept, and its length.
"""

import json
import sys

import numpy as np
from model2vec import StaticModel

TEXTS = """
Quake hits city
Earthquake shakes the town, 2020 people flee!
U.S. and e.g. the L.A. Times
Visit https://example.org/a?b=c#d now
www.example.org/page is down
thanks @someone_else for this
don’t say it’s over
rock &amp; roll &lt;3
the café's chef
ＦＵＬＬ width ﬁne
bus stop #weather
it cost 5 euros
quick-witted foxes, jumping
Two  spaces	and a tab
so­ft pil​low
The sun's rays
ISTANBUL and İstanbul
good ... bad
a b c
the the the cat
""".strip().split("\n")
KEPT = 24

model = StaticModel.from_pretrained(sys.argv[1])
texts = []
for text, ids in zip(TEXTS, model.tokenize(TEXTS)):
    encoding = model.tokenizer.encode(text, add_special_tokens=False)
    if len(ids) != len(encoding.ids):
        sys.exit(f"a word of {text!r} is unknown: {encoding.tokens}")
    vector = model.encode([text])[0].astype(np.float64)
    kept = [round(float(value), 8) for value in vector[:KEPT]]
    length = round(float(np.linalg.norm(vector)), 8)
    texts.append({"text": text, "tokens": encoding.tokens, "first": kept, "length": length})
with open("golden.json", "w") as out:
    json.dump(texts, out, ensure_ascii=False, indent=1)
    out.write("\n")
