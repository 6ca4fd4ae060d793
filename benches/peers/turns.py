"""What the Python contestants share: the pairs, the tokeniser, and the protocol of taking turns.

A contestant loads once, then reads lines `go METHOD EVERY`, makes one pass over every EVERY-th
pair, and prints `NANOSECONDS MEAN_SCORE`, or `absent` where it has no such method.
"""

import re
import sys
import time
from collections.abc import Callable, Sequence

Compare = Callable[[str, str], float]
Pair = tuple[str, str]
# Scores of many pairs, in one call or in several.
Pass = Callable[[list[Pair]], Sequence[float]]

TOKEN = re.compile(r"[a-z0-9']+")


def tokenise(text: str) -> list[str]:
    """Cuts a text into lower-case words."""
    return TOKEN.findall(text.lower())


def read_pairs(path: str) -> list[Pair]:
    """Reads two texts a line, with a tab between them."""
    with open(path, encoding="utf-8", newline="\n") as lines:
        cells = (line.rstrip("\n").split("\t") for line in lines)
        return [(one, other) for one, other in cells]


def read_words(path: str) -> list[str]:
    """Reads a word a line."""
    with open(path, encoding="utf-8", newline="\n") as lines:
        return [line.rstrip("\n") for line in lines]


def one_by_one(compare: Compare) -> Pass:
    """A pass that compares the two texts of each pair."""
    return lambda pairs: [compare(one, other) for one, other in pairs]


def take_turns(pairs: list[Pair], methods: dict[str, Pass]) -> None:
    """Answers every line of standard input by a pass over the pairs."""
    for line in sys.stdin:
        _, method, every = line.split()
        score = methods.get(method)
        if score is None:
            print("absent", flush=True)
            continue
        asked = pairs[:: int(every)]
        start = time.perf_counter_ns()
        scores = score(asked)
        nanos = time.perf_counter_ns() - start
        print(nanos, sum(scores) / len(scores), flush=True)
