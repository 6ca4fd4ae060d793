"""Columns of all libraries are read alike, and what is missing is missing in all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import TEXTS, Make, columns

import cognate_text

COLUMNS = columns()
GAPPED: list[str | None] = [*TEXTS[:2], None, *TEXTS[2:], None]


@pytest.mark.parametrize("name", COLUMNS)
def test_every_kind_of_column(model: cognate_text.Model, name: str) -> None:
    make: Make = COLUMNS[name]
    other: list[str] = [TEXTS[1]] * len(GAPPED)
    expected = model.cpdist(GAPPED, other, fill=-1)
    assert expected[2] == -1 and expected[-1] == -1 and expected[0] > 0
    column: Any = make(GAPPED)
    assert model.cpdist(column, other, fill=-1).tobytes() == expected.tobytes()
    column = make(GAPPED)
    assert model.cpdist(other, column, fill=-1).tobytes() == expected.tobytes()
    column = make(GAPPED)
    assert model.embed(column).tobytes() == model.embed(GAPPED).tobytes()


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "generator"])
def test_candidates_of_every_kind(model: cognate_text.Model, name: str) -> None:
    column: Any = COLUMNS[name](GAPPED)
    found = model.rank(TEXTS[1], column)
    assert [one.place for one in found] == [one.place for one in model.rank(TEXTS[1], GAPPED)]
    assert [one.place for one in found[-3:]] == [8, 2, 11], "without a word first, then the missing"
    assert all(one.score is None for one in found[-3:])
    assert all(one.text == GAPPED[one.place] for one in found[:-3])


def test_numpy_strings_of_a_fixed_width(model: cognate_text.Model) -> None:
    fixed = np.array(TEXTS)
    assert fixed.dtype.kind == "U"
    assert model.cpdist(fixed, fixed[::-1]).tobytes() == model.cpdist(TEXTS, TEXTS[::-1]).tobytes()


def test_arrow_answers_have_nulls(model: cognate_text.Model) -> None:
    other = [TEXTS[1]] * len(GAPPED)
    found = model.cpdist(GAPPED, other, output="arrow")
    assert len(found) == 12 and found.null_count == 2
    column = pa.array(found)
    assert column.type == pa.float32()
    filled = model.cpdist(GAPPED, other, fill=-1)
    assert column.fill_null(-1).to_numpy().tobytes() == filled.tobytes()
    assert pl.Series(found).null_count() == 2
    missing = model.cpdist(GAPPED, other, output="arrow", unscored="missing")
    assert missing.null_count == 3, "the text without a word, too"
    vectors = pa.array(model.embed(GAPPED, output="arrow"))
    assert vectors.type == pa.list_(pa.field("item", pa.float32(), nullable=False), 256)
    assert vectors.null_count == 3
    assert pa.array(model.embed(GAPPED, output="arrow", unknown="zero")).null_count == 2
    for normalize in (False, True):
        vectors = pa.array(model.embed(GAPPED, output="arrow", normalize=normalize))
        numbers = vectors.fill_null(pa.scalar([0.0] * 256, vectors.type)).flatten()
        expected = model.embed(GAPPED, normalize=normalize)
        assert numbers.to_numpy(zero_copy_only=False).tobytes() == expected.tobytes()


def test_no_rows(model: cognate_text.Model) -> None:
    assert model.cpdist([], []).shape == (0,)
    assert model.embed([]).shape == (0, 256)
    assert model.cdist([], TEXTS).shape == (0, 10)
    assert model.cdist(TEXTS, []).shape == (10, 0)
    assert model.cdist(TEXTS, [], top_k=3).indexes.shape == (10, 0)
    assert model.rank("a quake", []) == []
    assert model.cpdist(pa.array([], pa.null()), pa.chunked_array([], pa.string())).shape == (0,)


def test_nothing_but_nulls(model: cognate_text.Model) -> None:
    nulls = pa.nulls(3)
    assert model.cpdist(nulls, TEXTS[:3], fill=9).tolist() == [9, 9, 9]
    assert not model.embed(nulls).any()
    for column in (pd.Series([np.nan] * 2), pl.Series([None, None]), pl.Series([None, float("nan")])):
        assert model.cpdist(column, TEXTS[:2], fill=9).tolist() == [9, 9], type(column)
        assert not cognate_text.dedupe(column).duplicated.any()
    coded = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([], pa.string()))
    assert model.cpdist(coded, TEXTS[:2], fill=9).tolist() == [9, 9]


@pytest.mark.parametrize(
    ("column", "told"),
    [
        ("one text", "a: expected a column of texts, got str"),
        (b"bytes", "a: expected a column of texts, got bytes"),
        ({"a": "x"}, "a: expected a column of texts, got dict"),
        (["x", 3], r"a\[1\]: expected str, got int"),
        (["x", ["y"]], r"a\[1\]: expected str, got list"),
        (["x", 3.5], r"a\[1\]: expected str, got float"),
        (np.array([["x"], ["y"]]), r"a\[0\]: expected str, got list"),
        (np.array([1, 2]), r"a\[0\]: expected str, got int"),
        (pd.Series([1, 2]), "a: expected a column of strings, got Int64"),
        (pa.array([1, 2]), "a: expected a column of strings, got Int64"),
        (pa.table({"a": ["x"]}), "a: expected a column of strings, got Struct"),
        (pa.array([b"x"]), "a: expected a column of strings, got Binary"),
        (7, "not iterable"),
    ],
)
def test_what_is_no_column(model: cognate_text.Model, column: Any, told: str) -> None:
    with pytest.raises(TypeError, match=told):
        model.cpdist(column, ["x", "y"])


def test_columns_of_unequal_length(model: cognate_text.Model) -> None:
    with pytest.raises(ValueError, match="a has 1 texts and b has 2"):
        model.cpdist(["x"], ["x", "y"])


def test_a_lone_surrogate_is_read_as_a_replacement_character(model: cognate_text.Model) -> None:
    cut, replaced = "quake \ud83d", "quake \ufffd"
    assert model.cpdist([cut], ["a tremor"]) == model.cpdist([replaced], ["a tremor"])
    assert model.similarity(cut, "a tremor") == model.similarity(replaced, "a tremor")
    assert model.rank("a tremor", [cut])[0].score == model.similarity(replaced, "a tremor")
    assert model.rank(cut, ["a tremor"])[0].score == model.similarity(replaced, "a tremor")


def test_a_list_that_changes_meanwhile(model: cognate_text.Model) -> None:
    """The texts are kept alive while the interpreter is let go."""
    import threading

    texts = [f"a quake of magnitude {number}" for number in range(60_000)]
    expected = model.cpdist(list(texts), list(texts))
    done = threading.Event()

    def spoil() -> None:
        while not done.is_set():
            for place in range(len(texts)):
                texts[place] = f"another text {place}"

    spoiler = threading.Thread(target=spoil)
    before = list(texts)
    spoiler.start()
    found = model.cpdist(before, before)
    changing = model.cpdist(texts, texts)
    done.set()
    spoiler.join()
    assert found.tobytes() == expected.tobytes()
    assert np.isfinite(changing).all()
