#!/usr/bin/env python3
"""Facts that differ from an earlier one in a name or value alone, kept or lost: docs/semantic-cache.md.

    benches/facts.py COGNATE DATA/text/wiki-valid.txt.gz

Needs requests. 2,666 sentences are facts, and 334 more are made of them by exchanging a name (of a person, place, day or
month) or a number for another. As many of the first come again in small letters without marks. A fact is lost where a cache
answers it by that of another, or where `match` with `"add": "new"` takes it for a duplicate.
"""

import argparse
import gzip
import itertools
import pathlib
import random
import re
import tempfile

import requests
from events_over_http import Server

FACTS, CHANGED, LEAST = 2666, 334, 0.695
GROUPS = {
    "person": "James John Robert Michael William David Richard Thomas Charles Daniel Paul Mark George Peter Mary Anna Sarah "
    "Elizabeth Laura Maria Emma Alice Jane Susan",
    "place": "London Paris Berlin Madrid Rome Vienna Tokyo Boston Chicago Toronto Sydney Dublin Mumbai France Germany Italy "
    "Spain Japan China India Canada Brazil Mexico Russia Australia England Scotland California Texas Florida",
    "day": "Monday Tuesday Wednesday Thursday Friday Saturday Sunday",
    "month": "January February March April June July August September October November December",
}
KINDS = {word: (kind, words.split()) for kind, words in GROUPS.items() for word in words.split()}
# What may be exchanged: a listed name or a number of up to four digits.
MAY = re.compile(rf"\b(?:{'|'.join(KINDS)}|\d{{1,4}})\b(?![,.]\d)")


def changed(text, chance):
    """The text with one name exchanged, else one number, and of which kind that is; nothing where there is none."""
    found = list(MAY.finditer(text))
    found = [match for match in found if match.group() in KINDS] or found
    if not found:
        return None
    match = chance.choice(found)
    word = match.group()
    kind, words = KINDS.get(word, ("number", None))
    other = word
    while other == word:
        other = chance.choice(words) if words else str(max(1, int(word) + chance.randint(1, 9) * chance.choice((-1, 1))))
    return kind, text[: match.start()] + other + text[match.end() :]


def stream(path, chance):
    """Facts in their order, each with its kind: `fact`, what was exchanged in it, or `copy`."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        sentences = {line.strip() for line in lines if 6 <= len(line.split()) <= 20}
    sentences = sorted(sentences)
    chance.shuffle(sentences)
    facts = [("fact", text) for text in sentences[:FACTS]]
    made = [one for _, text in facts if (one := changed(text, chance))]
    kept = {text for _, text in facts}
    # As many of each kind as there are, up to an equal share.
    by_kind = {}
    for one in made:
        by_kind.setdefault(one[0], []).append(one)
    made = [one for turn in itertools.zip_longest(*by_kind.values()) for one in turn if one and one[1] not in kept][:CHANGED]
    copies = [("copy", re.sub(r"[^\w\s'-]", "", text).lower()) for _, text in facts[:CHANGED]]
    return facts, made + copies


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("cognate", type=pathlib.Path, help="the program")
    parser.add_argument("text", type=pathlib.Path, help="sentences, one a line")
    arguments = parser.parse_args()
    facts, later = stream(arguments.text, random.Random(1))
    kinds = sorted({kind for kind, _ in later})
    texts = [text for _, text in facts + later]
    print(f"{'lost':<34}", *(f"{kind} {sum(kind == of for of, _ in later)}" for kind in kinds), sep="  ")
    with tempfile.TemporaryDirectory(prefix="cognate-facts-") as folder:
        server = Server(arguments.cognate, folder)
        call = requests.Session()

        def asked(verb, path, body):
            answer = call.request(verb, f"http://{server.address}{path}", json=body, timeout=300)
            answer.raise_for_status()
            return answer.json()

        def told(what, lost):
            counts = [sum(lost[at] for at, (of, _) in enumerate(later) if of == kind) for kind in kinds]
            print(f"{what:<34}", *(f"{count:>{len(kind) + 4}}" for kind, count in zip(kinds, counts, strict=True)), sep="  ")

        try:
            items = [{"id": str(at), "text": text} for at, text in enumerate(texts)]
            asked("PUT", "/collections/cache", {})
            asked("POST", "/collections/cache/items", {"items": items[:FACTS]})
            for opposites in ("ignore", "without_names", "count"):
                question = {"collection": "cache", "method": "polarity-blend", "min_score": LEAST, "top_k": 1}
                if opposites != "ignore":
                    question |= {"opposes": "drop", "opposites": opposites}
                found = [asked("POST", "/rank", {**question, "query": text})["results"] for _, text in later]
                told(f"cache, {opposites}", [bool(results) for results in found])
            for opposites in ("ignore", "without_names", "count"):
                asked("PUT", f"/collections/{opposites}", {})
                how = {"second": "polarity-blend", "duplicate_score": LEAST, "add": "new", "last": len(texts)}
                if opposites != "ignore":
                    how |= {"opposes": "drop", "opposites": opposites}
                answers = []
                for at in range(0, len(items), 500):
                    body = {"items": items[at : at + 500], "threshold": LEAST, **how}
                    answers += asked("POST", f"/collections/{opposites}/match", body)["results"]
                lost = [result.get("added") is False for result in answers]
                told(f"match, {opposites}", lost[FACTS:])
                print(f"{'':<34}  {sum(lost[:FACTS])} of {FACTS} other facts")
        finally:
            server.kill()


if __name__ == "__main__":
    main()
