#!/usr/bin/env python3
"""Looks at the playground without a server with a real browser, and measures the package there.

    wasm/tests/browser.py [FOLDER] [--measure] [--pictures FOLDER]

FOLDER is what `wasm/build.sh` made, by default wasm/dist. It is served as files and nothing else. Needs
Debian's chromium and chromium-driver, and installs them where it may.
"""

import argparse
import functools
import http.server
import json
import os
import sys
import threading
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../tests/browser"))

from driver import KEYS, Browser  # noqa: E402

SCORED = "const at = document.querySelector('[data-score]'); return at && at.dataset.score"
LISTED = "return document.querySelectorAll('#ranking .ranked li').length"
PROBLEM = "return document.querySelector('#problem').innerText"


class Files(http.server.SimpleHTTPRequestHandler):
    """Files, and a list of what was asked for."""

    asked: list = []

    def do_GET(self):
        self.asked.append(self.path)
        super().do_GET()

    def do_POST(self):
        self.asked.append(self.path)
        self.send_error(501)

    def log_message(self, *_):
        pass


class Pages:
    """The checks, in the order in which they are made."""

    def __init__(self, browser, url, pictures):
        self.browser, self.url, self.pictures = browser, url, pictures

    def picture(self, name):
        if self.pictures:
            os.makedirs(self.pictures, exist_ok=True)
            self.browser.picture(os.path.join(self.pictures, f"{name}.png"))

    def quiet(self):
        told = self.browser.complaints()
        assert not told, told

    def first_sight(self):
        """The page answers by itself: it has loaded the package once, and asked no route of a service."""
        self.browser.look(1280, "light")
        self.browser.open(self.url + "/playground/")
        score = float(self.browser.until(SCORED))
        assert abs(score - 0.8186929) < 1e-7, score
        assert self.browser.run("return document.querySelector('#offline').checked")
        loaded = [path for path in Files.asked if path.endswith((".wasm", ".safetensors"))]
        assert len(loaded) == 2, loaded
        assert not [path for path in Files.asked if not path.startswith("/playground/")], Files.asked
        told = self.browser.run("return document.querySelector('#command').innerText")
        assert "in JavaScript" in told and "model.explain(" in told, told
        assert "Model default: " in self.browser.run("return document.querySelector('#served').textContent")
        self.picture("offline-compare")
        self.quiet()

    def methods(self):
        """Every method answers, with the score that the package gives."""
        offered = self.browser.run(
            "return [...document.querySelectorAll('#method option:enabled')].map((at) => at.value)"
        )
        assert len(offered) > 20 and offered[0] == "auto", offered
        for method in offered:
            self.browser.run(
                "document.querySelector('#verdict').replaceChildren();"
                "const at = document.querySelector('#method'); at.value = arguments[0];"
                "at.dispatchEvent(new Event('change'))",
                method,
            )
            assert -1 <= float(self.browser.until(SCORED)) <= 1, method
        self.browser.run(
            "const at = document.querySelector('#method'); at.value = 'auto'; at.dispatchEvent(new Event('change'))"
        )
        self.quiet()

    def refused(self):
        """A text that cannot be scored is named in words."""
        self.browser.type("#a", " " + KEYS["enter"])
        told = self.browser.until(PROBLEM)
        assert "The first text is empty" in told, told
        self.browser.type("#a", "Quake hits L.A.!!" + KEYS["enter"])
        self.browser.until(SCORED)
        assert not self.browser.run(PROBLEM)

    def ranking(self):
        """A list is put in order, and a text of it opens its explanation."""
        self.browser.click("#rank-tab")
        assert self.browser.until(LISTED) == 7
        first = self.browser.run("return document.querySelector('.ranked .candidate').textContent")
        assert "earthquake" in first.lower(), first
        assert not self.browser.run("return document.querySelector('#more').offsetHeight")
        assert "model.rank(" in self.browser.run("return document.querySelector('#command-text').textContent")
        self.picture("offline-rank")
        self.browser.click(".ranked .candidate")
        self.browser.until("return document.querySelector('#b').value === arguments[0]", first)
        self.browser.until(SCORED)
        self.quiet()

    def events(self):
        """Events are found by vectors that are made in the page."""
        self.browser.click("#events-tab")
        self.browser.until("return document.querySelectorAll('.event').length === 3")
        largest = self.browser.run("return document.querySelector('.event .about').textContent")
        assert "lima" in largest.lower(), largest
        assert not self.browser.run("return document.querySelector('#of').offsetHeight"), "it has no collections"
        assert "cognate events" in self.browser.run("return document.querySelector('#command').innerText")
        self.quiet()

    def switched(self):
        """Without the switch the server is asked, which is not there; with it all is as before."""
        self.browser.click("#compare-tab")
        before = self.browser.until(SCORED)
        self.browser.click("#offline")
        told = self.browser.until(PROBLEM)
        assert "answer" in told.lower(), told
        assert "/models" in Files.asked, Files.asked
        self.browser.complaints()
        self.browser.click("#offline")
        assert self.browser.until(SCORED) == before
        assert len([path for path in Files.asked if path.endswith(".safetensors")]) == 1, "it is loaded once"
        self.browser.look(360, "dark")
        found = self.browser.run("return document.documentElement.scrollWidth")
        assert found <= 360, f"{found} px of page in 360 px"
        self.picture("offline-narrow-dark")
        self.quiet()

    def worker(self):
        """A worker gives the page's own answers, and refuses by the same exceptions."""
        told = self.browser.run(
            """
            return (async () => {
              const { Cognate, TextError } = await import(arguments[0] + "cognate.js");
              const { CognateWorker } = await import(arguments[0] + "worker.js");
              const pairs = [["Quake hits L.A.!!", "Earthquake shakes Los Angeles"], ["a cat", "football"], ["", "x"]];
              const worker = await CognateWorker.load();
              const [there, here] = [await worker.pairs(pairs), (await Cognate.load()).pairs(pairs)];
              const refused = await worker.rank(" ", ["a"]).catch((error) => error instanceof TextError && error.argument);
              const late = worker.methods();
              worker.close();
              const closed = await late.catch((error) => error.message);
              return [JSON.stringify(there) === JSON.stringify(here), refused, closed];
            })();
            """,
            self.url + "/playground/cognate/",
        )
        assert told == [True, "query", "this model was closed"], told
        self.quiet()


