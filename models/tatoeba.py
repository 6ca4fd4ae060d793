#!/usr/bin/env python3
"""Tells how often the nearest of a thousand translations is the right one.

    models/tatoeba.py COGNATE MODEL TABLE ...

COGNATE is the program. A line of a table is an English text, a tab and its translation, as models/languages.py writes
them to `pairs/tatoeba-en-*.tsv`. Printed are, for each table, the shares of English texts and of translations that
have their counterpart nearest by cosine, `avg-cos`. Needs NumPy.
"""

import subprocess
import sys

import numpy


def vectors(program, model, table, column):
    flags = ["--no-header", "--columns", "vector", "--method", "avg-cos", "--format", "tsv"]
    command = [program, "embed", "--model", model, "--input", table, "--text", str(column), *flags]
    lines = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout.splitlines()
    rows = [numpy.fromstring(line, sep=" ") for line in lines]
    width = max(map(len, rows))
    # A text without any known word has no vector.
    rows = numpy.array([row if len(row) == width else numpy.zeros(width) for row in rows])
    return rows / numpy.maximum(numpy.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def main(program, model, *tables):
    for table in tables:
        english, other = (vectors(program, model, table, column) for column in (1, 2))
        cosines = english @ other.T
        right = numpy.arange(len(cosines))
        shares = [100 * (cosines.argmax(axis) == right).mean() for axis in (1, 0)]
        print(f"{table}\t{len(right)}\t{shares[0]:.1f}\t{shares[1]:.1f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
