#!/usr/bin/env python3
"""Clusters of a stream by the shipped settings, on data that no setting was chosen by: docs/measurements/events.md.

    pip install scikit-learn==1.9.1
    benches/mstream.py COGNATE FOLDER

FOLDER holds the files `News`, `News-T`, `Tweets` and `Tweets-T` of *Model-based Clustering of Short Text Streams* (Yin et
al., KDD 2018; repository jackyin12/MStream, `MStream/data`): JSON lines of cleaned words without times, in the order of the
stream. Normalised mutual information divides by the geometric mean of the entropies, as the paper does.
"""

import argparse
import collections
import json
import pathlib
import subprocess
import tempfile

from sklearn import metrics

STREAMS = ("News", "News-T", "Tweets", "Tweets-T")
# Normalised mutual information in the paper.
PUBLISHED = {"MStream": (0.834, 0.850, 0.844, 0.882), "MStreamF": (0.797, 0.873, 0.823, 0.923)}


def b_cubed(gold, found):
    """The harmonic mean of B-cubed precision and recall."""
    both = collections.Counter(zip(gold, found))
    of_gold, of_found = collections.Counter(gold), collections.Counter(found)
    precision = sum(count * count / of_found[pair[1]] for pair, count in both.items())
    recall = sum(count * count / of_gold[pair[0]] for pair, count in both.items())
    return 2 * precision * recall / (precision + recall) / len(gold)


def clusters(cognate, stream, preset):
    """Gold and found cluster of each text."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "events.ndjson"
        command = [cognate, "events", "-", "--format", "ndjson", "--text", "textCleaned", "--id", "Id"]
        with open(stream, "rb") as lines:
            subprocess.run([*command, "--preset", preset, "-o", output], stdin=lines, check=True, stderr=subprocess.DEVNULL)
        rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    return [row["clusterNo"] for row in rows], [row["event"] for row in rows]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cognate")
    parser.add_argument("folder", type=pathlib.Path)
    arguments = parser.parse_args()
    print("| | stream | NMI | AMI | B³ | clusters found, gold |\n|---|---|---|---|---|---|")
    for preset in ("topics", "stories"):
        for stream in STREAMS:
            gold, found = clusters(arguments.cognate, arguments.folder / stream, preset)
            nmi = metrics.normalized_mutual_info_score(gold, found, average_method="geometric")
            ami = metrics.adjusted_mutual_info_score(gold, found)
            sizes = f"{len(set(found)):,}, {len(set(gold))}"
            print(f"| `{preset}` | {stream} | {nmi:.3f} | {ami:.3f} | {b_cubed(gold, found):.3f} | {sizes} |", flush=True)
    for name, figures in PUBLISHED.items():
        for stream, nmi in zip(STREAMS, figures):
            print(f"| {name}, published | {stream} | {nmi:.3f} | | | |")


main()
