"""`python -m cognate_text` prints what the program prints."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import ROOT, TEXTS, Program


def run(*words: str, fed: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cognate_text", *words]
    return subprocess.run(command, input=fed, capture_output=True, text=True)


@pytest.mark.parametrize(
    "words",
    [
        ["similarity", TEXTS[0], TEXTS[1]],
        ["similarity", TEXTS[0], TEXTS[0]],
        ["similarity", "--method", "wmd", TEXTS[0], TEXTS[3]],
        ["rank", TEXTS[1], *TEXTS],
        ["rank", "--top-k", "3", "--method", "bm25", TEXTS[1], *TEXTS],
        ["embed", TEXTS[0], "!!!"],
    ],
)
def test_the_same_words(program: Program, words: list[str]) -> None:
    model = ["--model", str(ROOT / "models/default.safetensors")]
    expected = subprocess.run(
        [program.path, words[0], *model, *words[1:]], capture_output=True, text=True, check=True
    )
    assert run(*words).stdout == expected.stdout


def test_texts_of_a_file() -> None:
    lines = "Strong earthquake shakes L.A. tonight\na cat naps\nstrong earthquake shakes L.A. tonight!!!\n"
    found = run("dedupe", "-", fed=lines).stdout.splitlines()
    assert found == ["0\t\t" + lines.split("\n")[0], "1\t\ta cat naps", "0\t1\t" + lines.split("\n")[2]]
    assert run("dedupe", "--threshold", "2", "-", fed=lines).returncode == 2
    events = run("events", "-", fed=lines).stdout.splitlines()
    assert [row.split("\t")[0] for row in events] == ["0", "1", "0"]


def test_the_rest() -> None:
    assert run("rank", "earthquake", "-", fed="a cat\na tremor\n").stdout.splitlines()[0].endswith("a tremor")
    explained = run("explain", *TEXTS[:2]).stdout
    assert explained.startswith("polarity-blend scores 0.66;") and "\nB\n" in explained
    assert "dynamax-jaccard" in run("methods").stdout
    assert run("similarity", "a quake", "!!!").stdout == "0 (not scored: b has no known word)\n"
    refused = run("similarity", "a", "b", "--method", "none")
    assert refused.returncode == 2 and refused.stderr.startswith("error: no such method")
