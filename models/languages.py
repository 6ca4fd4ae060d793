#!/usr/bin/env python3
"""Writes what `models/make languages` reads: a folder for each language, opposites, and texts kept apart.

    models/languages.py SENTENCES PAIRS OUTPUT [LANGUAGE ...]

SENTENCES is the folder `server/data` of Common Voice's repository (github.com/mozilla/voice-web): a folder of
text files for each language, CC0. PAIRS holds the files `stsb-LANGUAGE-PART.csv` of
github.com/PhilipMay/stsb-multi-mt and `tatoeba.*` of github.com/facebookresearch/LASER (data/tatoeba/v1); they
are measured by and kept apart from what is learned. Word lists are those of the Python package `wordfreq`, which
has to be installed. A language whose `words.tsv` is there stays as it is. OUTPUT gets

    LANGUAGE/words.tsv      the most frequent words, and their uses per billion
    LANGUAGE/rare.txt       the next ones, which pieces of words are fitted to
    LANGUAGE/sentences.txt  sentences of Common Voice
    LANGUAGE/grammar.conf   scenes and headlines to generate, that of `grammars` beside this script
    polarity.tsv            what words of these languages do to the sense of a text
    apart/                  texts that must not be learned from
    pairs/                  the same to measure by, as tables: score, text, text; text, text
"""

import csv
import pathlib
import re
import sys
import unicodedata

import wordfreq

HERE = pathlib.Path(__file__).parent
LANGUAGES = "en de es fr it nl pt".split()
# Words of a language that get a vector if they are among the most frequent of all, and rare ones for pieces.
LISTED, RARE = 24_000, 12_000
NUMBERS = [*range(101), *range(1900, 2031)]
# Lists of names, places and commands among the sentences.
NO_SENTENCES = re.compile("address|cities|places|countries|singleword|cues|Foreign")
FEWEST_WORDS = 3
# An English opposite is kept if no other language uses its word more than this share as often.
FOREIGN = 0.2
LASER = {"de": "deu", "es": "spa", "fr": "fra", "it": "ita", "nl": "nld", "pt": "por", "pl": "pol", "sv": "swe"}


def is_word(word):
    def is_letter(letter):
        return letter.isalpha() and "LATIN" in unicodedata.name(letter, "")

    parts = word.split("'")
    return all(part and all(map(is_letter, part)) for part in parts)


def words(language):
    """Words and their uses per billion, the most frequent first."""
    found = [(word, share) for word, share in wordfreq.get_frequency_dict(language).items() if is_word(word)]
    found += [(str(number), wordfreq.word_frequency(str(number), language)) for number in NUMBERS]
    found.sort(key=lambda pair: (-pair[1], pair[0]))
    return [(word, count) for word, share in found if (count := round(share * 1e9)) > 0]


def sentences(language, folder):
    """Sentences with an end mark, each once. Lines without one are mostly names and captions; among the latter
    may be translated test sets. Of the Spanish sentences half have none."""
    seen = {}
    for file in sorted(folder.glob("*.txt")):
        if NO_SENTENCES.search(file.name):
            continue
        for line in file.read_text(encoding="utf-8", errors="replace").splitlines():
            line = " ".join(line.split())
            ends = language == "es" or re.search(r"[.!?…][\"'”’»]?$", line)
            if ends and line.count(" ") >= FEWEST_WORDS - 1 and "\ufffd" not in line:
                seen[line] = None
    return list(seen)


def polarity(shares):
    """The lists of models/, without English words that mean something else in another language."""
    def is_safe(word):
        if not word.strip("-"):
            return False
        if word.startswith("-") or word.endswith("-"):
            return word in ("un-", "non-", "-n't")
        own = shares["en"].get(word, 1)
        return all(of.get(word, 0) <= FOREIGN * own for language, of in shares.items() if language != "en")

    own = (HERE / "polarity-languages-own.tsv").read_text(encoding="utf-8").splitlines()
    own = [line.split("\t") for line in own if not line.startswith("#")]
    listed = {row[0] for row in own if row[1] != "opposite"}
    for line in (HERE / "polarity-en.tsv").read_text(encoding="utf-8").splitlines():
        row = line.split("\t")
        if line.startswith("#") or row[0] in listed:
            continue
        names = row[:1] + (row[2:3] if row[1] == "opposite" else [])
        if row[1] == "negates" and row[0] in ("no", "non") or all(map(is_safe, names)):
            yield row
    yield from own


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def main(sources, pairs, output, *languages):
    sources, pairs, output = map(pathlib.Path, (sources, pairs, output))
    languages = languages or LANGUAGES
    shares = {}
    for language in languages:
        listed = output / language / "words.tsv"
        if not listed.exists():
            found = words(language)
            folders = sorted(path for path in sources.iterdir() if path.name.split("-")[0] == language)
            write(output / language / "sentences.txt", sentences(language, folders[0]))
            rare = (word for word, _ in found[LISTED : LISTED + RARE] if not word.isdigit())
            write(output / language / "rare.txt", rare)
            write(listed, (f"{word}\t{count}" for word, count in found[:LISTED]))
        grammar = HERE / "grammars" / f"{language}.conf"
        if grammar.exists():
            write(output / language / "grammar.conf", grammar.read_text(encoding="utf-8").splitlines())
        rows = (line.split("\t") for line in listed.read_text(encoding="utf-8").splitlines())
        shares[language] = {word: int(count) for word, count in rows}
    if "en" in languages:
        write(output / "polarity.tsv", ("\t".join(row) for row in polarity(shares)))
    tables = {}
    for file in sorted(pairs.glob("stsb-*.csv")):
        with open(file, encoding="utf-8", newline="") as rows:
            found = [[" ".join(field.split()) for field in row] for row in csv.reader(rows)]
        tables[tuple(file.stem.split("-")[1:])] = found
        write(output / "apart" / f"{file.stem}.tsv", ("\t".join(row[:2]) for row in found))
    for (language, part), rows in tables.items():
        # The test parts are kept apart here and read when a finished model is measured.
        if part != "dev" or language not in languages:
            continue
        write(output / "pairs" / f"stsb-{language}.tsv", ("\t".join([row[2], *row[:2]]) for row in rows))
        english = tables.get(("en", part))
        if english and language != "en":
            crossed = zip(english, rows)
            lines = (f"{row[2]}\t{one[0]}\t{row[1]}" for one, row in crossed)
            write(output / "pairs" / f"stsb-en-{language}.tsv", lines)
    for language, code in LASER.items():
        names = [pairs / f"tatoeba.{code}-eng.{end}" for end in ("eng", code)]
        if all(name.exists() for name in names):
            texts = [name.read_text(encoding="utf-8").splitlines() for name in names]
            lines = ["\t".join(row) for row in zip(*texts, strict=True)]
            write(output / "apart" / f"tatoeba-{language}.tsv", lines)
            if language in languages:
                write(output / "pairs" / f"tatoeba-en-{language}.tsv", lines)


if __name__ == "__main__":
    main(*sys.argv[1:])
