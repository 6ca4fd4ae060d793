"""The Python cells of docs/migrate.md are run: those of the other library where it is installed and needs no download."""

from __future__ import annotations

import importlib
import re
from typing import Any

import pytest
from conftest import ROOT

import cognate_text

PAGE = (ROOT / "docs/migrate.md").read_text()
SECTIONS = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
ROWS = [
    (name, *cells)
    for name in ("sentence-transformers", "model2vec", "RapidFuzz")
    for cells in re.findall(r"^\| `(.+)` \| `(.+)` \|$", SECTIONS[name], re.MULTILINE)
]
GIVEN = {
    "a": ["Quake hits L.A.", "a cat naps"],
    "b": ["Earthquake shakes Los Angeles", "football results"],
    "texts": ["Quake hits L.A.", "A quake hits L.A.", "a cat naps"],
    "queries": ["earthquake", "cat"],
    "choices": ["a cat naps on the sofa", "quake hits city", "football results"],
}


def test_every_row_is_found() -> None:
    assert len(ROWS) == 15


@pytest.mark.parametrize(("library", "wrote", "now"), ROWS, ids=[row[2] for row in ROWS])
def test_row(library: str, wrote: str, now: str, model: cognate_text.Model) -> None:
    space: dict[str, Any] = {**GIVEN, "cognate_text": cognate_text, "model": model}
    answer = eval(now, space)
    assert answer is not None
    if library == "RapidFuzz":
        for module in ("fuzz", "process"):
            space[module] = importlib.import_module(f"rapidfuzz.{module}")
        before = eval(wrote, space)
        assert isinstance(before, (int, float)) == isinstance(answer, (int, float))
        if not isinstance(before, (int, float)):
            assert len(before) == len(answer)
