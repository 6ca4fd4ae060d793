"""Texts a second of `cognate_text.spark.events` on two cores beside `cognate events`, which takes one.

`python/bench/spark.sh COGNATE events` calls it. Tweets of CrisisLex, drawn again and again with a number behind
each, in files of which each is a micro-batch; keys take turns. Time is told by the clock and as that of all cores
together, so that others on the machine count little. A first query is not counted: workers start in it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import pathlib
import subprocess
import tempfile
import time
from collections.abc import Callable

from compare import tweets
from pyspark.sql import SparkSession
from spark import processor_seconds

import cognate_text
from cognate_text.spark import events

SCHEMA = "id long, key int, text string, time long"


def written(folder: pathlib.Path, texts: list[str], keys: int, batch: int) -> None:
    folder.mkdir()
    rows = [{"id": at, "key": at % keys, "text": text, "time": 1714557600 + at} for at, text in enumerate(texts)]
    for at in range(0, len(rows), batch):
        file = folder / f"{at:09}.json"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows[at : at + batch]))
        os.utime(file, (at, at))


def timed(what: str, texts: int, job: Callable[[], object]) -> None:
    began, spent = time.monotonic(), processor_seconds()
    job()
    clock, cores = time.monotonic() - began, processor_seconds() - spent
    print(f"{what}: {texts / clock:.0f} texts a second, {texts / cores:.0f} a core-second", flush=True)


def follow(spark: SparkSession, folder: pathlib.Path, out: pathlib.Path) -> None:
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))
    found = events(stream, "text", "id", "time", key="key")
    writer = found.writeStream.option("checkpointLocation", f"{out}.checkpoint").trigger(availableNow=True)
    writer.start(str(out)).awaitTermination()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--texts", type=int, default=200_000)
    given = parser.parse_args()
    texts = tweets(given.texts)[0]
    detector = cognate_text.EventDetector()
    detector.add_many(texts[:2000])
    state = detector.save()
    print(f"state of a full window: {len(state)} bytes, packed {len(gzip.compress(state, 1))}", flush=True)
    began = time.monotonic()
    cognate_text.EventDetector(state=state).save()
    print(f"opened and saved in {(time.monotonic() - began) * 1000:.0f} ms", flush=True)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        written(folder / "one", texts, 1, len(texts))
        command = [given.program, "events", str(folder / "one/000000000.json"), "--format", "ndjson", "-o", f"{name}/out"]
        timed("program", len(texts), lambda: subprocess.run(command, check=True, capture_output=True))
        written(folder / "warm", texts[:5000], 2, 5000)
        follow(spark, folder / "warm", folder / "warm out")
        for keys, batch in ((2, 1000), (2, 10_000), (2, 50_000), (16, 10_000), (128, 10_000)):
            # Few micro-batches are enough where they are small.
            part = texts[: min(len(texts), 20 * batch)]
            rows = folder / f"{keys} {batch}"
            written(rows, part, keys, batch)
            out = folder / f"out {keys} {batch}"
            what = f"Spark, {keys} keys, {batch} texts a micro-batch"
            timed(what, len(part), lambda rows=rows, out=out: follow(spark, rows, out))  # type: ignore[misc]
    spark.stop()


if __name__ == "__main__":
    main()
