#!/usr/bin/env python3
"""Writes `names-en.tsv` (standard output): which English words are names, and of what.

    models/names.py MODEL TEXT.gz ... > models/names-en.tsv

What a word is by itself is told by how often it has a capital inside the sentences of the texts; what it names by a
logistic regression over the vectors of MODEL, learned from `names-seeds.tsv` beside this script. `names-own.tsv` is
added as it is. Needs numpy and scikit-learn.
"""

import collections
import gzip
import json
import pathlib
import re
import struct
import sys

import numpy
from sklearn.linear_model import LogisticRegression

HERE = pathlib.Path(__file__).parent
WORD = re.compile(r"[A-Za-z\u00c0-\u024f][A-Za-z\u00c0-\u024f0-9]*(?:['\u2019][A-Za-z]+)?")
LITTLE = set("a an the of and or in on at to for by from with as is was were are be been it its he she his her they "
             "their that this which who but not had has have s".split())
# A title has capitals everywhere.
TITLE = 0.7
# A kind is told only from this probability on.
SURE = 0.6


def model(path):
    """The words of a model and their vectors, each of length 1."""
    data = path.read_bytes()
    start = 8 + struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:start])

    def tensor(name, dtype):
        begin, end = header[name]["data_offsets"]
        return numpy.frombuffer(data[start + begin : start + end], dtype).reshape(header[name]["shape"])

    ends, text = tensor("vocab_offsets", "<u8"), tensor("vocab_bytes", "u1").tobytes()
    words = [text[begin:end].decode() for begin, end in zip(ends, ends[1:])]
    rows = tensor("vectors", "i1").astype("f4")
    return words, rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def counts(paths):
    """For each word inside sentences: how often it has a capital, how often not, how often it has one alone."""
    found = collections.defaultdict(lambda: [0, 0, 0])
    for path in paths:
        for line in gzip.open(path, "rt", encoding="utf8"):
            line = line.strip()
            places = list(WORD.finditer(line))
            words = [place.group() for place in places]
            content = [word[0].isupper() for word in words[1:] if word.lower() not in LITTLE]
            if len(places) < 5 or content and sum(content) / len(content) > TITLE:
                continue
            capital = [word[0].isupper() for word in words]
            beside = [line[one.end() : two.start()] == " " for one, two in zip(places, places[1:])] + [False]
            for at in range(1, len(words)):
                before = line[: places[at].start()].rstrip()
                if before and before[-1] in ".!?:;\"\u201c'\u2018(*[":
                    continue
                count = found[re.sub(r"['\u2019]s$", "", words[at]).lower().replace("'", "").replace("\u2019", "")]
                if not capital[at]:
                    count[1] += 1
                    continue
                count[0] += 1
                joined = at > 1 and capital[at - 1] and beside[at - 1]
                joins = at + 1 < len(words) and capital[at + 1] and beside[at]
                count[2] += not (joined or joins)
    return found


def class_of(capitals, small, alone):
    """What a word is by its counts; nothing for most."""
    times = capitals + small
    if times < 3:
        return "rare"
    share = capitals / times
    if share >= 0.9:
        return "name"
    if share >= 0.35 and (alone >= 3 and alone >= 0.15 * capitals or share >= 0.8):
        return "maybe"
    return "some" if times >= 5 and share >= 0.08 and alone >= 3 else None


def lines(name):
    text = (HERE / name).read_text(encoding="utf8")
    return [line for line in text.splitlines() if not line.startswith("#")]


def main(path, *texts):
    words, rows = model(pathlib.Path(path))
    row_of, found = dict(zip(words, rows)), counts(texts)
    seeds = [line.split("\t") for line in lines("names-seeds.tsv")]
    seeds = {word: kind for kind, named in seeds for word in named.split() if word in row_of}
    learned = LogisticRegression(C=10, max_iter=2000).fit([row_of[word] for word in seeds], list(seeds.values()))
    classes = {word: class_of(*found.get(word, (0, 0, 0))) for word in words if word.isalpha()}
    classes = {word: name for word, name in classes.items() if name}
    chances = learned.predict_proba([row_of[word] for word in classes])
    sorts = collections.defaultdict(list)
    for (word, name), chance in zip(classes.items(), chances):
        kind = learned.classes_[chance.argmax()] if chance.max() >= SURE else "-"
        sorts[name, seeds.get(word, kind)].append(word)
    print("# Which English words are names, made by names.py: see README.md beside it.")
    for (name, kind), named in sorts.items():
        for at in range(0, len(named), 12):
            print(name, kind, " ".join(named[at : at + 12]), sep="\t")
    print("\n".join(lines("names-own.tsv")))


main(*sys.argv[1:])
