"""Writes golden.json: columns of scores fused, written down once more from the equations.

Run in this folder, with nothing but Python: python3 make.py

`null` is a candidate that a part does not score. Scores are whole numbers in some cases, so that many
are equal; weights need not add up to 1. Fractions are exact, so nothing is rounded before the end.
"""

import json
import random
from fractions import Fraction

rng = random.Random(20261122)


def score(kind):
    if rng.random() < 0.15:
        return None
    return rng.randint(0, 5) if kind == "ties" else round(rng.gauss(0, 3), 6)


def shares(weights):
    whole = sum(Fraction(weight) for weight in weights)
    return [Fraction(weight) / whole for weight in weights]


def rrf(columns, weights):
    fused = []
    for candidate in range(len(columns[0])):
        terms = []
        for column, share in zip(columns, shares(weights)):
            own = column[candidate]
            if own is not None:
                better = sum(1 for other in column if other is not None and other > own)
                terms.append(share / (60 + better + 1))
        fused.append(float(sum(terms)) if terms else None)
    return fused


def standardised(column):
    known = [Fraction(value) for value in column if value is not None]
    if not known:
        return [0.0] * len(column)
    mean = sum(known) / len(known)
    deviation = float(sum((value - mean) ** 2 for value in known) / len(known)) ** 0.5
    standard = [
        None if value is None else float(Fraction(value) - mean) / deviation if deviation else 0.0
        for value in column
    ]
    lowest = min([0.0] + [value for value in standard if value is not None])
    return [lowest if value is None else value for value in standard]


def zscore(columns, weights):
    standard = [standardised(column) for column in columns]
    fused = []
    for candidate in range(len(columns[0])):
        if all(column[candidate] is None for column in columns):
            fused.append(None)
        else:
            parts = zip(shares(weights), standard)
            fused.append(sum(float(share) * column[candidate] for share, column in parts))
    return fused


cases = []
for number in range(24):
    candidates, parts = rng.randint(1, 30), rng.randint(1, 6)
    kind = "ties" if number % 2 else "plain"
    columns = [[score(kind) for _ in range(candidates)] for _ in range(parts)]
    if number % 5 == 0:
        columns[0] = [7] * candidates
    weights = [rng.choice([0, 0.25, 1, 2.5]) for _ in range(parts)]
    weights[-1] = weights[-1] or 1
    cases.append(
        {
            "columns": columns,
            "weights": weights,
            "rrf": rrf(columns, weights),
            "zscore": zscore(columns, weights),
        }
    )
with open("golden.json", "w") as file:
    json.dump(cases, file, separators=(",", ":"))
    file.write("\n")
