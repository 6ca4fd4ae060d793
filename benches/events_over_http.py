#!/usr/bin/env python3
"""The walk of a client: `examples/events.py` over real posts, its alerts by their labels, and the same while the
server is killed: docs/events.md, "By HTTP".

    benches/events_over_http.py COGNATE DATA/tweets/crisislex-validation.tsv [--repeats 10000] [--seed 1]

Needs requests. Posts are sent in the order of their times. In the second run the server is killed by SIGKILL at
random moments and started again, also while random stretches of the posts are sent once more; then all items, with
their events, and all alerts are compared with those of the first run. Of the first run it is also counted how often the
events that `…/events/ID/similar` names are about the same crisis, as late merges should be.
"""

import argparse
import collections
import contextlib
import csv
import gzip
import itertools
import json
import pathlib
import random
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

import requests

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLIENT = ROOT / "examples/events.py"
LEAST, CHATTER = 5, 0.45
# From which scores on similar events are counted.
SCORES = (0.6, 0.5, 0.4, 0.3)
# Seconds between two kills, and the posts of a stretch that is sent once more.
PAUSE, STRETCH = (0.3, 1.5), 32


def posts_of(path):
    """The posts, in the order of their times."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))
    return sorted(rows, key=lambda row: row["time_utc"])


class Server:
    """A server on a port of its own, that may be killed and started again."""

    def __init__(self, cognate, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = "127.0.0.1:%d" % free.getsockname()[1]
        model = ROOT / "models/default.safetensors"
        self.command = [cognate, "serve", "--model", model, "--data", folder, "--listen", self.address]
        self.news = f"http://{self.address}/collections/news"
        self.kills = 0
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            with contextlib.suppress(requests.RequestException):
                if requests.get(f"http://{self.address}/ready", timeout=5).ok:
                    return
            time.sleep(0.02)
        raise SystemExit("the server is not ready after 30 s")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.kills += 1

    def kill_by_chance(self, seed, ended):
        chance = random.Random(seed)
        while not ended.wait(chance.uniform(*PAUSE)):
            self.kill()
            self.start()


def sent_again(server, items, repeats, seed):
    """Sends stretches once more, each until it is answered; the number of answers that were not the stored ones."""
    chance, others = random.Random(seed), 0
    for _ in range(repeats):
        start = chance.randrange(len(items))
        while True:
            with contextlib.suppress(requests.RequestException):
                stretch = {"items": items[start : start + STRETCH]}
                answer = requests.post(f"{server.news}/match", json=stretch, timeout=60)
                if answer.ok:
                    others += sum(not result.get("repeated") for result in answer.json()["results"])
                    break
            time.sleep(0.05)
    return others


def similar(server):
    """Pairs of events that are named as similar, each with the higher of its scores."""
    pairs, offset, asked = {}, 0, {"least": LEAST, "limit": 100}
    while True:
        page = requests.get(f"{server.news}/events", {**asked, "offset": offset}, timeout=60).json()
        for event in page["events"]:
            address = f"{server.news}/events/{event['id']}/similar"
            for other in requests.get(address, {"least": LEAST}, timeout=60).json()["events"]:
                pair = frozenset((event["id"], other["id"]))
                pairs[pair] = max(pairs.get(pair, 0), other["score"])
        offset += len(page["events"])
        if offset >= page["total"]:
            return pairs


def walk(cognate, items, repeats, seed):
    """The client's alerts, all alerts, the event of each item, similar events, and what was done to the server."""
    with tempfile.TemporaryDirectory(prefix="cognate-walk-") as folder:
        server = Server(cognate, folder)
        ended, killer, others = threading.Event(), None, 0
        try:
            requests.put(server.news, json={}, timeout=60).raise_for_status()
            if repeats:
                killer = threading.Thread(target=server.kill_by_chance, args=(seed, ended))
                killer.start()
            lines = "".join(f"{json.dumps(item)}\n" for item in items)
            started = time.monotonic()
            client = [sys.executable, CLIENT, server.news]
            told = subprocess.run(client, input=lines, capture_output=True, text=True, check=True).stdout
            taken = time.monotonic() - started
            others = sent_again(server, items, repeats, seed)
            ended.set()
            if killer:
                killer.join()
            asked = {"after": "", "follow": "false", "least": LEAST}
            alerts = requests.get(f"{server.news}/events/stream", asked, timeout=60)
            alerts = [json.loads(line) for line in alerts.iter_lines()][1:]
            events = {}
            while len(events) < len(items):
                page = requests.get(f"{server.news}/items", {"limit": 1000, "offset": len(events)}, timeout=60).json()
                events |= {item["id"]: (item["event"], item["text"]) for item in page["items"]}
            alike = {} if repeats else similar(server)
            told = [json.loads(line) for line in told.splitlines()]
            return told, alerts, events, (taken, server.kills, others, alike)
        finally:
            ended.set()
            if killer:
                killer.join()
            server.kill()


