#!/usr/bin/env python3
"""Writes `polarity-en.tsv` (standard output): what English words do to the sense of a text.

    models/polarity.py /usr/share/wordnet > models/polarity-en.tsv

Reads the antonyms of WordNet 3.0 (the package `wordnet-base` of Debian) and `polarity-own.tsv` beside this
script. Both sides of a pair get their endings, irregular ones from WordNet's lists of exceptions. `DROPPED`
names pairs that WordNet has for a sense which is not the usual one, or that a word of negation decides alone.

A line has a word, what it does, and, where needed, another word or a number:

    negates          never, -n't    makes the text say no; two of them cancel; after a hyphen stands an ending
    negates-joined   free           the same behind a hyphen: sugar-free
    continues        nor            goes on with a negation, and makes one where there is none
    lifts            only           takes back a negation right before it
    opposite         on off         may not be exchanged for the other word
    reverses         un-, -less     a beginning or an ending that turns the sense of an unlisted word around
    joins            and            what stands on both sides of it may change places
    counts           five 5         is a number
    multiplies       million 1000000   is a number, and multiplies a number right before it
    scales           km 1000        multiplies a number right before it
    afternoon        pm             puts an hour into the afternoon
"""

import collections
import pathlib
import re
import sys

FILES = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
DROPPED = """
able/unable achromatic/chromatic active/extinct active/quiet adopted/native advance/back all/no all/some alternate/opposite anti/pro
applied/theoretical aunt/uncle back/front bear/bull beautiful/ugly beginning/middle bore/interest bottom/side bound/free break/keep
break/make cash/credit center/left center/right change/stay child/parent coastal/inland comedy/tragedy come/go common/individual
compound/simple con/pro contracted/expanded conventional/nuclear dead/live deficit/lead delay/rush differ/equal disorder/order
divided/united double/single dry/sweet early/middle employment/unemployment end/middle even/odd ever/never express/local fail/manage
fail/pass fail/succeed fair/foul fast/hard fauna/flora figure/ground find/lose flat/natural flat/sharp following/leading
foot/head forget/mind found/lost full/thin functional/organic gain/reduce general/local general/particular geographic/magnetic
glad/sad gross/net half/whole have/lack have/miss horizontal/inclined ill/well inclined/vertical instrumental/vocal intense/mild
intermediate/terminal issue/recall joint/separate keep/lose late/middle let/prevent level/raise lie/sit lie/stand
live/recorded location/studio lose/profit lost/saved move/stay moving/still multiple/single natural/sharp negative/neutral
neutral/positive no/some no/yes other/same out/safe overhead/surface pain/pleasure particular/universal passing/running
preparation/resolution retail/wholesale ride/walk rise/set round/square running/standing side/top sink/source stand/yield
tender/tough
""".split()
DROPPED = {tuple(pair.split("/")) for pair in DROPPED}


def antonyms(folder):
    """Pairs of one small word each, with their part of speech."""
    synsets, links = {}, []
    for part, name in FILES.items():
        for line in open(folder / f"data.{name}", encoding="utf-8"):
            if line.startswith("  "):
                continue
            fields = line.split("|")[0].split()
            words = 2 * int(fields[3], 16)
            synsets[part, fields[0]] = [re.sub(r"\(.*\)", "", word) for word in fields[4 : 4 + words : 2]]
            pointers = fields[5 + words :]
            for at in range(0, 4 * int(fields[4 + words]), 4):
                symbol, other, kind, ends = pointers[at : at + 4]
                if symbol == "!":
                    kind = "a" if kind == "s" else kind
                    links.append(((part, fields[0], int(ends[:2], 16)), (kind, other, int(ends[2:], 16))))
    for (part, *one), (kind, *other) in links:
        pair = tuple(sorted(synsets[p, at][number - 1] for p, (at, number) in ((part, one), (kind, other))))
        if all(re.fullmatch("[a-z]+", word) for word in pair) and pair not in DROPPED:
            yield part, *pair


def exceptions(folder):
    """For each part of speech: a word and its irregular forms."""
    forms = {part: collections.defaultdict(list) for part in FILES}
    for part, name in FILES.items():
        for line in open(folder / f"{name}.exc", encoding="utf-8"):
            form, word = line.split()[:2]
            forms[part][word].append(form)
    return forms


def with_ending(word, ending):
    if ending == "s":
        if re.search("(s|x|z|ch|sh)$", word):
            return word + "es"
        return word[:-1] + "ies" if re.search("[^aeiou]y$", word) else word + "s"
    if ending == "ing":
        word = word[:-2] + "y" if word.endswith("ie") else re.sub("(?<=[^e])e$", "", word)
    elif word.endswith("e"):
        return word + ending[1:]
    elif re.search("[^aeiou]y$", word):
        word = word[:-1] + "i"
    # A short word doubles its last letter: stop, stopped.
    return word + (word[-1] if re.fullmatch("[^aeiou]*[aeiou][^aeiouwxy]", word) else "") + ending


def forms(part, word, irregular):
    """The forms of a word, by what they stand for."""
    found = irregular[part].get(word, [])
    if part == "n":
        return {"one": [word], "many": found or [with_ending(word, "s")]}
    if part == "v":
        past = [form for form in found if not form.endswith(("ing", "s"))]
        return {
            "base": [word],
            "third": [with_ending(word, "s")],
            "going": [form for form in found if form.endswith("ing")] or [with_ending(word, "ing")],
            "past": past or [with_ending(word, "ed")],
        }
    short = re.fullmatch("[^aeiouy]*[aeiouy]+([^aeiouy]+(y|ow|le|e)?)?", word)
    if part == "a" and (short or found):
        # Longer adjectives are compared by "more" and "most".
        compared = lambda ending: [form for form in found if form.endswith(ending)] or [with_ending(word, ending)]
        return {"plain": [word], "more": compared("er"), "most": compared("est")}
    return {"plain": [word]}


def main():
    folder, own = pathlib.Path(sys.argv[1]), pathlib.Path(__file__).with_name("polarity-own.tsv")
    irregular, listed, opposites = exceptions(folder), collections.defaultdict(set), set()
    for part, name in FILES.items():
        for line in open(folder / f"data.{name}", encoding="utf-8"):
            fields = line.split("|")[0].split()
            if not line.startswith("  "):
                listed[part].update(word.split("(")[0] for word in fields[4 : 4 + 2 * int(fields[3], 16) : 2])

    def link(part, one, other):
        one, other = forms(part, one, irregular), forms(part, other, irregular)
        for form, words in one.items():
            opposites.update(tuple(sorted((x, y))) for x in words for y in other.get(form, []) if x != y)

    for part, one, other in antonyms(folder):
        link(part, one, other)
    print("# What English words do to the sense of a text, made by polarity.py: see README.md beside it, and NOTICE.")
    for line in own.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        word, does, *other = line.split("\t")
        if does != "opposite":
            print(line)
            continue
        opposites.add(tuple(sorted((word, *other))))
        for part in FILES:
            if word in listed[part] and other[0] in listed[part]:
                link(part, word, other[0])
    for one, other in sorted(opposites):
        print(f"{one}\topposite\t{other}")


if __name__ == "__main__":
    main()
