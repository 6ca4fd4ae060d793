"""The package itself: its version, its types, its examples."""

from __future__ import annotations

import doctest
import importlib
import importlib.metadata
import os
import pathlib
import pkgutil
import re
import subprocess
import sys

import pytest
from conftest import ROOT

import cognate_text

MODULES = [name for _, name, _ in pkgutil.iter_modules(cognate_text.__path__) if name not in ("_native", "__main__")]


def test_the_version_is_that_of_the_program() -> None:
    told = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert told is not None
    assert cognate_text.__version__ == importlib.metadata.version("cognate-text") == told[1]


def test_what_was_installed_is_under_test() -> None:
    assert pathlib.Path(cognate_text.__file__).parent.parent.name == "site-packages"


@pytest.mark.parametrize("name", ["", *MODULES])
def test_examples(name: str) -> None:
    module = importlib.import_module(f"cognate_text.{name}".rstrip("."))
    found = doctest.testmod(module)
    assert found.failed == 0
    if name in ("", "_model", "_explanation", "errors", "pandas", "sklearn"):
        assert found.attempted > 0


def test_types() -> None:
    """mypy finds nothing to say of the package and its tests, at its strictest."""
    folder = ROOT / "python"
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", os.devnull], cwd=folder, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout


def test_stubs_name_what_is_there() -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "cognate_text._native", "--ignore-missing-stub"],
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout


def test_licences_are_inside() -> None:
    files = importlib.metadata.files("cognate-text") or []
    names = {file.name for file in files}
    assert {"LICENSE-MIT", "LICENSE-APACHE", "NOTICE", "py.typed", "default.safetensors"} <= names


def test_folders_of_the_machine_that_built_stay_outside() -> None:
    for file in importlib.metadata.files("cognate-text") or []:
        if file.name == "direct_url.json":
            continue  # written when a wheel is installed: where that lay
        assert str(ROOT).encode() not in file.read_binary(), file
