"""Events in a stream of tweets over the HTTP service, as `cognate events` finds them: NDJSON in, NDJSON out.

    cognate serve &
    python3 examples/events.py < tweets.ndjson > events.ndjson

Needs NumPy. Vectors come from /embed, the second look at the nearest from /similarity as a stream of pairs; the
window and the events live in this process.
"""

import json
import sys
import urllib.request
from collections import defaultdict

import numpy as np

SERVICE = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8080"
LAST, NEAREST, FLOOR = 2000, 16, 0.2  # texts looked back at; how many are asked; the least cosine of those
SECOND, VOTES, THRESHOLD = "coverage", 4, 0.48
BATCH = 256  # texts sent at a time: more is faster, fewer are decided sooner


def lines(path, items):
    """Sends items as lines and gives the answers, line by line."""
    body = "\n".join(json.dumps(item) for item in items).encode()
    request = urllib.request.Request(SERVICE + path, body, {"content-type": "application/x-ndjson"})
    with urllib.request.urlopen(request) as answer:
        return [json.loads(line) for line in answer]


def batches(stream):
    batch = []
    for line in stream:
        batch.append(json.loads(line))
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def main():
    texts, vectors, event_of = [], np.zeros((0, 256), np.float32), []
    first = 0  # the number of the first text that is kept
    sizes = defaultdict(int)
    for batch in batches(sys.stdin):
        new = [tweet["text"] for tweet in batch]
        answers = lines("/embed?method=avg-cos&normalize=true", new)
        rows = [answer.get("embedding") or [0.0] * vectors.shape[1] for answer in answers]
        before = len(texts)
        texts += new
        vectors = np.vstack([vectors, np.array(rows, np.float32)])
        cosines = vectors[before:] @ vectors.T
        near = []
        for row, cosine in enumerate(cosines):
            end = before + row
            start = max(0, end - LAST)
            part = cosine[start:end]
            best = np.argsort(-part, kind="stable")[:NEAREST]
            near.append([int(start + at) for at in best if part[at] >= FLOOR])
        pairs = [[texts[before + row], texts[other]] for row, others in enumerate(near) for other in others]
        scores = iter(lines(f"/similarity?method={SECOND}", pairs) if pairs else [])
        for row, (tweet, others) in enumerate(zip(batch, near)):
            number = first + before + row
            by_event = defaultdict(list)
            scored = sorted(((next(scores)["score"], other) for other in others), reverse=True)
            for score, other in scored:
                by_event[event_of[other]].append(score)
            best, event = 0.0, number
            for candidate, votes in by_event.items():
                wanted = min(VOTES, sizes[candidate])
                mean = sum(votes[:wanted]) / wanted
                if mean > best:
                    best, nearest = mean, candidate
            if best >= THRESHOLD:
                event = nearest
            event_of.append(event)
            sizes[event] += 1
            print(json.dumps(tweet | {"event": event + 1, "score": best, "new": event == number}), flush=True)
        spare = max(0, len(texts) - LAST)
        texts, vectors, event_of = texts[spare:], vectors[spare:], event_of[spare:]
        first += spare


if __name__ == "__main__":
    main()
