"""Times collections over HTTP, with the two programs that they were made for.

    python3 benches/collections_over_http.py titles.txt tweets.txt --program target/release/cognate

Both files have a text a line. The questions of a catalogue are asked over the first 20,000 titles (beyond those of the
file they are recombined from the halves of two); each tweet is matched against the last 1,000 and the last 10,000
before it, as one stream of lines. It starts the service itself, without a folder. Processor time is that of all threads of
the service. Only Python's own library is needed. The machine should have nothing else to do.
"""

import argparse
import json
import pathlib
import statistics
import time

from collection_service import Service, titles

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("titles", help="texts that are ranked, one a line")
parser.add_argument("tweets", help="texts that are matched, one a line")
parser.add_argument("--program", default="target/release/cognate")
parser.add_argument("--model", default="models/default.safetensors")
parser.add_argument("--items", type=int, default=20_000, help="titles that are ranked")
parser.add_argument("--stream", type=int, default=20_000, help="tweets that are matched")
parser.add_argument("--rounds", type=int, default=200, help="rankings that are timed for each question")
args = parser.parse_args()
PAGE = {
    "unlike": ["Lakers lose at home"],
    "filter": {"shelf": {"lt": 9}},
    "collapse": 0.8,
    "diversify": {"lambda": 0.7},
    "explain": True,
}


def processor_ms(service):
    """The processor time of all threads, which schedstat counts in nanoseconds."""
    threads = pathlib.Path(f"/proc/{service.process.pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e6


def question(turn, liked, texts):
    """The liked items, or the query, of a turn: others in each."""
    if not liked:
        return {"query": texts[(turn * 7919) % len(texts)]}
    return {"like": [{"id": str((turn * 7919 + at * 104_729) % len(texts))} for at in range(liked)]}


def ask_often(service, texts, liked, method, page):
    took, used = [], []
    for turn in range(args.rounds + 1):
        asked = {"collection": "bench", "top_k": 10, "method": method, **question(turn, liked, texts), **page}
        before, begun = processor_ms(service), time.perf_counter()
        service.ask("POST", "/rank", asked)
        took.append(1000 * (time.perf_counter() - begun))
        used.append(processor_ms(service) - before)
    first, took = took[0], sorted(took[1:])
    what = ("one query" if not liked else f"{liked} liked") + (", the whole page" if page else "")
    print(
        f"{method}, {what}: processor {statistics.median(used[1:]):.2f} ms, p50 {statistics.median(took):.2f} ms, "
        f"p99 {took[int(0.99 * len(took))]:.2f} ms, the first {first:.0f} ms",
        flush=True,
    )


def match_often(service, tweets, last, second):
    service.ask("PUT", f"/collections/stream-{last}-{second}", {})
    lines = (json.dumps({"id": str(at), "text": text, "time": 1_700_000_000 + at}) for at, text in enumerate(tweets))
    body = "\n".join(lines).encode()
    path = f"/collections/stream-{last}-{second}/match?last={last}&second={second}&threshold=0.5"
    begun = time.perf_counter()
    answers = service.ask("POST", path, body, "application/x-ndjson").splitlines()
    seconds = time.perf_counter() - begun
    failed = sum(b'"error"' in line for line in answers)
    print(f"match, last {last:,}, second {second}: {len(tweets) / seconds:,.0f} a second, {failed} failed", flush=True)


service = Service(args.program, args.model)
try:
    texts = list(titles(args.titles, args.items))
    attributes = lambda at: {"shelf": at % 10}
    print(f"load: {service.load('bench', texts, attributes=attributes):,.0f} items a second")
    for method in ("avg-cos", "dynamax", "auto", "bm25", "ql"):
        # What only ranks has no likes.
        for liked in (0,) if method in ("bm25", "ql") else (5, 0):
            ask_often(service, texts, liked, method, {})
    ask_often(service, texts, 5, "auto", PAGE)
    print(f"{service.resident() / 1e6:,.0f} MB resident")
    tweets = list(titles(args.tweets, args.stream))
    for second in ("none", "coverage"):
        for last in (1000, 10_000):
            match_often(service, tweets, last, second)
finally:
    service.stop()
