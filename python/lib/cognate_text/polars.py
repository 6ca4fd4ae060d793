"""`series.cognate` and `expression.cognate` of Polars, once this module is imported.

>>> import polars as pl
>>> import cognate_text.polars
>>> df = pl.DataFrame({"a": ["a quake", None], "b": ["an earthquake", "a cat"]})
>>> df.select(pl.col("a").cognate.similarity(pl.col("b")).round(2)).to_series().to_list()
[0.75, None]
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from cognate_text._dedupe import dedupe
from cognate_text._model import Model, shared


@pl.api.register_expr_namespace("cognate")
class ExprNamespace:
    """What `expression.cognate` offers."""

    def __init__(self, expr: pl.Expr) -> None:
        self._expr = expr

    def similarity(self, other: pl.Expr | str, *, model: Model | None = None, **question: Any) -> pl.Expr:
        """How alike two columns are, row by row, or one to a text; null where a text is missing. The question
        is asked as of `Model.cpdist`."""

        def scores(columns: Any) -> pl.Series:
            one, other = columns
            # A text stands in a column of length 1.
            other = [other[0]] * len(one) if len(other) == 1 else other
            opened = model or shared()
            return pl.Series(one.name, opened.cpdist(one, other, **question, output="arrow"))

        other = pl.lit(other) if isinstance(other, str) else other
        return pl.map_batches([self._expr, other], scores, return_dtype=pl.Float32)


@pl.api.register_series_namespace("cognate")
class SeriesNamespace:
    """What `series.cognate` offers."""

    def __init__(self, series: pl.Series) -> None:
        self._series = series

    def similarity(self, other: pl.Series | str, *, model: Model | None = None, **question: Any) -> pl.Series:
        """How alike each text is to one text, or to that of another Series."""
        column = [other] * len(self._series) if isinstance(other, str) else other
        opened = model or shared()
        return pl.Series("similarity", opened.cpdist(self._series, column, **question, output="arrow"))

    def embed(self, *, model: Model | None = None, **question: Any) -> pl.Series:
        """The vectors of the texts; null for a text that has none. The question is asked as of `Model.embed`."""
        return pl.Series("vector", (model or shared()).embed(self._series, **question, output="arrow"))

    def rank(self, query: str | None, *, model: Model | None = None, **question: Any) -> pl.DataFrame:
        """The texts for a query, best first: place, text and score. The question is asked as of `Model.rank`.

        >>> pl.Series(["a cat naps", "quake hits city"]).cognate.rank("earthquake", top_k=1)["place"].to_list()
        [1]
        """
        ranking = (model or shared()).rank(query, self._series, **question)
        rows = [(found.place, found.text, found.score) for found in ranking]
        return pl.DataFrame(rows, {"place": pl.Int64, "text": pl.String, "score": pl.Float32}, orient="row")

    def dedupe(self, *, model: Model | None = None, **question: Any) -> pl.DataFrame:
        """What stands for what: for each text the place of the one that stands for it, its own if none does,
        and their score, null then. The question is asked as of `cognate_text.dedupe`.

        >>> pl.Series(["Quake hits L.A.", "a cat", "quake hits L.A.!"]).cognate.dedupe()["cluster"].to_list()
        [0, 1, 0]
        """
        found = dedupe(self._series, model=model, **question)
        own = found.duplicate_of < 0
        cluster = np.where(own, np.arange(len(own)), found.duplicate_of)
        return pl.DataFrame({"cluster": cluster, "score": pl.Series(found.scores, nan_to_null=True)})
