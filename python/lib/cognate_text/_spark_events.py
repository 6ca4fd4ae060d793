"""`cognate_text.spark.events`: the window of each key, kept by Spark from one micro-batch to the next.

What Spark keeps of a key is the state that `cognate events --state` writes, packed. Columns that the window
does not need pass it as JSON: pandas would make other numbers of those with nulls, and other times of those in
the hour when clocks go back.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import DataType, IntegralType, StringType, StructType, TimestampType

from cognate_text._events import EventDetector, _milliseconds
from cognate_text._spark_host import on_this_host

#: What is added to each row.
ADDED = ("event", "nearest", "score", "new")

#: How rows are written as JSON so that nothing of them is lost.
_EXACT = {
    "ignoreNullFields": "false",
    "timeZone": "UTC",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def _expected(kind: DataType, name: str, kinds: tuple[type[DataType], ...], what: str) -> None:
    if not isinstance(kind, kinds):
        raise ValueError(f"{name}: expected {what}, got {kind.simpleString()}")


def _time(column: Column | None, kind: DataType | None) -> Column:
    """Milliseconds since 1970, or what they are read from."""
    if column is None or kind is None:
        return sql.lit(0).cast("long")
    _expected(kind, "time", (TimestampType, IntegralType, StringType), "a column of timestamps, whole numbers or text")
    return sql.unix_millis(column) if isinstance(kind, TimestampType) else column.cast("string")


def _decide(
    source: tuple[str | None, str], settings: dict[str, Any], rows: pd.DataFrame, saved: bytes | None = None
) -> tuple[pd.DataFrame, EventDetector]:
    """What is added to rows of a key, and the window that goes on behind them."""
    for name in ("id", "time"):
        if rows[name].isna().any():
            raise ValueError(f"{name}: expected a column without nulls")
    if rows["time"].dtype.kind != "i":
        rows["time"] = _milliseconds(rows["time"].tolist())
    # Spark hands them on in any order. Theirs is that of times; of those at one time, that of ids.
    rows = rows.sort_values(["time", "id"], kind="stable")
    detector = EventDetector(on_this_host(*source), state=saved, **settings)
    texts, times, ids = (rows[name].tolist() for name in ("text", "time", "id"))
    found = detector._native.follow_named(texts, times, [str(id) for id in ids])
    told = pd.DataFrame(found, columns=list(ADDED), dtype=object, index=rows.index)
    return rows[["row", "text"]].join(told.astype({"score": "float32", "new": "bool"})), detector


def follow(
    stream: DataFrame,
    named: dict[str, Column],
    keys: list[Column],
    source: tuple[str | None, str],
    settings: dict[str, Any],
) -> DataFrame:
    """The rows with what is added to them; `named` are the columns text, id and perhaps time."""
    kinds = {name: stream.select(column).schema[0] for name, column in named.items()}
    kind = kinds["id"].dataType
    _expected(kind, "id", (IntegralType, StringType), "a column of whole numbers or text")
    text = kinds["text"].name
    others = StructType([field for field in stream.schema.fields if field.name != text])
    whole = sql.struct(*("`" + field.name.replace("`", "``") + "`" for field in others.fields))
    time = _time(named.get("time"), kinds["time"].dataType if "time" in kinds else None)
    grouped = [key.alias(f"key{at}") for at, key in enumerate(keys)] or [sql.lit(0).alias("key0")]
    sent = stream.select(
        *grouped,
        sql.to_json(whole, _EXACT).alias("row"),
        named["id"].alias("id"),
        named["text"].alias("text"),
        time.alias("time"),
    )

    def decide(_: tuple[Any, ...], parts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        saved = bytes(state.get[0]) if state.exists else None
        told, detector = _decide(source, settings, pd.concat(list(parts), ignore_index=True), saved)
        state.update((gzip.compress(detector.save(), 1),))
        yield told

    by_key = sent.groupBy(*(f"key{at}" for at in range(len(grouped))))
    schema = "row string, text string, event string, nearest string, score float, new boolean"
    if stream.isStreaming:
        none = GroupStateTimeout.NoTimeout
        found = by_key.applyInPandasWithState(decide, schema, "window binary", "append", none)
    else:
        found = by_key.applyInPandas(lambda rows: _decide(source, settings, rows)[0], schema)
    row = sql.from_json("row", others, {**_EXACT, "mode": "FAILFAST"})
    found = found.withColumn("row", row)
    columns = [sql.col("text") if name == text else sql.col("row").getField(name) for name in stream.columns]
    return found.select(
        *(column.alias(name) for column, name in zip(columns, stream.columns)),
        sql.col("event").cast(kind),
        sql.col("nearest").cast(kind),
        "score",
        "new",
    )
