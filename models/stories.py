#!/usr/bin/env python3
"""Makes a stream of stories out of pairs of posts: a table of time, event and text, in the order of time.

    models/stories.py PAIRS.tsv[.gz] FIRST LAST > stories.tsv

A row of PAIRS has a label, 1 where both posts tell the same, and two texts between tabs; the rows FIRST to LAST
are read. Posts that such pairs connect are a story; others have no event, and no more have those of which more than
16 are connected. A post a second is written on average; stories begin at random moments. The same rows give the
same bytes.
"""

import gzip
import random
import sys

# A window of 2,000 posts holds a story that is spread over half as many.
SPREAD = 1000
# The most posts of a story.
MOST = 16


def connected(rows):
    """The texts of each story and each text alone, in the order of their first rows."""
    found = {}

    def root(text):
        found.setdefault(text, text)
        while found[text] != text:
            found[text] = text = found[found[text]]
        return text

    for label, one, other in rows:
        one, other = root(one), root(other)
        if label == "1":
            found[other] = one
    groups = {}
    for text in found:
        groups.setdefault(root(text), []).append(text)
    return groups.values()


def main(path, first, last):
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "rt", encoding="utf-8", newline="\n") as lines:
        rows = [line.rstrip("\n").split("\t") for line in lines][int(first) - 1 : int(last)]
    chance, posts = random.Random(1), []
    groups = list(connected(rows))
    span = sum(map(len, groups))
    for number, texts in enumerate(groups):
        begin = chance.random() * span
        event = f"s{number}" if 1 < len(texts) <= MOST else ""
        posts += [(begin + chance.random() * SPREAD, event, text) for text in texts]
    print("time", "event", "text", sep="\t")
    for post in sorted(posts):
        print(int(post[0]), *post[1:], sep="\t")


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
