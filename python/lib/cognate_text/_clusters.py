"""Groups of texts that are alike."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from cognate_text._model import Cutoff, Model, Texts, shared


def cluster(
    texts: Texts,
    *,
    threshold: Cutoff = "calibrated",
    link: Literal["average", "connected"] = "average",
    model: Model | None = None,
    method: str = "auto",
    **question: Any,
) -> NDArray[np.int64]:
    """For each text the place of the first of its group, by all scores of all texts (`Model.cdist`, whose
    question this takes, too): memory grows with the square of their number, and ten thousand take 0.8 GB.

    `link` says when two groups become one: at an `average` score of their texts from the threshold on, or
    where two texts of them reach it (`connected`). The latter makes chains, of which the ends have nothing in
    common, so it wants a higher threshold than one that tells whether two texts are related.

    >>> import cognate_text
    >>> texts = ["quake hits city", "an earthquake in the city", "cup final tonight", "a football final"]
    >>> cognate_text.cluster(texts)
    array([0, 0, 2, 2])
    """
    opened = model or shared()
    if threshold == "calibrated":
        threshold = opened.threshold(method=method, measure=question.get("measure"))
    scores = opened.cdist(texts, texts, method=method, **question)
    if link not in ("average", "connected"):
        raise ValueError(f"link: expected average or connected, got {link!r}")
    # A ranker need not give both orders of a pair the same score.
    scores += scores.T.copy()
    scores /= 2
    scores[np.isnan(scores)] = -np.inf
    np.fill_diagonal(scores, -np.inf)
    first, size = np.arange(len(scores)), np.ones(len(scores))
    # The nearest neighbour of each group, until two are each other's: the same groups as by the best pair first.
    chain: list[int] = []
    left = set(range(len(scores)))
    while left:
        if not chain:
            chain.append(next(iter(left)))
        one = chain[-1]
        other = int(np.argmax(scores[one]))
        if not scores[one, other] >= threshold:
            left.discard(one)
            chain.pop()
            continue
        if len(chain) > 1 and scores[one, chain[-2]] >= scores[one, other]:
            other = chain[-2]
            del chain[-2:]
            keep, gone = min(one, other), max(one, other)
            if link == "average":
                joined = size[one] * scores[one] + size[other] * scores[other]
                joined /= size[one] + size[other]
            else:
                joined = np.maximum(scores[one], scores[other])
            scores[keep], scores[:, keep] = joined, joined
            scores[gone], scores[:, gone] = -np.inf, -np.inf
            scores[keep, keep] = -np.inf
            size[keep] += size[gone]
            first[first == gone] = keep
            left.discard(gone)
        else:
            chain.append(other)
    return first.astype(np.int64)
