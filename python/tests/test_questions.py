"""How questions are asked, and what is refused by which exception."""

from __future__ import annotations

import copy
import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import ROOT, TEXTS, Program

import cognate_text


def test_exceptions_by_kind(model: cognate_text.Model, tmp_path: pathlib.Path) -> None:
    with pytest.raises(cognate_text.MethodError, match="the nearest names are dynamax-jaccard"):
        model.similarity("a", "b", method="dynamax-jacard")
    with pytest.raises(cognate_text.MethodError, match="bm25 only ranks"):
        model.cpdist([], [], method="bm25")
    with pytest.raises(cognate_text.MethodError, match="has no vector of one"):
        model.embed(["a"], method="wmd")
    with pytest.raises(cognate_text.MethodError, match="cannot use euclidean"):
        model.similarity("a", "b", method="wmd", measure="euclidean")
    with pytest.raises(cognate_text.NotCalibratedError, match="no threshold for wmd by cosine"):
        model.extract("a", ["b"], method="wmd", score_cutoff="calibrated")
    with pytest.raises(cognate_text.ModelNotFoundError, match="No such file") as caught:
        cognate_text.open(tmp_path / "none")
    assert isinstance(caught.value, FileNotFoundError)
    broken = tmp_path / "broken.safetensors"
    broken.write_bytes(bytes(1000))
    with pytest.raises(cognate_text.ModelError, match="not a cognate model"):
        cognate_text.open(broken)
    for kind in ("MethodError", "TextError", "NotCalibratedError"):
        assert issubclass(getattr(cognate_text, kind), ValueError)
        assert issubclass(getattr(cognate_text, kind), cognate_text.CognateError)


def test_opposites_count_unless_they_are_ignored(model: cognate_text.Model) -> None:
    pair = ("turn on dark mode", "turn off dark mode")
    plain = model.similarity(*pair, method="coverage-blend")
    assert model.similarity(*pair) == model.similarity(*pair, opposites="count") < plain
    assert model.similarity(*pair, opposites="ignore") == plain
    assert model.cpdist(*[[text] for text in pair], opposites="ignore").tolist() == [plain]
    assert model.cdist([pair[0]], [pair[1]], opposites="ignore").tolist() == [[plain]]
    assert model.rank(pair[0], [pair[1]], opposites="ignore")[0].score == plain
    assert model.extract(pair[0], [pair[1]], opposites="ignore")[0].score == plain
    assert model.explain(*pair, opposites="ignore").method == "coverage-blend"
    with pytest.raises(cognate_text.MethodError, match="avg-cos does not count opposites"):
        model.similarity(*pair, method="avg-cos", opposites="count")


def test_opposed_texts_are_not_related_unless_opposites_are_ignored(model: cognate_text.Model) -> None:
    on, others = "turn on dark mode", ["turn off dark mode", "enable dark mode", "how do I bake bread"]
    columns = [on] * 5, [*others, None, "!!!"]
    for method, threshold in [("auto", "calibrated"), ("coverage-blend", 0.5), ("avg-cos", 0.5)]:
        for rule, expected in [(None, [False, True, False]), ("ignore", [True, True, False])]:
            asked: dict[str, Any] = {"threshold": threshold, "method": method, "opposites": rule}
            assert [model.related(on, other, **asked) for other in others] == expected
            assert model.related(*columns, **asked).tolist() == [*expected, False, False]
            ranking = model.rank(on, columns[1], **asked)
            told = dict(zip((found.place for found in ranking), ranking.related or []))
            assert [told[place] for place in range(5)] == [*expected, None, None]
    assert model.rank(on, others).related is None
    with pytest.raises(ValueError, match="threshold: expected a number"):
        model.related(on, on, threshold=float("nan"))


