"""The examples of docs/python.md are run, and say what they say."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from conftest import ROOT

import cognate_text

PAGE = (ROOT / "docs/python.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
NEEDS = [
    "duckdb",
    "polars.map_batches",
    "dask.dataframe",
    "ray.data",
    "pyspark",
    "bertopic",
    "sklearn",
    "cognate_text.pandas",
    "semhash",
    "keybert",
]


def named(block: str) -> str:
    return next((need for need in NEEDS if need in block), block.splitlines()[0])


def test_every_recipe_is_there() -> None:
    for need in NEEDS:
        assert any(need in block for block in BLOCKS), need


@pytest.mark.parametrize("block", BLOCKS, ids=named)
def test_recipe(block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_DATA_DISABLE_PROGRESS_BARS", "1")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    space: dict[str, Any] = {}
    block = block.replace('if __name__ == "__main__":  # each process reads this file\n    ', "")
    *before, last = block.rstrip().splitlines()
    exec("\n".join(before), space)
    ended = last.split("  #")[0]
    if ended.startswith("spark."):
        exec(ended, space)
        return
    answer = eval(ended, space)
    first: dict[str, Callable[[Any], float]] = {
        "database": lambda rows: rows[0][0],
        "news.lazy": lambda frame: frame["score"][0],
        "dask": lambda frame: frame["score"].iloc[0],
        "news.map_batches": lambda rows: rows[0]["score"],
    }
    for start, score in first.items():
        if ended.startswith(start):
            assert score(answer) == cognate_text.Model().similarity("a quake", "an earthquake")
    assert answer is not None
    if "ray.data" in block:
        space["ray"].shutdown()
