#!/usr/bin/env python3
"""Posts each alert of a collection to a webhook, and stores the last `id` in a file: after a crash it may post one alert
twice, with the same `id`.

    examples/webhook.py    # docs/alerts.md
"""

import http.client
import json
import pathlib
import time
import urllib.parse
import urllib.request

STREAM, HOOK = "http://127.0.0.1:8080/collections/news/events/stream", "http://127.0.0.1:9000/hook"
last = pathlib.Path("last-alert")

while True:
    after = "?after=" + urllib.parse.quote(last.read_text()) if last.exists() else ""
    try:
        for line in urllib.request.urlopen(STREAM + after, timeout=60):
            if not line.strip():
                continue
            alert = json.loads(line)
            if alert["kind"] not in ("open", "end"):
                body = {"content-type": "application/json"}
                urllib.request.urlopen(urllib.request.Request(HOOK, line, body), timeout=10)
            last.write_text(alert["id"])
    except (OSError, http.client.HTTPException, ValueError) as problem:
        print(problem)
    time.sleep(1)
