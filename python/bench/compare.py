"""Scores of two columns of tweets by cognate and by its peers: core-seconds of some rounds, and how good the scores are.

Called by run.sh. Time is that of all cores together, so that others on the machine count little. Every contestant gets the same texts; those that take word vectors have cognate's own,
as `cognate export` writes them. Contestants take turns, so that a busy minute hits all of them.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import pathlib
import random
import statistics
import subprocess
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

import cognate_text

DATA = pathlib.Path(__file__).resolve().parents[3] / "shared/data"
ROWS_AT_ONCE = 50_000
# Scores that a contestant with another name gives, too.
SAME_SCORES = ("Arrow to Arrow", "lists", "NumPy", "all cores")


def read_rows(path: str) -> list[list[str]]:
    """The rows of a file of the data, packed or not."""
    opened = gzip.open if path.endswith(".gz") else open
    with opened(DATA / path, "rt", encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def tweets(pairs: int) -> tuple[list[str], list[str]]:
    """Two columns of tweets, drawn with a fixed seed."""
    texts = [" ".join(row[-1].split()) for row in read_rows("tweets/crisislex-train.tsv.gz")[1:]]
    draw = random.Random(1)
    # A number at the end, so that no object is met twice.
    one = [f"{draw.choice(texts)} {number}" for number in range(pairs)]
    return one, [f"{draw.choice(texts)} {number}" for number in range(pairs)]


def row_cosines(encode: Callable[[list[str]], np.ndarray], a: list[str], b: list[str]) -> np.ndarray:
    """Cosines of the rows' vectors, some rows at a time so that memory stays small."""
    scores = []
    for start in range(0, len(a), ROWS_AT_ONCE):
        one, other = (np.asarray(encode(texts[start : start + ROWS_AT_ONCE])) for texts in (a, b))
        lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        scores.append(np.einsum("ij,ij->i", one, other) / np.maximum(lengths, 1e-30))
    return np.concatenate(scores)


def contestants(a: list[str], b: list[str], work: pathlib.Path) -> dict[str, Callable[[], object]]:
    """What is measured, by name."""
    from model2vec import StaticModel
    from rapidfuzz import fuzz, process
    from sentence_transformers import SentenceTransformer
    from sklearn.feature_extraction.text import TfidfVectorizer

    one, all_cores = cognate_text.Model(threads=1), cognate_text.Model()
    columns = pa.array(a), pa.array(b)
    objects = np.array(a, dtype=object), np.array(b, dtype=object)
    fixed = np.array([text[:140] for text in a]), np.array([text[:140] for text in b])
    potion = StaticModel.from_pretrained(work / "model2vec")
    static = SentenceTransformer(str(work / "sentence-transformers"), device="cpu")

    def tf_idf() -> object:
        fitted = TfidfVectorizer().fit(a + b)
        return fitted.transform(a).multiply(fitted.transform(b)).sum(axis=1)

    found: dict[str, Callable[[], object]] = {}
    for method in ("auto", "avg-cos", "dynamax"):
        found[f"cognate {method}, Arrow, one thread"] = lambda m=method: one.cpdist(*columns, method=m)
    found["cognate avg-cos, Arrow to Arrow, one thread"] = lambda: one.cpdist(
        *columns, method="avg-cos", output="arrow"
    )
    found["cognate avg-cos, lists, one thread"] = lambda: one.cpdist(a, b, method="avg-cos")
    found["cognate avg-cos, NumPy objects, one thread"] = lambda: one.cpdist(*objects, method="avg-cos")
    found["cognate avg-cos, NumPy strings, one thread"] = lambda: one.cpdist(*fixed, method="avg-cos")
    found["cognate auto, Arrow, all cores"] = lambda: all_cores.cpdist(*columns)
    found["cognate dynamax, Arrow, all cores"] = lambda: all_cores.cpdist(*columns, method="dynamax")
    for workers, told in ((1, "one thread"), (-1, "all cores")):
        found[f"RapidFuzz ratio, {told}"] = lambda w=workers: process.cpdist(a, b, scorer=fuzz.ratio, workers=w)
        found[f"RapidFuzz token_set_ratio, {told}"] = lambda w=workers: process.cpdist(
            a, b, scorer=fuzz.token_set_ratio, workers=w
        )
    found["model2vec"] = lambda: row_cosines(
        lambda texts: potion.encode(texts, use_multiprocessing=False), a, b
    )
    found["StaticEmbedding"] = lambda: row_cosines(
        lambda texts: static.encode(texts, batch_size=2048, show_progress_bar=False), a, b
    )
    found["scikit-learn tf-idf"] = tf_idf
    return found


