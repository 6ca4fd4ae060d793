"""Golden vectors for the encoders of `cognate-distill`, in NumPy and double precision.

Two toy encoders of two layers are made here and, by the same rule, in recipes/distill/tests/it/toy.rs:
one of BERT's kind, one of MPNet's. The formulas follow the papers and the authors' published code, not
ours: Devlin et al. 2019 (BERT), Song et al. 2020 (MPNet; its bias by relative distance is that of T5).
Texts are token numbers, so that no tokenizer is needed.

    python3 make.py > golden.json

With folders of sentence-transformers as arguments, vectors of a few texts are printed for each in place
of the toys' (needs the packages safetensors and tokenizers).
"""
import json
import math
import sys

import numpy as np

MASK = (1 << 64) - 1
TEXTS = [[2, 5, 9, 3], [2, 7, 7, 11, 4, 30, 3], [2, 3], [2, *range(4, 36), 3]]
HIDDEN, INNER, LAYERS, HEADS, ENTRIES, POSITIONS = 12, 20, 2, 3, 40, 48


def erf(x):
    return np.vectorize(math.erf)(x)


def fnv1a(name):
    state = 0xCBF29CE484222325
    for byte in name.encode():
        state = ((state ^ byte) * 0x100000001B3) & MASK
    return state


def uniform(name, count):
    """Numbers from 0 to 1: splitmix64 seeded by the name."""
    state, numbers = fnv1a(name), []
    for _ in range(count):
        state = (state + 0x9E3779B97F4A7C15) & MASK
        word = state
        word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & MASK
        word ^= word >> 31
        numbers.append((word >> 11) / (1 << 53))
    return np.array(numbers)


def tensor(name, shape):
    """A toy's tensor: scales near 1, everything else around 0."""
    numbers = uniform(name, int(np.prod(shape)))
    numbers = 0.8 + 0.4 * numbers if name.endswith("LayerNorm.weight") else 1.2 * (numbers - 0.5)
    return numbers.astype(np.float32).astype(np.float64).reshape(shape)


def toy(kind):
    """The tensors of a toy by their names in the published files."""
    shapes = {
        "embeddings.word_embeddings.weight": (ENTRIES, HIDDEN),
        "embeddings.position_embeddings.weight": (POSITIONS, HIDDEN),
        "embeddings.LayerNorm.weight": (HIDDEN,),
        "embeddings.LayerNorm.bias": (HIDDEN,),
    }
    if kind == "bert":
        shapes["embeddings.token_type_embeddings.weight"] = (2, HIDDEN)
        parts = ["attention.self.query", "attention.self.key", "attention.self.value"]
        joined, norm = "attention.output.dense", "attention.output.LayerNorm"
    else:
        shapes["encoder.relative_attention_bias.weight"] = (32, HEADS)
        parts = ["attention.attn.q", "attention.attn.k", "attention.attn.v"]
        joined, norm = "attention.attn.o", "attention.LayerNorm"
    for layer in range(LAYERS):
        place = f"encoder.layer.{layer}."
        for name, (rows, columns) in {
            **{part: (HIDDEN, HIDDEN) for part in parts},
            joined: (HIDDEN, HIDDEN),
            "intermediate.dense": (INNER, HIDDEN),
            "output.dense": (HIDDEN, INNER),
        }.items():
            shapes[place + name + ".weight"] = (rows, columns)
            shapes[place + name + ".bias"] = (rows,)
        for name in (norm, "output.LayerNorm"):
            shapes[place + name + ".weight"] = (HIDDEN,)
            shapes[place + name + ".bias"] = (HIDDEN,)
    return {name: tensor(f"{kind}.{name}", shape) for name, shape in shapes.items()}


def relative_position_bucket(relative_position, num_buckets=32, max_distance=128):
    """As in the published MPNet code."""
    ret = 0
    n = -relative_position
    num_buckets //= 2
    ret += (n < 0).astype(int) * num_buckets
    n = np.abs(n)
    max_exact = num_buckets // 2
    large = max_exact + (
        np.log(np.maximum(n, 1) / max_exact) / math.log(max_distance / max_exact) * (num_buckets - max_exact)
    ).astype(int)
    return ret + np.where(n < max_exact, n, np.minimum(large, num_buckets - 1))


def encode(tensors, ids, heads, epsilon, pooling):
    t = {name: np.asarray(value, dtype=np.float64) for name, value in tensors.items()}
    mpnet = "encoder.relative_attention_bias.weight" in t
    length = len(ids)

    def linear(x, name):
        return x @ t[name + ".weight"].T + t[name + ".bias"]

    def norm(x, name):
        mean = x.mean(-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(-1, keepdims=True)
        return (x - mean) / np.sqrt(variance + epsilon) * t[name + ".weight"] + t[name + ".bias"]

    x = t["embeddings.word_embeddings.weight"][ids]
    positions = t["embeddings.position_embeddings.weight"]
    x = x + (positions[2 : 2 + length] if mpnet else positions[:length])
    if not mpnet:
        x = x + t["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    hidden = x.shape[1]
    each = hidden // heads
    bias = 0.0
    if mpnet:
        places = np.arange(length)
        buckets = relative_position_bucket(places[None, :] - places[:, None])
        bias = t["encoder.relative_attention_bias.weight"][buckets].transpose(2, 0, 1)
    if mpnet:
        parts = ["attention.attn.q", "attention.attn.k", "attention.attn.v"]
        joined, after = "attention.attn.o", "attention.LayerNorm"
    else:
        parts = ["attention.self.query", "attention.self.key", "attention.self.value"]
        joined, after = "attention.output.dense", "attention.output.LayerNorm"
    layer = 0
    while f"encoder.layer.{layer}.output.dense.weight" in t:
        place = f"encoder.layer.{layer}."
        q, k, v = (linear(x, place + part).reshape(length, heads, each).transpose(1, 0, 2) for part in parts)
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(each) + bias
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        attended = (shares @ v).transpose(1, 0, 2).reshape(length, hidden)
        x = norm(x + linear(attended, place + joined), place + after)
        inner = linear(x, place + "intermediate.dense")
        inner = 0.5 * inner * (1 + erf(inner / math.sqrt(2)))
        x = norm(x + linear(inner, place + "output.dense"), place + "output.LayerNorm")
        layer += 1
    pooled = {"mean": x.mean(0), "cls": x[0], "max": x.max(0)}[pooling]
    return pooled / np.linalg.norm(pooled)


def toys():
    cases = []
    for kind in ("bert", "mpnet"):
        tensors = toy(kind)
        for pooling in ("mean", "cls", "max"):
            for ids in TEXTS:
                vector = encode(tensors, ids, HEADS, 1e-5, pooling)
                cases.append(
                    {"kind": kind, "pooling": pooling, "ids": ids, "vector": [round(float(x), 7) for x in vector]}
                )
    return {"cases": cases}


def folders(paths):
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    texts = ["Quake hits L.A.!!", "Earthquake shakes Los Angeles", "a", "two men are playing chess in the park"]
    for path in paths:
        config = json.load(open(f"{path}/config.json"))
        tensors = load_file(f"{path}/model.safetensors")
        tokenizer = Tokenizer.from_file(f"{path}/tokenizer.json")
        tokenizer.no_padding()
        for text in texts:
            ids = tokenizer.encode(text).ids
            vector = encode(tensors, ids, config["num_attention_heads"], config["layer_norm_eps"], "mean")
            print(json.dumps({"text": text, "ids": ids, "vector": [float(x) for x in vector]}))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        folders(sys.argv[1:])
    else:
        print(json.dumps(toys()).replace('{"kind', '\n{"kind'))
