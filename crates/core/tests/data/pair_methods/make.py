"""Writes golden.json: tiny vectors, pairs of sentences, and the scores of methods of two texts.

Double precision throughout; transport problems by scipy's linear programming (HiGHS). Run in this
folder with numpy 2.4 and scipy 1.17: python3 make.py
"""

import itertools
import json

import numpy as np
from scipy.optimize import linprog

rng = np.random.default_rng(20261121)
WORDS = "the a quake storm hits shakes city town coast at night morning people flee home".split()
DIMS = 7
UNIVERSE = 5
# Numbers of a few digits are the same in single precision when they are read back.
VECTORS = {
    word: np.float32(np.round(rng.normal(0.1, 1.0, DIMS) * rng.uniform(0.2, 2.5), 3))
    for word in WORDS
}
ROWS = np.float32(np.round(rng.normal(0.0, 1.0, (UNIVERSE, DIMS)), 3))
SENTENCES = [
    "quake hits city",
    "a storm shakes the coast at night",
    "the people flee the city the town",
    "night night morning",
    "home",
    "storm storm storm hits a home at the coast in the morning",
]


def rows(text):
    return np.array([VECTORS[word] for word in text.split() if word in VECTORS], dtype=np.float64)


def ratio(a, b):
    union = np.maximum(a, b).sum()
    return float(np.minimum(a, b).sum() / union) if union > 0 else 0.0


def pooled(x, u, pool=np.max):
    return np.maximum(0.0, pool(x @ u.T, axis=0))


def unit(x):
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def fixed(x, y, universe):
    return ratio(pooled(x, universe), pooled(y, universe))


def dynamic(x, y, pool=np.max):
    universe = np.vstack([x, y])
    return ratio(pooled(x, universe, pool), pooled(y, universe, pool))


def weighted(x, y, alpha, beta):
    universe = np.vstack([x, y])
    cosine = lambda z: np.maximum(0.0, unit(z) @ unit(universe).T)
    member = lambda z: (np.linalg.norm(z, axis=1)[:, None] ** beta * cosine(z)).max(axis=0)
    weight = np.linalg.norm(universe, axis=1) ** alpha
    return ratio(weight * member(x), weight * member(y))


def coverage(x, y, alpha, p):
    """How far each covers the other, a word discounted by what its own text says again."""

    def covered(x, y):
        within = np.maximum(0.0, unit(x) @ unit(x).T) ** p
        weight = np.linalg.norm(x, axis=1) ** alpha / (within**2).sum(axis=1)
        best = np.maximum(0.0, unit(x) @ unit(y).T).max(axis=1) ** p
        return (weight * best).sum() / weight.sum()

    return float(np.sqrt(covered(x, y) * covered(y, x)))


def mean_cosine(x, y):
    a, b = x.mean(axis=0), y.mean(axis=0)
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def soft_cardinality(one, other):
    tally = lambda text: {w: text.split().count(w) for w in text.split() if w in VECTORS}
    a, b = tally(one), tally(other)
    union = {w: max(a.get(w, 0), b.get(w, 0)) for w in sorted(a | b)}

    def size(bag):
        x = unit(rows(" ".join(w for w, times in bag.items() for _ in range(times))))
        return (1.0 / np.maximum(0.0, x @ x.T).sum(axis=1)).sum()

    return float(min(1.0, (size(a) + size(b) - size(union)) / size(union)))


def transport(supply, demand, cost):
    n, m = cost.shape
    held = np.zeros((n + m, n * m))
    for i in range(n):
        held[i, i * m : (i + 1) * m] = 1
    for j in range(m):
        held[n + j, j::m] = 1
    shares = np.concatenate([supply / supply.sum(), demand / demand.sum()])
    return float(linprog(cost.ravel(), A_eq=held, b_eq=shares, method="highs").fun)


def wmd(x, y):
    cost = np.linalg.norm(x[:, None] - y[None], axis=2)
    return 1.0 / (1.0 + transport(np.ones(len(x)), np.ones(len(y)), cost))


def wrd(x, y):
    cost = np.maximum(0.0, 1.0 - unit(x) @ unit(y).T)
    return 1.0 - transport(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1), cost)


pairs = []
for one, other in itertools.combinations_with_replacement(SENTENCES, 2):
    x, y = rows(one), rows(other)
    clipped = lambda z: np.maximum(0.0, z.mean(axis=0))
    pairs.append({
        "texts": [one, other],
        "scores": {
            "max-jaccard": fixed(x, y, np.eye(DIMS)),
            "fbow-jaccard": fixed(x, y, ROWS.astype(np.float64)),
            "soft-cardinality": soft_cardinality(one, other),
            "wmd": wmd(x, y),
            "wrd": wrd(x, y),
            "dynamax-weighted": weighted(x, y, 1.5, 0.0),
            "blend": 0.5 * mean_cosine(x, y) + 0.5 * weighted(x, y, 1.5, 0.0),
            "coverage": coverage(x, y, 1.75, 0.75),
            "coverage-blend": 0.3 * mean_cosine(x, y) + 0.7 * coverage(x, y, 1.75, 0.75),
        },
        "otherwise": {
            "dynamax-weighted": weighted(x, y, 0.7, 0.5),
            "blend": 0.25 * mean_cosine(x, y) + 0.75 * weighted(x, y, 0.7, 0.5),
            "coverage": coverage(x, y, 0.5, 1.25),
            "coverage-blend": 0.6 * mean_cosine(x, y) + 0.4 * coverage(x, y, 0.5, 1.25),
        },
        "ablations": {
            "avg-jaccard": ratio(clipped(x), clipped(y)),
            "dyna-avg": dynamic(x, y, np.mean),
            "dyna-sum": dynamic(x, y, np.sum),
            "dyna-min": dynamic(x, y, np.min),
            "unit-avg-cos": mean_cosine(unit(x), unit(y)),
            "unit-dynamax-jaccard": dynamic(unit(x), unit(y)),
            "unit-max-jaccard": fixed(unit(x), unit(y), np.eye(DIMS)),
        },
    })

# A pair without any membership scores 0 by rule; identical bags score 1 by rule.
for pair in pairs:
    if sorted(pair["texts"][0].split()) == sorted(pair["texts"][1].split()):
        for part in ("scores", "otherwise", "ablations"):
            pair[part] = dict.fromkeys(pair[part], 1.0)

flat = lambda rows: [float(f"{value:.3f}") for row in rows for value in row]
with open("golden.json", "w") as out:
    out.write('{"words": %s,\n' % json.dumps(WORDS))
    out.write('"vectors": %s,\n' % json.dumps(flat(VECTORS[word] for word in WORDS)))
    out.write('"universe": %s,\n"pairs": [\n' % json.dumps(flat(ROWS)))
    out.write(",\n".join(json.dumps(pair) for pair in pairs))
    out.write("\n]}\n")
