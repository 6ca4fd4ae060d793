"""What the tests share: the model, the program `cognate` to be equal to, and texts of all kinds.

The package under test is the one that is installed, not the folder beside this one. `COGNATE` names
the program.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

import cognate

ROOT = pathlib.Path(__file__).resolve().parents[2]

TEXTS = [
    "Quake hits L.A.!!",
    "Earthquake shakes Los Angeles",
    "a tremor was felt in Santiago, Chile",
    "Cat naps on sofa",
    "#NewYork2020 marathon: 50,000 runners @nyrr https://t.co/x",
    "straße über den Dächern 😀",
    "zzqxvkw",
    "!!!",
    "it's soooo good",
    "the the the",
]


class Program:
    """The program `cognate`, asked with the model of the repository."""

    def __init__(self, path: str) -> None:
        self.path = path

    def ask(self, *words: str, lines: list[str] | None = None) -> Any:
        """What it answers as JSON."""
        model = str(ROOT / "models/default.safetensors")
        command = [self.path, words[0], "--json", "--model", model, *words[1:]]
        fed = None if lines is None else "".join(line + "\n" for line in lines)
        done = subprocess.run(command, input=fed, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)


@pytest.fixture(scope="session")
def program() -> Program:
    """The program; without it there is nothing to be equal to."""
    return Program(os.environ["COGNATE"])


@pytest.fixture(scope="session")
def model() -> cognate.Model:
    """The model inside the package."""
    return cognate.Model()


Make = Callable[[list[str | None]], object]


def columns() -> dict[str, Make]:
    """Every kind of column, by name, made from texts of which some are missing."""
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    def strings(texts: list[str | None]) -> Any:
        return np.array(texts, dtype=np.dtypes.StringDType(na_object=None))

    def chunked(texts: list[str | None]) -> Any:
        return pa.chunked_array([texts[:3], [], texts[3:]], type=pa.string())

    def sliced(texts: list[str | None]) -> Any:
        return pa.array(["before", *texts, "behind"])[1:-1]

    return {
        "list": lambda texts: texts,
        "tuple": tuple,
        "generator": lambda texts: (text for text in texts),
        "numpy objects": lambda texts: np.array(texts, dtype=object),
        "numpy strings": strings,
        "pandas": pd.Series,
        "pandas objects": lambda texts: pd.Series(texts, dtype=object),
        "pandas with NaN": lambda texts: pd.Series(texts, dtype=object).fillna(float("nan")),
        "pandas string": lambda texts: pd.Series(texts, dtype="string"),
        "pandas Arrow": lambda texts: pd.Series(texts, dtype=pd.ArrowDtype(pa.string())),
        "pandas category": lambda texts: pd.Series(texts, dtype="category"),
        "polars": pl.Series,
        "polars chunked": lambda texts: pl.concat([pl.Series(texts[:4]), pl.Series(texts[4:])], rechunk=False),
        "polars category": lambda texts: pl.Series(texts, dtype=pl.Categorical),
        "arrow": lambda texts: pa.array(texts, pa.string()),
        "arrow large": lambda texts: pa.array(texts, pa.large_string()),
        "arrow view": lambda texts: pa.array(texts, pa.string_view()),
        "arrow dictionary": lambda texts: pa.array(texts).dictionary_encode(),
        "arrow chunked": chunked,
        "arrow sliced": sliced,
    }
