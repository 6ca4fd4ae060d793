"""A stream of texts, each joined to its event as it comes."""

from __future__ import annotations

import datetime
import numbers
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from cognate_text import _native
from cognate_text._model import Model, Texts, _list, shared

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_MILLISECOND = datetime.timedelta(milliseconds=1)

#: When a text was written: a datetime (UTC where it has no zone), seconds or milliseconds since 1970, or
#: text as streams have it.
Time = datetime.datetime | np.datetime64 | float | str


class Event(NamedTuple):
    """What was decided of a text. Texts are told by their places in the stream, from 0."""

    #: The text that its event began with; itself where it begins one.
    event: int
    #: The nearest text of that event, or of any where it begins one; nothing where none is near.
    nearest: int | None
    #: The score of the event that it joined, or of the best that it did not join.
    score: float | None
    #: Whether it begins an event.
    new: bool


class Events(NamedTuple):
    """What was decided of many texts, a row a text, as of `Event`; -1 and NaN stand for nothing."""

    event: NDArray[np.int64]
    nearest: NDArray[np.int64]
    score: NDArray[np.float32]
    new: NDArray[np.bool_]


class EventDetector:
    """Joins each text to its event among the texts before it, as `cognate events` does.

    Each text is compared with the `last` texts before it that are at most `within` earlier or later, as `"24h"` or a
    `timedelta`. The `preset` says what is usual: `"topics"` of any size among noise, such as posts by
    keyword or place, or `"stories"` of a few posts each, such as headlines or posts with an address.
    Vectors of `method` find the nearest, the method `second` scores them once more (`None`: none does;
    `"usual"`: that of the preset), and an event is joined where its `votes` nearest texts score `threshold`
    on average; without a threshold it is the one that was found for preset and method, and with
    `"calibrated"` the model's own. Texts are taken in the order they come in. A missing text is an event of its own.

    With `state`, what `save` gave or a file of `cognate events --state`, it goes on where that was: the
    model and all else that is asked for must be the same.

    Many threads may add to one detector; what each adds is decided at once. A detector cannot be
    pickled: what it remembers belongs to one process.

    >>> import cognate_text
    >>> events = cognate_text.EventDetector(within="24h")
    >>> events.add("Strong earthquake shakes the city of Lima tonight", "2024-05-01 10:00:00")
    Event(event=0, nearest=None, score=None, new=True)
    >>> events.add("my cat sleeps on the keyboard again", "2024-05-01 10:01:00").event
    1
    >>> events.add("Lima: a strong earthquake shakes houses in the city", "2024-05-01 10:02:00").event
    0
    >>> events.add_many(["pancakes", "Strong earthquake shakes Lima"], ["2024-05-01 11:00:00"] * 2).event
    array([3, 0])
    >>> len(events)
    5
    >>> later = cognate_text.EventDetector(within="24h", state=events.save())
    >>> later.add("Another strong earthquake shakes Lima", "2024-05-01 11:30:00").event
    0
    """

    __slots__ = ("_native", "_timed")

    def __init__(
        self,
        model: Model | None = None,
        *,
        within: str | datetime.timedelta | None = None,
        preset: str = _native.PRESET,
        last: int = _native.LAST,
        method: str = _native.METHOD,
        second: str | None = "usual",
        nearest: int = _native.NEAREST,
        votes: int = _native.VOTES,
        centre: float = _native.CENTRE,
        threshold: float | str | None = None,
        state: bytes | None = None,
    ) -> None:
        span = None if within is None else _span(within)
        rule = (last, nearest, votes, centre, threshold)
        self._timed = span is not None
        followed = (preset, method, None if second == "usual" else (second,), span)
        self._native = _native.EventDetector((model or shared())._native, followed, rule, state)

    @property
    def threshold(self) -> float:
        """The least score at which a text joins an event."""
        return self._native.threshold

    def __len__(self) -> int:
        """Texts so far."""
        return len(self._native)

    def save(self) -> bytes:
        """What it got to, for `state` of another: the same bytes as of a file of `cognate events --state`."""
        return self._native.save()

    def add(self, text: str | None, time: Time | None = None) -> Event:
        """Decides what a text belongs to. Only `within` needs times."""
        found = self.add_many([text], None if time is None else [time])
        nearest, score = int(found.nearest[0]), float(found.score[0])
        return Event(
            int(found.event[0]),
            None if nearest < 0 else nearest,
            None if np.isnan(score) else score,
            bool(found.new[0]),
        )

    def add_many(self, texts: Texts, times: Iterable[Any] | None = None) -> Events:
        """Decides what each text of a column belongs to, in order, as if each had come alone.

        Ctrl-C ends it within a moment; `len` tells how many texts were taken in by then.
        """
        if times is None:
            if self._timed:
                raise ValueError("times: `within` is a span of time, so each text needs one")
            texts = _list(texts, "texts")
            return Events(*self._native.follow(texts, [0] * len(texts)))
        return Events(*self._native.follow(texts, _milliseconds(times)))

    def __repr__(self) -> str:
        method, second, last, within = self._native.followed
        by = method if second is None else f"{method}, then {second}"
        span = "" if within is None else f" within {within / 1000:g} s"
        return (
            f"<cognate_text.EventDetector {len(self)} texts; by {by}, from {self.threshold:.4g} on, "
            f"among the last {last}{span}>"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an EventDetector cannot be pickled: what it remembers belongs to one process; make one where "
            "the stream is read, and send it the texts, or what save() gave"
        )


def _span(within: str | datetime.timedelta) -> int:
    if isinstance(within, datetime.timedelta):
        span: int | None = within // _MILLISECOND
    else:
        span = _native.span(within) if isinstance(within, str) else None
    if span is None or span < 0:
        raise ValueError(f"within: expected a timedelta or {_native.SPANS}, got {within!r}")
    return span


def _milliseconds(times: Iterable[Any]) -> list[int]:
    if getattr(getattr(times, "dtype", None), "kind", None) == "M":
        # A Series of pandas with a zone becomes UTC.
        instants = times.to_numpy("datetime64[ms]") if hasattr(times, "to_numpy") else times
        found = np.asarray(instants).astype("datetime64[ms]")
        missing = np.flatnonzero(np.isnat(found))
        if len(missing):
            raise ValueError(f"times[{missing[0]}]: expected a time, got none")
        return [int(number) for number in found.astype(np.int64)]
    return [_instant(time, place) for place, time in enumerate(_list(times, "times"))]


def _instant(time: Any, place: int) -> int:
    found: int | None = None
    if isinstance(time, datetime.datetime):
        zoned = time if time.tzinfo else time.replace(tzinfo=datetime.timezone.utc)
        return (zoned - _EPOCH) // _MILLISECOND
    if isinstance(time, np.datetime64):
        return _milliseconds(np.array([time]))[0]
    if isinstance(time, numbers.Integral) and not isinstance(time, bool):
        found = _native.instant(str(int(time)))
    elif isinstance(time, numbers.Real) and not isinstance(time, bool):
        found = _native.instant(f"{float(time):.6f}")
    elif isinstance(time, str):
        found = _native.instant(time)
    if found is None:
        raise ValueError(f"times[{place}]: expected a datetime, {_native.INSTANTS}, got {time!r:.80}")
    return found
