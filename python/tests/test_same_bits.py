"""What Python is answered is, bit for bit, what the program `cognate` answers."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import TEXTS, Program

import cognate_text

METHODS = cognate_text.Model().methods()
SIMILARITIES = [m["name"] for m in METHODS if m["kind"] == "similarity" and not m["unavailable"]]
RANKERS = [m["name"] for m in METHODS if m["kind"] == "ranker" and not m["unavailable"]]
EMBEDDINGS = [m["name"] for m in METHODS if m["embeds"] and not m["unavailable"]]


def test_there_are_methods_of_all_kinds() -> None:
    assert len(SIMILARITIES) > 15 and len(RANKERS) >= 2 and len(EMBEDDINGS) > 3


def test_the_model_is_that_of_the_repository(program: Program, model: cognate_text.Model) -> None:
    asked = program.ask("similarity", "a quake", "a tremor")
    assert asked["fingerprint"] == model.fingerprint
    assert asked["method"] == model.auto


@pytest.mark.parametrize("method", ["auto", *SIMILARITIES, *RANKERS])
def test_rankings(program: Program, model: cognate_text.Model, method: str) -> None:
    query = TEXTS[1]
    asked = program.ask("rank", "--method", method, query, "-", lines=TEXTS)
    without = asked["unscored"]
    expected = [
        (found["index"], None if found["index"] in without else found["score"])
        for found in asked["results"]
    ]
    found = [(one.place, one.score) for one in model.rank(query, TEXTS, method=method)]
    assert [index for index, _ in found] == [index for index, _ in expected]
    for (_, score), (_, other) in zip(found, expected):
        assert (score is None) == (other is None)
        assert score is None or np.float32(score) == np.float32(other)


@pytest.mark.parametrize("method", ["auto", *SIMILARITIES])
def test_pairs(program: Program, model: cognate_text.Model, method: str) -> None:
    asked = program.ask("similarity", "--method", method, TEXTS[0], TEXTS[1])
    single = model.similarity(TEXTS[0], TEXTS[1], method=method)
    assert np.float32(single) == np.float32(asked["scores"][0])
    # A single pair, a column and a matrix of pairs have the same bits.
    ones = [one for one in TEXTS for _ in TEXTS]
    others = [other for _ in TEXTS for other in TEXTS]
    column = model.cpdist(ones, others, method=method)
    singles = [model.similarity(one, other, method=method) for one, other in zip(ones, others)]
    assert column.tobytes() == np.array(singles, dtype=np.float32).tobytes()
    matrix = model.cdist(TEXTS, TEXTS, method=method)
    assert column.reshape(matrix.shape).tobytes() == matrix.tobytes()


@pytest.mark.parametrize("measure", ["cosine", "euclidean"])
def test_measures(program: Program, model: cognate_text.Model, measure: cognate_text._model.Measure) -> None:
    flags = ["--method", "sif", "--measure", measure]
    asked = program.ask("similarity", *flags, TEXTS[0], TEXTS[1])
    found = model.similarity(TEXTS[0], TEXTS[1], method="sif", measure=measure)
    assert np.float32(found) == np.float32(asked["scores"][0])


@pytest.mark.parametrize("method", ["auto", *EMBEDDINGS])
def test_vectors(program: Program, model: cognate_text.Model, method: str) -> None:
    asked = program.ask("embed", "--method", method, "-", lines=TEXTS)["embeddings"]
    found = model.embed(TEXTS, method=method)
    units = model.embed(TEXTS, method=method, normalize=True)
    for row, unit, vector in zip(found, units, asked):
        expected = np.zeros(len(row)) if vector is None else np.array(vector)
        assert row.tobytes() == expected.astype(np.float32).tobytes()
        # The service divides in double precision by the root of squares that are added one after another.
        doubles = row.astype(np.float64)
        length = np.sqrt(np.cumsum(doubles * doubles)[-1]) or 1.0
        assert unit.tobytes() == (doubles / length).astype(np.float32).tobytes()


def test_explanations(program: Program, model: cognate_text.Model) -> None:
    asked = program.ask("explain", TEXTS[4], TEXTS[5])
    found = model.explain(TEXTS[4], TEXTS[5])
    assert np.float32(found.score) == np.float32(asked["score"])
    assert found.sentence == asked["sentence"]
    assert np.array_equal(np.array(found.matrix, np.float32), np.array(asked["matrix"], np.float32))
    for side, other in ((found.a, asked["a"]), (found.b, asked["b"])):
        assert [word.token for word in side.words] == [word["token"] for word in other["words"]]
        encoded = side.text.encode()
        for word, expected in zip(side.words, other["words"]):
            start, end = expected["span"]
            assert side.text[slice(*word.span)] == encoded[start:end].decode()
            assert word.share is not None and np.float32(word.share) == np.float32(expected["share"])


def test_threads_and_places_change_no_bit(model: cognate_text.Model) -> None:
    one = cognate_text.Model(threads=1)
    many = cognate_text.Model(threads=7)
    ones = [TEXTS[at % 10] for at in range(5000)]
    others = [TEXTS[at % 9] for at in range(5000)]
    assert one.cpdist(ones, others).tobytes() == many.cpdist(ones, others).tobytes()
    assert one.embed(ones).tobytes() == many.embed(ones).tobytes()
    assert one.cdist(TEXTS, ones).tobytes() == many.cdist(TEXTS, ones).tobytes()
    candidates = ones * 3
    for method in ("auto", "wmd", *RANKERS):
        assert one.rank(TEXTS[1], candidates, method=method) == many.rank(TEXTS[1], candidates, method=method)
    best = many.cdist(TEXTS, candidates, top_k=7)
    for row, query in enumerate(TEXTS):
        ranked = [found for found in one.rank(query, candidates, top_k=7) if found.score is not None]
        padding = [-1] * (7 - len(ranked))
        assert best.indexes[row].tolist() == [found.place for found in ranked] + padding
        assert best.scores[row].tolist() == [found.score for found in ranked] + [0.0] * len(padding)
