#!/usr/bin/env python3
"""Finds the events of a Redis stream: every entry is matched in a collection, and acknowledged with its answer.

    pip install redis
    cognate serve --data data &
    examples/redis_stream.py posts news &
    redis-cli XADD posts '*' id t0 text 'Strong earthquake shakes Lima' time 2024-05-01T10:00:00Z
    redis-cli XRANGE posts:events - +

An entry has a `text`; without `id` and `time` it has those of the entry. The answer of `match` is added to
another stream. Any number of these may run: one works, the others stand by and take over what it leaves behind.
"""

import argparse
import http.client
import json
import os
import time
import urllib.error
import urllib.request

import redis

BATCH = 256  # entries to a request

# Hands out new entries only where none before them is open: what an event is depends on their order.
TAKE = """
if redis.call('XPENDING', KEYS[1], ARGV[1])[1] > 0 then return {} end
local read = redis.call('XREADGROUP', 'GROUP', ARGV[1], ARGV[2], 'COUNT', ARGV[3], 'STREAMS', KEYS[1], '>')
return read and read[1][2] or {}
"""
# Who acknowledges an entry adds its answer, so that it is added once, even if somebody slow was taken over.
DONE = """
for at = 2, #ARGV, 2 do
  if redis.call('XACK', KEYS[1], ARGV[1], ARGV[at]) == 1 then
    redis.call('XADD', KEYS[2], '*', 'answer', ARGV[at + 1])
  end
end
"""


def item(entry, fields):
    return {
        "id": fields.get("id", entry),
        "text": fields.get("text", ""),
        "time": fields.get("time", int(entry.split("-")[0])),
    }


def match(url, headers, settings, items):
    """The answers to items; to ask again changes nothing. One that cannot be added has the refusal as its answer."""
    body = json.dumps(settings | {"items": items}).encode()
    request = urllib.request.Request(url, body, headers | {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["results"]
    except urllib.error.HTTPError as refusal:
        if refusal.code not in (400, 413, 422):
            raise
        if len(items) == 1:
            return [{"id": items[0]["id"], "error": json.load(refusal)}]
        return [answer for one in items for answer in match(url, headers, settings, [one])]


def consume(store, stream, group, name, idle, *service):
    try:
        store.xgroup_create(stream, group, id="0", mkstream=True)
    except redis.ResponseError:
        pass  # it is there
    take, done = store.register_script(TAKE), store.register_script(DONE)
    entries = []
    while True:
        try:
            # First what a consumer that died left behind, then what is new.
            entries = entries or store.xautoclaim(stream, group, name, idle, count=BATCH)[1]
            entries = entries or [
                (entry, dict(zip(fields[::2], fields[1::2]))) for entry, fields in take([stream], [group, name, BATCH])
            ]
            if not entries:
                time.sleep(0.05)
                continue
            answers = match(*service, [item(*entry) for entry in entries])
            told = [word for (entry, _), answer in zip(entries, answers) for word in (entry, json.dumps(answer))]
            done([stream, f"{stream}:events"], [group, *told])
            entries = []
        except (OSError, http.client.HTTPException, redis.ConnectionError) as problem:
            print(problem, flush=True)
            time.sleep(1)


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("stream")
    flags.add_argument("collection")
    flags.add_argument("--service", default="http://127.0.0.1:8080")
    flags.add_argument("--key", help="of the service")
    flags.add_argument("--settings", type=json.loads, default={}, help="""of match, as '{"within": "24h"}'""")
    flags.add_argument("--store", default="redis://127.0.0.1:6379", help="URL of Redis")
    flags.add_argument("--group", default="cognate")
    flags.add_argument("--name", default=f"{os.uname().nodename}-{os.getpid()}", help="of this consumer")
    flags.add_argument("--idle", type=float, default=30, help="seconds until entries that were left behind are taken over")
    given = flags.parse_args()
    store = redis.Redis.from_url(given.store, decode_responses=True)
    url = f"{given.service}/collections/{given.collection}/match"
    headers = {"authorization": f"Bearer {given.key}"} if given.key else {}
    idle = int(given.idle * 1000)
    consume(store, given.stream, given.group, given.name, idle, url, headers, given.settings)


if __name__ == "__main__":
    main()
