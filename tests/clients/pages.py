"""The pages of docs/integrations, taken at their word: runs their Python and their calls by curl, and
reads the configurations in them.
"""

import ast
import importlib.util
import json
import pathlib
import subprocess

from support import DOCUMENTS, QUERY, TEXTS, call

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs/integrations"
# Where the pages say that the service is.
NEAR, FAR = "http://127.0.0.1:8080", "http://cognate:8080"


def blocks(page, language):
    """The blocks of a page in this language."""
    parts = (FOLDER / page).read_text().split("```")[1::2]
    return [part.partition("\n")[2] for part in parts if part.partition("\n")[0] == language]


def installed(code):
    """Whether everything that a block imports is there."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    return all(importlib.util.find_spec(name) for name in names)


def run_python(place, page):
    """Runs the blocks one after the other, as a reader would."""
    known = {"query": QUERY, "documents": list(DOCUMENTS)}
    if importlib.util.find_spec("pandas"):
        import pandas

        known["frame"] = pandas.DataFrame({"one": TEXTS, "other": DOCUMENTS})
    ran = 0
    for code in blocks(page, "python"):
        if installed(code):
            exec(compile(code.replace(NEAR, place.url), page, "exec"), known)  # noqa: S102
            ran += 1
    assert ran, f"nothing of {page} was run"


def run_shell(place, page):
    """Runs the calls by curl."""
    calls = [code for code in blocks(page, "sh") if code.startswith(f"curl -s {NEAR}")]
    assert calls, f"{page} has no calls"
    for code in calls:
        code = code.replace(NEAR, place.url).replace("curl -s ", "curl -sf ")
        subprocess.run(["bash", "-euc", code], check=True, stdout=subprocess.DEVNULL)


def page_runs(package, page, check=run_python):
    """Registers a page."""
    call(package, f"the page {page}, as it stands")(lambda place: check(place, page))


def configuration(page, named):
    """The first JSON of a page that mentions this."""
    found = [block for block in blocks(page, "json") + blocks(page, "sh") if named in block]
    text = found[0][found[0].index("{\n") :]
    return json.JSONDecoder().raw_decode(text)[0]
