"""Lets the contestants take turns and prints how long each takes beside cognate.

compare.py --binaries FOLDER --inputs FOLDER --record FILE [--rounds N]

Every contestant is a process of one thread that has loaded everything. In each round each makes one
pass by each of its methods, so that a slow moment of the machine falls on all alike; the first
round warms up and is not counted. Figures are medians. Exits with 1 if a contestant's mean score is
so far off that it cannot have computed the same thing.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

OURS = "cognate"
METHODS = ["avg-cos", "dynamax-jaccard", "embed", "wmd"]
# Of the slowest only a few hundred pairs, from all over the list.
EVERY = {"wmd": 33}
# Contestants cut contractions and letters with accents differently.
TOLERANCE = 0.01
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}

Row = dict[str, Any]


@dataclass
class Contestant:
    """A process that answers `go METHOD EVERY`, and what it answered."""

    name: str
    process: subprocess.Popen[str]
    nanos: dict[str, list[int]] = field(default_factory=dict)
    mean: dict[str, float] = field(default_factory=dict)

    def go(self, method: str) -> None:
        """One pass, kept unless the contestant has no such method."""
        assert self.process.stdin and self.process.stdout, "both are pipes"
        self.process.stdin.write(f"go {method} {EVERY.get(method, 1)}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        if not answer:
            sys.exit(f"{self.name} ended; its last words are above")
        if answer != ["absent"]:
            self.nanos.setdefault(method, []).append(int(answer[0]))
            self.mean[method] = float(answer[1])

    def end(self) -> None:
        """Lets the process go."""
        self.process.communicate()


def contestants(binaries: Path, inputs: Path) -> list[Contestant]:
    """Starts everyone, ours first."""
    here = Path(__file__).parent
    matrix: list[str | Path] = [inputs / "vectors.npy", inputs / "vocabulary.txt"]
    commands: dict[str, list[str | Path]] = {
        OURS: [binaries / "ours", inputs / "cognate.safetensors"],
        "Rust port": [binaries / "port", *matrix],
        "model2vec-rs 0.4": [binaries / "model2vec", "0.4", inputs / "model2vec-word-piece"],
        "model2vec-rs 0.2": [binaries / "model2vec", "0.2", inputs / "model2vec-word-level"],
        "NumPy": [sys.executable, here / "numpy_peer.py", *matrix],
        "gensim": [sys.executable, here / "gensim_peer.py", *matrix],
    }
    pipe, environment = subprocess.PIPE, os.environ | ONE_THREAD
    pairs = inputs / "pairs.tsv"
    return [
        Contestant(
            name,
            subprocess.Popen(
                [*command, pairs], env=environment, text=True, stdin=pipe, stdout=pipe
            ),
        )
        for name, command in commands.items()
    ]


def play(everyone: list[Contestant], rounds: int) -> None:
    """The warm-up, in which it shows who has which method, and then the rounds."""
    for contestant in everyone:
        for method in METHODS:
            contestant.go(method)
        contestant.nanos = {method: [] for method in contestant.nanos}
    for number in range(rounds):
        # Nobody follows the same neighbour, or comes first, every time.
        first = number % len(everyone)
        for method in METHODS:
            for contestant in everyone[first:] + everyone[:first]:
                if method in contestant.nanos:
                    contestant.go(method)


def rows(everyone: list[Contestant], pairs: int) -> list[Row]:
    """A row for each contestant of each method."""
    ours = everyone[0]
    table = []
    for method in METHODS:
        items = len(range(0, pairs, EVERY.get(method, 1))) * (2 if method == "embed" else 1)
        base = statistics.median(ours.nanos[method]) / items
        for contestant in everyone:
            if method not in contestant.nanos:
                continue
            each = sorted(nanos / items for nanos in contestant.nanos[method])
            nanos = statistics.median(each)
            table.append(
                {
                    "method": method,
                    "unit": "text" if method == "embed" else "pair",
                    "contestant": contestant.name,
                    "nanoseconds": nanos,
                    "fastest_and_slowest": [each[0], each[-1]],
                    "per_second": 1e9 / nanos,
                    "ratio": nanos / base,
                    "mean_score": contestant.mean[method],
                    "off_by": contestant.mean[method] - ours.mean[method],
                }
            )
    return table


def show(table: list[Row]) -> None:
    """The table as Markdown."""
    print("| method | contestant | ns | a second | × cognate's time | mean score, off by |")
    print("|---|---|---|---|---|---|")
    for row in table:
        print(
            f"| `{row['method']}` | {row['contestant']} | {row['nanoseconds']:,.0f} a {row['unit']} "
            f"| {row['per_second']:,.0f} | {row['ratio']:.2f} "
            f"| {row['mean_score']:.4f}, {row['off_by']:+.4f} |"
        )


def main() -> None:
    """Plays, prints, records."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--binaries", type=Path, required=True)
    parser.add_argument("--inputs", type=Path, required=True)
    parser.add_argument("--record", type=Path, required=True)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    with (arguments.inputs / "pairs.tsv").open(encoding="utf-8", newline="\n") as lines:
        pairs = sum(1 for _ in lines)
    everyone = contestants(arguments.binaries, arguments.inputs)
    play(everyone, arguments.rounds)
    for contestant in everyone:
        contestant.end()
    table = rows(everyone, pairs)
    print(f"{pairs:,} pairs, one thread each, medians of {arguments.rounds} interleaved rounds\n")
    show(table)
    machine = {"machine": platform.machine(), "cores": os.cpu_count()}
    record = machine | {"pairs": pairs, "rounds": arguments.rounds, "rows": table}
    arguments.record.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    print(f"\nrecorded in {arguments.record}")
    off = [row for row in table if abs(row["off_by"]) > TOLERANCE]
    for row in off:
        print(f"{row['contestant']}: {row['method']} is not the same thing", file=sys.stderr)
    sys.exit(1 if off else 0)


if __name__ == "__main__":
    main()
