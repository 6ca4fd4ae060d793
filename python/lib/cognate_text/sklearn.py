"""cognate in a pipeline of scikit-learn.

>>> from sklearn.linear_model import LogisticRegression
>>> from sklearn.pipeline import make_pipeline
>>> from cognate_text.sklearn import CognateVectorizer
>>> topic = make_pipeline(CognateVectorizer(), LogisticRegression(C=10))
>>> topic = topic.fit(["a quake hits", "tremor felt", "goal in extra time", "cup final"], [0, 0, 1, 1])
>>> [int(label) for label in topic.predict(["earthquake in Chile", "football match"])]
[0, 1]
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from cognate_text._model import Model, Texts, Unknown, shared


class CognateVectorizer(TransformerMixin, BaseEstimator):
    """Texts become their vectors; nothing is learnt from them.

    Parameters: `model`, a `Model`, the path of one, or nothing for the one inside this package; the
    others as in `Model.embed`.
    """

    def __init__(
        self,
        model: Model | str | os.PathLike[str] | None = None,
        *,
        method: str = "auto",
        unknown: Unknown = "null",
        truncate: bool = False,
    ) -> None:
        self.model = model
        self.method = method
        self.unknown = unknown
        self.truncate = truncate

    def _model(self) -> Model:
        if isinstance(self.model, Model):
            return self.model
        return shared(None if self.model is None else os.fspath(self.model))

    def fit(self, X: Texts, y: Any = None) -> CognateVectorizer:
        """Learns nothing; says whether the settings can be used."""
        self.n_features_out_ = self._model().embedding_dims(method=self.method)
        return self

    def transform(self, X: Texts) -> NDArray[np.float32]:
        """The vectors of texts, a row a text."""
        if isinstance(X, str):
            raise ValueError("Iterable over raw text documents expected, string object received.")
        return self._model().embed(
            X, method=self.method, unknown=self.unknown, truncate=self.truncate
        )

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """`cognate0`, `cognate1` and so on."""
        dims = self._model().embedding_dims(method=self.method)
        return np.asarray([f"cognate{number}" for number in range(dims)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.input_tags.allow_nan = True
        return tags
