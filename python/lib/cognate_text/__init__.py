"""How alike very short texts are (tweets, headlines, titles, queries), in microseconds on a CPU.

The model is inside this package: no download, no key, no accelerator.

>>> import cognate_text
>>> model = cognate_text.Model()
>>> round(model.similarity("Quake hits L.A.!!", "Earthquake shakes Los Angeles"), 4)
0.6558
>>> model.cpdist(["a quake", "a cat"], ["an earthquake", "football"]).round(2)
array([0.75, 0.06], dtype=float32)

`Model` answers everything: pairs (`similarity`, `cpdist`), many against many (`cdist`), one against
many (`rank`, `extract`), vectors (`embed`), and why (`explain`). `dedupe` finds near-duplicates in a
column, `cluster` groups its texts, and an `EventDetector` joins the texts of a stream to events.
`cognate_text.pandas`, `cognate_text.polars`, `cognate_text.sklearn` and `cognate_text.spark` put it where those libraries look for it; none of them is imported
unless you do.
"""

from __future__ import annotations

from importlib.metadata import version as _version

from cognate_text._clusters import cluster
from cognate_text._dedupe import Duplicates, Pairs, Recall, dedupe
from cognate_text._events import Event, EventDetector, Events
from cognate_text._explanation import Explanation
from cognate_text._model import (
    Cutoff,
    Extracted,
    Extraction,
    Measure,
    Model,
    Opposites,
    Ranked,
    Ranking,
    Scored,
    Strategy,
    Texts,
    TopK,
    Unknown,
    Unscored,
    open,
)
from cognate_text._native import ArrowArray
from cognate_text.errors import (
    CognateError,
    FingerprintError,
    MethodError,
    ModelError,
    ModelNotFoundError,
    NotCalibratedError,
    ScoreError,
    TextError,
)

__version__ = _version("cognate-text")

__all__ = [
    "ArrowArray",
    "CognateError",
    "Cutoff",
    "Duplicates",
    "Event",
    "EventDetector",
    "Events",
    "Explanation",
    "Extracted",
    "Extraction",
    "FingerprintError",
    "Measure",
    "MethodError",
    "Model",
    "ModelError",
    "ModelNotFoundError",
    "NotCalibratedError",
    "Opposites",
    "Pairs",
    "Ranked",
    "Ranking",
    "Recall",
    "ScoreError",
    "Scored",
    "Strategy",
    "TextError",
    "Texts",
    "TopK",
    "Unknown",
    "Unscored",
    "cluster",
    "dedupe",
    "open",
]
