#!/usr/bin/env python3
"""examples/redis_stream.py with a Redis server of its own, its consumers killed: tests/clients/redis_stream.py COGNATE.

The server is Debian's `redis-server`. Run with a Python that has redis.
"""

import contextlib
import json
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

import redis

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENTRIES, KILLS, STOPS, IDLE = 20_000, 12, 6, 0.5
SETTINGS = {"last": 500, "within": "24h"}


def wait(condition, what, seconds=120):
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} within {seconds} s"
        time.sleep(0.001)
    return found


@contextlib.contextmanager
def servers(cognate, folder):
    """Redis on a socket of the folder and the service on a free port: a client of the one, the URL of the other."""
    assert shutil.which("redis-server"), "redis-server is missing: apt-get install redis-server"
    socket = f"{folder}/redis"
    flags = ["--port", "0", "--unixsocket", socket, "--dir", folder, "--save", ""]
    broker = subprocess.Popen(["redis-server", *flags], stdout=subprocess.DEVNULL)
    service = subprocess.Popen(
        [cognate, "serve", "--listen", "127.0.0.1:0", "--data", f"{folder}/data"],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = None
        for line in service.stderr:
            found = re.search(r'"listening","address":"([^"]+)"', line)
            address = found[1] if found else address
            if '"message":"ready"' in line:
                break
        wait(pathlib.Path(socket).exists, "Redis listens")
        yield redis.Redis(unix_socket_path=socket, decode_responses=True), f"http://{address}"
    finally:
        for server in (service, broker):
            server.terminate()
            server.wait()


def entries():
    """Texts that come in families, a minute apart, some of them refused by the service."""
    rows = (ROOT / "benches/data/pairs.tsv").read_text().splitlines()
    texts = list(dict.fromkeys(text for row in rows for text in row.split("\t")[1:]))
    draw = random.Random(5)
    for at in range(ENTRIES):
        words = draw.choice(texts[:300]).split()
        words[draw.randrange(len(words))] = draw.choice(["Lima", "Passau", "tonight"])
        seconds = "no time" if at % 4000 == 3999 else str(1714557600 + 60 * at)
        yield {"id": f"t{at}", "text": " ".join(words), "time": seconds}


class Run:
    """A stream with its consumers, and a collection of the same name."""

    def __init__(self, store, url, name):
        self.store, self.url, self.name, self.consumers = store, url, name, {}
        self.ask("", {}, "PUT")
        with store.pipeline() as pipeline:
            for fields in entries():
                pipeline.xadd(name, fields)
            pipeline.execute()

    def ask(self, path, body=None, verb="GET"):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/collections/{self.name}{path}", data, method=verb)
        request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def start(self):
        called = f"{self.name}-{len(self.consumers)}"
        words = ["--service", self.url, "--store", f"unix://{self.store.get_connection_kwargs()['path']}"]
        words += ["--name", called, "--idle", str(IDLE), "--settings", json.dumps(SETTINGS)]
        command = [sys.executable, str(ROOT / "examples/redis_stream.py"), self.name, self.name, *words]
        self.consumers[called] = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def pending(self):
        """Entries that are handed out and not acknowledged, by consumer."""
        try:
            found = self.store.xpending(self.name, "cognate")
        except redis.ResponseError:  # no group yet
            return {}
        return {one["name"]: one["pending"] for one in found["consumers"]}

    def caught(self, send):
        """Sends a signal to a consumer that has entries; whether it has them still."""
        called = wait(lambda: next(iter(self.pending()), None), "somebody takes entries")
        time.sleep(random.random() * 0.05)
        self.consumers[called].send_signal(send)
        time.sleep(0.02)
        return called if called in self.pending() else None

    def finish(self):
        """What was found, entry by entry, once all is acknowledged."""
        wait(lambda: self.store.xlen(f"{self.name}:events") >= ENTRIES, "all entries are answered")
        wait(lambda: not self.pending(), "all entries are acknowledged")
        time.sleep(2 * IDLE)
        for consumer in self.consumers.values():
            consumer.kill()
            consumer.wait()
        answers = [json.loads(fields["answer"]) for _, fields in self.store.xrange(f"{self.name}:events")]
        assert [answer["id"] for answer in answers] == [f"t{at}" for at in range(ENTRIES)], "each once, in order"
        refused = sum("error" in answer for answer in answers)
        assert refused == ENTRIES // 4000, refused
        told = [(answer.get("event"), answer.get("new"), answer.get("score")) for answer in answers]
        events = self.ask("/events?least=1&sort=first&limit=100")
        return told, [(event["id"], event["size"]) for event in events["events"]], events["total"]


def main():
    with tempfile.TemporaryDirectory() as folder, servers(sys.argv[1], folder) as (store, url):
        clean = Run(store, url, "clean")
        clean.start()
        expected = clean.finish()
        assert 10 < expected[2] < ENTRIES, expected[2]
        killed = Run(store, url, "killed")
        for _ in range(3):
            killed.start()
        left = stopped = 0
        while left < KILLS or stopped < STOPS:
            # One that is stopped is taken over, and goes on when somebody else has done its work.
            send = signal.SIGSTOP if left >= KILLS else signal.SIGKILL
            called = killed.caught(send)
            if send == signal.SIGKILL:
                left += called is not None
                killed.start()
                continue
            if called is not None:
                stopped += 1
                wait(lambda: called not in killed.pending(), "somebody takes over")
            for consumer in killed.consumers.values():
                consumer.send_signal(signal.SIGCONT)
        answered = store.xlen("killed:events")
        assert answered < ENTRIES, "the last one was caught in the middle"
        assert killed.finish() == expected
        print(f"{ENTRIES} entries, {expected[2]} events; {left} consumers killed and {stopped} stopped with entries open")


main()
