#!/usr/bin/env python3
"""examples/vector_store.py over a collection that the program exported: tests/clients/vector_store.py COGNATE.

The store is Qdrant's client in a folder, so that no server is needed. Run with a Python that has qdrant-client.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples"))

from qdrant_client import QdrantClient  # noqa: E402
from vector_store import Service, Store, ask, feed  # noqa: E402


def texts():
    rows = (ROOT / "benches/data/pairs.tsv").read_text().splitlines()
    return list(dict.fromkeys(text for row in rows for text in row.split("\t")[1:]))


def main():
    cognate = sys.argv[1]
    run = lambda *words, **more: subprocess.run([cognate, *words], check=True, text=True, **more)
    with tempfile.TemporaryDirectory() as folder:
        given = texts()
        lines = "".join(json.dumps({"id": f"t/{at}", "text": text}) + "\n" for at, text in enumerate(given))
        pathlib.Path(folder, "items.jsonl").write_text(lines)
        data = str(pathlib.Path(folder, "data"))
        run("collection", "create", "titles", "--data", data, capture_output=True)
        run("collection", "load", "titles", f"{folder}/items.jsonl", "--data", data, capture_output=True)
        exported = run("collection", "export", "titles", "--data", data, capture_output=True).stdout
        server = subprocess.Popen(
            [cognate, "serve", "--listen", "127.0.0.1:0"], cwd=ROOT, stderr=subprocess.PIPE, text=True
        )
        try:
            address = None
            for line in server.stderr:
                found = re.search(r'"listening","address":"([^"]+)"', line)
                address = found[1] if found else address
                if '"message":"ready"' in line:
                    break
            service = Service(f"http://{address}")
            store = Store("titles", QdrantClient(path=f"{folder}/store"))
            for _ in range(2):  # To feed again changes nothing.
                assert feed(service, store, exported.splitlines()) == len(given)
            assert store.client.count("titles").count == len(given)
            kept = asked = 0
            for query in given[::60]:
                found = ask(service, store, query, candidates=200, top_k=10)
                exact = service.rank(query, given, top_k=10)
                best = {given[result["index"]]: result["score"] for result in exact}
                assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
                for item, score in found:
                    assert best.get(item["text"], score) == score, "the same pair has the same score"
                assert found[0][0]["text"] == query, "a text is nearest to itself"
                kept += sum(item["text"] in best for item, _ in found)
                asked += len(best)
            assert kept >= 0.9 * asked, (kept, asked)
            print(f"{len(given)} items fed twice; {kept} of the {asked} best found among 200 candidates")
        finally:
            server.terminate()
            server.wait()


main()
