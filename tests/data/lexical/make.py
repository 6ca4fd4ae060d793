"""Writes golden.json: scores of bm25, ql, rm3 and prf-cos, written down once more from their equations.

Run in this folder, with nothing but Python: python3 make.py

A collection of posts is made here, with queries and candidates. The methods are computed twice:
over the collection itself, as `cognate pack --corpus` counts it, and over a table of counts alone,
as `--counts` reads it, which tells nothing of documents.
"""

import json
import math
import random
from collections import Counter

rng = random.Random(20261121)
LISTED = """the a of in to quake storm flood hits shakes city town coast night morning people flee
home rescue help road bridge river rain snow train late school closed fire power out water""".split()
# Listed, and in no post of the collection.
LISTED += ["comet", "eclipse"]
UNLISTED = ["qwzx", "vlorp", "brumble"]
FREQUENT = LISTED[:5] * 12 + LISTED[5:12] * 4 + LISTED[5:-2]


# A vector of three small whole numbers for each listed word, exact in every precision.
VECTORS = {word: [(at * 7) % 11 - 5, (at * 5) % 13 - 6, at % 3 + 1] for at, word in enumerate(LISTED)}


def post(most):
    return " ".join(rng.choice(FREQUENT + UNLISTED[:1]) for _ in range(rng.randint(2, most)))


COLLECTION = [post(18) for _ in range(120)]
TABLE = {word: 90000 // (rank + 1) for rank, word in enumerate(LISTED[:-4])}
TABLE["of the"] = 70  # a line of the table that is no word of the model
CANDIDATES = [post(6 + at) for at in range(24)]
CANDIDATES += [
    "quake quake quake quake",
    "comet",
    "brumble brumble over vlorp",
    "storm",
    CANDIDATES[3],  # equal posts have equal scores
    " ".join(reversed(CANDIDATES[5].split())),
    "the",
]


def of_collection():
    tokens = [text.split() for text in COLLECTION]
    listed = set(LISTED)
    return {
        "count": Counter(word for text in tokens for word in text if word in listed),
        "df": Counter(word for text in tokens for word in set(text) if word in listed),
        "documents": len(tokens),
        "tokens": sum(len(text) for text in tokens),
    }


def of_table():
    total = sum(TABLE.values())
    unseen = min(TABLE.values()) / 2
    # Tables of idf are stored in single precision, but that is within the tolerance.
    idf = {word: math.log(total / TABLE.get(word, unseen)) for word in LISTED}
    return {
        "count": {word: TABLE.get(word, 0) for word in LISTED},
        "tokens": total,
        "idf": lambda word: idf.get(word, math.log(total / unseen)),
    }


def p(word, collection):
    return max(collection["count"].get(word, 0), 0.5) / collection["tokens"]


def smoothed(word, text, collection, mu=2500):
    return math.log((text.count(word) + mu * p(word, collection)) / (len(text) + mu))


def ql(query, text, collection):
    return sum(smoothed(word, text, collection) for word in query)


def bm25(query, text, collection, k1=0.9, b=0.4):
    score = 0.0
    for word in query:
        if "df" in collection:
            n, df = collection["documents"], collection["df"].get(word, 0)
            idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
            length = len(text) / (collection["tokens"] / n)
        else:
            idf, length = collection["idf"](word), 1.0
        tf = text.count(word)
        score += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length))
    return score


class Unclear(Exception):
    """What comes tenth and what eleventh is a matter of taste."""


def first_ten(items):
    ordered = sorted(items, key=lambda item: -item[1])
    if len(ordered) > 10 and ordered[9][1] - ordered[10][1] < 1e-7:
        raise Unclear
    return ordered[:10]


def rm3(query, texts, collection):
    feedback = first_ten([(text, ql(query, text, collection)) for text in texts])
    sum_of_likelihoods = sum(math.exp(likelihood) for _, likelihood in feedback)
    relevance = Counter()
    for text, likelihood in feedback:
        for word in text:
            relevance[word] += math.exp(likelihood) / sum_of_likelihoods / len(text)
    best = dict(first_ten(relevance.items()))
    total = sum(best.values())
    mixed = {word: 0.5 * share / total for word, share in best.items()}
    for word in query:
        mixed[word] = mixed.get(word, 0.0) + 0.5 / len(query)
    return [sum(x * smoothed(w, text, collection) for w, x in mixed.items()) for text in texts]


def mean_vector(text):
    rows = [VECTORS[word] for word in text if word in VECTORS]
    return [sum(column) / max(len(rows), 1) for column in zip([0, 0, 0], *rows)]


def prf_cos(query, texts, collection):
    feedback = first_ten([(text, ql(query, text, collection)) for text in texts])
    centre = [sum(column) for column in zip(*(mean_vector(text) for text, _ in feedback))]

    def cosine(own):
        lengths = math.hypot(*own) * math.hypot(*centre)
        return sum(a * b for a, b in zip(own, centre)) / lengths if lengths else 0.0

    return [cosine(mean_vector(text)) for text in texts]


def scores(query, collection):
    query, texts = query.split(), [text.split() for text in CANDIDATES]
    lists = {
        "bm25": [bm25(query, text, collection) for text in texts],
        "ql": [ql(query, text, collection) for text in texts],
        "rm3": rm3(query, texts, collection),
        "prf-cos": prf_cos(query, texts, collection),
    }
    return {method: [round(score, 9) for score in scores] for method, scores in lists.items()}


def any_query():
    words = [rng.choice(LISTED + UNLISTED) for _ in range(rng.randint(1, 6))]
    return " ".join(words + rng.choices(words, k=rng.randint(0, 1)))


questions = []
for query in ["qwzx flood", "brumble vlorp"] + [any_query() for _ in range(200)]:
    try:
        by_collection = scores(query, of_collection())
        by_table = scores(query, of_table())
    except Unclear:
        continue
    questions.append({"query": query, "by_collection": by_collection, "by_table": by_table})
questions = questions[:12]
assert any(len(set(q["query"].split())) < len(q["query"].split()) for q in questions)
golden = {
    "vectors": VECTORS,
    "collection": COLLECTION,
    "table": TABLE,
    "candidates": CANDIDATES,
    "questions": questions,
}
with open("golden.json", "w") as file:
    json.dump(golden, file)
    file.write("\n")
