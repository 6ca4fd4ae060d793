#!/usr/bin/env python3
"""Copies of a wheel that an index refuses: `tests/release/lacking.py WHEEL FOLDER` writes FOLDER/urls, without the
project's addresses, and FOLDER/classifiers, with a classifier that there is none of."""

import pathlib
import sys
import zipfile


def copy(wheel, folder, change):
    """The wheel with other metadata; its own list of digests is not read by an index."""
    folder.mkdir(parents=True)
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(folder / wheel.name, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, change(content) if name.endswith(".dist-info/METADATA") else content)


def main(wheel, folder):
    lines = lambda content: content.splitlines(keepends=True)
    copy(wheel, folder / "urls", lambda text: b"".join(one for one in lines(text) if not one.startswith(b"Project-URL:")))
    copy(wheel, folder / "classifiers", lambda text: text.replace(b"Typing :: Typed", b"Typing :: Spoken"))


main(*map(pathlib.Path, sys.argv[1:]))
