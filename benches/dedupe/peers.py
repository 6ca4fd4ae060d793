"""Pairs found at equal precision by `cognate dedupe`, semhash and MinHash (datasketch).

peers.py --cognate BINARY --model MODEL --work FOLDER PAIRS
peers.py --cognate BINARY --model MODEL --work FOLDER --texts TEXTS   (time and memory alone)

PAIRS has rows of `label`, `text`, `text` between tabs, packed or not. All its texts are deduplicated as one
list; of the pairs that a contestant finds, those that have a label are counted. semhash gets the same
vectors, exported as a model2vec folder. Each contestant is a process of its own; memory is its peak.
"""

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Iterable

PRECISIONS = [0.95, 0.9, 0.85, 0.8, 0.75, 0.7]
# Low enough that every precision above is passed on the way down.
LOWEST = {"cognate": 0.5, "semhash": 0.5, "minhash": 0.2}
PERMUTATIONS = 128

Found = list[tuple[int, int, float]]


def read_pairs(path: Path) -> tuple[list[str], dict[tuple[int, int], int]]:
    opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else open(path, encoding="utf-8")
    numbers: dict[str, int] = {}
    labels: dict[tuple[int, int], int] = {}
    with opened as lines:
        for line in lines:
            label, one, other = line.rstrip("\n").split("\t")
            pair = sorted(numbers.setdefault(text, len(numbers)) for text in (one, other))
            if pair[0] != pair[1]:
                labels[pair[0], pair[1]] = max(int(label), labels.get((pair[0], pair[1]), 0))
    return list(numbers), labels


def by_semhash(texts: list[str], folder: str) -> Found:
    from model2vec import StaticModel
    from semhash import SemHash

    hashed = SemHash.from_records(texts, model=StaticModel.from_pretrained(folder))
    index = hashed.index
    place = {text: number for number, text in enumerate(texts)}
    number = [place[group[0]["text"]] for group in index.items]
    found = []
    for at, (near, scores) in enumerate(index.query_threshold(index.vectors, threshold=LOWEST["semhash"])):
        for other, score in zip(near, scores):
            if at != other:
                one, two = sorted((number[at], number[other]))
                found.append((one, two, float(score)))
    return found


def by_minhash(texts: list[str], _: str) -> Found:
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=LOWEST["minhash"], num_perm=PERMUTATIONS)
    sketches, found = [], []
    for number, text in enumerate(texts):
        words = text.lower().split()
        sketch = MinHash(num_perm=PERMUTATIONS)
        sketch.update_batch([word.encode() for word in words])
        for other in index.query(sketch):
            score = sketch.jaccard(sketches[other])
            if score >= LOWEST["minhash"]:
                found.append((other, number, score))
        index.insert(number, sketch)
        sketches.append(sketch)
    return found


def contestant(name: str, texts: str, folder: str, out: str) -> None:
    lines = Path(texts).read_text(encoding="utf-8").split("\n")
    begun = time.perf_counter()
    found = {"semhash": by_semhash, "minhash": by_minhash}[name](lines, folder)
    seconds = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    json.dump({"seconds": seconds, "mebibytes": peak, "found": found}, open(out, "w"))


def run_cognate(args: argparse.Namespace, texts: Path, work: Path, method: str) -> dict:
    pairs = work / "pairs.tsv"
    command = [args.cognate, "dedupe", texts, "--no-header", "--format", "tsv", "-o", work / "out.tsv"]
    command += ["--threshold", str(LOWEST["cognate"]), "--pairs", pairs, "--model", args.model, "--method", method]
    begun = time.perf_counter()
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"cognate ended with {status}")
    seconds = time.perf_counter() - begun
    rows = (line.split("\t") for line in pairs.read_text().splitlines()[1:])
    found = [(int(one) - 1, int(other) - 1, float(score)) for one, other, score in rows]
    return {"seconds": seconds, "mebibytes": usage.ru_maxrss / 1024, "found": found}


def run_peer(name: str, args: argparse.Namespace, texts: Path, work: Path) -> dict:
    out = work / f"{name}.json"
    command = [sys.executable, __file__, "--contestant", name, "--texts", texts, "--work", work / "model", "--out", out]
    subprocess.run([str(part) for part in command], check=True)
    return json.loads(out.read_text())


def recall_at(found: Iterable, labels: dict, precisions: list[float]) -> list[tuple[float, float] | None]:
    """For each precision the largest share of related pairs found at it, and the score that gives it."""
    related = sum(labels.values())
    best: dict[tuple[int, int], float] = {}
    for one, other, score in found:
        best[one, other] = max(score, best.get((one, other), score))
    known = sorted(((score, labels[pair]) for pair, score in best.items() if pair in labels), reverse=True)
    reached: list[tuple[float, float] | None] = [None] * len(precisions)
    right = 0
    for count, (score, label) in enumerate(known, 1):
        right += label
        # Pairs of one score are found together.
        if count < len(known) and known[count][0] == score:
            continue
        for at, precision in enumerate(precisions):
            if right >= precision * count:
                reached[at] = (right / related, score)
    return reached


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("pairs", nargs="?", type=Path)
    parser.add_argument("--cognate", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--contestant")
    parser.add_argument("--out")
    args = parser.parse_args()
    if args.contestant:
        return contestant(args.contestant, args.texts, args.work, args.out)
    work: Path = args.work
    work.mkdir(parents=True, exist_ok=True)
    labels: dict[tuple[int, int], int] = {}
    texts = args.texts
    if args.pairs:
        lines, labels = read_pairs(args.pairs)
        texts = work / "texts.tsv"
        texts.write_text("\n".join(lines), encoding="utf-8")
        print(f"{len(lines)} texts, {len(labels)} pairs with a label, {sum(labels.values())} related")
    if not (work / "model").exists():
        export = [args.cognate, "export", args.model, "-o", work / "model", "--to", "model2vec"]
        subprocess.run([str(part) for part in export], check=True, stdout=subprocess.DEVNULL)
    head = " | ".join(f"P {precision:.2f}" for precision in PRECISIONS)
    print(f"| | seconds | MiB | {head} |")
    for name in ["cognate auto", "cognate avg-cos", "semhash", "minhash"]:
        ours, _, method = name.partition(" ")
        run = run_cognate(args, texts, work, method) if method else run_peer(ours, args, texts, work)
        cells = [name, f"{run['seconds']:.1f}", f"{run['mebibytes']:.0f}"]
        for reached in recall_at(run["found"], labels, PRECISIONS) if labels else []:
            cells.append("–" if reached is None else f"{100 * reached[0]:.1f} at {reached[1]:.3f}")
        print("| " + " | ".join(cells) + " |", flush=True)


main()
