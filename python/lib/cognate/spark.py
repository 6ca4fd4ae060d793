"""cognate on Apache Spark: scores where the rows are.

Rows stay on their executor; each Python worker maps the model inside its own installation (or a file
at the same path, or one sent by `spark.sparkContext.addFile`) and refuses to score with any other
model than the driver's. All workers of a host share the mapped memory. A worker uses one thread,
because Spark starts one worker for each core.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, FloatType, StructField, StructType

from cognate._model import Measure, Model, Unknown, Unscored, shared

Batches = Iterator[pa.RecordBatch]


def with_similarity(
    df: DataFrame,
    a: str,
    b: str,
    *,
    method: str = "auto",
    measure: Measure | None = None,
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
    opened.cpdist([], [], method=method, measure=measure, unscored=unscored)
    one, other = _place(df, a), _place(df, b)

    def score(model: Model, batch: pa.RecordBatch) -> pa.Array:
        return pa.array(
            model.cpdist(
                batch.column(one),
                batch.column(other),
                method=method,
                measure=measure,
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
    _, (path, fingerprint) = model.__reduce__()
    names = [*df.columns, field.name]

    def rows(batches: Batches) -> Batches:
        model = _on_this_host(path, fingerprint)
        for batch in batches:
            yield pa.RecordBatch.from_arrays([*batch.columns, make(model, batch)], names=names)

    return df.mapInArrow(rows, StructType([*df.schema.fields, field]))


def _on_this_host(path: str | None, fingerprint: str) -> Model:
    if path is not None and not os.path.exists(path):
        sent = SparkFiles.get(os.path.basename(path))
        path = sent if os.path.exists(sent) else path
    return shared(path, fingerprint, threads=1)
