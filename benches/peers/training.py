"""Words a second of skip-gram and CBOW: cognate beside gensim, in turns, on one thread.

Both learn from the same files with the same settings (window 5, 5 random words, subsampling at 1e-5,
words of at least 5 occurrences, one epoch). gensim is given sentences already cut into words, and
neither's reading is counted. `training.sh` prepares what this needs.
"""

import argparse
import gzip
import json
import re
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from gensim.models.word2vec import FAST_VERSION, Word2Vec

WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def sentences(files):
    """Sentences of words, lower case, as cognate's rules `plain` cut most of them."""
    found = []
    for file in files:
        with gzip.open(file, "rt") as lines:
            words = (WORD.findall(line.lower()) for line in lines)
            found.extend(sentence for sentence in words if sentence)
    return found


def of_gensim(text, words, skip_gram, dims):
    model = Word2Vec(
        vector_size=dims, window=5, min_count=5, sample=1e-5, negative=5, hs=0,
        sg=int(skip_gram), workers=1, epochs=1, seed=1,
    )
    model.build_vocab(text)
    begun = time.perf_counter()
    model.train(text, total_examples=len(text), epochs=1)
    return words / (time.perf_counter() - begun)


def of_cognate(binary, files, skip_gram, dims, folder):
    command = [
        binary, "train", "vectors", *map(str, files), "-o", str(folder / "model.safetensors"),
        "--objective", "skip-gram" if skip_gram else "cbow", "--dims", str(dims),
        "--epochs", "1", "--json", "--restart",
    ]
    trained = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return json.loads(trained)["words_per_second"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--binary", required=True)
    arguments.add_argument("--data", type=Path, required=True)
    arguments.add_argument("--record", type=Path, required=True)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--dims", type=int, nargs="+", default=[100, 300])
    given = arguments.parse_args()
    files = [given.data / "text" / "wiki-train-1.txt.gz"]
    text = sentences(files)
    words = sum(map(len, text))
    print(f"{words} words; gensim's compiled loop: version {FAST_VERSION}")
    record = []
    with tempfile.TemporaryDirectory() as folder:
        for dims in given.dims:
            for skip_gram in (True, False):
                theirs, ours = [], []
                for _ in range(given.rounds):
                    theirs.append(of_gensim(text, words, skip_gram, dims))
                    ours.append(of_cognate(given.binary, files, skip_gram, dims, Path(folder)))
                name = "skip-gram" if skip_gram else "cbow"
                theirs, ours = statistics.median(theirs), statistics.median(ours)
                print(
                    f"{name:<10} {dims} dimensions: cognate {ours / 1e6:.2f}, gensim "
                    f"{theirs / 1e6:.2f} million words/s, {ours / theirs:.2f} times as fast"
                )
                record.append({"model": name, "dims": dims, "cognate": ours, "gensim": theirs})
    given.record.write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
