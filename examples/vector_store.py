#!/usr/bin/env python3
"""Feeds a vector store from a collection, and lets `/rank` score what the store finds.

The store finds candidates by the vectors of `avg-cos`; the service scores them by any method, so that the answer
is as good as the method and as fast as the store. Here the store is Qdrant; for another one change `Store`.

    pip install qdrant-client
    cognate collection export titles --data data | examples/vector_store.py feed titles --store http://127.0.0.1:6333
    examples/vector_store.py ask titles "quake hits Chile" --store http://127.0.0.1:6333
"""

import argparse
import itertools
import json
import sys
import urllib.request
import uuid

from qdrant_client import QdrantClient, models

BATCH = 1000


class Service:
    """The routes of cognate that are needed here."""

    def __init__(self, url, key=None):
        self.url, self.key = url, key

    def post(self, path, body):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode())
        request.add_header("content-type", "application/json")
        if self.key:
            request.add_header("authorization", f"Bearer {self.key}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def embed(self, texts):
        return self.post("/embed", {"texts": texts, "method": "avg-cos"})["embeddings"]

    def rank(self, query, candidates, **options):
        return self.post("/rank", {"query": query, "candidates": candidates, **options})["results"]


class Store:
    """What is asked of a vector store: keep items under their ids, find the nearest of a vector."""

    def __init__(self, name, client):
        self.name, self.client = name, client

    def add(self, items, vectors):
        if not self.client.collection_exists(self.name):
            config = models.VectorParams(size=len(vectors[0]), distance=models.Distance.COSINE)
            self.client.create_collection(self.name, vectors_config=config)
        points = [
            # A store of numbers and UUIDs only: the same id is always the same UUID.
            models.PointStruct(id=str(uuid.uuid5(uuid.NAMESPACE_OID, item["id"])), vector=vector, payload=item)
            for item, vector in zip(items, vectors, strict=True)
        ]
        self.client.upsert(self.name, points, wait=True)

    def nearest(self, vector, length):
        found = self.client.query_points(self.name, query=vector, limit=length, with_payload=True)
        return [point.payload for point in found.points]


def feed(service, store, lines):
    """Adds items as `cognate collection export` writes them; to feed an item again replaces it."""
    count = 0
    items = map(json.loads, lines)
    while batch := list(itertools.islice(items, BATCH)):
        store.add(batch, service.embed([item["text"] for item in batch]))
        count += len(batch)
    return count


def ask(service, store, query, candidates=200, **options):
    """The best of the store's candidates, by the service's scores: pairs of item and score."""
    found = store.nearest(service.embed([query])[0], candidates)
    if not found:
        return []
    results = service.rank(query, [item["text"] for item in found], **options)
    return [(found[result["index"]], result["score"]) for result in results]


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("command", choices=["feed", "ask"])
    flags.add_argument("name", help="of the store's collection")
    flags.add_argument("query", nargs="?", help="of ask")
    flags.add_argument("--service", default="http://127.0.0.1:8080")
    flags.add_argument("--key", help="of the service")
    flags.add_argument("--store", default="http://127.0.0.1:6333", help="URL of Qdrant, or a folder")
    flags.add_argument("--method", default="auto")
    flags.add_argument("--top", type=int, default=10)
    given = flags.parse_args()
    is_url = "://" in given.store
    client = QdrantClient(url=given.store) if is_url else QdrantClient(path=given.store)
    service, store = Service(given.service, given.key), Store(given.name, client)
    if given.command == "feed":
        print(feed(service, store, sys.stdin), "items")
        return
    for item, score in ask(service, store, given.query, method=given.method, top_k=given.top):
        print(f"{score:.4f}\t{item['id']}\t{item['text']}")


if __name__ == "__main__":
    main()
