#!/usr/bin/env python3
"""Servers that share a database, beside one with a folder: what a user would do, and what may go wrong.

    tests/postgres/with.sh tests/postgres/check.py path/to/cognate

The program is built with the feature `postgres`. Needs nothing but Python.
"""

import atexit
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

DATABASE = os.environ["TEST_COGNATE_POSTGRES"]
SERVER = os.environ["TEST_COGNATE_POSTGRES_SERVER"]
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


def main():
    program = os.path.abspath(sys.argv[1])

    def run(*arguments):
        done = subprocess.run([program, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    code, said = run("serve", "--model", MODEL, "--listen", "127.0.0.1:0", "--postgres", DATABASE)
    assert code != 0 and "collection init" in said, said
    for expected in ("made the tables", "already"):
        code, said = run("collection", "init", "--postgres", DATABASE)
        assert code == 0 and expected in said, said
    print("init: makes the tables, and finds them made")

    folder = tempfile.mkdtemp()
    alone = Service(program, "--data", folder)
    first, second = (Service(program, "--postgres", DATABASE) for _ in range(2))
    every = (alone, first, second)
    all_items = items()
    texts = [item["text"] for item in all_items]
    for service in (alone, first):
        service.good("PUT", "/collections/titles", {})
        for at in range(0, len(all_items), 400):
            changed = service.good("POST", "/collections/titles/items", {"items": all_items[at : at + 400]})
            assert changed["added"] == len(all_items[at : at + 400]), changed
    assert second.good("GET", "/collections/titles")["items"] == len(all_items)
    print(f"titles: {same_rankings(alone, second, texts)} questions answered alike by a folder and a database")

    settings = {"max_items": 500}
    stream = [{"id": f"s{place}", "text": text} for place, text in enumerate(texts)]
    random.Random(1).shuffle(stream)
    for service in (alone, first):
        service.good("PUT", "/collections/news", settings)
    for turn, at in enumerate(range(0, len(stream), 97)):
        piece = stream[at : at + 97]
        path = "/collections/news/match?last=300&min_score=0.3"
        expected = alone.good("POST", path, piece, lines=True)
        found = every[1 + turn % 2].good("POST", path, piece, lines=True)
        assert expected == found, (at, expected, found)
    events = sum(line["new"] for line in expected)
    print(f"match: {len(stream)} texts through two servers by turns as through one ({events} of the last piece new)")

    for service in (first, second):
        for path in ("/collections/none", "/collections/none/items", "/collections/none/items/x"):
            assert service.ask("GET", path)[0] == 404, path
        assert service.ask("POST", "/collections/none/match", [{"id": 1, "text": "a"}], lines=True)[0] == 404
        assert service.ask("POST", "/collections/none/match", {"items": [{"id": 1, "text": "a"}]})[0] == 404
        status, answer = service.ask("POST", "/rank", {"collection": "none", "query": "a"})
        assert (status, answer["code"]) == (422, "unknown_collection"), answer
        status, answer = service.ask(
            "POST", "/collections/titles/items", {"items": [{"id": "x", "text": "a\0b"}]}
        )
        assert (status, answer["errors"][0]["pointer"]) == (422, "/items/0/text"), answer

    before = recall(first, texts[:30])
    code, said = run("collection", "index", "titles", "--postgres", DATABASE, "--model", MODEL)
    assert code == 0 and "0 vectors made" in said, said
    after = recall(second, texts[:30])
    assert before > 0.8 and after > 0.8, (before, after)
    print(f"shortlist: of the best ten by DynaMax {before:.1%} are on 100, {after:.1%} with an index")

    # What was acknowledged is there, whoever is killed.
    known, running = [], True

    def write(service):
        place = 0
        while running:
            name = f"k{id(service)}-{place}"
            try:
                status, _ = service.ask("PUT", f"/collections/titles/items/{name}", {"text": f"kill {place}"})
            except OSError:
                return
            if status == 200:
                known.append(name)
            place += 1

    writers = [threading.Thread(target=write, args=(service,)) for service in (first, second)]
    for writer in writers:
        writer.start()
    time.sleep(1)
    first.end(signal.SIGKILL)
    time.sleep(0.5)
    running = False
    for writer in writers:
        writer.join()
    missing = [name for name in known if second.ask("GET", f"/collections/titles/items/{name}")[0] != 200]
    assert known and not missing, missing
    print(f"kill -9: {len(known)} items acknowledged, none lost")

    # Without its database a server answers what needs none, and tells what does.
    subprocess.run([SERVER, "kill"], check=True)
    began = time.monotonic()
    status, answer = second.ask("POST", "/rank", {"collection": "titles", "query": "a"})
    took = time.monotonic() - began
    assert (status, answer["code"]) == (503, "database_unavailable") and took < 5, (status, answer, took)
    status, answer = second.ask("PUT", "/collections/titles/items/x", {"text": "a"})
    assert (status, answer["code"]) == (503, "database_unavailable"), answer
    assert second.ask("POST", "/similarity", {"pairs": [["a cat", "a dog"]]})[0] == 200
    assert second.ask("POST", "/rank", {"query": "a cat", "candidates": ["a dog"]})[0] == 200
    subprocess.run([SERVER, "start"], check=True)
    assert second.good("GET", f"/collections/titles/items/{known[-1]}")["id"] == known[-1]
    second.good("PUT", "/collections/titles/items/x", {"text": "back again"})
    print(f"database killed: 503 within {took:.2f} s, other questions answered, and well again once it is back")

    assert second.good("DELETE", "/collections/titles")["name"] == "titles"
    code, said = run("collection", "info", "--json", "--postgres", DATABASE)
    assert [one["name"] for one in json.loads(said)["collections"]] == ["news"], said
    code, exported = run("collection", "export", "news", "--postgres", DATABASE)
    code, kept = run("collection", "export", "news", "--data", folder)
    assert "another process" in kept
    alone.end()
    code, kept = run("collection", "export", "news", "--data", folder)
    without_time = [re.sub(r'"time":"[^"]*"', "", text) for text in (exported, kept)]
    assert code == 0 and without_time[0] == without_time[1] and len(exported.splitlines()) == 500
    second.end()
    log = "".join(second.log)
    assert "postgres://" not in log, log
    print("command line: info and export read the database as they read a folder")


if __name__ == "__main__":
    main()
