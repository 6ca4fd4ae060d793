#!/usr/bin/env python3
"""A cache of answers by what a question means: a collection of the service is the cache.

A question is answered from the cache where one like it was answered before, unless that one says the opposite.
Python's standard library is enough; `cognate serve` has to run. `measure` and `hits` have a row for RapidFuzz,
which compares letters, where Python has it.

    examples/semantic_cache.py ask support "how do I turn on dark mode" --answer "Settings, Display, Dark mode."
    examples/semantic_cache.py ask support "how can I enable dark mode"
    examples/semantic_cache.py ask support "how do I turn off dark mode"
    examples/semantic_cache.py measure tests/data/requests.tsv --part kept
    examples/semantic_cache.py hits pairs.tsv --recall 0.8
"""

import argparse
import csv
import hashlib
import json
import math
import sys
import urllib.request

try:
    from rapidfuzz import fuzz, process, utils
except ImportError:
    process = None

# The method of a cache, and from which score on a question is the one that was answered before.
METHOD, LEAST = "polarity-blend", 0.695
# The same for `measure`: each threshold finds 80 of the 100 paraphrases of the part `dev`.
MEASURED = [("polarity-blend", 0.695), ("coverage-blend", 0.724), ("avg-cos", 0.727)]
LETTERS, LEAST_OF_LETTERS = "token_set_ratio", 0.551
# Pairs of a request, which has a limit.
BATCH = 5000


