#!/usr/bin/env python3
"""Fetches the data sets that the authors of papers give to everybody, in the form that the commands of docs/RESULTS.md read.

    benches/data/fetch.py FOLDER [SET...]

FOLDER is the `DATA` of the documents. SETS are listed below with their terms; without a name all are fetched but `msr`,
whose terms have to be agreed to first. A file that is there is kept. What is written has to have the digest in fetch.sha256
(of the contents, where it is packed), so what a source changes is found, and the figures are those of the documents. Only the
vectors of `glove` differ: see RESULTS.md. Sets that are not here, and where to ask for them: docs/RESULTS.md#the-data.
"""

import gzip
import hashlib
import html
import io
import json
import pathlib
import re
import struct
import sys
import tarfile
import tempfile
import urllib.request
import zipfile
from functools import partial

# Repositories at a commit, so that what is read never changes.
USIF = "kawine/usif/71ffef5b6d7295c36354136bfc6728a10bd25d32"  # the paper of `usif`, with the official STS and SICK files
SIF = "PrincetonML/SIF/84b5b4c1c1ca20b6af19fc78cae005a1818ec571"  # the paper of `sif`
TWEETS = "jinfengr/neural-tweet-search/208b4c2d5de1c49133b737fdb38791b96b0c3afc"  # Rao et al. 2019, whose runs Shi et al. rank
QRELS = "castorini/anserini-tools/5b819c1a45c8a0a3ec9426f476694f44a29dfaf3"  # NIST's judgements
# The address is that of facebookresearch/SentEval, data/downstream/get_transfer_data.bash.
STSB = "http://ixa2.si.ehu.es/stswiki/images/4/48/Stsbenchmark.tar.gz"
# The address is that of the README of stanfordnlp/GloVe, the digest that of JuliaText/Embeddings.jl, src/glove.jl.
GLOVE = "https://huggingface.co/stanfordnlp/glove/resolve/main/glove.6B.zip"
GLOVE_SHA256 = "617afb2fe6cbd085c235baf7a465b96f4112bd7f7ccb2b2cbd649fed9cbcf2fb"

YEARS = {
    "2012": ("STS2012-gold", "SMTeuroparl surprise.OnWN surprise.SMTnews"),
    "2013": ("STS2013-gold", "FNWN OnWN headlines"),
    "2014": ("STS2014-gold", "OnWN deft-forum deft-news headlines images tweet-news"),
    "2015": ("STS2015-old", "answers-forums answers-students belief headlines images"),
}
TERMS = {
    "sts": "SemEval STS 2012-2015 but for Microsoft's: data of the tasks, for research; answers-forums CC BY-SA 3.0",
    "sick": "SICK: CC BY-NC-SA 3.0",
    "counts": "word counts of Wikipedia: MIT (the repository's)",
    "microblog": "TREC Microblog: Apache-2.0 (the repository's); the tweets are their authors', for research; judgements by NIST",
    "glove": "GloVe 6B: Public Domain Dedication and License 1.0",
    "msr": "2012.MSRpar, 2012.MSRvid, STS Benchmark: agree to Microsoft Research's terms first; their addresses are in\n"
    "  STS2012-gold/00-readme.txt of kawine/usif. Scores of STS Benchmark: CC BY-SA 4.0",
}
BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]", "``": '"', "''": '"'}


def read(address: str) -> bytes:
    with urllib.request.urlopen(address) as answer:
        return answer.read()


def lines(repository: str, path: str) -> list[str]:
    text = read(f"https://raw.githubusercontent.com/{repository}/{path}").decode("utf-8-sig", "replace")
    return text.replace("\r", "").split("\n")


def row(*cells: str) -> str:
    return "\t".join(" ".join(cell.split()) for cell in cells) + "\n"


def year(number: str, name: str) -> str:
    folder = f"STS/STS-data/{YEARS[number][0]}"
    scores, pairs = (lines(USIF, f"{folder}/STS.{kind}.{name}.txt") for kind in ("gs", "input"))
    return "".join(row(score, *pair.split("\t")[:2]) for score, pair in zip(scores, pairs) if score.strip())


def sts():
    for number, (_, names) in YEARS.items():
        for name in names.split():
            yield f"sts/{number}.{name.removeprefix('surprise.')}.tsv", partial(year, number, name)


def sick():
    for part in ("train", "trial"):
        yield f"sts/sick-{part}.tsv", partial(sick_part, part)


