"""Events of a stream: those that the program finds, whether texts come alone or together."""

from __future__ import annotations

import datetime
import pathlib
import pickle
import subprocess
import threading
import time

import numpy as np
import pandas as pd
import polars as pl
import pytest
from conftest import ROOT, Program, families, tweets

import cognate_text

STREAM = [
    "Strong earthquake shakes the city of Lima tonight",
    "The river floods the old town of Passau",
    "Strong earthquake shakes Lima, people run out of their houses",
    "my cat sleeps on the keyboard again",
    None,
    "River floods the old town of Passau, streets under water",
]
START = datetime.datetime(2024, 5, 1, 10, tzinfo=datetime.timezone.utc)


def as_program(
    program: Program, folder: pathlib.Path, rows: list[dict[str, str]], *words: str
) -> tuple[list[int], list[int], list[float], list[bool]]:
    """What the program says, line by line; texts are told by their places."""
    lines = "".join(f"{row['time_utc']}\t{row['text']}\n" for row in rows)
    (folder / "stream.tsv").write_text(lines)
    columns = ("--no-header", "--time", "1", "--text", "2")
    program.run("events", "stream.tsv", "-o", "out.tsv", *columns, *words, folder=folder)
    told = [line.split("\t")[2:] for line in (folder / "out.tsv").read_text().splitlines()]
    return (
        [int(event) - 1 for event, *_ in told],
        [int(nearest) - 1 if nearest else -1 for _, nearest, *_ in told],
        [float(score) if score else float("nan") for _, _, score, _ in told],
        [new == "true" for *_, new in told],
    )


@pytest.mark.parametrize(
    "asked",
    [{}, {"within": "6h", "last": 500}, {"preset": "stories"}, {"second": None, "votes": 2, "threshold": 0.6}],
)
def test_what_the_program_finds(program: Program, tmp_path: pathlib.Path, asked: dict[str, object]) -> None:
    rows = tweets(3000)
    words = [word for name, value in asked.items() for word in (f"--{name}", str(value or "none"))]
    event, nearest, score, new = as_program(program, tmp_path, rows, *words)
    detector = cognate_text.EventDetector(**asked)  # type: ignore[arg-type]
    texts, times = [row["text"] for row in rows], [row["time_utc"] for row in rows]
    alone = [detector.add(text, time) for text, time in zip(texts[:300], times[:300])]
    rest = detector.add_many(texts[300:], times[300:])
    assert len(detector) == 3000 and 100 < sum(new) < 2900
    assert [one.event for one in alone] + rest.event.tolist() == event
    assert [-1 if one.nearest is None else one.nearest for one in alone] + rest.nearest.tolist() == nearest
    scores = [float("nan") if one.score is None else one.score for one in alone] + rest.score.tolist()
    assert np.array(scores, dtype=np.float32).tobytes() == np.array(score, dtype=np.float32).tobytes()
    assert [one.new for one in alone] + rest.new.tolist() == new


def test_a_text_joins_its_event() -> None:
    detector = cognate_text.EventDetector(within=datetime.timedelta(hours=24))
    times = [START + datetime.timedelta(minutes=minute) for minute in range(6)]
    found = [detector.add(text, time) for text, time in zip(STREAM, times)]
    assert [one.event for one in found] == [0, 1, 0, 3, 4, 1]
    assert found[2] == cognate_text.Event(0, 0, found[2].score, False)
    assert found[4] == cognate_text.Event(4, None, None, True), "a missing text is like none"
    later = detector.add(STREAM[0], START + datetime.timedelta(hours=25))
    assert later.new and later.nearest is None, "what is older than a day is forgotten"
    assert len(detector) == 7 and detector.threshold == np.float32(0.6)


def test_every_form_of_time() -> None:
    plain = [START.replace(tzinfo=None) + datetime.timedelta(minutes=minute) for minute in range(6)]
    seconds = [time.replace(tzinfo=datetime.timezone.utc).timestamp() for time in plain]
    zone = datetime.timezone(datetime.timedelta(hours=-4))
    forms: dict[str, object] = {
        "datetimes": plain,
        "with a zone": [time.replace(tzinfo=datetime.timezone.utc).astimezone(zone) for time in plain],
        "text": [time.isoformat(" ") for time in plain],
        "seconds": seconds,
        "whole seconds": np.array(seconds, dtype=np.int64),
        "milliseconds": [int(second * 1000) for second in seconds],
        "NumPy": np.array(plain, dtype="datetime64[us]"),
        "pandas": pd.Series(plain),
        "pandas with a zone": pd.Series(plain).dt.tz_localize("UTC").dt.tz_convert("America/Lima"),
        "polars": pl.Series(plain),
    }
    for name, times in forms.items():
        found = cognate_text.EventDetector(within="3m").add_many(STREAM, times)  # type: ignore[arg-type]
        assert found.event.tolist() == [0, 1, 0, 3, 4, 5], name


