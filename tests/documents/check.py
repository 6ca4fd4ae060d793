#!/usr/bin/env python3
"""Runs the commands of documents and compares what they print with the answers that stand below them.

    tests/documents/check.py COGNATE [DOCUMENT...]

COGNATE is the program. Each document has a folder of its own, in which its blocks run one after another: those of `sh`
in one shell, those of `python`, and of `javascript` where Node is there, each by itself. A block of `json`, `ndjson` or `text` directly below one is what it has to
print. Numbers agree to six digits; a service listens on a free port in the place of 8080, and is started first
where no command of the document does. What begins with a command of NOT_RUN, or stands below a comment
`<!-- not run: REASON -->`, is counted and left out.
TEST_COGNATE_BLESS=1 writes what was printed into the documents.
"""

import json
import math
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = ["README.md"]
DOCUMENTS += [f"docs/{name}.md" for name in ("API", "alerts", "clients", "COMPATIBLE", "collections", "events", "files", "match", "rank-collection", "recommend", "semantic-cache")]
DOCUMENTS += [f"docs/integrations/{name}.md" for name in ("alertmanager", "github-issues", "gorse", "hindsight", "kafka", "miniflux")]
# What needs another tool, data beside the checkout, or minutes.
NOT_RUN = re.compile(
    r"^\s*(cargo|docker|kubectl|helm|pip|apt-get|git|python3 benches/|tests/|benches/|\S+ .*\bDATA/"
    r"|cognate serve(?!.*(?:--check|&)))",
    re.M,
)
ANSWERS = {"json", "ndjson", "text"}
# What runs the blocks of other languages than the shell's, and from which file.
PROGRAMS = {"python": (sys.executable, ".block.py"), "javascript": ("node", ".block.mjs")}
DIGITS = 1e-6
# What a run has its own: a time, as an instant or in milliseconds, and the name of a request.
OWN = re.compile(r"20(?:2[6-9]|[3-9]\d)-\d\d-\d\dT[\d:.]+Z|\b1[789]\d{11}\b|\b[0-9a-f]{24}\b")
# Most seconds of a block.
SECONDS = 20


class Shell:
    """A shell that runs the blocks of a document in its folder."""

    def __init__(self, folder, cognate, port):
        programs = folder / ".programs"
        programs.mkdir()
        (programs / "cognate").symlink_to(cognate)
        for shared in ("models", "tests"):
            (folder / shared).symlink_to(ROOT / shared)
        (folder / "examples").mkdir()
        for example in (ROOT / "examples").glob("*.py"):
            text = example.read_text(encoding="utf-8").replace(":8080", f":{port}")
            (folder / "examples" / example.name).write_text(text, encoding="utf-8")
            shutil.copymode(example, folder / "examples" / example.name)
        settings = {"COGNATE_LISTEN": f"127.0.0.1:{port}", "PATH": f"{programs}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"}
        self.process = subprocess.Popen(
            ["bash"],
            cwd=folder,
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(folder / ".errors").open("w"),
            text=True,
            start_new_session=True,
        )
        # A service that was just started may not be ready yet.
        ready = f"cognate healthcheck --url http://127.0.0.1:{port}/ready >/dev/null 2>&1"
        self.run(f'curl() {{ for _ in {{1..200}}; do {ready} && break; sleep .1; done; command curl --max-time 60 "$@"; }}')

    def run(self, block):
        end = f"end-{uuid.uuid4()}"
        self.process.stdin.write(f"{block}\necho; echo {end}\n")
        self.process.stdin.flush()
        lines = []
        signal.alarm(SECONDS)
        for line in self.process.stdout:
            if line.strip() == end:
                signal.alarm(0)
                return "".join(lines).strip("\n")
            lines.append(line)
        raise SystemExit(f"the shell ended in:\n{block}")

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()


def blocks(text):
    """Blocks in order: language, text, line, and what stands between it and the one before."""
    found, open_at, between = [], None, ""
    for number, line in enumerate(text.splitlines(), 1):
        if open_at is None:
            if start := re.match(r"```(\w*)$", line):
                open_at, body = (start[1], number), []
            else:
                between += line
        elif line == "```":
            found.append((open_at[0], "\n".join(body), open_at[1], between.strip()))
            open_at, between = None, ""
        else:
            body.append(line)
    return found


