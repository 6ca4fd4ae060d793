#!/usr/bin/env python3
"""Writes `names-en.tsv` or `names-languages.tsv` (standard output): which words are names, and of what.

    models/names.py MODEL TEXT.gz ... > models/names-en.tsv
    models/names.py MODEL FOLDER TEXT.gz ... > models/names-languages.tsv

What a word is by itself is told by how often it has a capital inside the sentences of the texts; what it names by a
logistic regression over the vectors of MODEL, learned from `names-seeds.tsv` beside this script. `names-own.tsv` is
added as it is. FOLDER is that of Common Voice's sentences (see `languages.py`): what its six languages say then goes
before what the texts say, German tells which words are no names, and `names-languages-own.tsv` is added, too. Needs
numpy and scikit-learn.

A line has a kind, then words, with tabs between:

    name, maybe, rare, some        a name; a name where it has a capital; hardly seen; at times a name. The second field
                                   has what it names: person, place, organisation, team, day, or -
    same       eu union europe     names of the same thing
    group      weekday             a text can mean a single entry of the group: `monday mon|tuesday tue`
    country    turkey turkish      a country and its people, and what lies in it: `ankara istanbul`
    also       organisation        a common word that is a name, too: `zoom slack`
    none       mr court street     no name, whatever its capitals
    doubtful, when   may, in       of its group only with a capital, or behind a word that says when
    joined     new york|west virginia   two words that name something else than the last word alone
    nouns      der und             words of a language that writes every noun with a capital; two of them tell a text of it
    article, joiner   the, of      passed over beside a name, and by initials
    ending, vowel-ending, form     endings of people or a product; in place of a last vowel; of forms of words that
                                   are no names
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
# A word behind these may have its capital for beginning a sentence; those of other languages are left to their list.
BEGINS, FOREIGN_BEGINS = ".!?:;\"\u201c'\u2018(*[", "\u00ab\u00bf\u00a1"
# A title has capitals everywhere.
TITLE = 0.7
# A kind is told only from this probability on.
SURE = 0.6
# Languages in which names alone have capitals; and how often a word has to be seen in them to be known by them alone.
LANGUAGES, KNOWN = "en es fr it nl pt".split(), 10
# Lists of names and commands among the sentences.
NO_SENTENCES = re.compile("address|cities|places|countries|singleword|cues|Foreign")
CLASSES = [None, "rare", "some", "maybe", "name"]
# A word tells that a text is German if German has it so often and in small letters, and others this little.
GERMAN, SMALL, FOREIGN = 25, 0.9, 0.03
# A word is German that German has so many times as often as the others; and a word that none tells of may be a name if
# its vector says so with this probability.
NOUN, LIKELY = 0.1, 0.5


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


def counts(paths, begins=BEGINS, elided=False):
    """For each word inside sentences: how often it has a capital, how often not, how often it has one alone. In Romance
    languages it may stand behind an article without its vowel."""
    found = collections.defaultdict(lambda: [0, 0, 0])
    for path in paths:
        opened = gzip.open if path.name.endswith(".gz") else open
        for line in opened(path, "rt", encoding="utf8", errors="replace"):
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
                if before and before[-1] in begins:
                    continue
                word = re.sub(r"['\u2019]s$", "", words[at])
                word = re.sub(r"^[a-z]{1,5}['\u2019](?=..)", "", word) if elided else word
                count = found[word.lower().replace("'", "").replace("\u2019", "")]
                if not word[0].isupper():
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


def spoken(folder, language):
    """The counts of a language in the sentences of Common Voice."""
    files = (file for of in sorted(folder.glob(f"{language}*")) for file in sorted(of.glob("*.txt")))
    files = (file for file in files if not NO_SENTENCES.search(file.name))
    return counts(files, BEGINS + FOREIGN_BEGINS, language in ("fr", "it"))


def classes_of(words, folder, written):
    """What words of several languages are by themselves, and those that tell a German text."""
    german, known = spoken(folder, "de"), collections.defaultdict(lambda: [0, 0, 0])
    for language in LANGUAGES:
        for word, count in spoken(folder, language).items():
            known[word] = [one + other for one, other in zip(known[word], count)]
    classes = {}
    for word in filter(str.isalpha, words):
        by_text, by_voice = class_of(*written[word]), class_of(*known[word])
        # What the other languages do not say may be a word of theirs.
        name = "maybe" if by_text == "name" else by_text
        if by_voice != "rare":
            name = by_voice
            if by_text != "rare" and sum(known[word][:2]) < KNOWN:
                name = min(by_text, by_voice, key=CLASSES.index)
        # Every noun of German has a capital.
        if sum(german[word][:2]) > NOUN * sum(known[word][:2] + written[word][:2]):
            name = "rare"
        classes[word] = name
    others = collections.Counter({word: sum(of[:2]) for word, of in known.items()})
    tells = (word for word, (capitals, small, _) in german.items() if capitals + small >= GERMAN
             and small >= SMALL * (capitals + small) and others[word] <= FOREIGN * (capitals + small))
    return classes, sorted(tells)


def merged(own, more):
    """The list written by hand, with the words of other languages in its groups and without those that they have in
    another sense."""
    rows = [line.split("\t") for line in more]
    dropped = {word for kind, *of in rows if kind == "drop" for word in of[0].split()}
    groups = {name: members.split("|") for kind, name, *of in rows if kind == "group" for members in of}
    for line in own:
        kind, *fields = line.split("\t")
        if kind in ("same", "group"):
            members = [" ".join(word for word in of.split() if word not in dropped) for of in fields[-1].split("|")]
            added = groups.get(fields[0], [""] * len(members))
            fields[-1] = "|".join(f"{one} {other}".strip() for one, other in zip(members, added, strict=True))
        yield "\t".join([kind, *fields])
    yield from ("\t".join(row) for row in rows if row[0] not in ("drop", "group"))


def main(path, *texts):
    words, rows = model(pathlib.Path(path))
    folder, *texts = map(pathlib.Path, texts) if pathlib.Path(texts[0]).is_dir() else (None, *map(pathlib.Path, texts))
    found = counts(texts, BEGINS + FOREIGN_BEGINS if folder else BEGINS)
    row_of, own = dict(zip(words, rows)), lines("names-own.tsv")
    seeds = [line.split("\t") for line in lines("names-seeds.tsv")]
    seeds = {word: kind for kind, named in seeds for word in named.split() if word in row_of}
    learned = LogisticRegression(C=10, max_iter=2000).fit([row_of[word] for word in seeds], list(seeds.values()))
    if folder:
        classes, tells = classes_of(words, folder, found)
        sure = [word for word, name in classes.items() if name in (None, "name")]
        names = LogisticRegression(C=10, max_iter=2000).fit([row_of[word] for word in sure],
                                                            [classes[word] == "name" for word in sure])
        unseen = [word for word, name in classes.items() if name == "rare"]
        chances = names.predict_proba([row_of[word] for word in unseen])[:, 1]
        classes |= {word: "maybe" if chance >= LIKELY else None for word, chance in zip(unseen, chances)}
        own = [*merged(own, lines("names-languages-own.tsv")), "nouns\t" + " ".join(tells)]
    else:
        classes = {word: class_of(*found.get(word, (0, 0, 0))) for word in words if word.isalpha()}
    classes = {word: name for word, name in classes.items() if name}
    chances = learned.predict_proba([row_of[word] for word in classes])
    sorts = collections.defaultdict(list)
    for (word, name), chance in zip(classes.items(), chances):
        kind = learned.classes_[chance.argmax()] if chance.max() >= SURE else "-"
        sorts[name, seeds.get(word, kind)].append(word)
    print("# Which words are names, made by names.py: see README.md beside it.")
    for (name, kind), named in sorts.items():
        for at in range(0, len(named), 12):
            print(name, kind, " ".join(named[at : at + 12]), sep="\t")
    print("\n".join(own))


main(*sys.argv[1:])
