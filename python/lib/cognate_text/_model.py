"""The model, and everything that can be asked of it."""

from __future__ import annotations

import contextlib
import functools
import html
import math
import os
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from cognate_text import _native
from cognate_text._explanation import Explanation
from cognate_text.errors import FingerprintError, ModelNotFoundError


class ArrowStream(Protocol):
    """A column of any library that speaks Arrow: pyarrow, Polars, pandas, DuckDB."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowColumn(Protocol):
    """An array of any library that speaks Arrow."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


#: A column of texts. `None`, NaN, `pandas.NA` and nulls are missing texts.
Texts: TypeAlias = Iterable[Any] | ArrowStream | ArrowColumn
Measure: TypeAlias = Literal["cosine", "euclidean"]
#: Whether opposed meaning lowers the score of two texts.
Opposites: TypeAlias = Literal["count", "without_names", "ignore"]
#: What becomes of a text that is there and cannot be scored.
Unscored: TypeAlias = Literal["zero", "missing", "error"]
#: What stands in the place of the vector of a text that has none.
Unknown: TypeAlias = Literal["null", "zero", "hash", "error"]
#: What is made of the scores with several liked texts.
Strategy: TypeAlias = Literal["best", "mean", "sum"]
#: A least score, or the model's own threshold.
Cutoff: TypeAlias = float | Literal["calibrated"]

#: What encoders take that says how they work, not what they answer.
_WITHOUT_MEANING = {
    "batch_size", "chunk_size", "device", "multiprocessing_threshold", "num_proc", "pool",
    "show_progress_bar", "show_progressbar", "use_multiprocessing",
}  # fmt: skip
#: What says what they answer, with the values that `encode` gives.
_AS_IT_IS: dict[str, tuple[object, ...]] = {
    "convert_to_numpy": (True,),
    "convert_to_tensor": (False,),
    "max_length": (None, 512),
    "output_value": ("sentence_embedding",),
    "precision": ("float32",),
    "prompt": (None,),
    "prompt_name": (None,),
    "truncate_dim": (None,),
}

_DEFAULT = pathlib.Path(__file__).with_name("default.safetensors")


class Scored(NamedTuple):
    """The scores of two columns, and what was not scored."""

    #: A score a row.
    scores: NDArray[np.float32]
    #: For each row without a score of its own the reason: `missing`, `empty`, `unknown` (no known word) or
    #: `too_long`.
    unscored: dict[int, str]


class TopK(NamedTuple):
    """The best choices of every query: a row a query, best first."""

    #: Places among the choices; -1 where a query has fewer than were asked for.
    indexes: NDArray[np.int64]
    #: Their scores.
    scores: NDArray[np.float32]


class Ranked(NamedTuple):
    """A candidate in the order of scores."""

    #: The candidate.
    text: str
    #: Its score; nothing for a candidate that has none.
    score: float | None
    #: Its place among the candidates.
    place: int


#: Rows of a table that a notebook shows.
_SHOWN = 60


class Ranking(list[Ranked]):
    """Candidates in the order of scores, and how well the query is known."""

    #: The share of the query's words that the model lists, where it does not list all of them.
    query_known: float | None = None
    #: With `threshold`, for each of them whether it is related to the query; nothing where it has no score.
    related: list[bool | None] | None = None

    def _repr_html_(self) -> str:
        return _table(("score", "text", "place"), self)


class Extracted(NamedTuple):
    """A choice, as RapidFuzz's `process.extract` gives it."""

    choice: str
    score: float
    #: The choice's place, or its key where choices have keys.
    key: Any


class Extraction(list[Extracted]):
    """The best choices."""

    def _repr_html_(self) -> str:
        return _table(("score", "choice", "key"), self)


