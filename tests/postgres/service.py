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
import urllib.parse
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


def changed_alike(alone, first, second, texts):
    """Items of events are patched, and deleted by what they have, through two servers by turns as through one."""
    path, asked = "/collections/wire", 0

    def same(method, *rest, **how):
        nonlocal asked
        asked += 1
        answers = [service.ask(method, *rest, **how) for service in (alone, (first, second)[asked % 2])]
        for _, answer in answers:
            if isinstance(answer, dict):
                answer.pop("request_id", None)
        assert answers[0] == answers[1], (method, rest, answers)
        return answers[0]

    for service in (alone, first):
        service.good("PUT", path, {})
    stream = [
        {"id": f"w{at}", "text": text, "time": 1_700_000_000 + 90 * at, "attributes": {"lang": "en", "n": at}}
        for at, text in enumerate(texts[:300])
    ]
    same("POST", path + "/match?threshold=0.3", stream, lines=True)
    patches = [
        ("w3", {"attributes": {"lang": "de", "n": None}}),
        ("w4", {"attributes": None, "data": {"seen": True, "none": None}}),
        ("w4", {"data": {"seen": None, "by": [1, 2]}}),
        ("w5", {"time": 1_700_100_000}),
        ("w6", {"attributes": {"n": {"no": "object"}}}),
        ("w7", {"text": "another"}),
        ("nobody", {"data": 1}),
        ("no\0body", {"data": 1}),
    ]
    statuses = [same("PATCH", f"{path}/items/{urllib.parse.quote(name)}", patch)[0] for name, patch in patches]
    assert statuses == [200, 200, 200, 200, 422, 422, 404, 404], statuses

    def look():
        same("GET", path + "/items?limit=1000")
        for order in ("last", "first", "size", "chatter"):
            found = same("GET", f"{path}/events?least=1&limit=100&sort={order}")[1]
        for event in found["events"][:5]:
            same("GET", f"{path}/events/{event['id']}")
        for unknown in ({"nobody": 1}, {"lang": "de", "seen": True}, {"any": [{"n": {"gt": 3}}, {"x": "y"}]}):
            same("GET", f"{path}/items?filter={urllib.parse.quote(json.dumps(unknown))}")
            same("POST", "/rank", {"collection": "wire", "query": texts[3], "filter": unknown})
        return found["events"]

    events, removed = look(), 0
    largest = max(events, key=lambda event: event["size"])["id"]
    for which in (
        "",
        "?filter=" + urllib.parse.quote('{"lang": "de"}'),
        "?filter=" + urllib.parse.quote('{"n": {"gte": 20, "lt": 40}}'),
        "?filter=" + urllib.parse.quote('{"n": {"near": 1}}'),
        "?filter=" + urllib.parse.quote('{"not": {"n": {"exists": true}}}'),
        f"?event={largest}",
        "?event=nobody",
        "?filter=" + urllib.parse.quote('{"n": {"lt": 60}}') + "&event=w50",
        "?within=1d",
        "?all=true",
    ):
        # A match between them: the window must follow what was deleted.
        status, answer = same("DELETE", path + "/items" + which)
        removed += answer["removed"] if status == 200 else 0
        look()
        again = [{**item, "id": "again-" + item["id"]} for item in stream[asked % 50 :][:20]]
        same("POST", path + "/match?threshold=0.3", again, lines=True)
    assert removed > 300, removed
    for service in (alone, first):
        service.good("DELETE", path)
    return asked


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
