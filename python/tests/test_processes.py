"""Threads, forks and signals: what else happens in a process that asks."""

from __future__ import annotations

import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

import cognate_text


def fork_and_ask(results: multiprocessing.Queue[bytes]) -> None:
    results.put(cognate_text._model.shared().cpdist(["a quake"] * 5000, ["a tremor"] * 5000).tobytes())


def test_a_forked_process_answers(model: cognate_text.Model) -> None:
    """Threads do not live on in a fork; a pool of them would be waited for in vain."""
    expected = cognate_text._model.shared().cpdist(["a quake"] * 5000, ["a tremor"] * 5000).tobytes()
    context = multiprocessing.get_context("fork")
    results: multiprocessing.Queue[bytes] = context.Queue()
    child = context.Process(target=fork_and_ask, args=(results,))
    child.start()
    assert results.get(timeout=60) == expected
    child.join()


def test_other_threads_run_meanwhile(model: cognate_text.Model) -> None:
    """While a large question is at work, Python counts on."""
    texts = ["Quake hits L.A. and more words for a longer text"] * 200_000
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    one = cognate_text.Model(threads=1)
    counter.start()
    before = counted
    one.cpdist(texts, texts, method="wmd")
    during = counted - before
    done.set()
    counter.join()
    assert during > 1000


def test_ctrl_c_ends_a_question() -> None:
    code = """
import cognate_text, sys
texts = ["word " * 200] * 1_000_000
model = cognate_text.Model()
print("asking", flush=True)
try:
    model.cpdist(texts, texts, method="wmd", truncate=True)
except KeyboardInterrupt:
    sys.exit(33)
"""
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "asking\n"
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    assert child.wait(timeout=60) == 33


def test_a_model_is_mapped(model: cognate_text.Model) -> None:
    """Processes of a machine share its memory: it is the file itself that lies in each of them."""
    lines = pathlib.Path("/proc/self/maps").read_text().splitlines()
    assert any(line.endswith(os.path.realpath(model.path)) for line in lines)


def test_imports_nothing_heavy() -> None:
    code = "import cognate_text, sys; print(sorted({m.split('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for heavy in ("pandas", "pyarrow", "polars", "sklearn", "pyspark"):
        assert f"'{heavy}'" not in loaded.stdout


def threads_of(model: cognate_text.Model) -> int:
    return model.threads


def test_threads_survive_a_pickle() -> None:
    one = cognate_text.Model(threads=1)
    for way in ("fork", "spawn"):
        with multiprocessing.get_context(way).Pool(1) as pool:
            assert pool.apply(threads_of, (one,)) == 1, way


def test_scores_that_do_not_fit_are_a_memory_error(model: cognate_text.Model) -> None:
    for top_k in (None, 4_000_000):
        with pytest.raises(MemoryError, match="4000000 queries with 4000000 choices.*top_k"):
            model.cdist(["quake"] * 4_000_000, ["quake"] * 4_000_000, top_k=top_k)
