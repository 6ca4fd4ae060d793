#!/usr/bin/env python3
"""Receives Miniflux' webhooks, checks their signatures, and prints which entries tell a story that another feed told.

    MINIFLUX_SECRET=... examples/miniflux.py    # docs/integrations/miniflux.md
"""

import hashlib
import hmac
import http.server
import json
import os
import urllib.request

MATCH = "http://127.0.0.1:8080/collections/feeds/match?preset=stories&within=48h"
SECRET = os.environ["MINIFLUX_SECRET"].encode()
MAX_BODY = 8 << 20


class Hook(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("content-length", MAX_BODY + 1))
        if length > MAX_BODY:
            return self.send_error(413)
        body = self.rfile.read(length)
        signed = hmac.new(SECRET, body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(signed, self.headers.get("x-miniflux-signature", "")):
            return self.send_error(403)
        if self.headers.get("x-miniflux-event-type") == "new_entries":
            self.match(json.loads(body))
        self.send_response(204)
        self.end_headers()

    def match(self, event):
        titles = {str(entry["id"]): entry["title"] for entry in event["entries"]}
        lines = [json.dumps({"id": id, "text": title}) for id, title in titles.items()]
        request = urllib.request.Request(MATCH, "\n".join(lines).encode(), {"content-type": "application/x-ndjson"})
        with urllib.request.urlopen(request, timeout=30) as answers:
            for answer in map(json.loads, answers):
                if "error" in answer:
                    print(answer["error"], flush=True)
                elif not answer["new"]:
                    print(f"{event['feed']['title']}: {titles[answer['id']]} -> story {answer['event']}", flush=True)

    def log_message(self, *_):
        pass


http.server.HTTPServer(("127.0.0.1", 9100), Hook).serve_forever()
