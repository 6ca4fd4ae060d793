"""Pairs a second on Spark by one executor and by two, and Spark's share of the time.

`python/bench/spark.sh COGNATE` calls it. Executors are processes of their own with one core each. Every
job reads the same Parquet file and throws its rows away; the one that scores nothing hands its batches
through Python untouched. Time is told by the clock and as that of all cores together, so that others on
the machine count little. The first round of each is not counted: workers start in it.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet
from compare import tweets
from pyspark.sql import DataFrame, SparkSession

from cognate_text.spark import with_similarity

TICK = os.sysconf("SC_CLK_TCK")


def processor_seconds() -> float:
    """Of all processes below this one, those that ended among them."""
    parents, spent = {}, {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(folder.name)
        parents[process], spent[process] = int(fields[1]), sum(map(int, fields[11:15]))

    def ours(process: int) -> bool:
        while process in parents and process != os.getpid():
            process = parents[process]
        return process == os.getpid()

    return sum(ticks for process, ticks in spent.items() if ours(process)) / TICK


def untouched(frame: DataFrame) -> DataFrame:
    def rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from batches

    return frame.mapInArrow(rows, frame.schema)


def timed(job: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Seconds by the clock and of all cores, the medians of some rounds after one."""
    clock, cores = [], []
    for _ in range(rounds + 1):
        began, spent = time.monotonic(), processor_seconds()
        job()
        clock.append(time.monotonic() - began)
        cores.append(processor_seconds() - spent)
    return statistics.median(clock[1:]), statistics.median(cores[1:])


def on_spark(executors: int, given: argparse.Namespace, file: str) -> None:
    spark = (
        SparkSession.builder.master(f"local-cluster[{executors},1,2048]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.files.maxPartitionBytes", "16m")
        .getOrCreate()
    )
    frame = spark.read.parquet(file)
    jobs = {"nothing scored": lambda: untouched(frame)}
    for method in given.methods.split(","):
        jobs[method] = lambda method=method: with_similarity(frame, "a", "b", method=method)
    for name, job in jobs.items():
        clock, cores = timed(lambda: job().write.format("noop").mode("overwrite").save(), given.rounds)
        print(f"Spark, {executors} executors, {name:<16} {clock:7.1f} s, {cores:7.1f} core-seconds, {given.pairs / clock:9.0f} pairs a second", flush=True)
    spark.stop()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--methods", default="avg-cos,auto")
    given = parser.parse_args()
    a, b = tweets(given.pairs)
    with tempfile.TemporaryDirectory() as folder:
        rows, out = f"{folder}/pairs.tsv", f"{folder}/out.tsv"
        pathlib.Path(rows).write_text("a\tb\n" + "".join(f"{one}\t{other}\n" for one, other in zip(a, b)))
        for threads in (1, 2):
            for method in given.methods.split(","):
                asked = [given.program, "similarity", "--input", rows, "-o", out, "--method", method, "--threads", str(threads)]
                clock, cores = timed(lambda: subprocess.run(asked, check=True, capture_output=True), given.rounds)
                print(f"program, {threads} threads, {method:<18} {clock:7.1f} s, {cores:7.1f} core-seconds, {given.pairs / clock:9.0f} pairs a second", flush=True)
        file = f"{folder}/pairs.parquet"
        pa.parquet.write_table(pa.table({"a": a, "b": b}), file, row_group_size=50_000)
        for executors in (1, 2):
            on_spark(executors, given, file)


if __name__ == "__main__":
    main()
