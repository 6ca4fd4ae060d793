"""Near-duplicates among the texts of a column, or of them in another."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cognate_text import _native
from cognate_text._model import Model, Texts, shared


class Pairs(NamedTuple):
    """Pairs of texts that score high enough, by the later text: places and scores."""

    #: Places of the earlier texts; among the others where the texts are held `against` others.
    first: NDArray[np.int64]
    #: Places of the later texts.
    second: NDArray[np.int64]
    #: Their scores.
    scores: NDArray[np.float32]


class Recall(NamedTuple):
    """What a comparison of some texts with all others says was found."""

    #: Texts that were compared with all others.
    texts: int
    #: Their matches.
    matches: int
    #: Those that were found without comparing all with all.
    found: int


@dataclass(frozen=True, slots=True)
class Duplicates:
    """What stands for what, by places in the column that was given.

    It is made for masks, as those of `pandas.DataFrame.duplicated`: texts come as a column of
    something larger, of which the other columns are to be kept, too.
    """

    #: For each text the place of the one that stands for it (among the others where the texts were held
    #: `against` others); -1 for a text that stands for itself.
    duplicate_of: NDArray[np.int64]
    #: Its score with that; NaN for a text that stands for itself.
    scores: NDArray[np.float32]
    #: All pairs of different texts that score high enough. Texts of the same words stand once in them,
    #: as the first of them.
    pairs: Pairs = field(repr=False)
    #: What the search misses, where that was asked by `check`.
    recall: Recall | None = None

    @property
    def duplicated(self) -> NDArray[np.bool_]:
        """Whether another text stands for each: `frame[~found.duplicated]` keeps the others."""
        return self.duplicate_of >= 0

    @property
    def kept(self) -> NDArray[np.int64]:
        """Places of the texts that stand for themselves."""
        return np.flatnonzero(~self.duplicated).astype(np.int64)

    @property
    def duplicate_ratio(self) -> float:
        """The share of texts that another stands for."""
        return float(self.duplicated.mean()) if len(self.duplicate_of) else 0.0

    def groups(self) -> dict[int, list[int]]:
        """The places that each text stands for, by its own place; without those that stand for none."""
        found: dict[int, list[int]] = {}
        for place in np.flatnonzero(self.duplicated).tolist():
            found.setdefault(int(self.duplicate_of[place]), []).append(place)
        return dict(sorted(found.items()))


def dedupe(
    texts: Texts,
    *,
    threshold: float = _native.DUPLICATES,
    method: str = "auto",
    against: Texts | None = None,
    truncate: bool = False,
    floor: float | None = None,
    check: int = 0,
    model: Model | None = None,
) -> Duplicates:
    """Which texts say what another before them says, as `cognate dedupe` finds it in files.

    A text belongs to the best match among the texts before it that stand for themselves, and to none
    that it does not match itself. Texts of the same words match whatever the threshold; a missing text
    matches nothing. Not all pairs are scored: texts are compared where they share rare words or their
    vectors lie near. `check=N` compares N texts with all others and tells in `recall` what that misses.
    `floor` is the least cosine of vectors at which a pair is scored. By `auto` the score is the share of
    their words that are the same (Dice) where that is more than the method's; by `jaccard` nothing but
    words is compared.

    `against` looks for the texts in others instead, and not among themselves.

    >>> import cognate_text
    >>> texts = ["Strong earthquake shakes L.A. tonight", "a cat naps", None,
    ...     "strong earthquake shakes L.A. tonight!!!", "A strong earthquake shook L.A. tonight"]
    >>> found = cognate_text.dedupe(texts)
    >>> found.duplicated
    array([False, False, False,  True,  True])
    >>> found.groups()
    {0: [3, 4]}
    >>> cognate_text.dedupe(["The cat naps", "an election"], against=texts).duplicate_of
    array([ 1, -1])
    """
    asked = (method, None, "zero", truncate, None)
    opened = (model or shared())._native
    (of, scores), pairs, recall = _native.dedupe(opened, texts, against, (threshold, floor), check, asked)
    return Duplicates(of, scores, Pairs(*pairs), None if recall is None else Recall(*recall))
