"""cognate as an extension of DuckDB: the bits of the program, in SQL. `EXTENSION` names the file."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pytest
from conftest import ROOT, TEXTS, Program

import cognate_text

MODEL = ROOT / "models/default.safetensors"
EXTENSION = os.environ.get("EXTENSION", "")
pytestmark = pytest.mark.skipif(not EXTENSION, reason="EXTENSION names no extension of DuckDB")


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database in memory with the extension, and no model yet."""
    monkeypatch.delenv("COGNATE_MODEL", raising=False)
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.execute(f"LOAD '{EXTENSION}'")
    yield connection
    connection.close()


@pytest.fixture
def opened(database: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """The same with the model of the repository."""
    database.execute(f"SELECT cognate_open('{MODEL}')")
    return database


def test_the_bits_of_the_program(opened: duckdb.DuckDBPyConnection, program: Program) -> None:
    for method in ("auto", "dynamax", "wmd"):
        for a in TEXTS[:4]:
            for b in TEXTS:
                told = program.ask("similarity", "--method", method, a, b)["scores"][0]
                found = opened.execute("SELECT cognate_similarity(?, ?, ?)", [a, b, method]).fetchall()
                assert np.float32(found[0][0]) == np.float32(told)


def test_columns_of_many_rows(opened: duckdb.DuckDBPyConnection, model: cognate_text.Model) -> None:
    """More rows than DuckDB takes at once, on all its threads, with and without texts."""
    opened.execute(
        "CREATE TABLE pairs AS SELECT i, CASE WHEN i % 11 = 3 THEN NULL ELSE (?::VARCHAR[])[i % 10 + 1] || ' ' || i % 7 "
        "END AS a, (?::VARCHAR[])[i // 3 % 10 + 1] AS b FROM range(20000) AS numbers(i)",
        [TEXTS, TEXTS],
    )
    rows = opened.execute("SELECT a, b, cognate_similarity(a, b) FROM pairs ORDER BY i").fetchall()
    expected = model.cpdist([a for a, _, _ in rows], [b for _, b, _ in rows], fill=-1)
    found = np.array([-1 if score is None else score for *_, score in rows], dtype=np.float32)
    assert (found == -1).sum() == len([a for a, _, _ in rows if a is None]) > 1000
    assert found.tobytes() == expected.tobytes()
    vectors = opened.execute("SELECT a, cognate_embed(a) FROM pairs ORDER BY i LIMIT 5000").fetchall()
    expected = model.embed([a for a, _ in vectors])
    for row, (a, vector) in enumerate(vectors):
        if a is None or not expected[row].any():
            assert vector is None
        else:
            assert np.array(vector, dtype=np.float32).tobytes() == expected[row].tobytes()


def test_nulls_and_methods_by_row(opened: duckdb.DuckDBPyConnection, model: cognate_text.Model) -> None:
    one = "SELECT cognate_similarity(NULL, 'a'), cognate_similarity('a', NULL, 'wmd'), cognate_embed(NULL)"
    assert opened.execute(one).fetchall() == [(None, None, None)]
    assert opened.execute("SELECT cognate_explain('a', NULL)").fetchall() == [(None,)]
    rows = opened.execute(
        "SELECT method, cognate_similarity('a quake', 'an earthquake', method) FROM "
        "(VALUES ('wmd'), ('avg-cos'), (NULL), ('avg-cos')) AS methods(method)"
    ).fetchall()
    for method, score in rows:
        expected = None if method is None else model.similarity("a quake", "an earthquake", method=method)
        assert score == expected
    assert opened.execute("SELECT cognate_similarity('a quake', '!!!')").fetchall() == [(0.0,)]
    explained = opened.execute("SELECT cognate_explain('a quake', 'an earthquake')").fetchall()
    assert explained == [(model.explain("a quake", "an earthquake").sentence,)]


def test_opposed_texts_are_not_related(opened: duckdb.DuckDBPyConnection, model: cognate_text.Model) -> None:
    on, others = "turn on dark mode", ["turn off dark mode", "enable dark mode", "how do I bake bread"]
    given: list[tuple[str, dict[str, Any]]] = [
        ("", {}),
        (", 0.5", {"threshold": 0.5}),
        (", 0.5, 'coverage-blend'", {"threshold": 0.5, "method": "coverage-blend"}),
    ]
    for more, asked in given:
        found = opened.execute(f"SELECT cognate_related(?, unnest(?){more})", [on, others]).fetchall()
        assert [related for (related,) in found] == [False, True, False]
        assert [related for (related,) in found] == model.related([on] * 3, others, **asked).tolist()
    pair = ["Turkey raises interest rates", "Argentina raises interest rates"]
    wanted: list[tuple[Any, bool]] = [("count", False), ("without_names", True), ("ignore", True)]
    for kinds, related in wanted:
        found = opened.execute(f"SELECT cognate_related(?, ?, 0.5, 'auto', '{kinds}')", pair).fetchall()
        assert found == [(related,)], kinds
        scored = opened.execute(f"SELECT cognate_similarity(?, ?, 'auto', '{kinds}')", pair).fetchall()
        assert np.float32(scored[0][0]) == np.float32(model.similarity(*pair, opposites=kinds)), kinds
    with pytest.raises(duckdb.Error, match="without_names"):
        opened.execute("SELECT cognate_similarity('a', 'b', 'auto', 'none')").fetchall()
    rows = "(VALUES (0.99), (0.5), (NULL), (0.5)) AS thresholds(least)"
    found = opened.execute(f"SELECT cognate_related(?, ?, least) FROM {rows}", [on, others[1]]).fetchall()
    assert found == [(False,), (True,), (None,), (True,)]
    missing = "SELECT cognate_related('a', NULL), cognate_related(NULL, 'a', 0.5)"
    assert opened.execute(missing).fetchall() == [(None, None)]
    plain = "SELECT cognate_similarity(?, ?, 'coverage-blend') >= 0.5"
    assert opened.execute(plain, [on, others[0]]).fetchall() == [(True,)]


def test_the_model_that_is_asked(
    database: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    asked = "SELECT cognate_similarity('a quake', 'an earthquake')"
    with pytest.raises(duckdb.Error, match=r"no model is open: SELECT cognate_open\('model.safetensors'\)"):
        database.execute(asked).fetchall()
    with pytest.raises(duckdb.Error, match="none.safetensors: cannot open"):
        database.execute(f"SELECT cognate_open('{tmp_path}/none.safetensors')").fetchall()
    told = database.execute(f"SELECT cognate_open('{MODEL}')").fetchall()
    assert told == [(cognate_text.Model().fingerprint,)]
    assert len(database.execute(asked).fetchall()) == 1
    with pytest.raises(duckdb.Error, match="no such method"):
        database.execute("SELECT cognate_similarity('a', 'b', 'none')").fetchall()
    with pytest.raises(duckdb.Error, match="has no vector of one"):
        database.execute("SELECT cognate_embed('a', 'wmd')").fetchall()
    # The database works on after an error.
    assert len(database.execute(asked).fetchall()) == 1
    monkeypatch.setenv("COGNATE_MODEL", str(MODEL))
    other = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    other.execute(f"LOAD '{EXTENSION}'")
    assert other.execute(asked).fetchall() == database.execute(asked).fetchall()
    other.close()


@pytest.mark.parametrize("path", sorted((ROOT / "duckdb/test/sql").glob("*.test")), ids=lambda path: path.stem)
def test_what_the_builders_of_duckdb_run(path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads the part of DuckDB's language of tests that the files use."""
    text = path.read_text(encoding="utf-8")
    monkeypatch.delenv("COGNATE_MODEL", raising=False)
    if "require-env COGNATE_MODEL" in text:
        monkeypatch.setenv("COGNATE_MODEL", str(MODEL))
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    seen = 0
    for block in text.split("\n\n"):
        lines = [line for line in block.strip("\n").splitlines() if not line.startswith("#")]
        match lines[0].split() if lines else ["nothing"]:
            case ["nothing"] | ["require-env", "COGNATE_MODEL"]:
                continue
            case ["require", "cognate"]:
                connection.execute(f"LOAD '{EXTENSION}'")
                continue
        split = lines.index("----")
        asked, expected = " ".join(lines[1:split]), lines[split + 1 :]
        match lines[0].split():
            case ["statement", "error"]:
                with pytest.raises(duckdb.Error) as refused:
                    connection.execute(asked).fetchall()
                assert expected[0] in str(refused.value)
            case ["query", types]:
                # Looked up by what is written, since 0.0 equals False.
                written = {"None": "NULL", "True": "true", "False": "false"}
                rows = connection.execute(asked).fetchall()
                found = [[written.get(str(cell), str(cell)) for cell in row] for row in rows]
                assert found == [line.split("\t") for line in expected]
                assert all(len(row) == len(types) for row in found)
            case other:
                pytest.fail(f"{path.name}: {other}")
        seen += 1
    assert seen > 3
    connection.close()
