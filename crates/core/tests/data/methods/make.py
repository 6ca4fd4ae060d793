"""Writes golden.json: scores of the methods of one text, computed by numpy in double precision.

Run in this folder with numpy 2.4: python3 make.py

Everything is made here: words, vectors, counts and sentences. Vectors are multiples of 1/64, so
that they are the same numbers in single precision. Each method is written down once more from its
paper's equations, without looking at how the library computes it.
"""

import json
import math
from collections import Counter

import numpy as np

rng = np.random.default_rng(20260407)

SENTENCES = """
the storm hits the coast
a storm hit the coastal town at night
heavy rain floods the old town
rain rain and more rain
the mayor of the town opens a bridge
old bridge over the river closed
river floods bridge
night train to the coast is late
the late train stops
storm
qwzx storm vlorp
mayor asks for help after the floods
after the storm the town sleeps
help is late
the the the and and
vlorp
""".split("\n")
SENTENCES = [sentence for sentence in SENTENCES if sentence]
UNLISTED = {"qwzx", "vlorp"}

# Most frequent first, as vocabularies are; several words have the same count, one has none.
WORDS = ["the", "of", "and", "to", "a", "is", "for", "at", "after", "over", "more"]
WORDS += sorted({word for text in SENTENCES for word in text.split()} - set(WORDS) - UNLISTED)
COUNTS = {word: 60000 // (rank + 1) ** 2 + 1 for rank, word in enumerate(WORDS)}
for word in ("bridge", "river", "floods"):
    COUNTS[word] = 40
COUNTS["mayor"] = 0
# Two words that a sentence is expected to hold.
COUNTS["of"] = 50000
TOTAL = 200000
IDF_UNSEEN = math.log(TOTAL / 20)

D = 9
common = rng.normal(size=D)
VECTORS = rng.normal(size=(len(WORDS), D)) + 0.8 * common
VECTORS = (VECTORS * 64).round() / 64
# A dimension that is nowhere used must not become a division by zero.
VECTORS[:, 4] = 0
LEARNED = {
    "few": {"measure": "euclidean", "weights": [0.875, 0.5, 0.25]},
    "many": {"measure": "cosine", "weights": (rng.integers(1, 64, 30) / 64).tolist()},
}

ids = {word: row for row, word in enumerate(WORDS)}
tokens = [text.split() for text in SENTENCES]
known = [[word for word in text if word in ids] for text in tokens]


def v(words):
    return np.array([VECTORS[ids[word]] for word in words])


def p(word):
    return COUNTS[word] / TOTAL


def idf(word):
    count = COUNTS.get(word, 0)
    # Tables of idf are stored in single precision.
    return float(np.float32(math.log(TOTAL / count) if count else IDF_UNSEEN))


def by_idf(words):
    return sorted(words, key=lambda word: (-idf(word), ids[word]))


def weighted(words, weights):
    return (np.array(weights)[:, None] * v(words)).sum(axis=0) / len(words)


def avg(words):
    return v(words).mean(axis=0)


def sif(words):
    return weighted(words, [1e-3 / (1e-3 + p(word)) for word in words])


def singular(rows):
    _, sizes, axes = np.linalg.svd(np.array(rows), full_matrices=False)
    return sizes, axes


SIF_AXIS = singular([sif(words) for words in known if words])[1][0]


def sif_pca(words):
    x = sif(words)
    return x - SIF_AXIS * (SIF_AXIS @ x)


counted = [word for word in WORDS if COUNTS[word]]
lengths = [len(words) for words in known if words]
mean_length = sum(lengths) / len(lengths)
threshold = 1 - (1 - 1 / len(counted)) ** mean_length
alpha = sum(p(word) > threshold for word in counted) / len(counted)
assert 0 < alpha < 1
A = (1 - alpha) / (alpha * len(counted) / 2)


def usif_before(words):
    norms = np.sqrt((v(words) ** 2).sum(axis=0))
    rows = np.divide(v(words), norms, where=norms > 0, out=np.zeros((len(words), D)))
    weights = np.array([A / (p(word) + A / 2) for word in words])
    return (weights[:, None] * rows).mean(axis=0)


sizes, axes = singular([usif_before(words) for words in known if words])
USIF_AXES, USIF_FACTORS = axes[:5], sizes[:5] ** 2 / (sizes[:5] ** 2).sum()


def usif(words):
    x = usif_before(words)
    return x - sum(f * axis * (axis @ x) for f, axis in zip(USIF_FACTORS, USIF_AXES))


def top30(words):
    return by_idf(words)[: math.ceil(0.3 * len(words) - 1e-9)]


def maxima(words):
    return v(words).max(axis=0)


def extremes(words):
    return np.concatenate([v(words).max(axis=0), v(words).min(axis=0)])


def learned(omega):
    def vector(words):
        n, m = len(words), len(omega)
        z = []
        for j in range(1, n + 1):
            i = 1 + (j - 1) * (m - 1) / (n - 1) if n > 1 else 1
            low, high = math.floor(i + 1e-9), math.ceil(i - 1e-9)
            z.append(omega[low - 1] + (i - low) * (omega[high - 1] - omega[low - 1]))
        return weighted(by_idf(words), z)

    return vector


def cosine(a, b):
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def euclidean(a, b):
    return float(1 / (1 + np.linalg.norm(a - b)))


def of_vectors(vector, measure=cosine):
    return lambda a, b: measure(vector(known[a]), vector(known[b])) if known[a] and known[b] else None


def tf_idf(a, b):
    one, other = ({w: n * idf(w) for w, n in Counter(tokens[side]).items()} for side in (a, b))
    length = lambda bag: math.sqrt(sum(x * x for x in bag.values()))
    return sum(one[w] * other[w] for w in one if w in other) / (length(one) * length(other))


def jaccard(a, b):
    one, other = set(tokens[a]), set(tokens[b])
    return len(one & other) / len(one | other)


def jaccard_bag(a, b):
    one, other = Counter(tokens[a]), Counter(tokens[b])
    return sum((one & other).values()) / sum((one | other).values())


METHODS = {
    "avg-cos": of_vectors(avg),
    "sif": of_vectors(sif),
    "sif-pca": of_vectors(sif_pca),
    "usif": of_vectors(usif),
    "idf-mean": of_vectors(lambda words: weighted(words, [idf(word) for word in words])),
    "max-cos": of_vectors(maxima),
    "min-max": of_vectors(extremes),
    "mean-top30": of_vectors(lambda words: avg(top30(words))),
    "max-top30": of_vectors(lambda words: maxima(top30(words))),
    "min-max-top30": of_vectors(lambda words: extremes(top30(words))),
    "learned-idf few": of_vectors(learned(LEARNED["few"]["weights"]), euclidean),
    "learned-idf many": of_vectors(learned(LEARNED["many"]["weights"])),
    "tf-idf": tf_idf,
    "jaccard": jaccard,
    "jaccard-bag": jaccard_bag,
}
pairs = [(a, b) for a in range(len(SENTENCES)) for b in range(a + 1, len(SENTENCES))]
rounded = lambda score: None if score is None else round(score, 9)
golden = {
    "words": WORDS,
    "vectors": VECTORS.ravel().tolist(),
    "counts": [COUNTS[word] for word in WORDS],
    "total": TOTAL,
    "idf": [idf(word) for word in WORDS],
    "idf_unseen": idf("never seen"),
    "sentences": SENTENCES,
    "learned": LEARNED,
    "usif": {"a": A, "alpha": alpha, "mean_length": mean_length, "sentences": len(lengths)},
    "pairs": pairs,
    "scores": {name: [rounded(score(a, b)) for a, b in pairs] for name, score in METHODS.items()},
}
with open("golden.json", "w") as file:
    json.dump(golden, file)
    file.write("\n")
