"""Times a collection in a folder by its size: load, ranking, match, restart, bytes an item.

    python3 benches/collections_by_size.py titles.txt --program target/release/cognate \\
        --model models/default.safetensors --sizes 10000,100000,1000000

The file has a text a line. Titles beyond those that it has are made by recombination: the first half of the
words of one and the second half of another. It starts the service itself, on a free port, with a folder of
its own. Only Python's own library is needed. The machine should have nothing else to do.
"""

import argparse
import json
import os
import statistics
import tempfile
import time

from collection_service import Service
from collection_service import titles

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("titles", help="texts, one a line")
parser.add_argument("--program", default="target/release/cognate")
parser.add_argument("--model", default="models/default.safetensors")
parser.add_argument("--sizes", default="10000,100000,1000000")
parser.add_argument("--rounds", type=int, default=20, help="rankings that are timed")
parser.add_argument("--matched", type=int, default=2000, help="texts that are matched")
parser.add_argument("--method", default="avg-cos")
args = parser.parse_args()


def measure(size):
    with tempfile.TemporaryDirectory(prefix="cognate-bench-") as folder:
        service = Service(args.program, args.model, "--data", folder)
        empty = service.resident()
        rate = service.load("bench", titles(args.titles, size))
        print(f"{size:,} titles: loaded at {rate:,.0f} a second")
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
        lines = (json.dumps({"id": f"m{at}", "text": text}) for at, text in enumerate(titles(args.titles, args.matched)))
        begun = time.perf_counter()
        path = "/collections/bench/match?last=1000&second=none&threshold=0.5"
        answers = service.ask("POST", path, "\n".join(lines).encode(), "application/x-ndjson").splitlines()
        seconds = time.perf_counter() - begun
        print(f"  match among the last 1,000: {len(answers) / seconds:,.0f} a second")
        service.stop()
        again = Service(args.program, args.model, "--data", folder)
        print(f"  started again after a kill in {again.started:.2f} s")
        again.stop()


for size in args.sizes.split(","):
    measure(int(size))
