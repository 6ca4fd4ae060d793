"""Writes golden.json: tiny rankers of each kind and what they score, step by step as published.

Double precision throughout, one window and one query word at a time, nothing kept and nothing
rearranged. Run in this folder with numpy 2.4: python3 make.py
"""

import json

import numpy as np

rng = np.random.default_rng(20261121)
WORDS = "the a quake storm hits shakes city town coast night people null".split()
DIMS = 20
VECTORS = np.float32(np.round(rng.normal(0.0, 0.6, (len(WORDS), DIMS)), 3))
# A word without length has a cosine of 0 to every other.
VECTORS[WORDS.index("null")] = 0.0
# Words that the model does not list: made vectors are not read.
UNLISTED = "zzqx vlorpq"
QUERIES = ["quake hits city", "storm", "the the quake", UNLISTED, f"{UNLISTED} night people"]
POSTS = [
    "quake hits city",
    "city hits quake",
    "storm",
    "null",
    "the null storm",
    "a storm shakes the coast at night people",
    f"storm {UNLISTED} coast",
    UNLISTED,
    "night night night night night",
    "the people the people a town a town hits shakes the coast the city the people",
]
SIZES = [("bicnn", 2, 7), ("bicnn", 3, 7), ("qatt", 2, 7), ("qatt", 3, 7), ("patt", 2, 7),
         ("patt", 3, 7), ("patt", 1, 19), ("qatt", 4, 19)]
HIDDEN, JOINT = 5, 6


def draw(scale, *shape):
    return np.float32(np.round(rng.normal(0.0, scale, shape), 2))


def ranker(encoder, kernel, filters):
    parts = ["general"] if encoder == "bicnn" else ["general", "attention"]
    tensors = {}
    for part in parts:
        tensors[f"{part}.kernels"] = draw(0.5, kernel, filters, DIMS)
        tensors[f"{part}.bias"] = draw(0.3, filters)
        tensors[f"{part}.weight"] = draw(0.5, HIDDEN, filters)
        tensors[f"{part}.offset"] = draw(0.3, HIDDEN)
    tensors["joint.weight"] = draw(0.4, JOINT, (len(parts) + 1) * HIDDEN)
    tensors["joint.offset"] = draw(0.3, JOINT)
    tensors["norm.scale"] = draw(0.5, JOINT)
    tensors["norm.shift"] = draw(0.3, JOINT)
    tensors["output.weight"] = draw(0.5, 2, JOINT)
    tensors["output.offset"] = draw(0.3, 2)
    return tensors


def rows(text):
    known = [VECTORS[WORDS.index(word)] for word in text.split() if word in WORDS]
    return np.array(known, dtype=np.float64).reshape(len(known), DIMS)


def relu(x):
    return np.maximum(x, 0.0)


def encode(x, t, part):
    kernels = np.float64(t[f"{part}.kernels"])
    k = len(kernels)
    nothing = np.zeros((k - 1, DIMS))
    x = np.vstack([nothing, x, nothing])
    if len(x) < k:
        x = np.vstack([x, np.zeros((k - len(x), DIMS))])
    answers = []
    for start in range(len(x) - k + 1):
        window = x[start : start + k]
        answers.append(relu(np.einsum("ifd,id->f", kernels, window) + t[f"{part}.bias"]))
    pooled = np.max(answers, axis=0)
    return relu(np.float64(t[f"{part}.weight"]) @ pooled + t[f"{part}.offset"])


def cosine(a, b):
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    return a @ b / lengths if lengths > 0 else 0.0


def score(encoder, t, query, post):
    q, p = rows(query), rows(post)
    parts = [encode(q, t, "general"), encode(p, t, "general")]
    if encoder != "bicnn":
        h = []
        for word in q:
            if encoder == "qatt":
                h.append(encode(p * word, t, "attention"))
            else:
                weights = np.array([cosine(word, other) for other in p]).reshape(len(p), 1)
                h.append(encode(p * weights, t, "attention"))
        parts.append(np.mean(h, axis=0) if h else np.zeros(HIDDEN))
    u = relu(np.float64(t["joint.weight"]) @ np.concatenate(parts) + t["joint.offset"])
    u = t["norm.scale"] * u + t["norm.shift"]
    z = np.float64(t["output.weight"]) @ u + t["output.offset"]
    return float(z[1] - z.max() - np.log(np.exp(z - z.max()).sum()))


def listed(array):
    return [float(f"{value:.7g}") for value in np.asarray(array, dtype=np.float64).ravel()]


rankers = []
for encoder, kernel, filters in SIZES:
    t = ranker(encoder, kernel, filters)
    rankers.append({
        "settings": {"encoder": encoder, "kernel": kernel, "filters": filters, "hidden": HIDDEN,
                     "joint": JOINT, "alpha": 0.1, "trained": {"by": "chance"}},
        "tensors": {name: listed(tensor) for name, tensor in t.items()},
        "scores": [[round(score(encoder, t, query, post), 9) for post in POSTS]
                   for query in QUERIES],
    })
    spread = np.array(rankers[-1]["scores"])
    print(encoder, kernel, filters, spread.min(), spread.max())
golden = {"words": WORDS, "dims": DIMS, "vectors": listed(VECTORS), "queries": QUERIES,
          "posts": POSTS, "rankers": rankers}
with open("golden.json", "w", encoding="utf-8") as file:
    json.dump(golden, file, separators=(",", ":"))
    file.write("\n")
