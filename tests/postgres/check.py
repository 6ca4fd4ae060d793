#!/usr/bin/env python3
"""Servers that share a database, beside one with a folder: what a user would do, and what may go wrong.

    tests/postgres/with.sh tests/postgres/check.py path/to/cognate

The program is built with the feature `postgres`. Needs nothing but Python.
"""

import glob
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
import urllib.request

from service import HERE, MODEL, Service, changed_alike, items, recall, same_rankings

DATABASE = os.environ["TEST_COGNATE_POSTGRES"]
SERVER = os.environ["TEST_COGNATE_POSTGRES_SERVER"]
PSQL = os.path.join(os.environ["TEST_COGNATE_POSTGRES_BIN"], "psql")
RELEASES = os.path.join(HERE, "../data/versions/*/database.sql")


def restored(run):
    """Databases of every release, as tests/data/versions/make.sh dumped them, say what they said and go on."""
    dumps = sorted(glob.glob(RELEASES))
    assert dumps
    for place, dump in enumerate(dumps):
        folder, url = os.path.dirname(dump), f"{DATABASE.rpartition('/')[0]}/restored{place}"
        psql = [PSQL, "--no-psqlrc", "--quiet", "--set", "ON_ERROR_STOP=1"]
        subprocess.run([*psql, DATABASE, "--command", f"CREATE DATABASE restored{place}"], check=True)
        subprocess.run([*psql, url, "--output", os.devnull, "--file", dump], check=True)

        def collection(action, *arguments):
            code, said = run("collection", action, *arguments, "--postgres", url)
            assert code == 0, (dump, action, said)
            return said

        model = ("--model", os.path.join(folder, "model.safetensors"))
        collection("init")
        with open(os.path.join(folder, "database.ndjson"), encoding="utf-8") as file:
            *items, ranked = file.read().splitlines()
        assert collection("export", "news").splitlines() == items, dump
        found = collection("rank", "news", "--like", "t12", "--shortlist", "5", *model, "--json").splitlines()
        assert found == [ranked], (dump, found)
        # The vectors are those of the dump, and one more item has its own.
        assert "0 vectors made" in collection("index", "news", *model), dump
        with tempfile.NamedTemporaryFile("w", suffix=".ndjson") as item:
            print('{"id": "last", "text": "a quake"}', file=item, flush=True)
            collection("load", "news", item.name)
        assert len(collection("export", "news").splitlines()) == len(items), dump
        assert "1 vectors made" in collection("index", "news", *model), dump
    print(f"releases: databases of {len(dumps)} restored, the same items and the same ranking, and written to")


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
    restored(run)

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
        path = "/collections/news/match?last=300&threshold=0.3"
        expected = alone.good("POST", path, piece, lines=True)
        found = every[1 + turn % 2].good("POST", path, piece, lines=True)
        for line in (*expected, *found):
            # It is told with the last of those lines that were added together, as they arrived.
            line.pop("left", None)
        assert expected == found, (at, expected, found)
    events = sum(line["new"] for line in expected)
    print(f"match: {len(stream)} texts through two servers by turns as through one ({events} of the last piece new)")

    asked = changed_alike(alone, first, second, texts)
    print(f"changes: {asked} patches, deletions, matches and questions through two servers by turns as through one")

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
    # A match that is refused is counted, in a stream as well.
    item = {"id": "y", "text": "a"}
    for body, lines in (({"items": [item]}, False), ([item], True)):
        status, answer = second.ask("POST", "/collections/titles/match", body, lines=lines)
        assert (status, answer["code"]) == (503, "database_unavailable"), answer
    page = urllib.request.urlopen(second.url + "/metrics").read().decode()
    refused = re.findall(r'cognate_collection_refused_total{.*code="database_unavailable"} (\d+)', page)
    assert sum(map(int, refused)) == 3, refused
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
    code, beside = run("collection", "export", "news", "--data", folder)
    alone.end()
    code, kept = run("collection", "export", "news", "--data", folder)
    assert beside == kept, "a folder is read beside the server that has it"
    without_time = [re.sub(r'"time":"[^"]*"', "", text) for text in (exported, kept)]
    assert code == 0 and without_time[0] == without_time[1] and len(exported.splitlines()) == 500
    second.end()
    log = "".join(second.log)
    assert "postgres://" not in log, log
    print("command line: info and export read the database as they read a folder")


if __name__ == "__main__":
    main()
