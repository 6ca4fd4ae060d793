"""Makes the calls of these modules of `calls` and prints a line of JSON for each.

usage: check.py OPEN_URL KEYED_URL MODULE…, with the key of KEYED_URL in the variable KEY.
"""

import importlib
import json
import logging
import os
import sys
import traceback
import warnings

import support


def place(way, open_url, keyed_url):
    """Where a call goes in this way."""
    method, key = support.METHOD, os.environ["KEY"]
    return {
        "model": support.Place(open_url, "default", "unused", None),
        "name": support.Place(open_url, f"default:{method}", "unused", method),
        "path": support.Place(f"{open_url}/m/default/{method}", "another-model", "unused", method),
        "key": support.Place(keyed_url, "default", key, None),
        "wrong key": support.Place(keyed_url, "default", "cgn_wrong", None),
    }[way]


def main(open_url, keyed_url, *modules):
    answers, sys.stdout = sys.stdout, sys.stderr  # Some clients print.
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    for module in modules:
        support.CALLS.clear()
        importlib.import_module(f"calls.{module}")
        for call in support.CALLS:
            ways = {}
            for way in call.ways:
                try:
                    call.check(place(way, open_url, keyed_url))
                    ways[way] = None
                except Exception as error:
                    line = traceback.extract_tb(error.__traceback__)[-1]
                    at = f"{os.path.basename(line.filename)}:{line.lineno}"
                    ways[way] = f"{type(error).__name__}: {error} ({at})"[:600]
            row = {"client": call.package, "version": call.version, "call": call.what, "ways": ways}
            print(json.dumps(row), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
