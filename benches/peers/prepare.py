"""Writes what the contestants read, all of it from the same vectors and the same texts.

prepare.py SHARED_DATA MODEL FOLDER

The first 10,000 STS pairs, and two sets of vectors: GloVe 6B 100d (half precision, widened once), and
the rows of MODEL, cognate's default. Where there is no shared data, texts and the first set are
made up in the same sizes, and their scores mean nothing. FOLDER gets `pairs.tsv` and, for `glove` and `default`,
a folder with `vectors.npy` (float32), `vocabulary.txt` and a model2vec folder or two.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from turns import read_words

Json = dict[str, Any]

PAIRS = 10_000
WORDS, DIMENSIONS = 341_479, 100
UNKNOWN = "[UNK]"

# Words in a text of the STS pairs, from the shortest to the longest in steps of 5 %.
LENGTHS = [1, 5, 5, 6, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 12, 14, 15, 17, 20, 71]
# Ranks of their words among the vectors, in the same steps.
RANKS = [
    0,
    0,
    4,
    6,
    12,
    25,
    41,
    71,
    134,
    255,
    409,
    614,
    847,
    1260,
    1818,
    2611,
    3669,
    5379,
    8708,
    18016,
    341218,
]
# Share of their words that have a vector.
KNOWN = 0.9


def real_vectors(shared: Path) -> tuple[NDArray[np.float32], list[str]]:
    """GloVe 6B 100d of the shared data."""
    tensors = load_file(shared / "vectors/glove.6B.100d.safetensors")
    words = read_words(str(shared / "vectors/vocab.txt"))
    return tensors["vectors"].astype(np.float32), words


def default_vectors(model: Path) -> tuple[NDArray[np.float32], list[str]]:
    """The words and rows of a model file whose rows are bytes."""
    tensors = load_file(model)
    rows = tensors["vectors"].astype(np.float32) * tensors["scales"][:, None]
    strings, ends = tensors["vocab_bytes"].tobytes(), tensors["vocab_offsets"].tolist()
    return rows, [strings[start:end].decode() for start, end in zip(ends, ends[1:])]


def made_up_vectors() -> tuple[NDArray[np.float32], list[str]]:
    """Normal numbers for words of letters that no rule of a tokeniser cuts."""
    numbers = np.random.default_rng(1).standard_normal((WORDS, DIMENSIONS), dtype=np.float32)
    return numbers * np.float32(0.4), [made_up_word(rank) for rank in range(WORDS)]


def made_up_word(rank: int) -> str:
    """A rank written with the letters a to z, most frequent words short."""
    word = "q"
    while rank:
        rank, letter = divmod(rank, 26)
        word += chr(ord("a") + letter)
    return word


def real_pairs(shared: Path) -> list[tuple[str, str]]:
    """The first pairs of the STS files in the order of their names."""
    pairs = []
    for path in sorted((shared / "sts").glob("*.tsv")):
        with path.open(encoding="utf-8", newline="\n") as lines:
            for line in lines:
                _, one, other = line.rstrip("\n").split("\t")
                pairs.append((one, other))
    return pairs[:PAIRS]


def made_up_pairs(words: list[str]) -> list[tuple[str, str]]:
    """Texts as long as those of the STS pairs, of words as frequent and as often unknown."""
    random = np.random.default_rng(2)

    def drawn(steps: list[int], count: int) -> NDArray[np.int64]:
        """Draws from a distribution given in even steps, between them on a logarithmic scale."""
        places = random.random(count) * (len(steps) - 1)
        logarithms = np.interp(places, np.arange(len(steps)), np.log1p(steps))
        return np.expm1(logarithms).round().astype(np.int64)

    texts = []
    for length in drawn(LENGTHS, 2 * PAIRS):
        ranks, known = drawn(RANKS, length), random.random(length) < KNOWN
        chosen = [words[rank] if here else f"x{rank}x" for rank, here in zip(ranks, known)]
        texts.append(" ".join(chosen).capitalize() + ".")
    return list(zip(texts[::2], texts[1::2]))


def write_model2vec(folder: Path, vectors: NDArray[np.float32], tokenizer: Json) -> None:
    """Writes the three files of a model2vec folder."""
    folder.mkdir(exist_ok=True)
    save_file({"embeddings": vectors}, folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps({"normalize": True}))
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")


def tokenizer(words: list[str], normalizer: Json, cuts: str, model: Json) -> Json:
    """A tokenizer of whole words; one that is not listed is left out of the mean."""
    ids = {word: row for row, word in enumerate([*words, UNKNOWN])}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": normalizer,
        "pre_tokenizer": {"type": cuts},
        "post_processor": None,
        "decoder": None,
        "model": model | {"vocab": ids, "unk_token": UNKNOWN},
    }


def write_vectors(
    folder: Path, vectors: NDArray[np.float32], words: list[str], word_level: bool
) -> None:
    """Writes vectors for everyone: for either line of model2vec-rs what it is fastest with."""
    folder.mkdir(exist_ok=True)
    np.save(folder / "vectors.npy", vectors)
    (folder / "vocabulary.txt").write_text("".join(f"{word}\n" for word in words), "utf-8")
    # Marks have vectors in GloVe, but no other contestant reads them.
    rows = [row for row, word in enumerate(words) if any(map(str.isalnum, word))]
    words = [words[row] for row in rows]
    vectors = np.vstack((vectors[rows], np.zeros((1, vectors.shape[1]), np.float32)))
    # The tokenisers of their own that model2vec-rs and laghu have are for BERT's pipeline alone. No
    # word begins with the prefix of continued pieces, so a word is one piece or unknown.
    bert = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": True,
        "strip_accents": False,
        "lowercase": True,
    }
    pieces = {
        "type": "WordPiece",
        "continuing_subword_prefix": "##",
        "max_input_chars_per_word": 100,
    }
    word_piece = tokenizer(words, bert, "BertPreTokenizer", pieces)
    write_model2vec(folder / "word-piece", vectors, word_piece)
    if word_level:
        whole = tokenizer(words, {"type": "Lowercase"}, "Whitespace", {"type": "WordLevel"})
        write_model2vec(folder / "word-level", vectors, whole)


def main() -> None:
    """Writes everything."""
    shared, model, folder = (Path(argument) for argument in sys.argv[1:])
    folder.mkdir(parents=True, exist_ok=True)
    real = (shared / "sts").is_dir()
    vectors, words = real_vectors(shared) if real else made_up_vectors()
    pairs = real_pairs(shared) if real else made_up_pairs(words)
    print("texts and first vectors:", "STS and GloVe 6B 100d" if real else "made up")
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in pairs), "utf-8")
    write_vectors(folder / "glove", vectors, words, word_level=True)
    write_vectors(folder / "default", *default_vectors(model), word_level=False)


if __name__ == "__main__":
    main()
