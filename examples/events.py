"""Alerts of the events in a stream of posts, without chatter: NDJSON with `id`, `text` and `time` in, NDJSON out.

    cognate serve --data data &
    curl -X PUT http://127.0.0.1:8080/collections/news -H 'content-type: application/json' -d '{}'
    python3 examples/events.py http://127.0.0.1:8080/collections/news < posts.ndjson > alerts.ndjson

Needs requests. The server may be killed and started again meanwhile: what was not answered is sent again, and no
alert is missing or comes twice.
"""

import itertools
import json
import sys
import time

import requests

news, posts, asked = sys.argv[1], map(json.loads, sys.stdin), {"after": "", "follow": "false", "least": 5}
while batch := list(itertools.islice(posts, 256)):
    while batch:
        try:
            requests.post(f"{news}/match", json={"items": batch, "within": "48h"}, timeout=60).raise_for_status()
            alerts = requests.get(f"{news}/events/stream", asked, timeout=60)
            alerts.raise_for_status()
            for alert in map(json.loads, alerts.iter_lines()):
                asked["after"] = alert["id"]
                if alert.get("chatter", 1) <= 0.45:
                    print(json.dumps(alert), flush=True)
            batch = []
        except requests.RequestException as problem:
            print(problem, file=sys.stderr)
            time.sleep(0.2)
