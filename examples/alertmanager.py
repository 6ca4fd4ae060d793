#!/usr/bin/env python3
"""Receives Alertmanager's webhooks and prints which alerts say the same as an earlier alert in other words.

    examples/alertmanager.py    # docs/integrations/alertmanager.md
"""

import http.server
import json
import urllib.request

MATCH = "http://127.0.0.1:8080/collections/alerts/match"
HOW = {"last": 2000, "within": "6h", "preset": "stories"}


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        firing = [alert for alert in body["alerts"] if alert["status"] == "firing"]
        items = [
            {"id": f"{alert['fingerprint']}-{alert['startsAt']}", "time": alert["startsAt"], "text": alert["annotations"].get("summary", alert["labels"]["alertname"])}
            for alert in firing
        ]
        try:
            if firing:
                self.match(firing, items)
            self.send_response(200)
        except OSError as problem:
            # Alertmanager sends again what was answered by 5xx.
            print(problem, flush=True)
            self.send_response(getattr(problem, "code", 503))
        self.end_headers()

    def match(self, firing, items):
        body = json.dumps({"items": items, **HOW}).encode()
        request = urllib.request.Request(MATCH, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            for alert, result in zip(firing, json.load(answer)["results"]):
                if not result.get("new", True) and not result.get("repeated"):
                    print(f"{alert['labels']['alertname']} is like {result['event']} ({result['score']:.2f})", flush=True)

    def log_message(self, *_):
        pass


http.server.HTTPServer(("127.0.0.1", 9101), Receiver).serve_forever()