def test_what_makes_no_sense_is_refused() -> None:
    timed = cognate_text.EventDetector(within="24h")
    with pytest.raises(ValueError, match="times: `within` is a span of time, so each text needs one"):
        timed.add("a quake")
    with pytest.raises(ValueError, match=r"times\[1\]: expected a datetime, RFC 3339.*got 'noon'"):
        timed.add_many(["a", "b"], [START, "noon"])
    with pytest.raises(ValueError, match=r"times\[1\]: expected a time, got none"):
        timed.add_many(["a", "b"], pd.Series([START, pd.NaT]))
    with pytest.raises(ValueError, match="there are 1 texts and 2 times"):
        timed.add_many(["a"], [START, START])
    assert len(timed) == 0, "what is refused is not taken in"
    told = "0 texts; by avg-cos, then same-event, from 0.6 on, among the last 2000 within 86400 s"
    assert repr(timed) == f"<cognate_text.EventDetector {told}>"
    alone = cognate_text.EventDetector(second=None, threshold=0.6, last=5)
    alone.add_many(["a quake", None])
    told = "2 texts; by avg-cos, from 0.6 on, among the last 5"
    assert repr(alone) == f"<cognate_text.EventDetector {told}>"
    for asked, message in (
        ({"within": "a day"}, "within: expected a timedelta or a number with s, m, h or d"),
        ({"last": 0}, "last: expected a number from 1 to 10000000"),
        ({"threshold": 2.0}, "threshold: expected a number from 0 to 1"),
        ({"threshold": "high"}, 'threshold: expected a number or "calibrated", got'),
        ({"centre": -1.0}, "centre: expected a number from 0 to 1"),
        ({"preset": "news"}, "preset: expected topics or stories"),
        ({"second": "wmd"}, "no usual threshold is known for wmd"),
        ({"second": "bm25"}, "bm25 only ranks"),
    ):
        with pytest.raises(ValueError, match=message):
            cognate_text.EventDetector(**asked)
    with pytest.raises(TypeError, match="an EventDetector cannot be pickled"):
        pickle.dumps(timed)


def test_a_stream_goes_on_from_what_was_saved() -> None:
    texts, times = families(2000), [START + datetime.timedelta(minutes=minute) for minute in range(2000)]
    asked: dict[str, object] = {"within": "6h", "last": 300, "centre": 0.2}
    expected = cognate_text.EventDetector(**asked).add_many(texts, times)  # type: ignore[arg-type]
    detector = cognate_text.EventDetector(**asked)  # type: ignore[arg-type]
    found = []
    for start, end in ((0, 1), (1, 150), (150, 1177), (1177, 2000)):
        found.append(detector.add_many(texts[start:end], times[start:end]))
        detector = cognate_text.EventDetector(state=detector.save(), **asked)  # type: ignore[arg-type]
    for at, name in enumerate(cognate_text.Events._fields):
        together = np.concatenate([part[at] for part in found])
        assert together.tobytes() == expected[at].tobytes(), name
    assert len(detector) == 2000


def test_a_state_is_that_of_the_program(program: Program, tmp_path: pathlib.Path) -> None:
    """Each goes on where the other was."""
    rows = [{"text": text, "time_utc": "2024-05-01 10:00:00"} for text in families(1500)]
    event, nearest, _, new = as_program(program, tmp_path, rows, "--last", "200", "--state", "state")
    (tmp_path / "state").unlink()
    (tmp_path / "out.tsv").unlink()
    as_program(program, tmp_path, rows[:700], "--last", "200", "--state", "state")
    detector = cognate_text.EventDetector(last=200, state=(tmp_path / "state").read_bytes())
    found = detector.add_many([row["text"] for row in rows[700:1000]])
    assert (found.event.tolist(), found.nearest.tolist()) == (event[700:1000], nearest[700:1000])
    (tmp_path / "state").write_bytes(detector.save())
    (tmp_path / "out.tsv").unlink()
    last = as_program(program, tmp_path, rows[1000:], "--last", "200", "--state", "state")
    assert (last[0], last[1], last[3]) == (event[1000:], nearest[1000:], new[1000:])


def test_a_state_of_something_else_is_refused(program: Program, tmp_path: pathlib.Path) -> None:
    detector = cognate_text.EventDetector()
    detector.add_many(STREAM)
    saved = detector.save()
    with pytest.raises(ValueError, match="state: the state was made with method avg-cos.* last 2000.* last 9"):
        cognate_text.EventDetector(last=9, state=saved)
    with pytest.raises(ValueError, match="state: not a whole state: its digest is not that of its lines"):
        cognate_text.EventDetector(state=saved.replace(b"Lima", b"Rome"))
    with pytest.raises(ValueError, match="state: not a whole state"):
        cognate_text.EventDetector(state=b"")
    state = tmp_path / "state"
    words = [program.path, "events", "--model", str(ROOT / "models/default.safetensors"), "-o", str(tmp_path / "out")]
    words += ["--state", str(state), "--checkpoint", "0s"]
    running = subprocess.Popen(words, stdin=subprocess.PIPE, bufsize=0)
    assert running.stdin is not None
    running.stdin.write(b'{"text": "a quake"}\n')
    while not state.exists() and running.poll() is None:
        time.sleep(0.01)
    running.kill()
    running.wait()
    with pytest.raises(ValueError, match="state: the run of `cognate events` that wrote it was interrupted"):
        cognate_text.EventDetector(state=state.read_bytes())


def test_many_threads_add_to_one() -> None:
    detector = cognate_text.EventDetector()
    texts = [text or "" for text in STREAM] * 100

    def add() -> None:
        for text in texts:
            detector.add(text)

    adding = [threading.Thread(target=add) for _ in range(4)]
    for thread in adding:
        thread.start()
    for thread in adding:
        thread.join()
    assert len(detector) == 4 * len(texts)
    assert not detector.add(STREAM[0]).new
