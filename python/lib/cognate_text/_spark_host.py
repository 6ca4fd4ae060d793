"""The model of a Python worker of Spark."""

from __future__ import annotations

import os

from pyspark import SparkFiles

from cognate_text._model import Model, shared


def named(model: Model) -> tuple[str | None, str]:
    """The path and fingerprint by which a worker opens a model of the driver."""
    _, (path, fingerprint, _) = model.__reduce__()
    return path, fingerprint


def on_this_host(path: str | None, fingerprint: str) -> Model:
    """The model of this fingerprint: inside this package, at the same path, or sent by `addFile`."""
    if path is not None and not os.path.exists(path):
        sent = SparkFiles.get(os.path.basename(path))
        path = sent if os.path.exists(sent) else path
    return shared(path, fingerprint, threads=1)
