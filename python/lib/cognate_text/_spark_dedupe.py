"""`cognate_text.spark.dedupe`: the steps of `cognate_text.dedupe`, each where the rows are.

The steps are those of one machine, in their order: texts are numbered in the order of their ids,
those with the same tokens found, words counted, buckets of vectors learnt from a sample, the keys of
each text told, and texts that share a key compared. What passes through the driver is small beside the
texts: the counts of words (32 MiB at most), the sample (131,072 vectors at most) and the matches.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from cognate_text import _native
from cognate_text._model import Model
from cognate_text._spark_host import on_this_host

Batches = Iterator[pa.RecordBatch]
#: Threshold, floor, and how the question is asked.
Sought = tuple[tuple[float, float | None], tuple[str, str | None, str, bool, str | None]]
#: Where a worker finds the model, and its fingerprint.
Source = tuple[str | None, str]
#: What was learnt: counters, counts, cells, centres of each, centres.
Learnt = tuple[NDArray[Any], ...]

_MOST = 2**32 - 1


def _steps(source: Source, sought: Sought) -> _native.Steps:
    return _native.Steps(on_this_host(*source)._native, *sought)


@functools.lru_cache(maxsize=1)
def _prepared(source: Source, sought: Sought, learnt: Broadcast[Learnt]) -> _native.Steps:
    """What this process knows of a search: made once, not for each task."""
    steps = _steps(source, sought)
    counters, counts, *buckets = learnt.value
    steps.add_counts(counters, counts)
    steps.set_buckets(*buckets)
    return steps


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch.column(batch.schema.get_field_index(name))


def _numbers(batch: pa.RecordBatch) -> NDArray[np.uint32]:
    found: NDArray[np.uint32] = _column(batch, "number").to_numpy(zero_copy_only=False).astype(np.uint32)
    return found


def _blobs(name: str, made: Iterator[tuple[NDArray[Any], ...]]) -> Batches:
    """Columns of numbers as bytes, so that a row holds very many of them."""
    for arrays in made:
        names = [f"{name}{at}" for at in range(len(arrays))]
        values = [pa.array([array.tobytes()], pa.binary()) for array in arrays]
        yield pa.RecordBatch.from_arrays(values, names=names)


def _collected(frame: DataFrame, kinds: list[Any]) -> list[NDArray[Any]]:
    """The columns of numbers of all rows, one after the other."""
    rows = frame.collect()
    return [
        np.concatenate([np.frombuffer(row[at], dtype=kind) for row in rows] or [np.array([], dtype=kind)])
        for at, kind in enumerate(kinds)
    ]


class Search:
    """One search: its rows, and how they are compared."""

    def __init__(self, spark: SparkSession, source: Source, model: Model, sought: Sought) -> None:
        self.spark, self.source, self.sought = spark, source, sought
        # What cannot be asked is refused here, not on an executor.
        self.steps = _native.Steps(model._native, *sought)
        self.threads = model.threads
        #: What Spark keeps meanwhile.
        self.kept: list[DataFrame] = []

    def numbered(self, rows: DataFrame) -> DataFrame:
        """The rows (id, text) with their numbers in the order of ids, and a digest of their tokens."""
        source, sought = self.source, self.sought
        twice = rows.groupBy("id").count().where("id is null or count > 1").take(1)
        if twice:
            raise ValueError(f"id: expected a column of different values, found {twice[0][0]!r} {twice[0][1]} times")
        ordered = rows.orderBy("id").withColumn("at", sql.monotonically_increasing_id()).persist()
        # Numbers within a part are known; where each part begins follows from how many they are.
        part = sql.shiftright("at", 33)
        counted = {row.part: row["count"] for row in ordered.groupBy(part.alias("part")).count().collect()}
        begins, begin = {}, 0
        for number in sorted(counted):
            begins[number] = begin
            begin += counted[number]
        if begin > _MOST:
            raise ValueError(f"there are more than {_MOST} texts")

        def digests(batches: Batches) -> Batches:
            steps = _steps(source, sought)
            for batch in batches:
                at = _column(batch, "at").to_numpy(zero_copy_only=False)
                first = np.array([begins[part] for part in (at >> 33).tolist()], dtype=np.int64)
                numbers = pa.array(first + (at & (2**33 - 1)), pa.int64())
                texts = _column(batch, "text")
                told = pa.array(steps.digests(texts), pa.binary())
                columns = [_column(batch, "id"), texts, numbers, told]
                yield pa.RecordBatch.from_arrays(columns, names=["id", "text", "number", "digest"])

        kept = [field for field in ordered.schema.fields if field.name != "at"]
        added = [StructField("number", LongType()), StructField("digest", BinaryType())]
        self.kept += [ordered]
        return ordered.mapInArrow(digests, StructType([*kept, *added]))

    def learn(self, unique: DataFrame) -> Broadcast[Learnt]:
        """Counts the words of different texts, and learns buckets from the vectors of a sample."""
        source, sought, distinct = self.source, self.sought, unique.count()

        def count(batches: Batches) -> Batches:
            steps = _steps(source, sought)
            for batch in batches:
                steps.count(_column(batch, "text"))
            counters, counts = steps.counted()
            columns = [pa.array(counters.astype(np.int64)), pa.array(counts.astype(np.int64))]
            yield pa.RecordBatch.from_arrays(columns, names=["counter", "counted"])

        def pack(batches: Batches) -> Batches:
            def arrays() -> Iterator[tuple[NDArray[Any], ...]]:
                for batch in batches:
                    columns = (_column(batch, name) for name in ("counter", "counted"))
                    yield tuple(one.to_numpy(zero_copy_only=False).astype(np.uint32) for one in columns)

            return _blobs("numbers", arrays())

        def sample(batches: Batches) -> Batches:
            def arrays() -> Iterator[tuple[NDArray[Any], ...]]:
                steps = _steps(source, sought)
                for batch in batches:
                    numbers = _numbers(batch)
                    drawn = np.flatnonzero(steps.drawn(numbers, distinct))
                    rows = steps.vectors(_column(batch, "text").take(pa.array(drawn)))
                    rows = rows.reshape(len(drawn), steps.dims)
                    there = rows.any(axis=1)
                    yield numbers[drawn][there], rows[there].ravel()

            return _blobs("numbers", arrays())

        two = "numbers0 binary, numbers1 binary"
        added = unique.mapInArrow(count, "counter long, counted long").groupBy("counter")
        # A word that occurs once is shared by nobody.
        summed = added.agg(sql.sum("counted").alias("counted")).where("counted > 1")
        counters, counts = _collected(summed.mapInArrow(pack, two), [np.uint32, np.uint32])
        numbers, rows = _collected(unique.mapInArrow(sample, two), [np.uint32, np.float32])
        order = np.argsort(numbers, kind="stable")
        rows = rows.reshape(len(numbers), self.steps.dims)[order]
        buckets = self.steps.learn(rows.ravel(), distinct, self.threads)
        return self.spark.sparkContext.broadcast((counters, counts, *buckets))

    def matches(self, unique: DataFrame, learnt: Broadcast[Learnt]) -> list[NDArray[Any]]:
        """The matches among different texts: earlier numbers, later numbers, scores."""
        source, sought = self.source, self.sought

        def keys(batches: Batches) -> Batches:
            steps = _prepared(source, sought, learnt)
            for batch in batches:
                texts, own = _column(batch, "text"), steps.keys(_column(batch, "text"))
                counts = np.array([len(one) // 8 for one in own], dtype=np.int64)
                rows = pa.array(np.repeat(np.arange(len(own)), counts))
                columns = [
                    pa.array(np.frombuffer(b"".join(own), dtype="<i8")),
                    _column(batch, "number").take(rows),
                    pa.array(own, pa.binary()).take(rows),
                    texts.take(rows),
                ]
                yield pa.RecordBatch.from_arrays(columns, names=["key", "number", "keys", "text"])

        def match(batches: Batches) -> Batches:
            def arrays() -> Iterator[tuple[NDArray[Any], ...]]:
                matcher = _native.Matcher(_prepared(source, sought, learnt))
                for batch in batches:
                    key = _column(batch, "key").to_numpy(zero_copy_only=False)
                    own, texts = _column(batch, "keys").to_pylist(), _column(batch, "text")
                    yield matcher.push(key, _numbers(batch), own, texts)
                yield matcher.finish()

            return _blobs("numbers", arrays())

        keyed = unique.mapInArrow(keys, "key long, number long, keys binary, text string")
        blocks = keyed.repartition("key").sortWithinPartitions("key", "number")
        three = "numbers0 binary, numbers1 binary, numbers2 binary"
        return _collected(blocks.mapInArrow(match, three), [np.uint32, np.uint32, np.float32])


def search(rows: DataFrame, source: Source, model: Model, sought: Sought) -> DataFrame:
    """For each row (id, text) the id of the one that stands for it, and their score; null where none
    does."""
    spark = rows.sparkSession
    run = Search(spark, source, model, sought)
    numbered = run.numbered(rows)
    # The first text of the same tokens; a text without tokens is like no other.
    of_digest = numbered.where("digest is not null").groupBy("digest").agg(sql.min("number").alias("first"))
    own = numbered.join(of_digest, "digest", "left")
    own = own.select("id", "text", "number", sql.coalesce("first", "number").alias("first")).persist()
    run.kept += [own]
    unique = own.where("first = number").select("number", "text")
    learnt = run.learn(unique)
    earlier, later, scores = run.matches(unique, learnt)
    # Which text stands for which depends on the order of matched texts alone.
    matched = np.unique(np.concatenate([earlier, later]))
    first, second = (np.searchsorted(matched, side).astype(np.uint32) for side in (earlier, later))
    stands, best = _native.stand_for(len(matched), first, second, scores)
    joined = np.flatnonzero(stands != np.arange(len(matched)))
    told = zip(matched[joined].tolist(), matched[stands[joined]].tolist(), best[joined].tolist())
    duplicates = spark.createDataFrame(list(told), "first long, of long, score float")
    ids = own.select(sql.col("number").alias("of"), sql.col("id").alias("duplicate_of"))
    found = own.join(duplicates, "first", "left")
    # A copy of a text that stands for itself is its duplicate.
    itself = sql.col("of").isNull() & (sql.col("first") != sql.col("number"))
    score = sql.when(itself, sql.lit(1.0).cast("float")).otherwise(sql.col("score"))
    of = sql.when(itself, sql.col("first")).otherwise(sql.col("of"))
    found = found.select("id", of.alias("of"), score.alias("score"))
    answer = found.join(ids, "of", "left").select("id", "duplicate_of", "score").persist()
    answer.count()
    for frame in run.kept:
        frame.unpersist()
    learnt.unpersist()
    return answer
