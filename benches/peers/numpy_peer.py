"""The reference in NumPy, the way the authors of DynaMax compute it.

numpy_peer.py VECTORS.npy VOCABULARY PAIRS
"""

import sys

import numpy as np
from numpy.typing import NDArray

from turns import one_by_one, read_pairs, read_words, take_turns, tokenise

Rows = NDArray[np.float32]


class Reference:
    """A matrix of vectors and the row of every word."""

    def __init__(self, vectors: str, vocabulary: str) -> None:
        self.vectors: Rows = np.load(vectors)
        self.row = {word: row for row, word in enumerate(read_words(vocabulary))}

    def rows(self, text: str) -> Rows:
        """The vectors of the words of a text, a row each."""
        found = (self.row.get(token) for token in tokenise(text))
        return self.vectors[[row for row in found if row is not None]]

    def avg_cos(self, one: str, other: str) -> float:
        """Cosine of the mean vectors."""
        x, y = self.rows(one), self.rows(other)
        if not len(x) or not len(y):
            return 0.0
        x, y = x.mean(axis=0), y.mean(axis=0)
        return float(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)))

    def dynamax_jaccard(self, one: str, other: str) -> float:
        """DynaMax-Jaccard (Zhelezniak et al. 2019, algorithm 1)."""
        x, y = self.rows(one), self.rows(other)
        if not len(x) or not len(y):
            return 0.0
        universe = np.vstack((x, y))
        of_x, of_y = memberships(x, universe), memberships(y, universe)
        return float(np.minimum(of_x, of_y).sum() / np.maximum(of_x, of_y).sum())


def memberships(text: Rows, universe: Rows) -> Rows:
    """The best product of a text's words with each word of the universe, never below 0."""
    best: Rows = (text @ universe.T).max(axis=0)
    np.maximum(best, 0, out=best)
    return best


if __name__ == "__main__":
    reference = Reference(sys.argv[1], sys.argv[2])
    take_turns(
        read_pairs(sys.argv[3]),
        {
            "avg-cos": one_by_one(reference.avg_cos),
            "dynamax-jaccard": one_by_one(reference.dynamax_jaccard),
        },
    )