def _table(head: tuple[str, str, str], found: list[Any]) -> str:
    """The first of the texts found, for notebooks."""
    rows = (
        f"<tr><td>{'' if score is None else f'{score:.4f}'}<td>{html.escape(text or '')}<td>{html.escape(str(key))}"
        for text, score, key in found[:_SHOWN]
    )
    more = f"<tr><td><td>and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "<table><tr>" + "".join(f"<th>{name}" for name in head) + "".join(rows) + more + "</table>"


class Model:
    """A model file, opened; without a path the one inside this package.

    Many threads may use a model at once. Large questions take `threads` threads of their own (all
    cores unless said otherwise) and let other threads of Python run. A model that is pickled is
    opened again by its path where it arrives, and refused there if it is another one.

    >>> model = Model()
    >>> model.fingerprint
    '582b2acb2c5c2e87'

    How questions are asked, everywhere the same:

    - `method` is one of `methods()`, by any of its names, or `auto` for the model's choice;
    - `measure` is what vectors are compared by, `cosine` or `euclidean`; the method's own if left out;
    - `opposites` says whether opposed meaning lowers the score of two texts: it is
      (`count`, refused for a method that does not count them), is unless they differ in a name alone
      (`without_names`), or is not (`ignore`); as the method has it if left out. Texts that say opposites are not `related`, unless they are ignored;
    - `unscored` says what becomes of a text that is empty, too long or has no known word: it scores
      0 (`zero`), is taken for a missing text (`missing`), or raises `TextError` (`error`);
    - `truncate` cuts texts that are too long instead, at 512 tokens, 8,192 characters or 32,768 bytes;
    - a **missing** text (`None`, NaN, `pandas.NA`, null) has no score: null in Arrow, `fill` in NumPy, which is
      0 unless it is given, and NaN with `unscored="missing"`.
    """

    __slots__ = ("_native", "_threads")

    def __init__(
        self, path: str | os.PathLike[str] | None = None, *, threads: int | None = None
    ) -> None:
        file = _DEFAULT if path is None else pathlib.Path(path)
        self._native = _native.Model(os.fspath(file), threads)
        self._threads = threads

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that change with every byte of the model."""
        return self._native.fingerprint

    @property
    def path(self) -> pathlib.Path:
        """The file."""
        return pathlib.Path(self._native.path)

    @property
    def threads(self) -> int:
        """Most threads that a question takes."""
        return self._native.threads

    @property
    def dims(self) -> int:
        """Dimensions of the word vectors."""
        return self._native.dims

    @property
    def words(self) -> int:
        """Words in the vocabulary."""
        return self._native.words

    @property
    def auto(self) -> str:
        """The method that `auto` stands for where scores are wanted."""
        return self._native.auto

    @property
    def auto_embedding(self) -> str:
        """The method that `auto` stands for where vectors are wanted."""
        return self._native.auto_embedding

    def methods(self) -> list[dict[str, Any]]:
        """What there is to be known of every method.

        >>> ranker = [method["name"] for method in Model().methods() if method["kind"] == "ranker"]
        >>> "bm25" in ranker
        True
        """
        return self._native.methods()

    def threshold(self, *, method: str = "auto", measure: Measure | None = None) -> float:
        """The least score from which texts count as related, as the model was calibrated.

        >>> 0.3 < Model().threshold() < 0.7
        True
        """
        return self._native.threshold((method, measure, "zero", False, None))

    def similarity(
        self,
        a: str,
        b: str,
        *,
        method: str = "auto",
        measure: Measure | None = None,
        opposites: Opposites | None = None,
        unscored: Unscored = "zero",
        truncate: bool = False,
        fill: float | None = None,
    ) -> float:
        """How alike two texts are.

        >>> model = Model()
        >>> round(model.similarity("a quake", "an earthquake", method="dynamax"), 3)
        0.692
        >>> on, off = "turn on dark mode", "turn off dark mode"
        >>> model.similarity(on, off) < model.similarity(on, off, opposites="ignore")
        True
        >>> model.similarity("a quake", "", unscored="missing"), model.similarity("a quake", "")
        (nan, 0.0)
        """
        score = self._native.similarity(a, b, (method, measure, unscored, truncate, opposites))
        return _filled(fill, unscored) if score is None else score

    @overload
    def related(
        self,
        a: str,
        b: str,
        *,
        threshold: Cutoff = ...,
        method: str = ...,
        measure: Measure | None = ...,
        opposites: Opposites | None = ...,
        unscored: Unscored = ...,
        truncate: bool = ...,
    ) -> bool: ...

    @overload
    def related(
        self,
        a: Texts,
        b: Texts,
        *,
        threshold: Cutoff = ...,
        method: str = ...,
        measure: Measure | None = ...,
        opposites: Opposites | None = ...,
        unscored: Unscored = ...,
        truncate: bool = ...,
    ) -> NDArray[np.bool_]: ...

    def related(
        self,
        a: Texts | str,
        b: Texts | str,
        *,
        threshold: Cutoff = "calibrated",
        method: str = "auto",
        measure: Measure | None = None,
        opposites: Opposites | None = None,
        unscored: Unscored = "zero",
        truncate: bool = False,
    ) -> bool | NDArray[np.bool_]:
        """Whether two texts are related, or those of two columns, row by row: their score is at or above the
        threshold, and they do not say opposites, unless `opposites="ignore"`. A missing text is related to
        none.

        >>> model = Model()
        >>> model.related("turn on the light", "turn off the light")
        False
        >>> model.related("turn on the light", "turn off the light", opposites="ignore")
        True
        >>> model.related(["turn on the light"] * 3, ["turn off the light", "switch on the light", None])
        array([False,  True, False])
        """
        asked = (method, measure, unscored, truncate, opposites)
        if isinstance(a, str) and isinstance(b, str):
            return bool(self._native.related([a], [b], asked, threshold)[0])
        return self._native.related(a, b, asked, threshold)

    @overload
    def cpdist(
        self,
        a: Texts,
        b: Texts,
        *,
        method: str = ...,
        measure: Measure | None = ...,
        opposites: Opposites | None = ...,
        unscored: Unscored = ...,
        truncate: bool = ...,
        fill: float | None = ...,
        progress: bool = ...,
        output: Literal["numpy"] = ...,
    ) -> NDArray[np.float32]: ...

    @overload
    def cpdist(
        self,
        a: Texts,
        b: Texts,
        *,
        method: str = ...,
        measure: Measure | None = ...,
        opposites: Opposites | None = ...,
        unscored: Unscored = ...,
        truncate: bool = ...,
        fill: float | None = ...,
        progress: bool = ...,
        output: Literal["arrow"],
    ) -> _native.ArrowArray: ...

    @overload
    def cpdist(
        self,
        a: Texts,
        b: Texts,
        *,
        method: str = ...,
        measure: Measure | None = ...,
        opposites: Opposites | None = ...,
        unscored: Unscored = ...,
        truncate: bool = ...,
        fill: float | None = ...,
        progress: bool = ...,
        output: Literal["full"],
    ) -> Scored: ...

    def cpdist(
        self,
        a: Texts,
        b: Texts,
        *,
        method: str = "auto",
        measure: Measure | None = None,
        opposites: Opposites | None = None,
        unscored: Unscored = "zero",
        truncate: bool = False,
        fill: float | None = None,
        progress: bool = False,
        output: Literal["numpy", "arrow", "full"] = "numpy",
    ) -> NDArray[np.float32] | _native.ArrowArray | Scored:
        """The scores of two columns, row by row.

        A row of which a text is missing has no score: `fill` in NumPy, null with `output="arrow"`,
        which gives what `pyarrow.array` and `polars.Series` take over without a copy. `output="full"` tells
        which rows were not scored, and why. `progress=True` shows a bar where tqdm is installed.

        >>> model = Model()
        >>> model.cpdist(["a quake", None], ["an earthquake", "a cat"], fill=-1).round(2)
        array([ 0.75, -1.  ], dtype=float32)
        >>> model.cpdist(["a quake", None], ["an earthquake", "a cat"], output="arrow").null_count
        1
        >>> model.cpdist(["a quake", None, "!!!"], ["an earthquake"] * 3, output="full").unscored
        {1: 'missing', 2: 'unknown'}
        """
        asked = (method, measure, unscored, truncate, opposites)
        if output == "arrow":
            return self._native.cpdist_arrow(a, b, asked)
        if output != "full":
            _expect("output", output, "numpy", "numpy, full or arrow")
        missing = _filled(fill, unscored)
        with _bar(progress) as tell:
            if output == "full":
                return Scored(*self._native.cpdist_full(a, b, asked, missing, tell))
            return self._native.cpdist(a, b, asked, missing, tell)

    @overload
    def cdist(
        self,
        queries: Texts,
        choices: Texts,
        *,
        top_k: None = ...,
        method: str = ...,
        measure: Measure | None = ...,
        opposites: Opposites | None = ...,
        unscored: Unscored = ...,
        truncate: bool = ...,
        fill: float | None = ...,
        progress: bool = ...,
    ) -> NDArray[np.float32]: ...

    @overload
    def cdist(
        self,
        queries: Texts,
        choices: Texts,
        *,
        top_k: int,
        score_cutoff: Cutoff | None = ...,
        shortlist: int | None = ...,
        method: str = ...,
        measure: Measure | None = ...,
        opposites: Opposites | None = ...,
        unscored: Unscored = ...,
        truncate: bool = ...,
        fill: float | None = ...,
        progress: bool = ...,
    ) -> TopK: ...

    def cdist(
        self,
        queries: Texts,
        choices: Texts,
        *,
        top_k: int | None = None,
        score_cutoff: Cutoff | None = None,
        shortlist: int | None = None,
        method: str = "auto",
        measure: Measure | None = None,
        opposites: Opposites | None = None,
        unscored: Unscored = "zero",
        truncate: bool = False,
        fill: float | None = None,
        progress: bool = False,
    ) -> NDArray[np.float32] | TopK:
        """The scores of every query with every choice, or the best choices of every query. With `shortlist`
        only so many choices of each query are scored: those nearest by the vectors of avg-cos.

        >>> model = Model()
        >>> choices = ["an earthquake", "football", "a cat"]
        >>> model.cdist(["a quake", "kitten"], choices).round(2)
        array([[ 0.75, -0.  ,  0.01],
               [ 0.07,  0.14,  0.78]], dtype=float32)
        >>> model.cdist(["a quake", "kitten"], choices, top_k=1).indexes
        array([[0],
               [2]])
        """
        asked = (method, measure, unscored, truncate, opposites)
        if top_k is None:
            if score_cutoff is not None:
                raise ValueError("score_cutoff: a whole matrix has no cutoff; give top_k, too")
            if shortlist is not None:
                raise ValueError("shortlist: a whole matrix has every score; give top_k, too")
            with _bar(progress) as tell:
                return self._native.cdist(queries, choices, asked, _filled(fill, unscored), tell)
        if top_k < 1:
            raise ValueError(f"top_k: expected at least 1, got {top_k}")
        if shortlist is not None and shortlist < top_k:
            raise ValueError(f"shortlist: expected at least top_k, got {shortlist}")
        missing = _filled(fill, unscored)
        with _bar(progress) as tell:
            best = self._native.cdist_best(
                queries, choices, top_k, score_cutoff, shortlist, asked, missing, tell
            )
        return TopK(*best)

    def rank(
        self,
        query: str | None,
        candidates: Texts,
        *,
        like: Iterable[str | tuple[str, float]] | None = None,
        unlike: Iterable[str] = (),
        strategy: Strategy = "best",
        unlike_weight: float = _native.UNLIKE_WEIGHT,
        diversify: float | None = None,
        top_k: int | None = None,
        min_score: Cutoff | None = None,
        threshold: Cutoff | None = None,
        method: str = "auto",
        measure: Measure | None = None,
        opposites: Opposites | None = None,
        unscored: Unscored = "zero",
        truncate: bool = False,
        min_known: float = 0.0,
    ) -> Ranking:
        """Candidates by how alike they are to the query, best first, equal scores by place.

        Candidates that cannot be scored or are missing come last and have no score; `min_score`
        leaves them out. With `threshold` the answer's `related` tells of each whether it is related to the
        query, as `Model.related` does. Rankers such as `bm25` are asked here, too.

        Instead of a query (`None` then) there may be texts that are liked, each with a weight where one
        counts more, and texts that are not: the score is the `best`, `mean` or `sum` of those with the
        liked texts, less `unlike_weight` times the best with one that is not. `diversify` chooses each
        next candidate for its score and against its likeness to those before it: 1 is the order of
        scores, and the lower it is the more candidates differ.

        A query of which the model lists a smaller share of the words than `min_known` scores nothing.

        >>> model = Model()
        >>> for found in model.rank("earthquake", ["a cat", "quake hits city", "a tremor"], top_k=2):
        ...     print(found.place, found.text)
        1 quake hits city
        2 a tremor
        >>> news = ["quake hits city", "quake hits the city", "cup final tonight", "a cat naps"]
        >>> [found.place for found in model.rank(None, news, like=["earthquake", "football"], top_k=2)]
        [0, 1]
        >>> liked = model.rank(None, news, like=["earthquake", "football"], diversify=0.5, top_k=2)
        >>> [found.place for found in liked]
        [0, 2]
        >>> model.rank("footbal", news, top_k=1, min_known=0.5)[0].score is None
        True
        """
        texts = _list(candidates, "candidates")
        for name, given in (("like", like), ("unlike", unlike)):
            if isinstance(given, str):
                raise TypeError(f"{name}: expected a list of texts, got str")
        if top_k is not None and top_k < 1:
            raise ValueError(f"top_k: expected at least 1, got {top_k}")
        asked = (method, measure, unscored, truncate, opposites)
        liked = [(one, 1.0) if isinstance(one, str) else one for one in like or ()]
        if (query is None) == (not liked):
            raise ValueError("query: expected a query or texts in `like`, one of the two")
        disliked = list(unlike)
        if disliked and not liked:
            raise ValueError("unlike: this stands beside `like` alone")
        asked_for = _asked_for(
            query, liked, disliked, strategy, unlike_weight, diversify, min_known
        )
        found, known = self._native.rank(asked_for, texts, top_k, min_score, threshold, asked)
        ranking = Ranking(Ranked(texts[index], score, index) for index, score, _ in found)
        ranking.query_known = known
        if threshold is not None:
            ranking.related = [related for _, _, related in found]
        return ranking

    def extract(
        self,
        query: str,
        choices: Texts | Mapping[Any, str | None],
        *,
        limit: int | None = 5,
        score_cutoff: Cutoff | None = None,
        method: str = "auto",
        measure: Measure | None = None,
        opposites: Opposites | None = None,
        unscored: Unscored = "zero",
        truncate: bool = False,
    ) -> Extraction:
        """The best choices with their scores and places, or their keys: RapidFuzz's
        `process.extract`, by meaning. Choices without a score are left out.

        >>> model = Model()
        >>> choices = {"x1": "a cat", "x2": "quake hits city", "x3": "a tremor was felt"}
        >>> found = model.extract("earthquake", choices, score_cutoff="calibrated")
        >>> [(choice, key) for choice, _, key in found]
        [('quake hits city', 'x2')]
        """
        items = getattr(choices, "items", None)
        if callable(items):
            keys, texts = [], []
            for key, text in items():
                keys.append(key)
                texts.append(text)
        else:
            keys, texts = [], _list(choices, "choices")
        if limit is not None and limit < 1:
            raise ValueError(f"limit: expected at least 1, got {limit}")
        asked = (method, measure, unscored, truncate, opposites)
        found, _ = self._native.rank(_asked_for(query), texts, limit, score_cutoff, None, asked)
        return Extraction(
            Extracted(texts[index], score, keys[index] if keys else index)
            for index, score, _ in found
            if score is not None
        )

    @overload
    def embed(
        self,
        texts: Texts | str,
        *,
        method: str = ...,
        unknown: Unknown = ...,
        truncate: bool = ...,
        normalize: bool = ...,
        progress: bool = ...,
        output: Literal["numpy"] = ...,
    ) -> NDArray[np.float32]: ...

    @overload
    def embed(
        self,
        texts: Texts,
        *,
        method: str = ...,
        unknown: Unknown = ...,
        truncate: bool = ...,
        normalize: bool = ...,
        output: Literal["arrow"],
    ) -> _native.ArrowArray: ...

    def embed(
        self,
        texts: Texts | str,
        *,
        method: str = "auto",
        unknown: Unknown = "null",
        truncate: bool = False,
        normalize: bool = False,
        progress: bool = False,
        output: Literal["numpy", "arrow"] = "numpy",
    ) -> NDArray[np.float32] | _native.ArrowArray:
        """The vectors of texts, a row a text; of one string its vector. `normalize` makes them as long as 1,
        so that their products are cosines.

        A missing text has no vector: a row of zeros in NumPy, null in Arrow. `unknown` says what a
        text has that is there and has none: the same (`null`), zeros (`zero`), a vector of length 1
        made from the text itself (`hash`), or an exception (`error`). `progress=True` shows a bar where tqdm is
        installed.

        >>> model = Model()
        >>> vectors = model.embed(["a quake", "an earthquake", None])
        >>> vectors.shape, vectors.dtype, bool(vectors[2].any())
        ((3, 256), dtype('float32'), False)
        >>> model.embed("a quake").shape
        (256,)
        """
        asked = (method, None, "zero", truncate, None)
        if output == "arrow":
            return self._native.embed_arrow(texts, asked, unknown, normalize)
        _expect("output", output, "numpy")
        one = isinstance(texts, str)
        with _bar(progress) as tell:
            vectors = self._native.embed([texts] if one else texts, asked, unknown, normalize, tell)
        return vectors[0] if one else vectors

    def encode(
        self, sentences: Texts | str, *, normalize_embeddings: bool = False, **others: object
    ) -> NDArray[np.float32]:
        """`embed`, called as sentence-transformers and model2vec call it; what else they take (batches,
        devices, bars) has no meaning here and is passed over, and refused where it would change the answer.

        >>> Model().encode(["a quake", "a cat"], batch_size=32, normalize_embeddings=True).shape
        (2, 256)
        >>> Model().encode("a quake", truncate_dim=64)
        Traceback (most recent call last):
        ...
        TypeError: truncate_dim: encode() gives all dimensions as float32 in NumPy, and takes nothing that changes that
        """
        for name, value in others.items():
            if name not in _WITHOUT_MEANING and value not in _AS_IT_IS.get(name, ()):
                raise TypeError(
                    f"{name}: encode() gives all dimensions as float32 in NumPy, and takes nothing that changes that"
                )
        return self.embed(sentences, normalize=normalize_embeddings)

    def embedding_dims(self, *, method: str = "auto") -> int:
        """Dimensions of a method's vectors.

        >>> Model().embedding_dims()
        256
        """
        return self._native.embedding_dims((method, None, "zero", False, None))

    def explain(
        self,
        a: str,
        b: str,
        *,
        method: str = "auto",
        measure: Measure | None = None,
        opposites: Opposites | None = None,
        truncate: bool = False,
    ) -> Explanation:
        """Why two texts scored as they did. Notebooks show it in colours.

        >>> print(Model().explain("Quake hits L.A.!!", "Earthquake shakes Los Angeles").sentence)
        polarity-blend scores 0.66; most comes from "quake" (0.19), "earthquake" (0.17), "la" (0.11). \