def test_texts_that_cannot_be_scored(model: cognate_text.Model) -> None:
    a, b = ["a quake", "!!!", " ", None], ["a tremor"] * 4
    assert model.cpdist(a, b, fill=-1).tolist()[1:] == [0, 0, -1]
    assert model.cpdist(a, b, fill=-1, unscored="missing").tolist()[1:] == [-1, -1, -1]
    with pytest.raises(cognate_text.TextError, match=r"^a\[1\] has no known word$") as caught:
        model.cpdist(a, b, unscored="error")
    assert (caught.value.argument, caught.value.index) == ("a", 1)
    with pytest.raises(cognate_text.TextError, match=r"^b\[2\] is empty$"):
        model.cpdist([None, *b], [None, "x", *a[2:], None], unscored="error")
    with pytest.raises(cognate_text.TextError, match="^b is empty$"):
        model.similarity("x", "", unscored="error")
    with pytest.raises(cognate_text.TextError, match=r"^texts\[1\] has no known word$"):
        model.embed(["x", "!!!"], unknown="error")
    with pytest.raises(cognate_text.TextError, match=r"^queries\[2\] is empty$"):
        model.cdist(["x", None, ""], TEXTS[:2], unscored="error")
    with pytest.raises(cognate_text.TextError, match=r"^queries\[1\] has no known word$"):
        model.cdist(["x", "!!!"], TEXTS[:2], unscored="error", top_k=2)
    with pytest.raises(cognate_text.TextError, match=r"^choices\[2\] is empty$"):
        model.cdist(["x"], ["y", None, ""], unscored="error")
    with pytest.raises(cognate_text.TextError, match="^query is empty$"):
        model.rank("", TEXTS)
    with pytest.raises(cognate_text.TextError, match="^query is empty$"):
        model.rank("", [])
    long = "word " * 600
    with pytest.raises(cognate_text.TextError, match="a has 600 tokens; the limit is 512"):
        model.similarity(long, "x", unscored="error")
    assert model.similarity(long, "word", truncate=True) > 0.5


def test_matrices_score_what_rankings_score_and_leave_out_what_cannot_be_scored(
    model: cognate_text.Model,
) -> None:
    long = "word " * 600
    queries = [*TEXTS, "", None, "!!!", long]
    choices = [None, *TEXTS * 40, "", long]
    for method in ("auto", "avg-cos", "dynamax", "wmd", "bm25", "jaccard"):
        whole = model.cdist(queries, choices, method=method, unscored="missing", fill=-9)
        zeros = model.cdist(queries, choices, method=method, fill=-9)
        best = model.cdist(queries, choices, method=method, top_k=7, fill=-9)
        assert (whole[-4:] == -9).all() and (best.indexes[-4:] == -1).all()
        assert (zeros[11] == -9).all() and (zeros[[10, 12, 13], 1:] == 0).all()
        for place, query in enumerate(TEXTS):
            ranked = model.rank(query, choices, method=method)
            scores = np.full(len(choices), -9, np.float32)
            for found in ranked:
                if found.score is not None:
                    scores[found.place] = found.score
            assert whole[place].tobytes() == scores.tobytes(), method
            places = [found.place for found in ranked if found.score is not None][:7]
            assert best.indexes[place].tolist() == places + [-1] * (7 - len(places)), method
        # As many are scored as there are, and of fewer those that are scored have the same scores.
        listed = model.cdist(queries, choices, method=method, top_k=7, shortlist=1000, fill=-9)
        assert listed.indexes.tolist() == best.indexes.tolist()
        few = model.cdist(queries, choices, method=method, top_k=7, shortlist=60, fill=-9)
        assert (few.indexes[-4:] == -1).all() and (few.indexes[:, 0] == best.indexes[:, 0]).all()
        for row, (indexes, scores) in enumerate(zip(few.indexes, few.scores, strict=True)):
            known = indexes >= 0
            if method != "bm25":  # Its scores depend on all texts that are ranked.
                assert scores[known].tobytes() == whole[row, indexes[known]].tobytes(), method
    with pytest.raises(ValueError, match="^shortlist: expected at least top_k, got 3$"):
        model.cdist(TEXTS, TEXTS, top_k=4, shortlist=3)
    with pytest.raises(ValueError, match="^shortlist: a whole matrix has every score"):
        model.cdist(TEXTS, TEXTS, shortlist=3)  # type: ignore[call-overload]
    assert np.isnan(model.cdist([""], TEXTS, unscored="missing")).all()


