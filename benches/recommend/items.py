"""Makes a list of titles to recommend out of articles, for `cognate eval recommend`.

items.py TEXT ARTICLES > titles.tsv

TEXT (may end in .gz) holds a sentence a line; an empty line ends a paragraph, a second one a document.
ARTICLES holds file, number and title of each document in their order. A title is the first sentence of a
paragraph, cut to its first 12 words; its topic is the article. Rows: number, title of the article, 1, text.
"""

import gzip
import sys
from pathlib import Path

WORDS = 12


def documents(path: str) -> list[list[str]]:
    opened = gzip.open(path, "rt", encoding="utf-8") if path.endswith(".gz") else open(path, encoding="utf-8")
    with opened as lines:
        text = lines.read().strip("\n")
    return [[paragraph.split("\n")[0] for paragraph in document.split("\n\n")] for document in text.split("\n\n\n")]


def main() -> None:
    text, articles = sys.argv[1:]
    name = Path(text).name.split(".")[0]
    rows = (line.rstrip("\n").split("\t") for line in open(articles, encoding="utf-8"))
    of_file = [(number, title) for file, number, title in rows if file == name]
    found = documents(text)
    if len(found) != len(of_file):
        sys.exit(f"{name}: {len(found)} documents, {len(of_file)} titles")
    for (number, title), document in zip(of_file, found):
        for sentence in document:
            print(number, title, 1, " ".join(sentence.split()[:WORDS]), sep="\t")


if __name__ == "__main__":
    main()