def different(alerts, others):
    """How many alerts are not the same; their ids and times of the clock may differ."""
    fields = ("kind", "event", "size", "item", "text", "chatter")
    pairs = itertools.zip_longest(alerts, others, fillvalue={})
    return sum(any(one.get(field) != other.get(field) for field in fields) for one, other in pairs)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("cognate", type=pathlib.Path, help="the program")
    parser.add_argument("posts", type=pathlib.Path, help="posts with their labels")
    parser.add_argument("--repeats", type=int, default=10_000, help="stretches that are sent once more")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = posts_of(arguments.posts)
    items = [{"id": str(at), "text": row["text"], "time": row["time_utc"]} for at, row in enumerate(rows)]
    code = re.sub(r'""".*?"""', "", CLIENT.read_text(), flags=re.S).splitlines()
    code = [line for line in code if line.strip()]
    imports = sum(line.startswith("import ") for line in code)
    print(f"client: {len(code) - imports} lines and {imports} imports")

    told, alerts, events, (taken, _, _, alike) = walk(arguments.cognate, items, 0, arguments.seed)
    days = len({row["time_utc"][:10] for row in rows})
    off_topic = sum(row["related"] != "1" for row in rows)
    print(f"posts: {len(rows)} on {days} days, {off_topic} off topic; {taken:.1f} s")
    labels = collections.defaultdict(list)
    for at, row in enumerate(rows):
        labels[events[str(at)][0]].append(row["event"] if row["related"] == "1" else None)
    for name, chosen in (("all alerts", alerts), (f"chatter up to {CHATTER}", told)):
        begun = [alert for alert in chosen if alert["kind"] == "begun"]
        chatter = sum(2 * labels[alert["event"]].count(None) > len(labels[alert["event"]]) for alert in begun)
        crises = {label for alert in begun for label in labels[alert["event"]][:LEAST] if label}
        print(
            f"{name}: {len(chosen)}, {len(chosen) / days:.2f} a day; {len(begun)} begun, "
            f"{len(begun) / days:.2f} a day, {chatter} of them chatter "
            f"({100 * chatter / max(1, len(begun)):.0f} %), {len(crises)} crises among them"
        )

    about = {event: collections.Counter(all_of).most_common(1)[0][0] for event, all_of in labels.items()}
    for least in SCORES:
        subjects = [[about[event] for event in pair] for pair, score in alike.items() if score >= least]
        right = sum(one == other and one is not None for one, other in subjects)
        crises = sum(None not in pair for pair in subjects)
        print(f"similar from {least}: {len(subjects)} pairs, {right} of one crisis, {crises - right} of two, the others chatter")
    if not arguments.repeats:
        return 0

    again = walk(arguments.cognate, items, arguments.repeats, arguments.seed)
    differences = {
        "items": sum(again[2].get(id) != found for id, found in events.items()),
        "alerts": different(alerts, again[1]),
        "alerts that the client told": different(told, again[0]),
    }
    (taken, kills, others, _) = again[3]
    stretches = f"{arguments.repeats} stretches of {STRETCH} posts sent again"
    print(f"killed {kills} times, {stretches}, {others} answers not the stored ones")
    print("differences:", ", ".join(f"{name} {count}" for name, count in differences.items()))
    return 1 if others or any(differences.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
