"""`df.cognate` and `series.cognate`, once this module is imported.

>>> import pandas as pd
>>> import cognate_text.pandas
>>> df = pd.DataFrame({"a": ["a quake", None], "b": ["an earthquake", "a cat"]})
>>> df.cognate.similarity("a", "b").round(2)
0    0.75
1    <NA>
Name: similarity, dtype: Float32
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pandas as pd

from cognate_text._dedupe import dedupe
from cognate_text._model import Model, shared


def _scores(
    one: pd.Series[Any], other: pd.Series[Any] | list[str], model: Model | None, question: dict[str, Any]
) -> pd.Series[Any]:
    for name in ("fill", "output"):
        if name in question:
            raise TypeError(f"{name}: a Series has <NA> where a text is missing; Model.cpdist takes this")
    scores = (model or shared()).cpdist(one, other, **question, fill=float("nan"))
    missing = np.isnan(scores)
    scores[missing] = 0.0
    values = pd.arrays.FloatingArray(scores, missing)
    return pd.Series(values, index=one.index, name="similarity")


@pd.api.extensions.register_dataframe_accessor("cognate")
class DataFrameAccessor:
    """What `df.cognate` offers."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def similarity(
        self, a: Hashable, b: Hashable, *, model: Model | None = None, **question: Any
    ) -> pd.Series[Any]:
        """How alike two columns are, row by row; `<NA>` where a text is missing. The question is
        asked as of `Model.cpdist`."""
        return _scores(self._frame[a], self._frame[b], model, question)


@pd.api.extensions.register_series_accessor("cognate")
class SeriesAccessor:
    """What `series.cognate` offers."""

    def __init__(self, series: pd.Series[Any]) -> None:
        self._series = series

    def similarity(
        self, other: pd.Series[Any] | str, *, model: Model | None = None, **question: Any
    ) -> pd.Series[Any]:
        """How alike each text is to one text, or to that of another Series with the same label."""
        if isinstance(other, str):
            return _scores(self._series, [other] * len(self._series), model, question)
        if not isinstance(other, pd.Series):
            raise TypeError(f"other: expected a Series or one text, got {type(other).__name__}")
        if not other.index.equals(self._series.index):
            other = other.reindex(self._series.index)
        return _scores(self._series, other, model, question)

    def embed(self, *, model: Model | None = None, **question: Any) -> pd.DataFrame:
        """The vectors of the texts, a row a text; zeros for a text that has none. The question is
        asked as of `Model.embed`."""
        vectors = (model or shared()).embed(self._series, **question)
        return pd.DataFrame(vectors, index=self._series.index)

    def rank(self, query: str | None, *, model: Model | None = None, **question: Any) -> pd.Series[Any]:
        """The scores of the texts for a query, best first, under their labels; `<NA>` for one that has none.
        The question is asked as of `Model.rank`.

        >>> pd.Series(["a cat naps", "quake hits city"]).cognate.rank("earthquake", top_k=1).index[0]
        1
        """
        ranking = (model or shared()).rank(query, self._series, **question)
        index = self._series.index[[found.place for found in ranking]]
        return pd.Series([found.score for found in ranking], index=index, name="score", dtype="Float32")

    def dedupe(self, *, model: Model | None = None, **question: Any) -> pd.DataFrame:
        """What stands for what: for each text the label of the one that stands for it, its own if none does,
        and their score, `<NA>` then. The question is asked as of `cognate_text.dedupe`, but for `against`.

        >>> pd.Series(["Quake hits L.A.", "a cat", "quake hits L.A.!"]).cognate.dedupe()["cluster"].tolist()
        [0, 1, 0]
        """
        if "against" in question:
            raise TypeError("against: labels are those of one Series; cognate_text.dedupe takes this")
        found = dedupe(self._series, model=model, **question)
        own = found.duplicate_of < 0
        place = np.where(own, np.arange(len(own)), found.duplicate_of)
        score = pd.arrays.FloatingArray(np.where(own, 0, found.scores), own)
        frame = {"cluster": self._series.index[place], "score": score}
        return pd.DataFrame(frame, index=self._series.index)