class Cache:
    """Answers of earlier questions, in a collection."""

    def __init__(self, url, key=None):
        self.url, self.name, self.key = url, None, key

    def open(self, name):
        """Makes the collection, if it is not there."""
        self.name = name
        self.call("PUT", f"/collections/{name}", {})
        return self

    def call(self, verb, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=verb)
        request.add_header("content-type", "application/json")
        if self.key:
            request.add_header("authorization", f"Bearer {self.key}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def look(self, question, method=METHOD, least=LEAST, drop=True):
        """The best item for a question: its id, score, text and data; none where the cache has no answer."""
        asked = {"query": question, "collection": self.name, "method": method, "min_score": least}
        if drop:
            asked["opposes"] = "drop"
        results = self.call("POST", "/rank", {**asked, "top_k": 1, "return_text": True})["results"]
        return results[0] if results else None

    def add(self, questions, answers):
        """Keeps answers; a question that is there already gets the new one."""
        both = zip(questions, answers, strict=True)
        items = [{"id": name(text), "text": text, "data": {"answer": answer}} for text, answer in both]
        self.call("POST", f"/collections/{self.name}/items", {"items": items})


class Letters:
    """The same cache by RapidFuzz, which compares letters."""

    def __init__(self):
        self.questions = []

    def look(self, question, method=LETTERS, least=LEAST_OF_LETTERS, drop=False):
        settings = {"scorer": fuzz.token_set_ratio, "processor": utils.default_process, "score_cutoff": 100 * least}
        found = process.extractOne(question, self.questions, **settings)
        return found and {"id": name(found[0]), "text": found[0], "score": found[1] / 100}

    def add(self, questions, answers):
        self.questions += questions


def name(question):
    return hashlib.sha256(question.encode()).hexdigest()[:32]


def ask(cache, question, answer):
    found = cache.look(question)
    if found:
        print(f"{found['score']:.3f}  {found['text']}\n{found['data']['answer']}")
    elif answer is None:
        print("not in the cache")
    else:
        cache.add([question], [answer])
        print("added")


def measure(cache, rows):
    """Fills a cache with the first texts of pairs, looks up the second ones, and deletes it."""
    looked_up = [(cache, *one, drop) for drop in [False, True] for one in MEASURED]
    if process:
        looked_up.append((Letters(), LETTERS, LEAST_OF_LETTERS, False))
    for one in {id(one): one for one, *_ in looked_up}.values():
        one.add([row["text1"] for row in rows], [None] * len(rows))
    print(f"{'':<31}  opposed, answered  paraphrases, missed")
    for one, method, least, drop in looked_up:
        wrong = missed = 0
        for row in rows:
            found = one.look(row["text2"], method, least, drop)
            if row["label"] == "opposed":
                wrong += found is not None
            else:
                missed += found is None or found["id"] != name(row["text1"])
        opposed = sum(row["label"] == "opposed" for row in rows)
        told = f"{method} from {least}{', drop' if drop else ''}"
        print(f"{told:<31}  {wrong:>7} of {opposed:<7}  {missed:>8} of {len(rows) - opposed}")
    cache.call("DELETE", f"/collections/{cache.name}")


def interval(part, whole):
    """The 95 % interval of a share (Wilson)."""
    square = 1.959964**2 / whole
    middle, share = part / whole + square / 2, part / whole
    half = math.sqrt(square * (share * (1 - share) + square / 4))
    return [(middle + side) / (1 + square) for side in (-half, half)]


def hits(cache, rows, recall):
    """How many unrelated pairs are hits by the threshold that finds this share of the related ones."""
    labels = [label == "1" for label, _, _ in rows]
    texts = [[a, b] for _, a, b in rows]
    contestants = []
    for method, _ in reversed(MEASURED):
        scores, opposed = [], []
        for at in range(0, len(texts), BATCH):
            asked = {"pairs": texts[at : at + BATCH], "method": method, "return_opposes": True}
            answer = cache.call("POST", "/similarity", asked)
            scores += answer["scores"]
            opposed += answer["opposes"]
        dropped = [-math.inf if kinds else score for score, kinds in zip(scores, opposed, strict=True)]
        contestants += [(method, scores), (f"{method}, drop", dropped)]
    if process:
        processed = [[utils.default_process(text) for text in pair] for pair in texts]
        contestants.append((LETTERS, [fuzz.token_set_ratio(a, b) / 100 for a, b in processed]))
    related = sum(labels)
    print(f"{related} related pairs, {len(rows) - related} others; {recall:.0%} of the related found")
    for told, scores in contestants:
        found = sorted((score for score, label in zip(scores, labels, strict=True) if label), reverse=True)
        least = found[math.ceil(recall * related) - 1]
        if least == -math.inf:
            print(f"{told:<22}  finds fewer")
            continue
        # Midway to the next lower score, as `cognate eval calibrate` has it.
        least = (least + max((score for score in scores if -math.inf < score < least), default=least)) / 2
        wrong = sum(score >= least for score, label in zip(scores, labels, strict=True) if not label)
        low, high = interval(wrong, len(rows) - related)
        share = wrong / (len(rows) - related)
        print(f"{told:<22}  from {least:.3f}  {share:6.1%} of the others ({low:.1%} to {high:.1%})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8080")
    parser.add_argument("--key", help="an API key, where the service wants one")
    commands = parser.add_subparsers(dest="command", required=True)
    asking = commands.add_parser("ask", help="answer from the cache, or add the answer")
    asking.add_argument("name")
    asking.add_argument("question")
    asking.add_argument("--answer", help="kept where the cache has none")
    measuring = commands.add_parser("measure", help="count wrong answers and misses of labelled pairs")
    measuring.add_argument("pairs", help="a table with the columns label, part, text1 and text2")
    measuring.add_argument("--part", default="kept")
    measuring.add_argument("--name", default="measured", help="the collection, which is deleted in the end")
    hitting = commands.add_parser("hits", help="count false hits among labelled pairs, at a recall")
    hitting.add_argument("pairs", help="rows of a label (1 or 0) and two texts between tabs")
    hitting.add_argument("--recall", type=float, default=0.8)
    args = parser.parse_args()
    cache = Cache(args.url, args.key)
    if args.command == "ask":
        return ask(cache.open(args.name), args.question, args.answer)
    with open(args.pairs, encoding="utf-8", newline="") as pairs:
        if args.command == "hits":
            return hits(cache, [line.rstrip("\r\n").split("\t")[:3] for line in pairs], args.recall)
        rows = csv.DictReader(pairs, delimiter="\t", quoting=csv.QUOTE_NONE)
        measure(cache.open(args.name), [row for row in rows if row["part"] == args.part])


if __name__ == "__main__":
    sys.exit(main())
