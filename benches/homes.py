#!/usr/bin/env python3
"""Times one question, "what is like this text?", in every home of collections and in two peers, by size.

    python3 -m venv .venv && .venv/bin/pip install -r benches/homes.txt
    tests/postgres/with.sh .venv/bin/python benches/homes.py titles.txt --sizes 10000,100000,1000000

The file has a text a line; more are made by recombination. `--program` is built with the feature `postgres`.
Homes are asked over HTTP with the text; usearch and pgvector alone are given the same vectors (by `avg-cos`,
asked of the service before, which is not timed), so they do less. Recall is the share of the ten best by the
exact ranking that are found. It writes a table to the screen and, with `--chart`, a picture. The machine should
have nothing else to do.
"""

import argparse
import http.client
import json
import math
import os
import statistics
import subprocess
import tempfile
import threading
import time

import numpy
import psycopg
import usearch.index

from collection_service import Service
from collection_service import titles

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("titles", help="texts, one a line")
parser.add_argument("--program", default="target/release/cognate")
parser.add_argument("--model", default="models/default.safetensors")
parser.add_argument("--sizes", default="10000,100000,1000000")
parser.add_argument("--rounds", type=int, default=50, help="questions that are timed")
parser.add_argument("--largest-graph", type=int, default=1_000_000, help="no HNSW is built of more items")
parser.add_argument("--chart", help="file for a picture (SVG)")
args = parser.parse_args()
DATABASE = os.environ["TEST_COGNATE_POSTGRES"]


def timed(ask, queries):
    """Answers, and the milliseconds of each; the first is not counted."""
    ask(queries[0])
    answers, times = [], []
    for query in queries:
        begun = time.perf_counter()
        answers.append(ask(query))
        times.append(1000 * (time.perf_counter() - begun))
    return answers, sorted(times)


def questions_a_second(connect, queries, seconds=3, clients=2):
    """Right answers a second to clients that ask without a pause."""
    counts, until = [0] * clients, time.perf_counter() + seconds

    def run(place):
        ask, at = connect(), place
        while time.perf_counter() < until:
            ask(queries[at % len(queries)])
            counts[place] += 1
            at += clients

    threads = [threading.Thread(target=run, args=(place,)) for place in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / seconds


class Table:
    """What was measured, a line each."""

    def __init__(self):
        self.rows = []
        head = ["items", "what", "filled", "p50 ms", "p99 ms", "a second", "recall@10"]
        print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))

    def add(self, size, what, filled, connect, queries, best):
        answers, times = timed(connect(), queries)
        pairs = zip(answers, best) if best else ()
        found = [len(set(answer) & wanted) / len(wanted) for answer, wanted in pairs if wanted]
        p50, p99 = statistics.median(times), times[min(len(times) - 1, int(0.99 * len(times)))]
        rate = questions_a_second(connect, queries)
        recall = f"{statistics.mean(found):.3f}" if found else "–"
        print(f"| {size:,} | {what} | {filled} | {p50:,.2f} | {p99:,.2f} | {rate:,.0f} | {recall} |", flush=True)
        self.rows.append((size, what, p50))