def test_rows_that_were_not_scored_are_told(model: cognate_text.Model) -> None:
    a, b = ["a quake", "!!!", " ", None, "word " * 600], ["a tremor"] * 5
    found = model.cpdist(a, b, output="full")
    assert found.unscored == {1: "unknown", 2: "empty", 3: "missing", 4: "too_long"}
    assert found.scores.tolist()[1:] == [0, 0, 0, 0] and found.scores[0] > 0.5
    missing = model.cpdist(a, b, output="full", unscored="missing")
    assert missing.unscored == found.unscored and np.isnan(missing.scores[1:]).all()
    assert np.isnan(model.similarity("???", "a quake", unscored="missing"))
    many = ["a quake", ""] * 3000
    assert list(model.cpdist(many, many, output="full").unscored) == list(range(1, 6000, 2))


def test_a_bar_tells_how_far_a_question_is(
    model: cognate_text.Model, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [f"text {number} of many about a quake" for number in range(30_000)]
    model.cpdist(texts, texts[::-1], method="wmd", progress=True)
    assert "100%" in capsys.readouterr().err
    model.cdist(texts[:10], texts[:10], progress=True)
    model.cdist(texts[:10], texts[:10])
    assert capsys.readouterr().err.count("100%") == 1


def test_the_first_of_many_errors_is_told(model: cognate_text.Model) -> None:
    texts = [f"text {number}" for number in range(20_000)]
    for place in (19_999, 9_000, 4_321):
        texts[place] = ""
        with pytest.raises(cognate_text.TextError) as caught:
            model.cpdist(texts, texts, unscored="error")
        assert caught.value.index == place


def test_vectors_as_other_encoders_give_them(model: cognate_text.Model) -> None:
    rows = model.embed(TEXTS)
    assert model.embed(TEXTS[3]).tobytes() == rows[3].tobytes()
    assert model.encode(TEXTS, batch_size=2, show_progress_bar=False).tobytes() == rows.tobytes()
    assert np.allclose(np.linalg.norm(model.encode(TEXTS[:2], normalize_embeddings=True), axis=1), 1)
    assert not model.embed(["", "a"], normalize=True)[0].any(), "no number where there is no length"


def test_vectors_of_texts_without_a_word(model: cognate_text.Model) -> None:
    vectors = model.embed(["!!!", "?!", None, "a quake"], unknown="hash")
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.allclose(lengths[:2], 1) and lengths[2] == 0
    assert not np.array_equal(vectors[0], vectors[1])
    assert not model.embed(["!!!"], unknown="zero").any()


@pytest.mark.parametrize(
    ("name", "value"),
    [("unscored", "none"), ("measure", "manhattan"), ("opposites", "yes"), ("output", "list")],
)
def test_settings_that_do_not_exist(model: cognate_text.Model, name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{name}: expected .*'?\"?{value}"):
        model.cpdist(["x"], ["y"], **{name: value})  # type: ignore[call-overload]


def test_numbers_out_of_range(model: cognate_text.Model) -> None:
    with pytest.raises(ValueError, match="top_k: expected at least 1"):
        model.rank("x", TEXTS, top_k=0)
    with pytest.raises(ValueError, match="limit: expected at least 1"):
        model.extract("x", TEXTS, limit=0)
    for threads in (0, -1):
        with pytest.raises(ValueError, match=f"threads: expected at least 1, got {threads}"):
            cognate_text.Model(threads=threads)
    with pytest.raises(ValueError, match="score_cutoff: expected a number"):
        model.extract("x", TEXTS, score_cutoff=float("nan"))
    with pytest.raises(ValueError, match="score_cutoff: expected a number or"):
        model.extract("x", TEXTS, score_cutoff="best")  # type: ignore[arg-type]


def test_cutoffs(model: cognate_text.Model) -> None:
    scores = {one.place: one.score for one in model.rank(TEXTS[1], TEXTS)}
    exact = scores[2]
    assert exact is not None
    found = model.extract(TEXTS[1], TEXTS, score_cutoff=exact, limit=None)
    assert min(one.score for one in found) == exact
    above = np.nextafter(np.float32(exact), np.float32(2))
    assert len(model.extract(TEXTS[1], TEXTS, score_cutoff=float(above), limit=None)) == len(found) - 1
    least = model.threshold()
    for one in model.extract(TEXTS[1], TEXTS, score_cutoff="calibrated", limit=None):
        assert one.score >= least
    best = model.cdist(TEXTS, TEXTS, top_k=10, score_cutoff="calibrated")
    assert (best.scores[best.indexes >= 0] >= least).all() and (best.indexes == -1).any()


def test_choices_with_keys(model: cognate_text.Model) -> None:
    import pandas as pd

    series = pd.Series(TEXTS, index=[f"row {number}" for number in range(10)])
    by_key = model.extract(TEXTS[0], series, limit=3)
    by_place = model.extract(TEXTS[0], TEXTS, limit=3)
    assert [one.key for one in by_key] == [f"row {one.key}" for one in by_place]
    assert model.extract(TEXTS[0], dict(enumerate(TEXTS)), limit=3) == by_place
    assert model.extract("x", {}) == []


def test_models_travel_by_name(model: cognate_text.Model, tmp_path: pathlib.Path) -> None:
    again = pickle.loads(pickle.dumps(model))
    assert again.fingerprint == model.fingerprint
    assert pickle.loads(pickle.dumps(model)) is again, "a process opens a model once"
    copied = tmp_path / "mine.safetensors"
    copied.write_bytes((ROOT / "models/default.safetensors").read_bytes())
    mine = cognate_text.open(copied)
    assert copy.copy(mine).path == copied
    sent = pickle.dumps(mine)
    copied.rename(tmp_path / "elsewhere.safetensors")
    cognate_text._model.shared.cache_clear()
    with pytest.raises(cognate_text.ModelNotFoundError, match="at the same path there"):
        pickle.loads(sent)
    with pytest.raises(cognate_text.FingerprintError, match="this is model 582b2acb2c5c2e87, and 0000"):
        cognate_text._model.shared(None, "0000000000000000")
    for error in (cognate_text.TextError("a is empty", "a", 3), cognate_text.ModelNotFoundError("gone")):
        assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_shown(model: cognate_text.Model) -> None:
    assert repr(model) == "<cognate_text.Model 32000 words of 256 dimensions, 582b2acb2c5c2e87>"
    page = model.explain("<b>Quake</b> & co", "a tremor")._repr_html_()
    assert "&lt;" in page and "<b>Quake" not in page and "<script" not in page
    assert "rgba(" in page and "<table>" in page and "quake" in page
    assert "<table>" not in model.explain("!!!", "a tremor")._repr_html_()


def test_a_file_written_in_place_is_noticed(tmp_path: pathlib.Path) -> None:
    copied = tmp_path / "mine.safetensors"
    copied.write_bytes((ROOT / "models/default.safetensors").read_bytes())
    mapped = cognate_text._native.Model(str(copied), None)
    assert not mapped.damaged()
    with copied.open("r+b") as file:
        file.seek(5_000_000)
        file.write(b"spoilt")
    assert mapped.damaged()


def test_liked_texts_and_results_that_differ(program: Program, model: cognate_text.Model) -> None:
    news = [text for text in TEXTS if text.strip("!")]
    asked = ["--like", TEXTS[1], "--like", "cat on a sofa", "--unlike", "marathon runners", "--diversify", "0.5"]
    told = program.ask("rank", *asked, "--top-k", "3", *news)["results"]
    liked = [TEXTS[1], "cat on a sofa"]
    found = model.rank(None, news, like=liked, unlike=["marathon runners"], diversify=0.5, top_k=3)
    assert [one.place for one in found] == [one["index"] for one in told]
    scores = [np.float32(one["score"]) for one in told]
    assert [np.float32(one.score or 0) for one in found] == scores
    told = program.ask("rank", "--strategy", "mean", *asked[:4], *news)["results"]
    found = model.rank(None, news, like=liked, strategy="mean")
    assert [one.place for one in found] == [one["index"] for one in told]
    plain = model.rank(TEXTS[1], news, top_k=3)
    assert model.rank(TEXTS[1], news, top_k=3, diversify=1.0) == plain
    assert model.rank(TEXTS[1], news, top_k=3, diversify=0.1) != plain
    assert model.rank(None, news, like=[(TEXTS[1], 2.0)])[0].score == pytest.approx(2.0)


def test_likes_that_make_no_sense(model: cognate_text.Model) -> None:
    for asked, message in (
        ({"query": "a", "like": ["b"]}, "query: expected a query or texts in `like`"),
        ({"query": None}, "query: expected a query or texts in `like`"),
        ({"query": "a", "unlike": ["b"]}, "unlike: this stands beside `like` alone"),
        ({"query": None, "like": [("b", 1001.0)]}, "like: expected a number above 0, at most 1000"),
        ({"query": None, "like": ["b"], "strategy": "most"}, "strategy: expected best, mean or sum"),
        ({"query": "a", "diversify": 2.0}, "diversify: expected a number from 0 to 1"),
        ({"query": None, "like": ["b", ""]}, r"like\[1\] is empty"),
    ):
        with pytest.raises(ValueError, match=message):
            model.rank(candidates=["a", "b"], **asked)


def test_what_is_of_another_kind_is_named(model: cognate_text.Model) -> None:
    asked: list[tuple[str, Any]] = [
        ("b: expected str, got NoneType", lambda: model.similarity("a", None)),  # type: ignore[arg-type]
        ("method: expected str, got NoneType", lambda: model.cpdist([], [], method=None)),  # type: ignore[call-overload]
        ("opposites: expected str or None, got bool", lambda: model.cpdist([], [], opposites=True)),  # type: ignore[call-overload]
        ("like: expected a list of texts, got str", lambda: model.rank(None, TEXTS, like="quake")),
        ("unlike: expected a list of texts, got str", lambda: model.rank(None, TEXTS, like=["a"], unlike="b")),
        ("choices: expected a column of texts, got str", lambda: model.extract("a", "abc")),
        ("texts: expected a column of texts", lambda: cognate_text.EventDetector(model).add_many("abc")),
        ("convert_to_tensor: encode", lambda: model.encode("a", convert_to_tensor=True)),
        ("normalise: encode", lambda: model.encode("a", normalise=True)),
    ]
    for told, ask in asked:
        with pytest.raises(TypeError, match=told):
            ask()
    with pytest.raises(ValueError, match="within: expected a timedelta"):
        cognate_text.EventDetector(model, within=3600)  # type: ignore[arg-type]
    assert model.encode("a quake", precision="float32", show_progress_bar=True).shape == (256,)


@pytest.mark.parametrize("long", ["quake city " * 800, "quake " + "city" * 3000, "quake " + "\U0001f600" * 8190])
def test_truncate_cuts_at_every_limit(model: cognate_text.Model, long: str) -> None:
    assert model.similarity(long, "quake") == 0
    assert model.similarity(long, "quake", truncate=True) > 0


def test_notebooks_show_the_first_of_many(model: cognate_text.Model) -> None:
    shown = model.rank("a quake", TEXTS * 1000)._repr_html_()
    assert shown.count("<tr>") == 62 and f"and {len(TEXTS) * 1000 - 60} more" in shown
    why = model.explain("quake city " * 200, "an earthquake " * 200)
    assert len(why._repr_html_()) < 400_000 and str(why) == why.sentence
    assert "<th>choice" in model.extract("a quake", TEXTS)._repr_html_()


@pytest.mark.parametrize("link", ["average", "connected"])
def test_clusters_are_those_of_scipys_definition(model: cognate_text.Model, link: Any) -> None:
    """The best pair of groups is joined first, by definition; what is found by nearest neighbours is the same."""
    texts = [f"{one} {other}" for one in ("quake", "flood", "cup", "cat") for other in TEXTS[:6]]
    scores = model.cdist(texts, texts).astype(float)
    scores = (scores + scores.T) / 2
    groups = [[place] for place in range(len(texts))]
    of = np.mean if link == "average" else np.max
    while len(groups) > 1:
        pairs = [(of(scores[np.ix_(a, b)]), i, j) for i, a in enumerate(groups) for j, b in enumerate(groups[:i])]
        best, i, j = max(pairs)
        if best < 0.6:
            break
        groups[j] += groups.pop(i)
    expected = [min(next(group for group in groups if place in group)) for place in range(len(texts))]
    assert cognate_text.cluster(texts, threshold=0.6, link=link).tolist() == expected
    assert cognate_text.cluster([]).tolist() == []
    assert cognate_text.cluster([None, "a", None], unscored="missing").tolist() == [0, 1, 2]
