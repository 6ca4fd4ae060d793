"""Times a collection in a folder by its size: load, ranking, match, restart, bytes an item.

    python3 benches/collections_by_size.py titles.txt --program target/release/cognate \\
        --model models/default.safetensors --sizes 10000,100000,1000000

The file has a text a line. Titles beyond those that it has are made by recombination: the first half of the
words of one and the second half of another. It starts the service itself, on a free port, with a folder of
its own. Only Python's own library is needed. The machine should have nothing else to do.
"""

import argparse
import http.client
import itertools
import json
import os
import random
import re
import statistics
import subprocess
import tempfile
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("titles", help="texts, one a line")
parser.add_argument("--program", default="target/release/cognate")
parser.add_argument("--model", default="models/default.safetensors")
parser.add_argument("--sizes", default="10000,100000,1000000")
parser.add_argument("--rounds", type=int, default=20, help="rankings that are timed")
parser.add_argument("--matched", type=int, default=2000, help="texts that are matched")
parser.add_argument("--method", default="avg-cos")
args = parser.parse_args()


class Service:
    """The service on a folder, from its start until it can be asked."""

    def __init__(self, folder):
        self.log = tempfile.NamedTemporaryFile("r", suffix=".log")
        limits = ["--collection-bytes", str(8 << 30), "--collection-items", "10000000"]
        limits += ["--compute-deadline-ms", "60000"]
        serve = [args.program, "serve", "--model", args.model, "--data", folder, "--listen", "127.0.0.1:0", *limits]
        begun = time.perf_counter()
        self.process = subprocess.Popen(serve, stderr=open(self.log.name, "w"))
        address = None
        while address is None:
            if self.process.poll() is not None:
                raise SystemExit(open(self.log.name, encoding="utf-8").read())
            found = re.search(r'"listening","address":"([^"]*)"', open(self.log.name, encoding="utf-8").read())
            address = found and found[1]
            time.sleep(0.005)
        self.started = time.perf_counter() - begun
        self.connection = http.client.HTTPConnection(address, timeout=600)

    def ask(self, verb, path, body=None, kind="application/json"):
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        self.connection.request(verb, path, data, {"content-type": kind} if data else {})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{verb} {path}: {answer.status} {text[:400].decode()}")
        return text

    def resident(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def stop(self):
        self.process.kill()
        self.process.wait()


def titles(count):
    """So many titles: those of the file, then recombinations of them."""
    with open(args.titles, encoding="utf-8") as file:
        known = [line.strip()[:2000] for line in file if line.strip()]
    yield from itertools.islice(known, count)
    chance = random.Random(7)
    halves = [title.split() for title in known]
    for _ in range(count - len(known)):
        one, other = chance.choice(halves), chance.choice(halves)
        yield " ".join(one[: (len(one) + 1) // 2] + other[len(other) // 2 :])


def measure(size):
    with tempfile.TemporaryDirectory(prefix="cognate-bench-") as folder:
        service = Service(folder)
        empty = service.resident()
        service.ask("PUT", "/collections/bench", {})
        took, numbered = 0.0, enumerate(titles(size))
        while part := list(itertools.islice(numbered, 5000)):
            body = json.dumps({"items": [{"id": str(at), "text": text} for at, text in part]}).encode()
            begun = time.perf_counter()
            service.ask("POST", "/collections/bench/items", body)
            took += time.perf_counter() - begun
        print(f"{size:,} titles: loaded at {size / took:,.0f} a second")
        resident = (service.resident() - empty) / size
        log = os.path.getsize(os.path.join(folder, "bench", "items.log")) / size
        print(f"  {resident:,.0f} bytes of memory an item, {log:,.0f} in the log")
        times = []
        for turn in range(args.rounds + 1):
            liked = [{"id": str((turn * 7919 + at * 104_729) % size)} for at in range(5)]
            question = {"collection": "bench", "like": liked, "top_k": 10, "method": args.method}
            begun = time.perf_counter()
            service.ask("POST", "/rank", question)
            times.append(1000 * (time.perf_counter() - begun))
        first, times = times[0], sorted(times[1:])
        print(
            f"  five liked by {args.method}: the first {first:,.0f} ms, then p50 {statistics.median(times):,.1f} ms, "
            f"p99 {times[int(0.99 * len(times))]:,.1f} ms; {(service.resident() - empty) / size:,.0f} bytes of memory an item"
        )
        lines = (json.dumps({"id": f"m{at}", "text": text}) for at, text in enumerate(titles(args.matched)))
        begun = time.perf_counter()
        path = "/collections/bench/match?last=1000&second=none&min_score=0.5"
        answers = service.ask("POST", path, "\n".join(lines).encode(), "application/x-ndjson").splitlines()
        seconds = time.perf_counter() - begun
        print(f"  match among the last 1,000: {len(answers) / seconds:,.0f} a second")
        service.stop()
        again = Service(folder)
        print(f"  started again after a kill in {again.started:.2f} s")
        again.stop()


for size in args.sizes.split(","):
    measure(int(size))
