"""Libraries of static embeddings: a vector a text, made for many texts at a time.

static_peer.py model2vec|laghu FOLDER PAIRS
"""

import sys
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from turns import Pair, read_pairs, take_turns

Rows = NDArray[np.float32]
Encode = Callable[[list[str]], Rows]

# Texts encoded at once when they are compared: the default of both libraries.
BATCH = 1024


def load(library: str, folder: str) -> Encode:
    """The encoder of a library, on one thread and in its own process."""
    if library == "laghu":
        import laghu

        model = laghu.load(folder)
        model.tokenizer.threads = 1
        if model.tokenizer.rs is None:
            sys.exit("laghu does without laghu-rs; it would be slow for no reason of its own")
        return model.encode
    from model2vec import StaticModel

    encoder = StaticModel.from_pretrained(folder)
    # With more it starts processes of its own for long lists.
    return lambda texts: encoder.encode(texts, use_multiprocessing=False)


def cosines(one: Rows, other: Rows) -> Rows:
    """Cosine of each row with the other of its number; both have length 1 or 0."""
    products: Rows = np.einsum("ij,ij->i", one, other)
    return products


def scores(encode: Encode, pairs: list[Pair]) -> Sequence[float]:
    """Both texts of each pair encoded, some pairs at a time, and compared."""
    found: list[Rows] = []
    for start in range(0, len(pairs), BATCH // 2):
        few = pairs[start : start + BATCH // 2]
        vectors = encode([text for pair in few for text in pair])
        found.append(cosines(vectors[::2], vectors[1::2]))
    return np.concatenate(found).tolist()


def main() -> None:
    """Takes turns."""
    library, folder, pairs = sys.argv[1:]
    encode = load(library, folder)
    take_turns(read_pairs(pairs), {"avg-cos": lambda asked: scores(encode, asked)})


if __name__ == "__main__":
    main()
