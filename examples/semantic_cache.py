#!/usr/bin/env python3
"""A cache of answers by what a question means: a collection of the service is the cache.

A question is answered from the cache where one like it was answered before, unless that one says the opposite.
Python's standard library is enough; `cognate serve` has to run.

    examples/semantic_cache.py ask support "how do I turn on dark mode" --answer "Settings, Display, Dark mode."
    examples/semantic_cache.py ask support "how can I enable dark mode"
    examples/semantic_cache.py ask support "how do I turn off dark mode"
    examples/semantic_cache.py measure tests/data/requests.tsv --part kept
"""

import argparse
import csv
import hashlib
import json
import sys
import urllib.request

# The method of a cache, and from which score on a question is the one that was answered before.
METHOD, LEAST = "polarity-blend", 0.695
# The same for `measure`: each threshold finds 80 of the 100 paraphrases of the part `dev`.
MEASURED = [("polarity-blend", 0.695), ("coverage-blend", 0.724), ("avg-cos", 0.727)]


class Cache:
    """Answers of earlier questions, in a collection."""

    def __init__(self, url, name, key=None):
        self.url, self.name, self.key = url, name, key
        self.call("PUT", f"/collections/{name}", {})

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
    cache.add([row["text1"] for row in rows], [None] * len(rows))
    print(f"{'':<31}  opposed, answered  paraphrases, missed")
    for drop in [False, True]:
        for method, least in MEASURED:
            wrong = missed = 0
            for row in rows:
                found = cache.look(row["text2"], method, least, drop)
                if row["label"] == "opposed":
                    wrong += found is not None
                else:
                    missed += found is None or found["id"] != name(row["text1"])
            opposed = sum(row["label"] == "opposed" for row in rows)
            told = f"{method} from {least}{', drop' if drop else ''}"
            print(f"{told:<31}  {wrong:>7} of {opposed:<7}  {missed:>8} of {len(rows) - opposed}")
    cache.call("DELETE", f"/collections/{cache.name}")


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
    args = parser.parse_args()
    cache = Cache(args.url, args.name, args.key)
    if args.command == "ask":
        return ask(cache, args.question, args.answer)
    with open(args.pairs, encoding="utf-8", newline="") as pairs:
        rows = csv.DictReader(pairs, delimiter="\t", quoting=csv.QUOTE_NONE)
        measure(cache, [row for row in rows if row["part"] == args.part])


if __name__ == "__main__":
    sys.exit(main())
