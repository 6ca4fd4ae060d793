#!/usr/bin/env python3
"""Servers whose collections are in Qdrant, beside one with a folder: what a user would do, and what may go wrong.

    tests/qdrant/with.sh tests/qdrant/check.py path/to/cognate

The program is built with the feature `qdrant`. Needs nothing but Python.
"""

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

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../homes"))

from service import MODEL, Service, items, recall, same_rankings  # noqa: E402

PLACE = os.environ["TEST_COGNATE_QDRANT"]
SERVER = os.environ["TEST_COGNATE_QDRANT_SERVER"]
KEY = "a-key-of-nobody"


def within(seconds, asked):
    """What comes of something that is asked until it is well, and how long that took."""
    began = time.monotonic()
    while True:
        status, answer = asked()
        took = time.monotonic() - began
        if status == 200:
            return answer, took
        assert took < seconds, (status, answer, took)
        time.sleep(0.5)


def main():
    program = os.path.abspath(sys.argv[1])

    def run(*arguments):
        done = subprocess.run([program, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    code, said = run("serve", "--model", MODEL, "--listen", "127.0.0.1:0", "--qdrant", PLACE)
    assert code != 0 and "collection init" in said, said
    code, said = run("serve", "--model", MODEL, "--listen", "127.0.0.1:0", "--qdrant", PLACE, "--data", "x")
    assert code != 0 and "give one of" in said, said
    for expected in ("made the tables", "already"):
        code, said = run("collection", "init", "--qdrant", PLACE)
        assert code == 0 and expected in said, said
    print("init: makes what is needed, and finds it made")

    folder = tempfile.mkdtemp()
    alone = Service(program, "--data", folder)
    first, second = (Service(program, "--qdrant", PLACE) for _ in range(2))
    all_items = items()
    texts = [item["text"] for item in all_items]
    for service in (alone, first):
        service.good("PUT", "/collections/titles", {})
        for at in range(0, len(all_items), 400):
            changed = service.good("POST", "/collections/titles/items", {"items": all_items[at : at + 400]})
            assert changed["added"] == len(all_items[at : at + 400]), changed
    assert second.good("GET", "/collections/titles")["items"] == len(all_items)
    same = same_rankings(alone, second, texts)
    print(f"titles: {same} questions answered alike by a folder and a server that others fill")

    stream = [{"id": f"s{place}", "text": text} for place, text in enumerate(texts)]
    random.Random(1).shuffle(stream)
    for service in (alone, first):
        service.good("PUT", "/collections/news", {"max_items": 500})
    path = "/collections/news/match?last=300&min_score=0.3"
    for at in range(0, len(stream), 97):
        piece = stream[at : at + 97]
        expected, found = (service.good("POST", path, piece, lines=True) for service in (alone, first))
        assert expected == found, (at, expected, found)
    print(f"match: {len(stream)} texts as with a folder")

    before = [service.good("GET", "/collections/news/items?limit=500") for service in (alone, second)]
    names = [[item["id"] for item in page["items"]] for page in before]
    assert names[0] == names[1], names
    for asked in (
        ("PUT", "/collections/news/items/x", {"text": "by another"}),
        ("POST", "/collections/news/match", {"items": [{"id": "x", "text": "by another"}]}),
        ("PUT", "/collections/news", {"max_items": 3}),
    ):
        status, answer = second.ask(*asked)
        assert (status, answer["code"]) == (507, "not_written") and "another server" in answer["detail"], answer
    assert second.good("GET", "/collections/news/items?limit=500")["items"] == before[1]["items"]
    print("a second writer: refused, and nothing of it is there")

    for service in (first, second):
        for path in ("/collections/none", "/collections/none/items", "/collections/none/items/x"):
            assert service.ask("GET", path)[0] == 404, path
        assert service.ask("POST", "/collections/none/match", {"items": [{"id": 1, "text": "a"}]})[0] == 404
        status, answer = service.ask("POST", "/rank", {"collection": "none", "query": "a"})
        assert (status, answer["code"]) == (422, "unknown_collection"), answer

    found = recall(second, texts[:30])
    code, said = run("collection", "index", "titles", "--qdrant", PLACE, "--model", MODEL)
    assert code == 0 and "0 vectors made" in said, said
    assert found > 0.8, found
    print(f"shortlist: of the best ten by DynaMax {found:.1%} are on 100")

    first.end()
    second.good("PUT", "/collections/titles/items/x", {"text": "by another"})
    second.good("DELETE", "/collections/titles/items/x")
    print("the first server ended: the second writes at once")

    # What was acknowledged is there, whoever is killed.
    known = []

    def write():
        for place in range(100_000):
            # Every other one takes the place of another, so that both kinds are cut off.
            name = f"k{place if place % 2 else place % 20}"
            try:
                status, _ = second.ask("PUT", f"/collections/titles/items/{name}", {"text": f"kill {place}"})
            except OSError:
                return
            if status == 200:
                known.append((name, f"kill {place}"))

    writer = threading.Thread(target=write)
    writer.start()
    time.sleep(2)
    second.end(signal.SIGKILL)
    writer.join()
    third = Service(program, "--qdrant", PLACE)
    last = dict(known)
    page = third.good("GET", "/collections/titles/items?limit=1000&offset=" + str(len(all_items)))["items"]
    there = {item["id"]: item["text"] for item in page}
    assert len(page) == len(there), "two of one name"
    # The write that was cut off may have been the next after what was acknowledged.
    wrong = {name: there.get(name) for name, text in last.items() if there.get(name) != text}
    assert known and len(wrong) <= 1 and None not in wrong.values(), wrong
    assert third.good("GET", "/collections/titles")["items"] == len(all_items) + len(there)
    _, took = within(40, lambda: third.ask("PUT", "/collections/titles/items/after", {"text": "after it"}))
    assert third.good("GET", "/collections/titles")["items"] == len(all_items) + len(there) + 1
    print(f"kill -9: {len(known)} writes acknowledged, none lost; another server writes after {took:.0f} s")

    # Without Qdrant a server answers what needs none of it, and tells what does.
    subprocess.run([SERVER, "kill"], check=True)
    began = time.monotonic()
    status, answer = third.ask("POST", "/rank", {"collection": "titles", "query": "a"})
    took = time.monotonic() - began
    assert (status, answer["code"]) == (503, "database_unavailable") and took < 5, (status, answer, took)
    status, answer = third.ask("PUT", "/collections/titles/items/x", {"text": "a"})
    assert (status, answer["code"]) == (503, "database_unavailable"), answer
    assert third.ask("POST", "/similarity", {"pairs": [["a cat", "a dog"]]})[0] == 200
    assert third.ask("POST", "/rank", {"query": "a cat", "candidates": ["a dog"]})[0] == 200
    subprocess.run([SERVER, "start", KEY], check=True)
    status, answer = third.ask("GET", "/collections/titles")
    assert status == 500 and PLACE[7:] not in json.dumps(answer), answer
    print(f"Qdrant killed: 503 within {took:.2f} s, and other questions answered")

    with_key = PLACE + "?api_key=" + KEY
    code, said = run("serve", "--model", MODEL, "--listen", "127.0.0.1:0", "--qdrant", PLACE)
    assert code != 0 and "does not take the key" in said, said
    fourth = Service(program, "--qdrant", with_key)
    assert {item["id"] for item in fourth.good("GET", "/collections/titles/items?limit=1000&offset=" + str(len(all_items)))["items"]} >= set(last)
    third.end()
    within(40, lambda: fourth.ask("DELETE", "/collections/titles/items/after"))
    assert KEY not in "".join(fourth.log)
    code, said = run("serve", "--check", "--model", MODEL, "--qdrant", with_key)
    assert KEY not in said and "api_key=***" in said, said
    print("Qdrant is back with a key: served with it, refused without it, shown nowhere")

    assert fourth.good("DELETE", "/collections/titles")["name"] == "titles"
    code, said = run("collection", "info", "--json", "--qdrant", with_key)
    assert [one["name"] for one in json.loads(said)["collections"]] == ["news"], said
    code, exported = run("collection", "export", "news", "--qdrant", with_key)
    alone.end()
    code, kept = run("collection", "export", "news", "--data", folder)
    without_time = [re.sub(r'"time":"[^"]*"', "", text) for text in (exported, kept)]
    assert code == 0 and without_time[0] == without_time[1] and len(exported.splitlines()) == 500
    fourth.end()
    print("command line: info and export read Qdrant as they read a folder")


if __name__ == "__main__":
    main()
