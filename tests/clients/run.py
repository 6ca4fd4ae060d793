"""Starts the service twice, once with keys, lets every client call both, and prints what worked.

usage: run.py COGNATE TOOLS, where TOOLS/newest and TOOLS/held-back are environments with the clients.
Exits with 1 if a call failed, or if works.tsv says anything else than was found.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TABLE = HERE / "works.tsv"
SETS = {
    "newest": [
        "openai_sdk",
        "cohere_sdk",
        "hugging_face",
        "ollama_sdk",
        "voyage_sdk",
        "infinity_sdk",
        "langchain_calls",
        "llama_index_calls",
        "haystack_calls",
        "stores_and_others",
        "tables",
        "bodies",
        "configurations",
        "pages_newest",
    ],
    "held-back": ["litellm_calls", "held_back", "pages_held_back"],
}


class Service:
    """A running service, ended by its own process."""

    def __init__(self, cognate, *flags):
        command = [cognate, "serve", "--listen", "127.0.0.1:0", *flags]
        self.process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)
        self.url = None
        said = []
        for line in self.process.stderr:
            said.append(line)
            if not line.startswith("{"):
                continue
            event = json.loads(line)
            if event["message"] == "listening":
                self.url = f"http://{event['address']}"
            if event["message"] == "ready":
                return
        sys.exit("the service did not start: " + "".join(said))

    def __enter__(self):
        # Nobody reads the log from here on, and a full pipe would stop the service.
        self.log = subprocess.Popen(["cat"], stdin=self.process.stderr, stdout=subprocess.DEVNULL)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.wait()


def calls(tools, open_url, keyed_url, key):
    """What the clients report, a call at a time."""
    for name, modules in SETS.items():
        python = pathlib.Path(tools) / name / "bin/python"
        command = [python, HERE / "check.py", open_url, keyed_url, *modules]
        environment = os.environ | {"KEY": key, "DO_NOT_TRACK": "1", "ANONYMIZED_TELEMETRY": "False"}
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        for line in child.stdout:
            yield json.loads(line)
        if child.wait() != 0:
            sys.exit(f"the clients of {name} ended with {child.returncode}")


def table(rows):
    """The calls, a line each between tabs."""
    lines = ["client\tversion\tcall\tways\tworks"]
    for row in rows:
        failed = [way for way, error in row["ways"].items() if error]
        works = "yes" if not failed else "no: " + ", ".join(failed)
        ways = ", ".join(row["ways"])
        lines.append("\t".join([row["client"], row["version"], row["call"], ways, works]))
    return "".join(line + "\n" for line in lines)


def main(cognate, tools):
    rows, failures = [], 0
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run([cognate, "keygen", "clients"], capture_output=True, text=True, check=True)
        key, line = made.stdout.splitlines()[:2]
        keys = pathlib.Path(folder) / "keys"
        keys.touch(mode=0o600)
        keys.write_text(line + "\n")
        with Service(cognate) as free, Service(cognate, "--keys-file", str(keys)) as keyed:
            for row in calls(tools, free.url, keyed.url, key):
                rows.append(row)
                for way, error in row["ways"].items():
                    mark = "works" if error is None else "FAILS"
                    failures += error is not None
                    print(f"{row['client']} {row['version']} · {row['call']} · {way} · {mark}", flush=True)
                    if error:
                        print(f"    {error}", flush=True)
    made = sum(len(row["ways"]) for row in rows)
    print(f"clients: {made - failures} passed, {failures} failed")
    found = table(rows)
    if os.environ.get("TEST_COGNATE_BLESS"):
        TABLE.write_text(found)
    elif found != TABLE.read_text():
        print(f"{TABLE.relative_to(ROOT)} shows other calls; TEST_COGNATE_BLESS=1 writes it anew")
        failures += 1
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
