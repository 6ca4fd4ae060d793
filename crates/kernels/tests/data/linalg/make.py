"""Writes golden.json: moments, eigenvectors and centroids by numpy.

Run in this folder with numpy 2.4: python3 make.py
"""

import json

import numpy as np

rng = np.random.default_rng(20260302)


def positive(vectors):
    """Rows signed so that the component of largest magnitude is positive."""
    largest = np.abs(vectors).argmax(axis=1)
    return vectors * np.sign(vectors[np.arange(len(vectors)), largest])[:, None]


def eigen(matrix):
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1].tolist(), positive(vectors.T[::-1]).ravel().tolist()


def lloyd(rows, centroids):
    while True:
        distances = ((rows[:, None] - centroids[None]) ** 2).sum(axis=2)
        assignment = distances.argmin(axis=1)
        means = np.stack([rows[assignment == c].mean(axis=0) for c in range(len(centroids))])
        if np.allclose(means, centroids, rtol=0, atol=1e-12):
            return means, assignment, distances.min(axis=1).sum()
        centroids = means


# Multiples of 1/64 are the same number in single precision, in text and in the sums below.
dim = 11
spread = np.linspace(2.0, 0.3, dim)
rows = (rng.normal(size=(90, dim)) * spread + 3.0).round(6)
rows = (rows * 64).round() / 64
weights = rng.integers(1, 9, len(rows)) / 4
mean = np.average(rows, axis=0, weights=weights)
covariance = np.cov(rows.T, aweights=weights, ddof=0)
second = (rows * weights[:, None]).T @ rows / weights.sum()
centred_values, centred_vectors = eigen(covariance)
origin_values, origin_vectors = eigen(second)
weighted = rows * np.sqrt(weights)[:, None]

points = (np.repeat(rng.normal(size=(5, 3)) * 4, 16, axis=0) + rng.normal(size=(80, 3)))
points = (rng.permutation(points) * 64).round() / 64
centroids, assignment, inertia = lloyd(points, points[:5])

golden = {
    "dim": dim,
    "rows": rows.ravel().tolist(),
    "weights": weights.tolist(),
    "mean": mean.tolist(),
    "covariance": covariance.ravel().tolist(),
    "second_moment": second.ravel().tolist(),
    "centred_values": centred_values,
    "centred_vectors": centred_vectors,
    "origin_values": origin_values,
    "origin_vectors": origin_vectors,
    "singular_values": np.linalg.svd(weighted, compute_uv=False).tolist(),
    "points": points.ravel().tolist(),
    "centroids": centroids.ravel().tolist(),
    "assignment": assignment.tolist(),
    "inertia": inertia,
}
with open("golden.json", "w") as out:
    out.write("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in golden.items()) + "\n}\n")
