"""The service as the benches of collections start it, and the texts that they fill it with."""

import http.client
import itertools
import json
import random
import re
import subprocess
import tempfile
import time


class Service:
    """The service on a home of collections, from its start until it can be asked."""

    def __init__(self, program, model, *home):
        self.log = tempfile.NamedTemporaryFile("r", suffix=".log")
        limits = ["--collection-bytes", str(12 << 30), "--collection-items", "10000000"]
        limits += ["--compute-deadline-ms", "60000"]
        serve = [program, "serve", "--model", model, *home, "--listen", "127.0.0.1:0", *limits]
        begun = time.perf_counter()
        self.process = subprocess.Popen(serve, stderr=open(self.log.name, "w"))
        address = None
        while address is None:
            if self.process.poll() is not None:
                raise SystemExit(open(self.log.name, encoding="utf-8").read())
            found = re.search(r'"listening","address":"([^"]*)"', open(self.log.name, encoding="utf-8").read())
            address = found and found[1]
            time.sleep(0.005)
        self.started = time.perf_counter() - begun
        self.address = address
        self.connection = http.client.HTTPConnection(address, timeout=600)
        self.used = time.monotonic()

    def ask(self, verb, path, body=None, kind="application/json"):
        # The service ends connections that were idle; a closed one is opened anew.
        if time.monotonic() - self.used > 5:
            self.connection.close()
        self.used = time.monotonic()
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        self.connection.request(verb, path, data, {"content-type": kind} if data else {})
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{verb} {path}: {answer.status} {text[:400].decode()}")
        return text

    def load(self, name, texts, part=5000, attributes=lambda at: {}):
        """Items of these texts, each with its attributes; how many a second are taken."""
        self.ask("PUT", f"/collections/{name}", {})
        took, count, numbered = 0.0, 0, enumerate(texts)
        while items := list(itertools.islice(numbered, part)):
            posted = [{"id": str(at), "text": text, "attributes": attributes(at)} for at, text in items]
            body = json.dumps({"items": posted}).encode()
            begun = time.perf_counter()
            self.ask("POST", f"/collections/{name}/items", body)
            took += time.perf_counter() - begun
            count += len(items)
        return count / took

    def resident(self):
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as status:
            return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def stop(self):
        self.process.kill()
        self.process.wait()


def titles(path, count):
    """So many titles: those of a file, then recombinations of them."""
    with open(path, encoding="utf-8") as file:
        known = [line.strip()[:2000] for line in file if line.strip()]
    yield from itertools.islice(known, count)
    chance = random.Random(7)
    halves = [title.split() for title in known]
    for _ in range(count - len(known)):
        one, other = chance.choice(halves), chance.choice(halves)
        yield " ".join(one[: (len(one) + 1) // 2] + other[len(other) // 2 :])
