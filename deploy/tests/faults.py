#!/usr/bin/env python3
"""Causes faults for real and waits until Prometheus wakes somebody for each, and is silent when it is mended.

    faults.py PROGRAM [--prometheus COMMAND] [--folder FOLDER]
    faults.py --deployment PROMETHEUS --cause COMMAND --mend COMMAND

Starts servers of PROGRAM on loopback and a Prometheus with the unchanged alert rules, which scrapes them as
often as deploy/prometheus/prometheus.yml says. COMMAND may hold arguments (a `docker run`); FOLDER is where
the servers and Prometheus keep what they have, for a COMMAND that must be told. Takes seven minutes, because the
slowest rule waits for five. Exits 1 when an alert did not come or did not go. Knows nothing of containers:
of a deployment that runs, with the Prometheus at that URL, COMMANDs take a replica away and bring it back.
"""

import argparse
import itertools
import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

DEPLOY = Path(__file__).resolve().parent.parent
MODEL = DEPLOY.parent / "models" / "default.safetensors"
# The slowest rule waits for five minutes, and what it counts back over is as long.
PATIENCE_S = 420


def free_address():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{one.getsockname()[1]}"


def ask(url, body=None, method=None):
    """(status, answer) of a question; no status where nobody answers."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, method=method)
    request.add_header("content-type", "application/json")
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    except OSError:
        return None, b""


def until(holds, what, seconds=30):
    ends = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > ends:
            raise SystemExit(f"not within {seconds} s: {what}")
        time.sleep(0.2)


class Server:
    """A server that can be killed and started again where it was."""

    def __init__(self, program, data, *settings):
        self.address, self.data = free_address(), data
        self.command = [program, "serve", "--model", f"default={MODEL}", "--listen", self.address,
                        "--shutdown-delay-s", "0", *settings]
        self.log = open(data.with_suffix(f".{self.address.split(':')[1]}.log"), "ab")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)
        until(lambda: self.ask("/health")[0] == 200, f"{' '.join(self.command)} serves; see {self.log.name}")

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()

    def ask(self, path, body=None, method=None):
        return ask(f"http://{self.address}{path}", body, method)

    def put(self, items):
        return self.ask("/collections/news/items", {"items": items})[0]


class Keeper(Server):
    """A server with a collection of some items in its folder."""

    def __init__(self, program, data, *settings):
        super().__init__(program, data, "--data", str(data), *settings)
        self.items = data / "news" / "items.log"

    def fill(self):
        self.start()
        self.ask("/collections/news", {}, "PUT")
        for number in range(5):
            status = self.put([{"id": f"t{number}", "text": f"Earthquake number {number} shakes the city of Lima"}])
            assert status == 200, status


class Down(Keeper):
    alert, cause_told, mend_told = "CognateDown", "a server is killed", "started again"

    def cause(self):
        self.end(signal.SIGKILL)

    mend = Server.start


class Full(Keeper):
    alert, cause_told, mend_told = "CognateCollectionWritesRefused", "a write does not fit", "it keeps fewer"

    def __init__(self, program, data):
        super().__init__(program, data, "--collection-bytes", "1MiB")

    def cause(self):
        for batch in itertools.count():
            status = self.put([{"id": f"{batch}-{number}", "text": "word " * 40} for number in range(50)])
            if status != 200:
                assert status == 507, status
                return

    def mend(self):
        self.ask("/collections/news?drop=true", {"max_items": 100}, "PUT")


class NearlyFull(Full):
    alert, cause_told = "CognateCollectionMemoryNearLimit", "more than 90 % of the memory is taken"


class Unwritable(Keeper):
    alert, cause_told, mend_told = "CognateCollectionsUnwritable", "a log is moved away", "put back, and started again"

    def cause(self):
        self.items.rename(self.data / "elsewhere")

    def mend(self):
        (self.data / "elsewhere").rename(self.items)
        self.end()
        self.start()


class Damaged(Keeper):
    alert, cause_told, mend_told = "CognateCollectionLogDamaged", "a byte of a log is another", "salvaged and taken up"

    def __init__(self, program, data):
        super().__init__(program, data, "--damaged", "serve-others")

    def cause(self):
        self.end()
        self.items.write_bytes(self.items.read_bytes().replace(b"number 2", b"number 7", 1))
        self.start()

    def mend(self):
        salvaged = self.data.with_suffix(".salvaged")
        command = [self.command[0], "collection", "salvage", "news", str(salvaged), "--data", str(self.data)]
        subprocess.run(command, check=True, stdout=self.log, stderr=self.log)
        (self.data / "news").rename(self.data.with_suffix(".damaged"))
        (salvaged / "news").rename(self.data / "news")
        self.process.send_signal(signal.SIGHUP)


class Cut(Keeper):
    alert, cause_told, mend_told = "CognateCollectionLogCut", "a crash leaves half a write", "started once more"

    def cause(self):
        self.end(signal.SIGKILL)
        with open(self.items, "ab") as log:
            log.write(self.items.read_bytes()[:30])
        self.start()

    def mend(self):
        self.end()
        self.start()


class WriterGone(Server):
    """A replica; its writer is killed."""

    alert, cause_told, mend_told = "CognateReplicaWriterGone", "a replica's writer is killed", "started again"

    def __init__(self, program, data):
        super().__init__(program, data, "--replica-of", str(data))
        self.writer = Keeper(program, data)

    def fill(self):
        self.writer.fill()
        self.start()

    def cause(self):
        self.writer.end(signal.SIGKILL)

    def mend(self):
        self.writer.start()


class FewerReplicas:
    """A replica of a deployment is gone, and its name with it."""

    alert, cause_told, mend_told = "CognateFewerReplicas", "one of some replicas is gone", "started again"
    address = None

    def __init__(self, cause, mend):
        self.cause = lambda: subprocess.run(shlex.split(cause), check=True, stdout=subprocess.DEVNULL)
        self.mend = lambda: subprocess.run(shlex.split(mend), check=True, stdout=subprocess.DEVNULL)


class Watcher:
    """What a Prometheus says."""

    def __init__(self, address):
        self.address = address

    def query(self, expression):
        asked = urllib.parse.urlencode({"query": expression})
        return json.loads(ask(f"http://{self.address}/api/v1/query?{asked}")[1])["data"]["result"]

    def firing(self):
        """(alert, instance) of each that fires."""
        return {(found["metric"]["alertname"], found["metric"].get("instance"))
                for found in self.query('ALERTS{alertstate="firing"}')}


class Prometheus(Watcher):
    def __init__(self, command, folder, addresses):
        super().__init__(free_address())
        shutil.copy(DEPLOY / "prometheus" / "alerts.yml", folder / "alerts.yml")
        pace = re.match(r".*?\n\n", (DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"), re.S)[0]
        targets = {"job_name": "texts", "static_configs": [{"targets": addresses}]}
        config = folder / "prometheus.yml"
        rest = f"rule_files: [alerts.yml]\nscrape_configs: [{json.dumps(targets)}]\n"
        config.write_text(pace + rest, encoding="utf-8")
        arguments = [f"--config.file={config}", f"--storage.tsdb.path={folder}/series"]
        arguments += [f"--web.listen-address={self.address}"]
        with open(folder / "prometheus.log", "wb") as log:
            self.process = subprocess.Popen(shlex.split(command) + arguments, stdout=log, stderr=log)
        until(lambda: ask(f"http://{self.address}/-/ready")[0] == 200, f"{command} is ready; see {log.name}")


def run(program, prometheus, folder):
    faults = [kind(program, folder / kind.__name__.lower())
              for kind in (Down, Full, NearlyFull, Unwritable, Damaged, Cut, WriterGone)]
    started = []
    try:
        for fault in faults:
            fault.fill()
            started += [fault, getattr(fault, "writer", fault)]
        watcher = Prometheus(prometheus, folder, [fault.address for fault in faults])
        started.append(watcher)
        until(lambda: len(watcher.query("cognate_ready == 1")) == len(faults), "every server is scraped")
        # Counters have to be seen before they grow.
        time.sleep(15)
        if early := watcher.firing():
            raise SystemExit(f"fire before anything is wrong: {early}")
        return watch(faults, watcher)
    finally:
        for one in started:
            if one.process.poll() is None:
                one.process.terminate()
        for one in started:
            one.process.wait()


def watch(faults, watcher):
    """Causes one fault after another, mends each when its alert fires; whether every alert came and went."""
    pending, since, came, went, others = list(faults), {}, {}, {}, set()
    ends = time.monotonic() + 2 * PATIENCE_S
    while len(went) < len(faults) and time.monotonic() < ends:
        if pending:
            fault = pending.pop(0)
            fault.cause()
            since[fault] = time.monotonic()
        firing, now = watcher.firing(), time.monotonic()
        others |= firing - {(fault.alert, fault.address) for fault in faults}
        for fault in since:
            fires = (fault.alert, fault.address) in firing
            if fires and fault not in came:
                came[fault] = now - since[fault]
                fault.mend()
                since[fault] = time.monotonic()
            elif not fires and fault in came and fault not in went:
                went[fault] = now - since[fault]
        time.sleep(1)
    for fault in faults:
        fired = f"fires after {came[fault]:.0f} s" if fault in came else "does not fire"
        silent = f"silent {went[fault]:.0f} s after" if fault in went else "still fires after"
        print(f"{fault.alert}: {fault.cause_told} | {fired}; {silent}: {fault.mend_told}")
    if others:
        print("fired besides:", *sorted({alert for alert, _ in others}), file=sys.stderr)
    return len(went) == len(faults)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?")
    parser.add_argument("--prometheus", default="prometheus", metavar="COMMAND")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--deployment", metavar="PROMETHEUS")
    parser.add_argument("--cause", metavar="COMMAND")
    parser.add_argument("--mend", metavar="COMMAND")
    options = parser.parse_args()
    if options.deployment:
        watcher = Watcher(options.deployment.removeprefix("http://"))
        # The rule looks every 30 s and compares with most of the last hour: four looks at several replicas outweigh
        # those of the two minutes for which it waits.
        seen = "count_over_time((count(cognate_ready == 1) > 1)[1h:30s]) > 3"
        until(lambda: watcher.query(seen), "replicas are scraped for two minutes", 180)
        return 0 if watch([FewerReplicas(options.cause, options.mend)], watcher) else 1
    if not options.program:
        parser.error("PROGRAM or --deployment is needed")
    folder = options.folder or Path(tempfile.mkdtemp(prefix="cognate-faults-"))
    ok = run(str(Path(options.program).resolve()), options.prometheus, folder.resolve())
    if ok and not options.folder:
        shutil.rmtree(folder)
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