def quality(work: pathlib.Path, wanted: list[str]) -> None:
    """How well the scores follow what people say of two sets of pairs."""
    from scipy.stats import spearmanr
    from sklearn.metrics import roc_auc_score

    for path, told, measure in (
        ("sts/stsb-dev.tsv", "Spearman x 100", lambda labels, scores: 100 * spearmanr(labels, scores).statistic),
        ("tweets/twitter-url-train.tsv.gz", "AUC", roc_auc_score),
    ):
        labels, a, b = zip(*read_rows(path))
        entries = contestants(list(a), list(b), work)
        print(f"{path}, {len(labels)} pairs: {told}")
        for name in wanted:
            if not any(part in name for part in SAME_SCORES):
                scores = np.asarray(entries[name]()).ravel()
                print(f"{name:<50} {measure(np.array(labels, dtype=float), scores):8.3f}", flush=True)


def single(a: list[str], b: list[str], method: str) -> float:
    """Nanoseconds of a call with two strings, over a tenth of the pairs."""
    ask = cognate_text.Model().similarity
    few = list(zip(a, b))[: len(a) // 10]
    began = time.process_time()
    for one, other in few:
        ask(one, other, method=method)
    return (time.process_time() - began) / len(few) * 1e9


def overhead(given: argparse.Namespace, kind: str, a: list[str], b: list[str]) -> None:
    """The library beside the wheel, on one thread, in turns."""
    files = given.work / "a.txt", given.work / "b.txt"
    for file, texts in zip(files, (a, b)):
        file.write_text("".join(text + "\n" for text in texts))
    columns, one = (pa.array(a), pa.array(b)), cognate_text.Model(threads=1)
    for method in ("avg-cos", "dynamax"):
        taken: dict[str, list[float]] = {"library columns": [], "library single": [], "Arrow": [], "lists": [], "calls": []}
        for _ in range(given.rounds):
            told = subprocess.run(
                [given.library, *map(str, files), method, "1"], capture_output=True, text=True, check=True
            )
            for line in told.stdout.splitlines():
                asked, nanoseconds = line.split()
                taken[f"library {asked}"].append(float(nanoseconds))
            for name, texts in (("Arrow", columns), ("lists", (a, b))):
                began = time.process_time()
                one.cpdist(*texts, method=method)
                taken[name].append((time.process_time() - began) / given.pairs * 1e9)
            taken["calls"].append(single(a, b, method))
        for name, times in taken.items():
            print(f"{kind:<8} {method:<10} {name:<20} {min(times):9.0f} ns a pair, median {statistics.median(times):9.0f}")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=pathlib.Path, required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="parts of names, with commas; `overhead` for that alone")
    given = parser.parse_args()
    a, b = tweets(given.pairs)
    print(f"{given.pairs} pairs, {sum(map(len, a + b)) / len(a + b):.0f} characters a text, {given.rounds} rounds")

    if given.only in ("", "overhead"):
        overhead(given, "tweets", a, b)
        # The engine only looks at them, so that what Python adds is most of the time.
        blank = [" "] * given.pairs
        overhead(given, "blank", blank, blank)
    entries = contestants(a, b, given.work)
    wanted = [name for name in entries if not given.only or any(part in name for part in given.only.split(","))]
    if wanted:
        quality(given.work, wanted)
    seconds: dict[str, list[float]] = {name: [] for name in wanted}
    for _ in range(given.rounds):
        for name in wanted:
            began = time.process_time()
            entries[name]()
            seconds[name].append(time.process_time() - began)
            print(f"{name:<50} {seconds[name][-1]:8.2f} s", flush=True)
    if wanted:
        print("best of all rounds")
    for name, times in seconds.items():
        rate = given.pairs / min(times) / 1e3
        print(f"{name:<50} {min(times):8.2f} core-seconds, median {statistics.median(times):8.2f}, {rate:8.0f} thousand pairs a second of one core")


if __name__ == "__main__":
    main()
