"""The model of a Python worker of Spark."""

from __future__ import annotations

import os

from pyspark import SparkFiles

from cognate_text._model import Model, shared


def on_this_host(path: str | None, fingerprint: str) -> Model:
    """The model of this fingerprint: inside this package, at the same path, or sent by `addFile`."""
    if path is not None and not os.path.exists(path):
        sent = SparkFiles.get(os.path.basename(path))
        path = sent if os.path.exists(sent) else path
    return shared(path, fingerprint, threads=1)
