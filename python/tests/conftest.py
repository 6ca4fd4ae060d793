"""What the tests share: the model, the program `cognate` to be equal to, and texts of all kinds.

The package under test is the one that is installed, not the folder beside this one. `COGNATE` names
the program.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

import cognate_text

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

    def run(self, *words: str, folder: pathlib.Path) -> None:
        """Runs a subcommand over files in a folder."""
        model = str(ROOT / "models/default.safetensors")
        command = [self.path, words[0], "--model", model, *words[1:]]
        subprocess.run(command, cwd=folder, capture_output=True, check=True)

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
def model() -> cognate_text.Model:
    """The model inside the package."""
    return cognate_text.Model()


def families(count: int) -> list[str]:
    """Texts that come in families, as those of a stream do: a word exchanged, left out or moved."""
    words = (
        "storm hits coast town evacuated river floods bridge fire forest smoke market stocks fall rise bank "
        "loan vote election senate court judge trial team wins cup final goal player injured concert album"
    ).split()
    draw = random.Random(11)
    texts: list[str] = []
    while len(texts) < count:
        text = draw.choices(words, k=8)
        for _ in range(draw.randint(1, 3)):
            texts.append(" ".join(text))
            text[draw.randrange(len(text))] = draw.choice(words)
    draw.shuffle(texts)
    return texts[:count]


def tweets(count: int) -> list[dict[str, str]]:
    """The first tweets of a collection beside the checkout, in the order of their times."""
    path = ROOT.parent / "shared/data/tweets/crisislex-validation.tsv"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the checkout")
    head, *lines = path.read_text(encoding="utf-8").splitlines()
    rows = [dict(zip(head.split("\t"), line.split("\t"))) for line in lines]
    return sorted(rows, key=lambda row: row["time_utc"])[:count]


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
