"""Makes pairs.parquet, pairs.arrow and grouped.arrow, as pyarrow writes them: make.py FOLDER (pyarrow 22 or later)."""

import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet

WORDS = ["the quake", "new york", "city", None, "the town shakes", "!!!"]
ROWS = 50

a = [WORDS[at % 5] for at in range(ROWS)]
b = [WORDS[at * 7 % 6] for at in range(ROWS)]
table = pa.table(
    {
        "n": pa.array(range(ROWS), pa.int64()),
        "a": pa.array(a, pa.string()).dictionary_encode(),
        "b": pa.array(b, pa.large_string()),
        "tags": pa.array([[at, at + 1] for at in range(ROWS)], pa.list_(pa.int32())),
    }
)
folder = Path(sys.argv[1])
parquet.write_table(table, folder / "pairs.parquet", compression="zstd", row_group_size=20)
feather.write_feather(table, folder / "pairs.arrow", compression="lz4", chunksize=16)
# Rows with the same `a` stand together, most of them in two batches.
grouped = table.take(sorted(range(ROWS), key=lambda at: at % 5))
feather.write_feather(grouped, folder / "grouped.arrow", compression="lz4", chunksize=16)