def sick_part(part: str) -> str:
    cells = (line.split("\t") for line in lines(USIF, f"STS/SICK-data/SICK_{part}.txt")[1:] if line)
    return "".join(row(score, a, b) for _, a, b, score, *_ in cells)


def msr():
    for name in ("MSRpar", "MSRvid"):
        yield f"sts/2012.{name}.tsv", partial(year, "2012", name)
    for part in ("train", "dev"):
        yield f"sts/stsb-{part}.tsv", partial(stsb, part)


def stsb(part: str) -> str:
    with tarfile.open(fileobj=io.BytesIO(read(STSB))) as archive:
        text = archive.extractfile(f"stsbenchmark/sts-{part}.csv").read().decode()
    return "".join(row(*line.split("\t")[4:7]) for line in text.split("\n") if line)


def counts():
    yield "freq/enwiki_vocab_min200.tsv", wikipedia


def wikipedia() -> str:
    return "\n".join(lines(SIF, "auxiliary_data/enwiki_vocab_min200.txt")).replace(" ", "\t")


def microblog():
    for number in (2011, 2012, 2013):
        yield f"ranking/microblog-{number}.tsv.gz", partial(candidates, number)
        yield f"ranking/microblog-{number}.qrels.tsv", partial(judgements, number)


def plain(text: str) -> str:
    """Brackets, quotes and slashes as they were before the tokeniser of the repository; names and addresses as `@user`."""
    for written, meant in BRACKETS.items():
        text = text.replace(written, meant)
    return re.sub(r"(?<!\w)@\w+", "@user", re.sub(r"\\([/*])", r"\1", html.unescape(text)))


def candidates(number: int) -> str:
    files = (lines(TWEETS, f"data/twitter-v0/trec-{number}/{name}") for name in ("id.txt", "a.toks", "sim.txt", "b.toks"))
    found = []
    for run, query, label, text in zip(*files):
        if run:
            topic, _, tweet, rank, score, _ = run.split()
            found.append(row(topic, plain(query), label, tweet, rank, score, plain(text)))
    return "".join(found)


def judgements(number: int) -> str:
    judged = (line.split() for line in lines(QRELS, f"qrels/qrels.microblog{number}.txt") if line)
    return "".join(row(topic, tweet, grade) for topic, _, tweet, grade in judged if int(grade) > 0)


def glove():
    yield "vectors/glove.6B.100d.safetensors", None


def fetch_glove(folder: pathlib.Path) -> None:
    """Vectors as half floats, and their words, a word a line."""
    with tempfile.TemporaryFile() as packed:
        digest = hashlib.sha256()
        with urllib.request.urlopen(GLOVE) as answer:
            while part := answer.read(1 << 20):
                packed.write(part)
                digest.update(part)
        if digest.hexdigest() != GLOVE_SHA256:
            raise SystemExit(f"{GLOVE} has another digest: {digest.hexdigest()}")
        words, rows = [], []
        with zipfile.ZipFile(packed) as archive, archive.open("glove.6B.100d.txt") as text:
            for line in text:
                word, *numbers = line.decode().rstrip("\n").split(" ")
                words.append(word)
                rows.append(struct.pack("<100e", *map(float, numbers)))
    data = b"".join(rows)
    head = json.dumps({"vectors": {"dtype": "F16", "shape": [len(words), 100], "data_offsets": [0, len(data)]}}).encode()
    head += b" " * (-len(head) % 8)
    (folder / "vectors/vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8", newline="\n")
    (folder / "vectors/glove.6B.100d.safetensors").write_bytes(struct.pack("<Q", len(head)) + head + data)


def main() -> None:
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(TERMS):
        raise SystemExit(__doc__ + "\n" + "\n".join(f"{name}: {terms}" for name, terms in TERMS.items()))
    folder = pathlib.Path(sys.argv[1])
    sums = pathlib.Path(__file__).with_name("fetch.sha256").read_text(encoding="utf-8")
    digests = {name: digest for digest, name in map(str.split, sums.splitlines())}
    for name in sys.argv[2:] or [name for name in TERMS if name != "msr"]:
        print(f"{name}: {TERMS[name]}")
        for path, make in globals()[name]():
            target = folder / path
            if target.exists():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            if make is None:
                fetch_glove(folder)
                continue
            contents = make().encode()
            if hashlib.sha256(contents).hexdigest() != digests[path]:
                raise SystemExit(f"{path}: its source has changed, the digest is another")
            target.write_bytes(gzip.compress(contents, mtime=0) if path.endswith(".gz") else contents)
            print(f"  {path}")


if __name__ == "__main__":
    main()