def same(expected, found):
    if isinstance(expected, float) and isinstance(found, (int, float)):
        return math.isclose(expected, found, rel_tol=DIGITS, abs_tol=DIGITS)
    if isinstance(expected, dict) and isinstance(found, dict):
        return list(expected) == list(found) and all(same(expected[name], found[name]) for name in expected)
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(same, expected, found))
    return expected == found


def values(printed):
    """JSON values one after another, whether lines part them or not."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while at < len(printed):
        value, at = decoder.raw_decode(printed, at)
        found.append(value)
        at += len(printed[at:]) - len(printed[at:].lstrip())
    return found


def agrees(expected, printed):
    """Whether an answer is as it stands: as JSON where it is that, else line by line. The times of a run are its own, and
    what the first commands of a block print may be left out, of text any line."""
    expected, printed = (OWN.sub("…", one).strip() for one in (expected, printed))
    try:
        expected, printed = values(expected), values(printed)
    except ValueError:
        lines = iter(printed.splitlines())
        return all(line in lines for line in expected.splitlines())
    return len(expected) <= len(printed) and all(map(same, expected, printed[-len(expected) :]))


def check(document, cognate):
    """Counts of a document: what agreed, ran without an answer to compare, and was not run; and what differs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = pathlib.Path(tempfile.mkdtemp())
    shell = Shell(folder, cognate, port)
    agreed, ran, left, differ = 0, 0, 0, []
    try:
        text = (ROOT / document).read_text(encoding="utf-8")
        found = blocks(text.replace("127.0.0.1:8080", f"127.0.0.1:{port}").replace("localhost:8080", f"localhost:{port}"))
        if not any(language == "sh" and re.search(r"^cognate serve\b.*&", body, re.M) for language, body, *_ in found):
            shell.run("cognate serve &")
        for place, (language, body, line, before) in enumerate(found):
            if language not in PROGRAMS and language != "sh":
                continue
            following = found[place + 1] if place + 1 < len(found) else None
            has_answer = following and following[0] in ANSWERS and not following[3]
            expected = following[1] if has_answer else None
            program, file = PROGRAMS.get(language, ("bash", ""))
            if NOT_RUN.search(body) or before.endswith("-->") and "<!-- not run" in before or not shutil.which(program):
                left += 1
                continue
            if file:
                (folder / file).write_text(body, encoding="utf-8")
                body = f"{program} {file}"
            try:
                printed = shell.run(body)
            except TimeoutError as error:
                differ.append((line, expected or "", f"{error}:\n{body}"))
                break
            if expected is None:
                ran += 1
            elif agrees(expected, printed):
                agreed += 1
            else:
                differ.append((line, expected, printed.replace(f":{port}", ":8080")))
    finally:
        shell.stop()
        errors = (folder / ".errors").read_text(encoding="utf-8")
        shutil.rmtree(folder)
    return agreed, ran, left, differ, errors


def too_long(*_):
    raise TimeoutError(f"a block took more than {SECONDS} seconds")


def main():
    signal.signal(signal.SIGALRM, too_long)
    cognate = pathlib.Path(sys.argv[1]).resolve()
    failed = False
    for document in sys.argv[2:] or DOCUMENTS:
        agreed, ran, left, differ, errors = check(document, cognate)
        print(f"{document}: {agreed} answers as printed, {len(differ)} not, {ran} commands without one, {left} blocks not run")
        for line, expected, printed in differ:
            failed = True
            print(f"--- {document}:{line} says\n{expected}\n--- printed\n{printed}")
        if differ and os.environ.get("TEST_COGNATE_BLESS"):
            path, text = ROOT / document, (ROOT / document).read_text(encoding="utf-8")
            for _, expected, printed in filter(lambda one: one[2], differ):
                text = text.replace(f"\n{expected}\n```", f"\n{printed}\n```", 1)
            path.write_text(text, encoding="utf-8")
        if differ:
            print("--- errors\n" + "\n".join(line for line in errors.splitlines() if not line.startswith('{"')))
    sys.exit(failed)


main()
