"""Events of a Spark stream: those of one window for each key, nothing lost and nothing twice when the driver dies."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import streaming
from conftest import families
from pyspark.sql import SparkSession

import cognate_text
from cognate_text.spark import events

FILES, PER_FILE = 16, 225
START = 1714557600


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = streaming.session()
    yield session
    session.stop()


def posts() -> list[dict[str, Any]]:
    """Texts in families, in two languages, some at the same second, some missing."""
    draw = random.Random(3)
    return [
        {
            "id": at * 10 + 2**60,
            "lang": draw.choice(["en", "en", "en", "de"]),
            "time": datetime.datetime.fromtimestamp(START + at // 3 * 40, datetime.timezone.utc).isoformat(),
            "text": None if at % 97 == 5 else text,
            "likes": None if at % 7 == 0 else 2**60 + at,
        }
        for at, text in enumerate(families(FILES * PER_FILE))
    ]


def written(folder: pathlib.Path) -> list[dict[str, Any]]:
    """The posts in files whose times of change say their order; within each they stand in any order."""
    rows = posts()
    folder.mkdir()
    for at in range(FILES):
        part = rows[at * PER_FILE : (at + 1) * PER_FILE]
        random.Random(at).shuffle(part)
        file = folder / f"{at:02}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in part))
        os.utime(file, (START + at, START + at))
    return rows


def by_key(rows: list[dict[str, Any]], key: str | None, **asked: Any) -> list[tuple[Any, ...]]:
    """What a window for each key finds: id, event, nearest, score, new, in the order of ids."""
    found = []
    for value in sorted({row[key] if key else "" for row in rows}):
        own = [row for row in rows if key is None or row[key] == value]
        ids = [row["id"] for row in own]
        told = cognate_text.EventDetector(**asked).add_many([row["text"] for row in own], [row["time"] for row in own])
        for row, event, nearest, score, new in zip(own, *told):
            near = None if nearest < 0 else ids[nearest]
            scored = None if np.isnan(score) else float(score)
            found.append((row["id"], ids[event], near, scored, bool(new)))
    return sorted(found)


def told(spark: SparkSession, out: pathlib.Path) -> list[tuple[Any, ...]]:
    return sorted((row.id, row.event, row.nearest, row.score, row.new) for row in spark.read.parquet(str(out)).collect())


def count(folder: pathlib.Path) -> int:
    """Micro-batches in a log of the checkpoint."""
    return sum(file.name.isdigit() for file in folder.iterdir()) if folder.is_dir() else 0


def start(*folders: pathlib.Path) -> subprocess.Popen[bytes]:
    """A driver with its JVM and workers, in a group of their own."""
    command = [sys.executable, streaming.__file__, *map(str, folders)]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)


def test_the_driver_is_killed_and_nothing_is_lost_or_repeated(spark: SparkSession, tmp_path: pathlib.Path) -> None:
    rows, out, checkpoint = tmp_path / "rows", tmp_path / "out", tmp_path / "checkpoint"
    given = written(rows)
    asked = {name: value for name, value in streaming.ASKED.items() if name != "key"}
    expected = by_key(given, "lang", **asked)
    assert 200 < sum(new for *_, new in expected) < 3000
    whole = start(rows, tmp_path / "whole", tmp_path / "checkpoint of the whole")
    assert whole.wait(timeout=300) == 0
    assert told(spark, tmp_path / "whole") == expected
    draw, open_batches, deadline = random.Random(os.getpid()), 0, time.monotonic() + 400
    for batches in (1, 5, 9):
        driver = start(rows, out, checkpoint)
        # In the middle of a micro-batch: it has begun and is not committed.
        while not batches <= count(checkpoint / "commits") < count(checkpoint / "offsets"):
            assert driver.poll() is None and time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(draw.random() * 0.3)
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        open_batches += count(checkpoint / "offsets") - count(checkpoint / "commits")
    assert open_batches > 0, "no micro-batch was interrupted"
    assert count(checkpoint / "commits") < FILES
    assert start(rows, out, checkpoint).wait(timeout=300) == 0
    found = spark.read.parquet(str(out))
    assert told(spark, out) == expected
    likes = {row.id: row.likes for row in found.collect()}
    assert likes == {row["id"]: row["likes"] for row in given}


def test_events_of_several_keys_become_one(spark: SparkSession, tmp_path: pathlib.Path) -> None:
    """The second stage: what each key's events begin with, followed as a stream of its own."""
    rows, first, second, later = (tmp_path / name for name in ("rows", "first", "second", "later"))
    given = written(rows)
    later.mkdir()
    for file in sorted(rows.iterdir())[FILES // 2 :]:
        file.rename(later / file.name)
    for _ in range(2):
        stream = spark.readStream.schema(streaming.SCHEMA).option("maxFilesPerTrigger", 8).json(str(rows))
        found = events(stream, "text", "id", "time", key="lang", last=100, threshold=0.74)
        streaming.run(found, str(first), str(tmp_path / "checkpoint of the first"))
        firsts = spark.readStream.schema(found.schema).parquet(str(first)).where("new")
        joint = events(firsts.select("id", "text", "time"), "text", "id", "time", last=100, threshold=0.74)
        streaming.run(joint, str(second), str(tmp_path / "checkpoint of the second"))
        for file in later.iterdir():
            file.rename(rows / file.name)
    begun = {id for id, *_, new in by_key(given, "lang", last=100, threshold=0.74) if new}
    expected = by_key([row for row in given if row["id"] in begun], None, last=100, threshold=0.74)
    assert told(spark, second) == expected
    joined = sum(not new for *_, new in expected)
    assert joined > 20, "no event of one language is one of the other"


def test_rows_come_back_as_they_were(spark: SparkSession) -> None:
    """Whatever their types, also where pandas has others; batches have events, too."""
    zone = datetime.timezone.utc
    schema = (
        "`a.b` string, id string, n bigint, s smallint, f float, d double, m decimal(38,6), b binary, day date, "
        "at timestamp, ntz timestamp_ntz, l array<struct<x: bigint, y: string>>, map map<string, bigint>, text string, yes boolean"
    )
    autumn = datetime.datetime(2023, 11, 5, 5, 30, tzinfo=zone)
    data = [
        (
            "k",
            f"t{at}",
            None if at == 1 else 2**62 + at,
            None if at == 2 else -7,
            (None, 0.1, float("inf"), 1e-45)[at],
            (float("nan"), None, 0.1, 5e-324)[at],
            decimal.Decimal("12345678901234567890123456789012.345678"),
            b"\x00\xff",
            datetime.date(1, 1, 1),
            autumn + datetime.timedelta(hours=at, microseconds=1),
            datetime.datetime(2300, 1, 1, 0, 0, 0, 999999),
            None if at == 3 else [(2**62, None), (None, "ü\n\"")],
            {"a": None, "b": 2**62},
            ["a quake in Lima", "quake in Lima", None, "a cat"][at],
            at > 1,
        )
        for at in range(4)
    ]
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        frame = spark.createDataFrame(data, schema)
        found = events(frame, "text", "id", "at", key=["a.b"], last=10)
        assert found.columns == [*frame.columns, "event", "nearest", "score", "new"]
        text = "cast(struct(*) as string)"
        before = sorted(row[0] for row in frame.selectExpr(text).collect())
        after = sorted(row[0] for row in found.select(*(f"`{name}`" for name in frame.columns)).selectExpr(text).collect())
        assert after == before
        assert [row.event for row in found.orderBy("id").collect()] == ["t0", "t0", "t2", "t3"]
    finally:
        spark.conf.unset("spark.sql.session.timeZone")


def test_what_makes_no_sense_is_refused(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "a", 1.5, None)], "id int, text string, at double, none string")
    with pytest.raises(ValueError, match="no column 'body'; there are id, text, at, none"):
        events(frame, "body", "id")
    with pytest.raises(ValueError, match="there is a column 'new' already"):
        events(frame.withColumn("new", frame["id"]), "text", "id")
    with pytest.raises(ValueError, match="time: expected a column of timestamps, whole numbers or text, got double"):
        events(frame, "text", "id", "at")
    with pytest.raises(ValueError, match="id: expected a column of whole numbers or text, got double"):
        events(frame, "text", "at")
    with pytest.raises(ValueError, match="time: `within` is a span of time"):
        events(frame, "text", "id", within="24h")
    with pytest.raises(ValueError, match="last: expected a number from 1"):
        events(frame, "text", "id", last=0)
    with pytest.raises(Exception, match="id: expected a column without nulls"):
        events(frame, "text", "none").collect()
    with pytest.raises(Exception, match="time: expected a column without nulls"):
        events(frame, "text", "id", "none").collect()
