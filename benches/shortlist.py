"""How much of what scoring every item finds a shortlist of a collection finds, and in what time.

    python3 benches/shortlist.py titles.txt --program target/release/cognate \\
        --model models/default.safetensors --items 20000

The file has a text a line. Some of them, spread over the file, are asked for and no items; the others are the
items, and beyond those that there are the file's recombinations: the first half of the words of one and the
second half of another. It starts the service itself, on a free port, without a folder. Recall at k is the share
of the best k of all items that are among the best k of the shortlist. Only Python's own library is needed.
"""

import argparse
import itertools
import json
import random
import statistics
import time

from collection_service import Service

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("texts", help="texts, one a line")
parser.add_argument("--program", default="target/release/cognate")
parser.add_argument("--model", default="models/default.safetensors")
parser.add_argument("--items", type=int, default=20_000)
parser.add_argument("--asked", type=int, default=100, help="texts that are asked for")
parser.add_argument("--liked", type=int, default=1, help="texts that are asked for together, as liked ones")
parser.add_argument("--strategy", default="best", help="what the scores of several liked texts come to")
parser.add_argument("--methods", default="dynamax-jaccard,auto,qatt")
parser.add_argument("--lengths", default="10,30,100,300,1000,3000")
args = parser.parse_args()
DEPTHS = (1, 10, 100)


def rank(service, texts, method, shortlist):
    """The names of the best for texts, and the milliseconds that it took."""
    asked = {"query": texts[0]} if len(texts) == 1 else {"like": texts, "strategy": args.strategy}
    question = {"collection": "bench", "method": method, "top_k": max(DEPTHS), "shortlist": shortlist, **asked}
    begun = time.perf_counter()
    answer = json.loads(service.ask("POST", "/rank", question))
    return [result["id"] for result in answer["results"]], 1000 * (time.perf_counter() - begun)


def texts():
    """What is asked for, and the items."""
    with open(args.texts, encoding="utf-8") as file:
        known = [line.strip()[:2000] for line in file if line.strip()]
    every = len(known) // args.asked
    asked = known[every // 2 :: every][: args.asked]
    out = set(asked)
    items = [text for text in known if text not in out]
    chance = random.Random(7)
    chance.shuffle(items)

    def all_items():
        yield from itertools.islice(items, args.items)
        halves = [text.split() for text in items]
        for _ in range(args.items - len(items)):
            one, other = chance.choice(halves), chance.choice(halves)
            yield " ".join(one[: (len(one) + 1) // 2] + other[len(other) // 2 :])

    groups = [asked[at : at + args.liked] for at in range(0, len(asked) - args.liked + 1, args.liked)]
    return groups, all_items()


def measure(service, asked, method, lengths):
    exact, took = [], []
    for text in asked:
        found, milliseconds = rank(service, text, method, "all")
        exact.append(found)
        took.append(milliseconds)
    print(f"{method}: all in {statistics.median(took):,.1f} ms")
    for length in lengths:
        hits, most, took = dict.fromkeys(DEPTHS, 0), dict.fromkeys(DEPTHS, 0), []
        for text, whole in zip(asked, exact):
            found, milliseconds = rank(service, text, method, length)
            took.append(milliseconds)
            for depth in DEPTHS:
                hits[depth] += len(set(whole[:depth]) & set(found[:depth]))
                most[depth] += len(whole[:depth])
        recall = "  ".join(f"@{depth} {hits[depth] / max(1, most[depth]):.3f}" for depth in DEPTHS)
        print(f"  {length:>6,} a text: recall {recall}  in {statistics.median(took):,.1f} ms", flush=True)


service = Service(args.program, args.model)
try:
    asked, items = texts()
    service.load("bench", items)
    _, first = rank(service, asked[0], "auto", 10)
    print(f"{args.items:,} items, {len(asked)} questions of {args.liked}; the first shortlist in {first:,.0f} ms")
    for method in args.methods.split(","):
        measure(service, asked, method, [int(length) for length in args.lengths.split(",")])
finally:
    service.stop()
