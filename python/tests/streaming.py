"""The driver of a Spark query over a folder of files, one a micro-batch: `python streaming.py ROWS OUT CHECKPOINT`.

`test_spark_events.py` starts it, kills it, and starts it again.
"""

from __future__ import annotations

import sys

from pyspark.sql import DataFrame, SparkSession

from cognate_text.spark import events

SCHEMA = "id long, lang string, time timestamp, text string, likes long"
ASKED = {"key": "lang", "within": "6h", "last": 100, "threshold": 0.74}


def session() -> SparkSession:
    return (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "America/Lima")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )


def run(found: DataFrame, out: str, checkpoint: str) -> None:
    """Takes in all that is there, and writes it to a folder of Parquet files."""
    writer = found.writeStream.option("checkpointLocation", checkpoint).trigger(availableNow=True)
    writer.start(out).awaitTermination()


def main() -> None:
    rows, out, checkpoint = sys.argv[1:]
    stream = session().readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(rows)
    run(events(stream, "text", "id", "time", **ASKED), out, checkpoint)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
