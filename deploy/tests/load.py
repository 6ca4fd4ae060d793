#!/usr/bin/env python3
"""Asks a service for known scores, for a bounded time, and counts every answer that is not right.

    load.py URL REFERENCE [--seconds S] [--threads N] [--rate R]

REFERENCE is a second, undisturbed instance: what it says to each body is what URL must say, score
for score. Each thread keeps one connection and never asks twice: a retry here would hide what a
balancer is there to hide. Prints one JSON object; exits 1 when an answer was wrong or missing. Knows
nothing of containers. Meant for 127.0.0.1.
"""

import argparse
import collections
import http.client
import json
import sys
import threading
import time
import urllib.parse

TEXTS = [
    "Quake hits L.A.!!", "Earthquake shakes Los Angeles", "A man is playing a guitar",
    "Someone strums an instrument", "The cat sat on the mat", "Stocks fell sharply on Friday",
    "Markets slid at the end of the week", "New phone announced today", "Flood warning for the coast",
    "Heavy rain expected near the sea", "She won the race", "qqqzzz xxyyzz",
]


def bodies():
    """One pair, a few, and a hundred: all of them small enough for a balancer to send again."""
    pairs = [[one, other] for one in TEXTS for other in TEXTS]
    sizes = [1, 1, 1, 1, 5, 1, 1, 100]
    for start, size in enumerate(sizes * 4):
        chosen = [pairs[(start * 37 + step * 11) % len(pairs)] for step in range(size)]
        yield json.dumps({"pairs": chosen}).encode()


class Client:
    """One kept connection."""

    def __init__(self, url):
        self.address = urllib.parse.urlsplit(url)
        self.connection = None

    def ask(self, body):
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.address.hostname, self.address.port, timeout=15)
        try:
            self.connection.request("POST", "/similarity", body, {"Content-Type": "application/json"})
            answer = self.connection.getresponse()
            return answer.status, answer.read()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            self.connection = None
            raise


def scores(answer):
    """What must agree: the scores, and the model that gave them."""
    parsed = json.loads(answer)
    return parsed["scores"], parsed["fingerprint"]


def run(options):
    reference = Client(options.reference)
    known = []
    for body in bodies():
        status, answer = reference.ask(body)
        if status != 200:
            raise SystemExit(f"the reference answers {status}: {answer[:200]!r}")
        known.append((body, scores(answer)))

    lock, counts, times = threading.Lock(), collections.Counter(), []
    began = time.monotonic()
    ends = began + options.seconds
    pause = options.threads / options.rate

    def one(offset):
        client, own, taken = Client(options.url), collections.Counter(), []
        turn, due = offset, began + pause * offset / options.threads
        while (now := time.monotonic()) < ends:
            if due > now:
                time.sleep(due - now)
            due += pause
            body, right = known[turn % len(known)]
            turn += 1
            asked = time.monotonic()
            try:
                status, answer = client.ask(body)
                if status != 200:
                    own[f"status {status}"] += 1
                elif scores(answer) != right:
                    own["wrong scores"] += 1
                else:
                    own["right"] += 1
            except (OSError, http.client.HTTPException) as error:
                own[type(error).__name__] += 1
            taken.append(time.monotonic() - asked)
        with lock:
            counts.update(own)
            times.extend(taken)

    threads = [threading.Thread(target=one, args=(number,)) for number in range(options.threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    times.sort()
    failed = {kind: count for kind, count in counts.items() if kind != "right"}
    at = lambda share: round(1000 * times[min(len(times) - 1, int(share * len(times)))], 1)
    print(json.dumps({
        "requests": len(times), "right": counts["right"], "failed": failed,
        "a_second": round(len(times) / options.seconds), "p50_ms": at(0.5), "p99_ms": at(0.99),
        "longest_ms": at(1.0),
    }))
    return 1 if failed or not counts["right"] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("reference")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--rate", type=float, default=400, help="requests a second, all threads together")
    sys.exit(run(parser.parse_args()))
