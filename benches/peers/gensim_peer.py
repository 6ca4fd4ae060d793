"""gensim's KeyedVectors: cosine of means, and Word Mover's Distance where POT is installed.

gensim_peer.py VECTORS.npy VOCABULARY PAIRS
"""

import sys
from importlib.util import find_spec

import numpy as np
from gensim.models import KeyedVectors

from turns import Pass, one_by_one, read_pairs, read_words, take_turns, tokenise


def load(vectors: str, vocabulary: str) -> KeyedVectors:
    """Puts the matrix and its words into gensim's own form."""
    matrix = np.load(vectors)
    keyed = KeyedVectors(matrix.shape[1])
    keyed.add_vectors(read_words(vocabulary), matrix)
    return keyed


def methods(keyed: KeyedVectors) -> dict[str, Pass]:
    """The methods that this gensim can serve."""

    def known(text: str) -> list[str]:
        return [token for token in tokenise(text) if token in keyed.key_to_index]

    def avg_cos(one: str, other: str) -> float:
        x, y = known(one), known(other)
        return float(keyed.n_similarity(x, y)) if x and y else 0.0

    def wmd(one: str, other: str) -> float:
        x, y = known(one), known(other)
        # Vectors as they are, as in the paper; gensim would give them length 1.
        return 1.0 / (1.0 + keyed.wmdistance(x, y, norm=False)) if x and y else 0.0

    found = {"avg-cos": one_by_one(avg_cos)}
    if find_spec("ot"):
        found["wmd"] = one_by_one(wmd)
    return found


if __name__ == "__main__":
    take_turns(read_pairs(sys.argv[3]), methods(load(sys.argv[1], sys.argv[2])))
