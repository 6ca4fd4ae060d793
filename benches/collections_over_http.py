"""Times collections over HTTP, with the two programs that they were made for.

    cognate serve --model models/default.safetensors &
    python3 benches/collections_over_http.py titles.txt tweets.txt

Both files have a text a line. Of the first, five liked items are ranked over the first 20,000; of the
second each text is matched against the last 1,000 and the last 10,000 before it, as one stream of lines.
Only Python's own library is needed. The server should have nothing else to do.
"""

import argparse
import http.client
import itertools
import json
import statistics
import time

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("titles", help="texts that are ranked, one a line")
parser.add_argument("tweets", help="texts that are matched, one a line")
parser.add_argument("--address", default="127.0.0.1:8080")
parser.add_argument("--items", type=int, default=20_000, help="titles that are ranked")
parser.add_argument("--stream", type=int, default=20_000, help="tweets that are matched")
parser.add_argument("--rounds", type=int, default=200, help="rankings that are timed")
parser.add_argument("--method", default="avg-cos")
args = parser.parse_args()
connection = http.client.HTTPConnection(args.address, timeout=600)


def ask(verb, path, body=None, kind="application/json"):
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    connection.request(verb, path, data, {"content-type": kind} if data else {})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status != 200:
        raise SystemExit(f"{verb} {path}: {answer.status} {text[:400].decode()}")
    return text


def texts(path, most):
    with open(path, encoding="utf-8") as file:
        lines = (line.strip() for line in file)
        return list(itertools.islice((line for line in lines if line), most))


def fresh(name):
    connection.request("DELETE", f"/collections/{name}")
    connection.getresponse().read()
    ask("PUT", f"/collections/{name}", {})


titles = texts(args.titles, args.items)
fresh("bench")
begun = time.perf_counter()
for first in range(0, len(titles), 5000):
    part = titles[first : first + 5000]
    items = [{"id": str(first + at), "text": text[:8000]} for at, text in enumerate(part)]
    ask("POST", "/collections/bench/items", {"items": items})
print(f"load: {len(titles) / (time.perf_counter() - begun):,.0f} items a second")

took = []
for turn in range(args.rounds + 1):
    liked = [{"id": str((turn * 7919 + at * 104_729) % len(titles))} for at in range(5)]
    question = {"collection": "bench", "like": liked, "top_k": 10, "method": args.method}
    begun = time.perf_counter()
    ask("POST", "/rank", question)
    took.append(1000 * (time.perf_counter() - begun))
took, first = sorted(took[1:]), took[0]
print(
    f"five liked of {len(titles):,} by {args.method}: the first {first:.1f} ms, "
    f"then p50 {statistics.median(took):.2f} ms, p99 {took[int(0.99 * len(took))]:.2f} ms"
)

tweets = texts(args.tweets, args.stream)
for second, last in [("none", 1000), ("none", 10_000), ("coverage", 1000), ("coverage", 10_000)]:
    fresh("bench")
    lines = (json.dumps({"id": str(at), "text": text[:8000], "time": 1_700_000_000 + at}) for at, text in enumerate(tweets))
    body = "\n".join(lines).encode()
    path = f"/collections/bench/match?last={last}&second={second}&threshold=0.5"
    begun = time.perf_counter()
    answers = ask("POST", path, body, "application/x-ndjson").splitlines()
    seconds = time.perf_counter() - begun
    failed = sum(b'"error"' in line for line in answers)
    print(f"match, last {last:,}, second {second}: {len(tweets) / seconds:,.0f} a second, {failed} failed")
ask("DELETE", "/collections/bench")
