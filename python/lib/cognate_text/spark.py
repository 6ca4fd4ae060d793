"""cognate on Apache Spark: scores where the rows are.

Rows stay on their executor; each Python worker maps the model inside its own installation (or a file
at the same path, or one sent by `spark.sparkContext.addFile`) and refuses to score with any other
model than the driver's. All workers of a host share the mapped memory. A worker uses one thread,
because Spark starts one worker for each core.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import ArrayType, FloatType, StructField, StructType

from cognate_text import _native
from cognate_text._events import EventDetector
from cognate_text._model import Measure, Model, Opposites, Unknown, Unscored, shared
from cognate_text._spark_dedupe import search
from cognate_text._spark_events import ADDED, follow
from cognate_text._spark_host import named, on_this_host

Batches = Iterator[pa.RecordBatch]


def with_similarity(
    df: DataFrame,
    a: str,
    b: str,
    *,
    method: str = "auto",
    measure: Measure | None = None,
    opposites: Opposites | None = None,
    unscored: Unscored = "zero",
    truncate: bool = False,
    model: Model | None = None,
    column: str = "similarity",
) -> DataFrame:
    """The rows with one more column: how alike two of their columns are; null where a text is.

    The question is asked as of `Model.cpdist`.
    """
    opened = model or shared()
    # What cannot be asked is refused here, not on an executor.
    opened.cpdist([], [], method=method, measure=measure, opposites=opposites, unscored=unscored)
    one, other = _place(df, a), _place(df, b)

    def score(model: Model, batch: pa.RecordBatch) -> pa.Array:
        return pa.array(
            model.cpdist(
                batch.column(one),
                batch.column(other),
                method=method,
                measure=measure,
                opposites=opposites,
                unscored=unscored,
                truncate=truncate,
                output="arrow",
            )
        )

    return _with_column(df, StructField(column, FloatType()), score, opened)


def embed(
    df: DataFrame,
    text: str,
    *,
    method: str = "auto",
    unknown: Unknown = "null",
    truncate: bool = False,
    model: Model | None = None,
    column: str = "embedding",
) -> DataFrame:
    """The rows with one more column: the vectors of one of their columns; null where a text has none.

    The question is asked as of `Model.embed`.
    """
    opened = model or shared()
    opened.embed([], method=method, unknown=unknown)
    place = _place(df, text)

    def vectors(model: Model, batch: pa.RecordBatch) -> pa.Array:
        embedded = model.embed(
            batch.column(place), method=method, unknown=unknown, truncate=truncate, output="arrow"
        )
        # Spark knows no lists of a fixed size.
        return pa.array(embedded).cast(pa.list_(pa.float32()))

    return _with_column(df, StructField(column, ArrayType(FloatType())), vectors, opened)


def dedupe(
    df: DataFrame,
    text: str,
    id: str,
    *,
    threshold: float = _native.DUPLICATES,
    method: str = "auto",
    truncate: bool = False,
    floor: float | None = None,
    model: Model | None = None,
) -> DataFrame:
    """The rows with two more columns: `duplicate_of`, the id of the row that says the same before them
    in the order of ids, and `score`, their score with that; null for a row that stands for itself.

    `id` is a column without two equal values and without nulls. The answer is that of
    `cognate_text.dedupe` over all texts in the order of their ids, bit for bit, wherever the rows lie.
    It is computed when this is called and kept by Spark (`spark.catalog.clearCache()` lets it go); only
    the last join is left for later. Ids must be stored with the rows, not made anew at each reading.
    """
    for name in (text, id):
        _place(df, name)
    for column in ("duplicate_of", "score"):
        if column in df.columns:
            raise ValueError(f"there is a column {column!r} already; rename it first")
    opened = model or shared()
    sought = ((threshold, floor), (method, None, "zero", truncate, None))
    rows = df.select(_quoted(id).alias("id"), _quoted(text).alias("text"))
    found = search(rows, named(opened), opened, sought).withColumnRenamed("id", id)
    return df.join(found, id, "left").select(*map(_quoted, df.columns), "duplicate_of", "score")


def events(
    stream: DataFrame,
    text: str,
    id: str,
    time: str | None = None,
    *,
    key: str | Sequence[str] | None = None,
    within: str | datetime.timedelta | None = None,
    preset: str = _native.PRESET,
    last: int = _native.LAST,
    method: str = _native.METHOD,
    second: str | None = "usual",
    nearest: int = _native.NEAREST,
    votes: int = _native.VOTES,
    centre: float = _native.CENTRE,
    threshold: float | None = None,
    model: Model | None = None,
) -> DataFrame:
    """The rows of a stream with four more columns: `event`, the id of the text that a row's event began
    with, `nearest`, the id of a text of it (or of another, where that was not near enough), `score`, and
    `new`, whether the row begins its event.

    The rows of each value of `key` are a stream of their own with a window of its own, as of
    `EventDetector`, which says what the other options are; without a key all rows are one stream. Spark
    keeps the windows, so a query with a `checkpointLocation` goes on where it was. Rows of a micro-batch
    are put in the order of `time`, and of ids where times are equal; those that come in a later one are
    taken as they come. `id` is a column of whole numbers or text, `time` one of timestamps, whole numbers
    or text, both without nulls. A query has one such operator at most and the output mode `append`. Rows
    that are no stream are taken in at once, and nothing is kept.
    """
    keys = [key] if isinstance(key, str) else list(key or ())
    for name in (text, id, *([] if time is None else [time]), *keys):
        _place(stream, name)
    for column in ADDED:
        if column in stream.columns:
            raise ValueError(f"there is a column {column!r} already; rename it first")
    opened = model or shared()
    settings: dict[str, Any] = {
        "within": within,
        "preset": preset,
        "last": last,
        "method": method,
        "second": second,
        "nearest": nearest,
        "votes": votes,
        "centre": centre,
        "threshold": threshold,
    }
    # What cannot be asked is refused here, not on an executor.
    EventDetector(opened, **settings)
    if within is not None and time is None:
        raise ValueError("time: `within` is a span of time, so each text needs one")
    columns = {"text": _quoted(text), "id": _quoted(id)} | ({} if time is None else {"time": _quoted(time)})
    return follow(stream, columns, [*map(_quoted, keys)], named(opened), settings)


def _quoted(name: str) -> Column:
    """A column of this very name, dots and all."""
    return sql.col("`" + name.replace("`", "``") + "`")


def _place(df: DataFrame, column: str) -> int:
    if column not in df.columns:
        raise ValueError(f"no column {column!r}; there are {', '.join(df.columns)}")
    return df.columns.index(column)


def _with_column(
    df: DataFrame,
    field: StructField,
    make: Callable[[Model, pa.RecordBatch], pa.Array],
    model: Model,
) -> DataFrame:
    if field.name in df.columns:
        raise ValueError(f"there is a column {field.name!r} already; give `column` another name")
    path, fingerprint = named(model)
    names = [*df.columns, field.name]

    def rows(batches: Batches) -> Batches:
        model = on_this_host(path, fingerprint)
        for batch in batches:
            yield pa.RecordBatch.from_arrays([*batch.columns, make(model, batch)], names=names)

    return df.mapInArrow(rows, StructType([*df.schema.fields, field]))
