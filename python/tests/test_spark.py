"""Spark with executors of their own: the same bits as the program, whatever dies meanwhile."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import ROOT, TEXTS, Program, families
from pyspark.sql import SparkSession

import cognate_text
from cognate_text._spark_host import on_this_host
from cognate_text.spark import dedupe, embed, with_similarity


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Two executors of one core each, in processes of their own."""
    session = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "100")
        .config("spark.sql.shuffle.partitions", "4")
        .getOrCreate()
    )
    yield session
    session.stop()


def rows(count: int) -> list[tuple[int, str, str | None]]:
    texts: list[str | None] = [*TEXTS, None]
    return [(at, f"{TEXTS[at % 10]} {at % 7}", texts[at // 3 % 11]) for at in range(count)]


def children() -> dict[int, tuple[int, str]]:
    """Every process: its parent and its command line."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (OSError, ValueError):
            continue
        found[int(folder.name)] = (parent, command)
    return found


def executors() -> list[int]:
    """Executors that this process started, if not by its own hand."""
    processes = children()

    def ours(process: int) -> bool:
        while process in processes and process != os.getpid():
            process = processes[process][0]
        return process == os.getpid()

    return [
        process
        for process, (_, command) in processes.items()
        if "CoarseGrainedExecutorBackend" in command and "java" in command.split()[0] and ours(process)
    ]


def test_the_bits_of_the_program(spark: SparkSession, program: Program, model: cognate_text.Model) -> None:
    data = rows(1000)
    frame = spark.createDataFrame(data, "id int, a string, b string").repartition(4)
    scored = {row.id: row.similarity for row in with_similarity(frame, "a", "b").collect()}
    for at, a, b in data:
        assert (scored[at] is None) == (b is None)
    expected = model.cpdist([a for _, a, _ in data], [b for _, _, b in data], fill=-1)
    found = np.array([-1 if scored[at] is None else scored[at] for at, _, _ in data], dtype=np.float32)
    assert found.tobytes() == expected.tobytes()
    for at, a, b in data[:60:3]:
        if b is not None:
            asked = program.ask("similarity", a, b)["scores"][0]
            assert np.float32(scored[at]) == np.float32(asked)


def test_methods_and_names(spark: SparkSession, model: cognate_text.Model) -> None:
    frame = spark.createDataFrame(rows(20), "id int, a string, b string")
    found = with_similarity(frame, "b", "a", method="wmd", column="alike", unscored="missing")
    assert found.columns == ["id", "a", "b", "alike"]
    one, *_ = found.where("id = 1").collect()
    assert one.alike == model.similarity(one.b, one.a, method="wmd")
    with pytest.raises(ValueError, match="no column 'c'; there are id, a, b"):
        with_similarity(frame, "a", "c")
    with pytest.raises(ValueError, match="there is a column 'b' already"):
        with_similarity(frame, "a", "b", column="b")
    with pytest.raises(cognate_text.MethodError, match="no such method"):
        with_similarity(frame, "a", "b", method="none")


def test_vectors(spark: SparkSession, model: cognate_text.Model) -> None:
    data = rows(50)
    frame = spark.createDataFrame(data, "id int, a string, b string")
    found = {row.id: row.embedding for row in embed(frame, "b").collect()}
    expected = model.embed([b for _, _, b in data])
    for at, _, b in data:
        if b is None or b == "!!!":
            assert found[at] is None
        else:
            assert np.array(found[at], dtype=np.float32).tobytes() == expected[at].tobytes()


def test_a_model_of_ones_own(spark: SparkSession, tmp_path: pathlib.Path) -> None:
    frame = spark.createDataFrame(rows(8), "id int, a string, b string")
    copied = tmp_path / "mine.safetensors"
    shutil.copy(ROOT / "models/default.safetensors", copied)
    mine = cognate_text.open(copied)
    assert with_similarity(frame, "a", "b", model=mine).count() == 8
    # Where there is no such path, what was sent by addFile serves.
    sent, elsewhere = tmp_path / "sent.safetensors", tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(copied, sent)
    shutil.copy(copied, elsewhere / sent.name)
    theirs = cognate_text.open(sent)
    spark.sparkContext.addFile(str(elsewhere / sent.name))
    scored = with_similarity(frame, "a", "b", model=theirs)
    sent.unlink()
    assert scored.where("id = 0").collect()[0].similarity is not None


def test_another_model_is_refused(spark: SparkSession, program: Program, tmp_path: pathlib.Path) -> None:
    """No row is scored by a model that the driver did not mean."""
    frame = spark.createDataFrame(rows(8), "id int, a string, b string")
    copied = tmp_path / "mine.safetensors"
    shutil.copy(ROOT / "models/default.safetensors", copied)
    scored = with_similarity(frame, "a", "b", model=cognate_text.open(copied))
    subprocess.run([program.path, "fit", str(copied), "--universe", "axes:8"], check=True)
    with pytest.raises(Exception, match="FingerprintError.*was asked for"):
        scored.collect()


def test_workers_of_a_host_share_the_model(spark: SparkSession, model: cognate_text.Model) -> None:
    """It is mapped in every worker, not copied."""
    frame = spark.createDataFrame(rows(400), "id int, a string, b string").repartition(2)
    fingerprint = model.fingerprint

    def looked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        opened = on_this_host(None, fingerprint)
        lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
        file = os.path.realpath(opened.path)
        told = f"{os.getpid()} {sum(line.endswith(file) for line in lines)}"
        for batch in batches:
            yield pa.RecordBatch.from_arrays([pa.array([told] * len(batch))], names=["told"])

    rows_told = frame.mapInArrow(looked, "told string").collect()
    workers = dict(row.told.split() for row in rows_told)
    assert len(workers) >= 1 and all(int(maps) >= 1 for maps in workers.values())


def check_deduped(found: list[Any], texts: list[str | None]) -> None:
    """What was found by ids that count in tens is what the package finds by places."""
    expected = cognate_text.dedupe(texts)
    assert sorted(row.id for row in found) == [at * 10 for at in range(len(texts))]
    by_id = {row.id: row for row in found}
    of = [by_id[at * 10].duplicate_of for at in range(len(texts))]
    assert [-1 if one is None else one // 10 for one in of] == expected.duplicate_of.tolist()
    scores = [by_id[at * 10].score for at in range(len(texts))]
    told = np.array([float("nan") if score is None else score for score in scores], dtype=np.float32)
    assert told.tobytes() == expected.scores.tobytes()


def test_duplicates_are_those_of_one_machine(spark: SparkSession) -> None:
    made = families(2500)
    texts: list[str | None] = [*made, None, "!!!", made[3].upper(), "", made[3] + "!", None]
    data = [(text, at * 10, at % 5) for at, text in enumerate(texts)]
    frame = spark.createDataFrame(data, "text string, id long, `other.one` int").repartition(6, "`other.one`")
    answer = dedupe(frame, "text", "id")
    assert answer.columns == ["text", "id", "other.one", "duplicate_of", "score"]
    found = answer.collect()
    assert {row.id: (row.text, row[2]) for row in found} == {id: (text, other) for text, id, other in data}
    assert sum(row.duplicate_of is not None for row in found) > 500
    check_deduped(found, texts)
    empty = dedupe(frame.where("id < 0"), "text", "id")
    assert empty.collect() == []


def test_duplicates_that_cannot_be_asked_for(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(1, "a"), (1, "b"), (2, "c")], "id int, text string")
    with pytest.raises(ValueError, match="id: expected a column of different values, found 1 2 times"):
        dedupe(frame, "text", "id")
    with pytest.raises(ValueError, match="no column 'body'; there are id, text"):
        dedupe(frame, "body", "id")
    with pytest.raises(ValueError, match="there is a column 'score' already"):
        dedupe(frame.withColumn("score", frame["id"]), "text", "id")
    with pytest.raises(ValueError, match="threshold: expected a number above 0, at most 1"):
        dedupe(frame, "text", "id", threshold=0)
    with pytest.raises(cognate_text.MethodError, match="jaccard`, not by tf-idf"):
        dedupe(frame, "text", "id", method="tf-idf")


def kill_one(begun: pathlib.Path) -> int:
    """Kills an executor once one has begun with a row."""
    deadline = time.monotonic() + 120
    while not list(begun.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.1)
    running = executors()
    assert len(running) == 2
    os.kill(running[0], signal.SIGKILL)
    return running[0]


def test_an_executor_dies_while_duplicates_are_sought(spark: SparkSession, tmp_path: pathlib.Path) -> None:
    texts: list[str | None] = [*families(1200)]
    data = [(text, at * 10) for at, text in enumerate(texts)]
    frame = spark.createDataFrame(data, "text string, id long").repartition(12)
    begun = str(tmp_path)

    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            pathlib.Path(begun, str(os.getpid())).touch()
            time.sleep(0.5)
            yield batch

    slow = frame.mapInArrow(slowly, frame.schema)
    answer: list[Any] = []
    asking = threading.Thread(target=lambda: answer.extend(dedupe(slow, "text", "id").collect()))
    asking.start()
    killed = kill_one(tmp_path)
    asking.join(timeout=400)
    assert not asking.is_alive()
    check_deduped(answer, texts)
    assert killed not in executors()


def test_an_executor_dies_meanwhile(spark: SparkSession, model: cognate_text.Model, tmp_path: pathlib.Path) -> None:
    data = rows(3000)
    frame = spark.createDataFrame(data, "id int, a string, b string").repartition(12)
    begun = str(tmp_path)

    def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            pathlib.Path(begun, str(os.getpid())).touch()
            time.sleep(0.5)
            yield batch

    slow = frame.mapInArrow(slowly, frame.schema)
    answer: list[Any] = []
    asking = threading.Thread(target=lambda: answer.extend(with_similarity(slow, "a", "b").collect()))
    asking.start()
    killed = kill_one(tmp_path)
    asking.join(timeout=240)
    assert not asking.is_alive()
    assert len(answer) == len(data)
    found = {row.id: row.similarity for row in answer}
    expected = model.cpdist([a for _, a, _ in data], [b for _, _, b in data], fill=-1)
    scores = [-1 if found[at] is None else found[at] for at, _, _ in data]
    assert np.array(scores, dtype=np.float32).tobytes() == expected.tobytes()
    assert killed not in executors()
