"""Near-duplicates of a column: those that the program finds in the same texts as a file."""

from __future__ import annotations

import json
import multiprocessing
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from conftest import Program, columns, families, tweets

import cognate_text

TEXTS = [
    "Strong earthquake shakes Los Angeles this morning",
    "Cat naps on a sofa",
    "STRONG earthquake shakes Los Angeles, this morning!",
    None,
    "A strong earthquake shook Los Angeles this morning",
    "!!!",
]


def as_program(
    program: Program, folder: pathlib.Path, texts: list[str | None], *words: str
) -> tuple[list[int], list[float], list[tuple[int, int, float]]]:
    """What the program says of texts: places, scores and pairs."""
    lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    (folder / "texts.ndjson").write_text(lines)
    program.run("dedupe", "texts.ndjson", "-o", "out.ndjson", "--pairs", "pairs.tsv", *words, folder=folder)
    told = [json.loads(line) for line in (folder / "out.ndjson").read_text().splitlines()]
    key = "cluster" if "cluster" in told[0] else "duplicate_of"
    own = [row[key] for row in told]
    of = [-1 if one is None or (key == "cluster" and one == at + 1) else one - 1 for at, one in enumerate(own)]
    scores = [float("nan") if row["score"] is None else row["score"] for row in told]
    pairs = [line.split("\t") for line in (folder / "pairs.tsv").read_text().splitlines()[1:]]
    return of, scores, [(int(one) - 1, int(other) - 1, float(score)) for one, other, score in pairs]


def check_same(found: cognate_text.Duplicates, expected: tuple[list[int], list[float], list[tuple[int, int, float]]]) -> None:
    of, scores, pairs = expected
    assert found.duplicate_of.tolist() == of
    assert found.scores.tobytes() == np.array(scores, dtype=np.float32).tobytes()
    assert found.pairs.first.tolist() == [one for one, _, _ in pairs]
    assert found.pairs.second.tolist() == [other for _, other, _ in pairs]
    assert found.pairs.scores.tobytes() == np.array([score for *_, score in pairs], dtype=np.float32).tobytes()


def test_a_text_names_the_one_that_stands_for_it() -> None:
    found = cognate_text.dedupe(TEXTS)
    assert found.duplicate_of.tolist() == [-1, -1, 0, -1, 0, -1]
    assert found.duplicated.tolist() == [False, False, True, False, True, False]
    assert found.kept.tolist() == [0, 1, 3, 5]
    assert found.groups() == {0: [2, 4]}
    assert found.scores[2] == 1 and np.isnan(found.scores[0])
    assert found.scores[4] == np.float32(cognate_text.Model().similarity(str(TEXTS[0]), str(TEXTS[4])))
    # The copy is no pair of its own: it is the first text once more.
    assert [(0, 4)] == list(zip(found.pairs.first.tolist(), found.pairs.second.tolist()))
    frame = pd.DataFrame({"text": TEXTS, "likes": range(6)})
    assert frame[~cognate_text.dedupe(frame["text"]).duplicated]["likes"].tolist() == [0, 1, 3, 5]
    assert found.duplicate_ratio == 2 / 6
    none = cognate_text.dedupe([])
    assert none.duplicate_of.tolist() == [] and none.duplicate_ratio == 0 and none.groups() == {}


@pytest.mark.parametrize("kind", columns())
def test_every_kind_of_column(kind: str) -> None:
    column = columns()[kind](TEXTS)
    assert cognate_text.dedupe(column).duplicate_of.tolist() == [-1, -1, 0, -1, 0, -1]  # type: ignore[arg-type]


@pytest.mark.parametrize("asked", [{}, {"threshold": 0.7, "method": "avg-cos"}, {"threshold": 0.9, "floor": 0.5}])
def test_what_the_program_finds(program: Program, tmp_path: pathlib.Path, asked: dict[str, float | str]) -> None:
    texts = [*families(1500), None, "!!!", ""]
    words = [word for name, value in asked.items() for word in (f"--{name}", str(value))]
    found = cognate_text.dedupe(texts, **asked)  # type: ignore[arg-type]
    assert found.duplicated.sum() > 100
    check_same(found, as_program(program, tmp_path, texts, *words))
    one = cognate_text.dedupe(texts, model=cognate_text.Model(threads=1), **asked)  # type: ignore[arg-type]
    assert one.duplicate_of.tolist() == found.duplicate_of.tolist()


def test_what_the_program_finds_among_tweets(program: Program, tmp_path: pathlib.Path) -> None:
    texts: list[str | None] = [row["text"] for row in tweets(8000)]
    found = cognate_text.dedupe(texts)
    assert found.duplicated.sum() > 1000
    check_same(found, as_program(program, tmp_path, texts))


def test_one_column_is_held_against_another(program: Program, tmp_path: pathlib.Path) -> None:
    texts = families(900)
    known, new = texts[:600], texts[600:]
    (tmp_path / "known.ndjson").write_text("".join(json.dumps({"text": text}) + "\n" for text in known))
    found = cognate_text.dedupe(new, against=known)
    assert found.duplicated.sum() > 30
    check_same(found, as_program(program, tmp_path, list(new), "--against", "known.ndjson"))
    assert all(of < len(known) for of in found.duplicate_of)


def test_what_is_missed_is_told() -> None:
    recall = cognate_text.dedupe(families(2000), check=40).recall
    assert recall is not None and recall.texts == 40
    assert 10 <= recall.matches and 0.9 * recall.matches <= recall.found <= recall.matches
    assert cognate_text.dedupe(families(20)).recall is None


def test_what_makes_no_sense_is_refused() -> None:
    for wrong in (0.0, 1.5, float("nan"), "calibrated"):
        with pytest.raises(ValueError, match="threshold: expected a number above 0, at most 1"):
            cognate_text.dedupe(["a"], threshold=wrong)  # type: ignore[arg-type]
    with pytest.raises(cognate_text.MethodError, match="jaccard`, not by tf-idf"):
        cognate_text.dedupe(["a"], method="tf-idf")
    with pytest.raises(cognate_text.MethodError, match="bm25 only ranks"):
        cognate_text.dedupe(["a"], method="bm25")
    with pytest.raises(TypeError, match=r"against\[1\]: expected str, got int"):
        cognate_text.dedupe(["a"], against=["a", 3])


def asked_in_a_fork(results: multiprocessing.Queue[list[int]]) -> None:
    results.put(cognate_text.dedupe(TEXTS).duplicate_of.tolist())


def test_a_forked_process_answers() -> None:
    cognate_text.dedupe(TEXTS)
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[list[int]] = context.Queue()
    child = context.Process(target=asked_in_a_fork, args=(results,))
    child.start()
    assert results.get(timeout=60) == [-1, -1, 0, -1, 0, -1]
    child.join()


def test_ctrl_c_ends_a_search() -> None:
    code = """
import cognate_text, random, sys
draw = random.Random(1)
texts = [" ".join(draw.choices(["storm", "flood", "quake", "town", "river"], k=12)) for _ in range(400_000)]
print("asking", flush=True)
try:
    cognate_text.dedupe(texts)
except KeyboardInterrupt:
    sys.exit(33)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "asking\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 33
