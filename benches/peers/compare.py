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
# The service's own model, with all that it does beside looking words up.
DEFAULT = "cognate, its default model"
METHODS = ["avg-cos", "auto", "dynamax-jaccard", "embed", "wmd", "token_set_ratio"]
# Of the slowest only a few hundred pairs, from all over the list.
EVERY = {"wmd": 33}
# What a method that cognate does not have is timed beside; the scores are others.
BESIDE = {"token_set_ratio": "avg-cos"}
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


def contestants(binaries: Path, inputs: Path, vectors: str) -> list[Contestant]:
    """Starts everyone who reads these vectors, ours first."""
    here, folder = Path(__file__).parent, inputs / vectors
    python = [sys.executable]
    commands: dict[str, list[str | Path]] = {
        OURS: [binaries / "ours", folder / "cognate.safetensors"],
        "model2vec-rs 0.4": [binaries / "model2vec", "0.4", folder / "word-piece"],
        "laghu 0.4 with laghu-rs": [*python, here / "static_peer.py", "laghu", folder / "word-piece"],
        "model2vec 0.10": [*python, here / "static_peer.py", "model2vec", folder / "word-piece"],
    }
    if vectors == "default":
        commands[DEFAULT] = [binaries / "ours", here.parent.parent / "models/default.safetensors"]
        commands["RapidFuzz 3.14"] = [*python, here / "letters_peer.py"]
    else:
        matrix: list[str | Path] = [folder / "vectors.npy", folder / "vocabulary.txt"]
        commands |= {
            "Rust port": [binaries / "port", *matrix],
            "model2vec-rs 0.2": [binaries / "model2vec", "0.2", folder / "word-level"],
            "NumPy": [*python, here / "numpy_peer.py", *matrix],
            "gensim": [*python, here / "gensim_peer.py", *matrix],
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
        beside = BESIDE.get(method, method)
        for contestant in everyone:
            if method not in contestant.nanos:
                continue
            each = sorted(nanos / items for nanos in contestant.nanos[method])
            nanos = statistics.median(each)
            mean = contestant.mean[method]
            same = contestant.name != DEFAULT and method in ours.mean
            table.append(
                {
                    "method": method,
                    "unit": "text" if method == "embed" else "pair",
                    "contestant": contestant.name,
                    "nanoseconds": nanos,
                    "fastest_and_slowest": [each[0], each[-1]],
                    "per_second": 1e9 / nanos,
                    "ratio": nanos * items / statistics.median(ours.nanos[beside]),
                    "mean_score": mean,
                    "off_by": mean - ours.mean[method] if same else None,
                }
            )
    return table


def show(table: list[Row]) -> None:
    """The table as Markdown."""
    print("| method | contestant | ns | a second | × cognate's time | mean score, off by |")
    print("|---|---|---|---|---|---|")
    for row in table:
        off_by = "other scores" if row["off_by"] is None else f"{row['off_by']:+.4f}"
        print(
            f"| `{row['method']}` | {row['contestant']} | {row['nanoseconds']:,.0f} a {row['unit']} "
            f"| {row['per_second']:,.0f} | {row['ratio']:.2f} "
            f"| {row['mean_score']:.4f}, {off_by} |"
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
    tables = {}
    for vectors in ["default", "glove"]:
        everyone = contestants(arguments.binaries, arguments.inputs, vectors)
        play(everyone, arguments.rounds)
        for contestant in everyone:
            contestant.end()
        tables[vectors] = rows(everyone, pairs)
        print(f"\nvectors: {vectors}; {pairs:,} pairs, one thread each, ", end="")
        print(f"medians of {arguments.rounds} interleaved rounds\n")
        show(tables[vectors])
    machine = {"machine": platform.machine(), "cores": os.cpu_count()}
    record = machine | {"pairs": pairs, "rounds": arguments.rounds, "tables": tables}
    arguments.record.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    print(f"\nrecorded in {arguments.record}")
    everything = [row for table in tables.values() for row in table]
    off = [row for row in everything if abs(row["off_by"] or 0) > TOLERANCE]
    for row in off:
        print(f"{row['contestant']}: {row['method']} is not the same thing", file=sys.stderr)
    sys.exit(1 if off else 0)


if __name__ == "__main__":
    main()
