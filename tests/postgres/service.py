"""A server as a user starts it, and what is asked of one that keeps collections in a folder and one that keeps
them elsewhere.
"""

import atexit
import json
import os
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
MODEL = os.path.join(HERE, "../../models/default.safetensors")
PAIRS = os.path.join(HERE, "../../benches/data/pairs.tsv")


class Service:
    """A server of its own process."""

    def __init__(self, program, *home):
        command = [program, "serve", "--model", MODEL, "--listen", "127.0.0.1:0", *home]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        # Nothing is left running, however the check ends.
        atexit.register(self.process.kill)
        self.log = []
        self.url = None
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r'"listening","address":"([^"]*)"', line)
            if found:
                self.url = "http://" + found[1]
                break
        assert self.url, self.log
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()

    def ask(self, method, path, body=None, lines=False):
        """The status and what was answered."""
        data, kind = None, "application/json"
        if lines:
            data, kind = "\n".join(map(json.dumps, body)).encode(), "application/x-ndjson"
        elif body is not None:
            data = json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"content-type": kind}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        if lines and status == 200:
            return status, [json.loads(line) for line in text.splitlines()]
        return status, json.loads(text)

    def good(self, *asked, **how):
        status, answer = self.ask(*asked, **how)
        assert status == 200, (asked[:2], status, answer)
        return answer

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait(30)


def items():
    """Items with attributes, of texts that differ."""
    with open(PAIRS, encoding="utf-8") as file:
        texts = [text for line in file for text in line.rstrip("\n").split("\t")[1:]]
    texts = list(dict.fromkeys(texts))
    return [
        {
            "id": f"i{place}",
            "text": text,
            "attributes": {"lang": ["en", "de", "fr"][place % 3], "year": 1990 + place % 40},
            "data": {"place": place},
            "time": 1_700_000_000 + place,
        }
        for place, text in enumerate(texts)
    ]


def same_rankings(one, other, texts):
    asked = [
        {"query": texts[5], "top_k": 20, "return_text": True},
        {"query": texts[5], "method": "avg-cos", "filter": {"lang": ["en", "de"], "year": {"gte": 2000}}},
        {"query": texts[8], "method": "dynamax-jaccard", "top_k": 15, "offset": 5},
        {"queries": texts[1:4], "method": "coverage", "min_score": 0.2},
        {"like": [{"id": "i3"}, {"id": "i9", "weight": 2}], "unlike": [{"id": "i4"}], "strategy": "mean"},
        {"like": [{"text": texts[2]}], "exclude": ["i2", "i7"], "diversify": {}, "method": "avg-cos"},
        {"query": texts[3], "method": "bm25", "filter": {"not": {"lang": "fr"}}},
        {"query": texts[3], "within": "1d"},
        {"query": texts[3], "filter": {"lang": "none"}},
        {"like": [{"id": "nobody"}]},
        {"query": texts[3], "filter": {"lang": {"near": 1}}},
    ]
    for question in asked:
        question["collection"] = "titles"
        answers = [service.ask("POST", "/rank", question) for service in (one, other)]
        for status, answer in answers:
            answer.pop("request_id", None)
        assert answers[0] == answers[1], (question, answers)
    pages = ["/items?limit=7&offset=3", '/items?filter={"year":{"lt":1995}}'.replace('"', "%22"), "/items/i6"]
    for path in pages:
        assert one.good("GET", "/collections/titles" + path) == other.good("GET", "/collections/titles" + path)
    return len(asked)


def recall(service, texts):
    """How much of the best ten by DynaMax a shortlist of a hundred holds."""
    found = 0
    for text in texts:
        question = {"collection": "titles", "query": text, "method": "dynamax-jaccard"}
        best = [
            {result["id"] for result in service.good("POST", "/rank", {**question, "shortlist": wanted})["results"]}
            for wanted in ("all", 100)
        ]
        found += len(best[0] & best[1]) / len(best[0])
    return found / len(texts)
