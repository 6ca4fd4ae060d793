"""`python -m cognate_text`: one question, answered on the command line as the program `cognate` does."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

import cognate_text
from cognate_text import CognateError, EventDetector, Model, _native


def number(score: float) -> str:
    """A score in the fewest digits that stand for it."""
    return np.format_float_positional(np.float32(score), trim="-")


def line(text: str) -> str:
    """A text on a line of its own, without characters that steer terminals."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def texts(given: list[str]) -> list[str]:
    """The texts given, or the lines of standard input for `-` alone."""
    return given if given != ["-"] else [text.rstrip("\n") for text in sys.stdin]


def table(rows: list[str], heads: NDArray[np.int64], scores: NDArray[np.float32]) -> str:
    """The texts, each behind the number of the first one of its group and its score, if it has one."""
    shown = ("" if np.isnan(score) else number(score) for score in scores)
    return "\n".join(f"{head}\t{score}\t{line(row)}" for head, score, row in zip(heads, shown, rows))


def arguments() -> argparse.ArgumentParser:
    """What can be asked."""
    parser = argparse.ArgumentParser(prog="python -m cognate_text", description=__doc__)
    parser.add_argument("--version", action="version", version=f"cognate-text {cognate_text.__version__}")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--model", metavar="FILE", help="model file [default: the one inside the package]")
    asked = argparse.ArgumentParser(add_help=False, parents=[common])
    asked.add_argument("--method", default="auto", metavar="NAME", help="see `methods` [default: auto]")
    asked.add_argument("--truncate", action="store_true", help="cut texts that are too long")
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("similarity", "the score of one pair"), ("explain", "why a pair scores as it does")):
        command = commands.add_parser(name, parents=[asked], help=about)
        command.add_argument("a")
        command.add_argument("b")
    command = commands.add_parser("rank", parents=[asked], help="candidates by how alike they are")
    command.add_argument("query")
    command.add_argument("candidates", nargs="+", help="`-` alone reads standard input, one a line")
    command.add_argument("--top-k", type=int, metavar="N")
    command = commands.add_parser("embed", parents=[asked], help="the vectors of texts")
    command.add_argument("texts", nargs="+", help="`-` alone reads standard input, one a line")
    command = commands.add_parser("dedupe", parents=[asked], help="which texts say what another before them says")
    command.add_argument("texts", nargs="+", help="`-` alone reads standard input, one a line")
    least = _native.DUPLICATES
    command.add_argument("--threshold", type=float, default=least, metavar="SCORE", help=f"least score [default: {least}]")
    command = commands.add_parser("events", parents=[common], help="which event each text belongs to")
    command.add_argument("texts", nargs="+", help="`-` alone reads standard input, one a line")
    command.add_argument("--threshold", type=float, metavar="SCORE", help="least score [default: found for the method]")
    commands.add_parser("methods", parents=[common], help="what can be asked of the model")
    return parser


def answer(given: argparse.Namespace) -> str:
    """What is printed."""
    model = Model(given.model)
    if given.command == "methods":
        known = [f"{about['name']:<20} {about['unavailable'] or about['summary']}" for about in model.methods()]
        return "\n".join([repr(model), f"auto is {model.auto}", *known])
    if given.command == "events":
        stream = texts(given.texts)
        followed = EventDetector(model, threshold=given.threshold).add_many(stream)
        return table(stream, followed.event, followed.score)
    asked = {"method": given.method, "truncate": given.truncate}
    if given.command == "dedupe":
        column = texts(given.texts)
        copies = cognate_text.dedupe(column, threshold=given.threshold, model=model, **asked)
        heads = np.where(copies.duplicate_of < 0, np.arange(len(column)), copies.duplicate_of)
        return table(column, heads, copies.scores)
    if given.command == "similarity":
        try:
            return number(model.similarity(given.a, given.b, unscored="error", **asked))
        except cognate_text.TextError as error:
            return f"0 (not scored: {error})"
    if given.command == "explain":
        why = model.explain(given.a, given.b, **asked)
        rows = [why.sentence]
        for name, side in (("A", why.a), ("B", why.b)):
            rows += ["", name]
            for word in side.words:
                share = "" if word.share is None else f"{word.share:.4f}"
                rows.append(f"  {share:>8}  {line(word.token):<20} {word.found}")
            rows += [f"  {'':>8}  {line(token):<20} no vector" for token, _ in side.unknown]
        return "\n".join(rows)
    if given.command == "rank":
        found = model.rank(given.query, texts(given.candidates), top_k=given.top_k, **asked)
        scores = ("-" if one.score is None else number(one.score) for one in found)
        return "\n".join(f"{score:<12} {line(one.text)}" for score, one in zip(scores, found))
    vectors = model.embed(texts(given.texts), **asked)
    return "\n".join(" ".join(number(value) for value in row) if row.any() else "-" for row in vectors)


def main(given: Sequence[str] | None = None) -> int:
    """Answers one question."""
    try:
        print(answer(arguments().parse_args(given)), flush=True)
    except BrokenPipeError:
        # Who reads has enough, as `head`; nothing is written to a closed pipe at the end either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (CognateError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