def asked_of(service, **settings):
    """Connections to a service, each asking by a text for the ids of the best ten."""

    def connect():
        connection = http.client.HTTPConnection(service.address, timeout=600)

        def ask(query):
            body = json.dumps({"collection": "bench", "query": query, "top_k": 10, **settings}).encode()
            connection.request("POST", "/rank", body, {"content-type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
            assert answer.status == 200, text[:400]
            return [int(result["id"]) for result in json.loads(text)["results"]]

        return ask

    return connect


def vectors_of(service, texts):
    """Vectors of length 1 by `avg-cos`, zeros where a text has none."""
    rows = []
    for at in range(0, len(texts), 1000):
        body = {"texts": texts[at : at + 1000], "method": "avg-cos", "normalize": True}
        found = json.loads(service.ask("POST", "/embed", body))["embeddings"]
        width = next(len(row) for row in found if row)
        rows.append(numpy.array([row or [0.0] * width for row in found], dtype=numpy.float32))
    return numpy.vstack(rows)


def measure(size, table):
    texts = list(titles(args.titles, size))
    queries = [texts[(at * 7919 + 13) % size] for at in range(args.rounds)]
    with tempfile.TemporaryDirectory(prefix="cognate-bench-") as folder:
        service = Service(args.program, args.model, "--data", folder)
        rate = service.load("bench", texts)
        exact = asked_of(service, method="avg-cos")
        # What is right is what the exact ranking answers.
        best = [set(answer) for answer in map(exact(), queries)]
        filled = f"{rate:,.0f} items a second"
        table.add(size, "folder, avg-cos, every item", filled, exact, queries, best)
        every = asked_of(service, shortlist="all")()
        # Every item by a costly method is more work than the service takes on for a very large collection.
        by_auto = [set(answer) for answer in map(every, queries)] if size <= 100_000 else None
        table.add(size, "folder, auto, of 1,000", filled, asked_of(service, shortlist=1000), queries, by_auto)
        vectors = vectors_of(service, texts)
        asked = vectors_of(service, queries)
        service.stop()
    peers(size, table, vectors, (queries, asked, best))
    database(size, table, texts, (queries, best))


def peers(size, table, vectors, asked):
    queries, rows, best = asked
    row_of = {query: row for query, row in zip(queries, rows)}
    if size <= args.largest_graph:
        begun = time.perf_counter()
        index = usearch.index.Index(ndim=vectors.shape[1], metric="cos", dtype="i8")
        index.add(numpy.arange(size), vectors, threads=1)
        filled = f"graph in {time.perf_counter() - begun:,.0f} s"
        graph = lambda: lambda query: index.search(row_of[query], 10).keys.tolist()  # noqa: E731
        table.add(size, "usearch alone, HNSW, int8", filled, graph, queries, best)
        del index
    with psycopg.connect(DATABASE, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute("DROP TABLE IF EXISTS alone")
        connection.execute(f"CREATE TABLE alone (id bigint PRIMARY KEY, v halfvec({vectors.shape[1]}))")
        begun = time.perf_counter()
        with connection.cursor().copy("COPY alone FROM STDIN") as copy:
            for at, row in enumerate(vectors):
                copy.write_row((at, str(row.tolist())))
        filled = f"{size / (time.perf_counter() - begun):,.0f} rows a second"

        def connect():
            mine = psycopg.connect(DATABASE, autocommit=True)
            mine.execute("SET hnsw.ef_search = 100")

            def ask(query):
                text = str(row_of[query].tolist())
                found = mine.execute("SELECT id FROM alone ORDER BY v <=> %s::halfvec LIMIT 10", (text,))
                return [row[0] for row in found]

            return ask

        table.add(size, "pgvector alone, every row", filled, connect, queries, best)
        if size <= args.largest_graph:
            begun = time.perf_counter()
            connection.execute("CREATE INDEX ON alone USING hnsw (v halfvec_cosine_ops)")
            filled += f", graph in {time.perf_counter() - begun:,.0f} s"
            table.add(size, "pgvector alone, HNSW", filled, connect, queries, best)
        connection.execute("DROP TABLE alone")


def database(size, table, texts, asked):
    queries, best = asked
    home = ["--postgres", DATABASE]
    subprocess.run([args.program, "collection", "init", *home], check=True, capture_output=True)
    service = Service(args.program, args.model, *home)
    rate = service.load("bench", texts)
    filled = f"{rate:,.0f} items a second"
    begun = time.perf_counter()
    index = [args.program, "collection", "index", "bench", "--model", args.model, *home]
    subprocess.run([*index, "--kind", "none"], check=True, capture_output=True)
    filled += f", vectors in {time.perf_counter() - begun:,.0f} s"
    ranked = {"method": "avg-cos", "shortlist": 100}
    table.add(size, "PostgreSQL, avg-cos, of 100", filled, asked_of(service, **ranked), queries, best)
    if size <= args.largest_graph:
        begun = time.perf_counter()
        subprocess.run(index, check=True, capture_output=True)
        filled = f"graph in {time.perf_counter() - begun:,.0f} s"
        table.add(size, "PostgreSQL, avg-cos, of 100, HNSW", filled, asked_of(service, **ranked), queries, best)
    service.ask("DELETE", "/collections/bench")
    service.stop()


def chart(rows, path):
    """Milliseconds by items, both by powers of ten."""
    width, height, left, foot, key = 860, 420, 60, 40, 290
    sizes = sorted({size for size, _, _ in rows})
    times = [time for _, _, time in rows]
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    span = max(math.log10(sizes[-1] / sizes[0]), 1e-9)

    def x(size):
        return left + (width - left - key) * math.log10(size / sizes[0]) / span

    def y(time):
        return height - foot - (height - foot - 20) * (math.log10(time) - low) / (high - low)

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">']
    lines.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for power in range(low, high + 1):
        at = y(10**power)
        lines.append(f'<path d="M{left} {at:.1f}H{width - key}" stroke="#ddd"/>')
        lines.append(f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{10**power:g} ms</text>')
    for size in sizes:
        lines.append(f'<text x="{x(size):.1f}" y="{height - foot + 18}" text-anchor="middle">{size:,}</text>')
    names = list(dict.fromkeys(what for _, what, _ in rows))
    colours = ["#1b6ca8", "#6fb1de", "#999999", "#d9843b", "#8c4a12", "#3a8f4f", "#8fcf9f"]
    for place, name in enumerate(names):
        colour = colours[place % len(colours)]
        points = [(x(size), y(time)) for size, what, time in rows if what == name]
        path_of = "L".join(f"{at:.1f} {up:.1f}" for at, up in points)
        lines.append(f'<path d="M{path_of}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines += [f'<circle cx="{at:.1f}" cy="{up:.1f}" r="3" fill="{colour}"/>' for at, up in points]
        down = 30 + 20 * place
        lines.append(f'<path d="M{width - key + 15} {down - 4}h20" stroke="{colour}" stroke-width="2"/>')
        lines.append(f'<text x="{width - key + 42}" y="{down}">{name}</text>')
    lines.append("</svg>\n")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))


def main():
    table = Table()
    for size in args.sizes.split(","):
        measure(int(size), table)
    if args.chart:
        chart(table.rows, args.chart)


if __name__ == "__main__":
    main()
