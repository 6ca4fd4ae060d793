"""Writes golden.json: optimal transport costs by scipy's linear programming (HiGHS).

Run in this folder with numpy 2.4 and scipy 1.17: python3 make.py
"""

import json

import numpy as np
from scipy.optimize import linprog

rng = np.random.default_rng(20260301)


def optimum(supply, demand, cost):
    n, m = cost.shape
    sides = np.zeros((n + m, n * m))
    for i in range(n):
        sides[i, i * m : (i + 1) * m] = 1
    for j in range(m):
        sides[n + j, j::m] = 1
    shares = np.concatenate([supply / supply.sum(), demand / demand.sum()])
    # One equation follows from the others; rounding could make it contradict them.
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    answer = linprog(cost.ravel(), A_eq=sides[:-1], b_eq=shares[:-1], method="highs-ds", options=tight)
    assert answer.success, answer.message
    return answer.fun


def points(n, d):
    return rng.normal(size=(n, d)) * rng.uniform(0.5, 2.0, size=(n, 1))


def mover(n, m):
    """Word Mover's: counts of words, Euclidean costs."""
    x, y = points(n, 8), points(m, 8)
    cost = np.linalg.norm(x[:, None] - y[None], axis=2)
    return rng.integers(1, 4, n).astype(float), rng.integers(1, 4, m).astype(float), cost


def rotator(n, m):
    """Word Rotator's: norms as masses, costs 1 - cos."""
    x, y = points(n, 8), points(m, 8)
    a, b = np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1)
    return a, b, 1 - (x @ y.T) / np.outer(a, b)


def tied(n, m):
    """Few distinct masses and costs, some masses zero: the degenerate case."""
    a, b = rng.integers(0, 3, n).astype(float), rng.integers(0, 3, m).astype(float)
    a[0] = b[0] = 1
    return a, b, rng.integers(0, 4, (n, m)).astype(float)


cases = []
for name, make, shapes in [
    ("mover", mover, [(1, 1), (1, 7), (5, 5), (9, 4), (12, 15), (30, 30)]),
    ("rotator", rotator, [(2, 2), (6, 1), (8, 11), (14, 14), (25, 30)]),
    ("tied", tied, [(3, 3), (6, 8), (10, 10), (20, 13)]),
]:
    for n, m in shapes:
        a, b, cost = make(n, m)
        a, b, cost = a.round(6), b.round(6), cost.round(6)
        cases.append(
            {
                "name": f"{name} {n}x{m}",
                "supply": a.tolist(),
                "demand": b.tolist(),
                "cost": cost.ravel().tolist(),
                "optimum": optimum(a, b, cost),
            }
        )

with open("golden.json", "w") as out:
    out.write("[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n")