def measured(browser, url):
    """What `measure.mjs` finds in the browser."""
    browser.open(url + "/playground/assets/icon.svg")
    browser.run(
        "window.found = null;"
        "import(arguments[0]).then((at) => at.measure(arguments[1])).then("
        "(found) => (window.found = found), (error) => (window.found = { error: String(error) }))",
        url + "/measure.mjs",
        url + "/package/cognate.js",
    )
    for _ in range(20):
        try:
            return browser.until("return window.found")
        except AssertionError:
            continue
    raise AssertionError("nothing was measured")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default=os.path.join(HERE, "../dist"))
    parser.add_argument("--measure", action="store_true", help="print what the package does, as JSON")
    parser.add_argument("--pictures", metavar="FOLDER", help="where to put pictures of the pages")
    arguments = parser.parse_args()
    serve = functools.partial(Files, directory=arguments.folder)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    failed = 0
    with Browser() as browser:
        if arguments.measure:
            print(json.dumps(measured(browser, url)))
            return 0
        pages = Pages(browser, url, arguments.pictures)
        checks = "first_sight methods refused ranking events switched worker".split()
        for name in checks:
            try:
                getattr(pages, name)()
                print(f"ok      {name}", flush=True)
            except AssertionError:
                failed += 1
                print(f"FAILED  {name}\n{traceback.format_exc()}", flush=True)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