The closest words are "la" and "los", at a cosine of 0.72.
        """
        asked = (method, measure, "zero", truncate, opposites)
        return Explanation.of(self._native.explain(a, b, asked), a, b)

    def damaged(self) -> bool:
        """Whether somebody wrote into the file in place since it was opened, so that scores may be
        wrong. Files that are renamed into place, as `cognate` and pip do, are never damaged."""
        return self._native.damaged()

    def __repr__(self) -> str:
        name = "" if self.path == _DEFAULT else f"{str(self.path)!r}, "
        return f"<cognate_text.Model {name}{self.words} words of {self.dims} dimensions, {self.fingerprint}>"

    def __reduce__(self) -> tuple[Any, ...]:
        path = None if self.path == _DEFAULT else os.path.abspath(self.path)
        return (shared, (path, self.fingerprint, self._threads))


def open(path: str | os.PathLike[str], *, threads: int | None = None) -> Model:
    """Opens a model file, such as `cognate pack` makes.

    >>> open("no such file")
    Traceback (most recent call last):
    ...
    cognate_text.errors.ModelNotFoundError: no such file: cannot open: No such file or directory (os error 2)
    """
    return Model(path, threads=threads)


@functools.lru_cache(maxsize=8)
def shared(path: str | None = None, fingerprint: str | None = None, threads: int | None = None) -> Model:
    """The model that this process has of a file, opened once. Says so if it is not the one that was
    meant: another version of this package holds another model.
    """
    try:
        model = Model(path, threads=threads)
    except ModelNotFoundError as error:
        if fingerprint is None:
            raise
        raise ModelNotFoundError(
            f"{error}; a model that is sent to another process must lie at the same path there"
        ) from None
    if fingerprint is not None and model.fingerprint != fingerprint:
        raise FingerprintError(
            f"{model.path}: this is model {model.fingerprint}, and {fingerprint} was asked for; "
            "install the same version of cognate-text, or put the same file there, on every machine"
        )
    return model


def _asked_for(
    query: str | None,
    like: list[tuple[str, float]] | None = None,
    unlike: list[str] | None = None,
    strategy: str = "best",
    unlike_weight: float = _native.UNLIKE_WEIGHT,
    diversify: float | None = None,
    min_known: float = 0.0,
) -> dict[str, Any]:
    """What candidates are ranked for, as the compiled part takes it."""
    return {
        "query": query,
        "like": like or [],
        "unlike": unlike or [],
        "strategy": strategy,
        "unlike_weight": unlike_weight,
        "diversify": diversify,
        "min_known": min_known,
    }


def _list(texts: Any, name: str) -> list[Any]:
    """A column as a list, of which one can take the texts that were found."""
    if isinstance(texts, (str, bytes, dict)):
        raise TypeError(f"{name}: expected a column of texts, got {type(texts).__name__}")
    for name in ("to_pylist", "tolist", "to_list"):
        if hasattr(texts, name):
            return list(getattr(texts, name)())
    return list(texts)


@contextlib.contextmanager
def _bar(wanted: bool) -> Iterator[Callable[[float], object] | None]:
    """Who is told what share of the work is done: a bar of tqdm, where it is wanted and installed."""
    try:
        from tqdm.auto import tqdm
    except ModuleNotFoundError:
        wanted = False
    if not wanted:
        yield None
        return
    with tqdm(total=1.0, bar_format="{l_bar}{bar}| {elapsed}<{remaining}") as bar:
        yield lambda share: bar.update(share - bar.n)
        bar.update(1 - bar.n)


def _filled(fill: float | None, unscored: Unscored) -> float:
    """What stands where there is no score, unless it was said: a missing number where such are asked for."""
    if fill is None:
        return math.nan if unscored == "missing" else 0.0
    return fill


def _expect(name: str, got: str, expected: str, all_of_them: str = "numpy or arrow") -> None:
    if got != expected:
        raise ValueError(f"{name}: expected {all_of_them}, got {got!r}")
