"""A browser, driven by the WebDriver protocol itself: nothing but Python's own library is needed.

What is checked with it is not known here.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"enter": "\ue007", "right": "\ue014", "tab": "\ue004"}
PATIENCE_S = 20


def install():
    """Sees to it that there is a browser with its driver; says so where it cannot."""
    needed = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    if not needed:
        return
    packages = ["chromium", "chromium-driver", "fonts-dejavu-core"]
    print(f"{' and '.join(needed)} missing, installing {' '.join(packages)}", flush=True)
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise SystemExit(f"install {' and '.join(needed)} (Debian: apt-get install {' '.join(packages)})")
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    subprocess.run(["apt-get", "update", "-qq"], **quiet)
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages]
    subprocess.run(command, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, **quiet)


class Browser:
    """One browser with one window."""

    def __enter__(self):
        install()
        self.folder = tempfile.TemporaryDirectory(prefix="cognate-browser-")
        log = os.path.join(self.folder.name, "driver.log")
        # Port 0: the driver takes a free one and says which.
        self.driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=open(log, "wb"), stderr=subprocess.STDOUT
        )
        try:
            self.base = f"http://127.0.0.1:{self._port(log)}"
            arguments = ["--headless=new", "--window-size=1280,1000", "--disable-dev-shm-usage"]
            arguments += ["--hide-scrollbars", f"--user-data-dir={self.folder.name}/profile"]
            if os.geteuid() == 0:
                arguments.append("--no-sandbox")
            options = {"args": arguments, "binary": shutil.which("chromium")}
            wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
            started = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
            self.session = f"/session/{started['sessionId']}"
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_):
        try:
            self._ask("DELETE", self.session)
        finally:
            self._end()

    def _end(self):
        self.driver.terminate()
        self.driver.wait()
        self.folder.cleanup()

    def _port(self, log):
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and self.driver.poll() is None:
            with open(log, encoding="utf-8") as lines:
                found = re.search(r"started successfully on port (\d+)", lines.read())
            if found:
                return int(found[1])
            time.sleep(0.05)
        raise SystemExit("chromedriver did not start")

    def _ask(self, verb, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, method=verb)
        request.add_header("content-type", "application/json")
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            told = json.load(error)["value"]
            raise AssertionError(f"{path}: {told['error']}: {told['message']}") from None

    def open(self, url):
        """Opens a page."""
        self._ask("POST", f"{self.session}/url", {"url": url})

    def run(self, script, *arguments):
        """What a script on the page returns."""
        body = {"script": script, "args": list(arguments)}
        return self._ask("POST", f"{self.session}/execute/sync", body)

    def until(self, script, *arguments):
        """Waits until a script returns something true, and returns that."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            found = self.run(script, *arguments)
            if found:
                return found
            time.sleep(0.05)
        raise AssertionError(f"still not so after {PATIENCE_S} s: {script}")

    def _find(self, css):
        body = {"using": "css selector", "value": css}
        return self._ask("POST", f"{self.session}/element", body)[ELEMENT]

    def click(self, css):
        """Clicks as a person does: what is hidden or covered cannot be clicked."""
        self._ask("POST", f"{self.session}/element/{self._find(css)}/click", {})

    def type(self, css, text, clear=True):
        """Types into a field."""
        field = f"{self.session}/element/{self._find(css)}"
        if clear:
            self._ask("POST", f"{field}/clear", {})
        self._ask("POST", f"{field}/value", {"text": text})

    def command(self, name, **parameters):
        """Something that the browser's own protocol does."""
        body = {"cmd": name, "params": parameters}
        return self._ask("POST", f"{self.session}/goog/cdp/execute", body)

    def look(self, width, scheme):
        """As wide a window and as light a room as that."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.command("Emulation.setDeviceMetricsOverride", **size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.command("Emulation.setEmulatedMedia", features=features)

    def picture(self, path):
        """Takes a picture of the whole page."""
        taken = self.command("Page.captureScreenshot", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(taken["data"]))

    def complaints(self):
        """What the console holds against the page since the last time."""
        entries = self._ask("POST", f"{self.session}/se/log", {"type": "browser"})
        bad = ("SEVERE", "WARNING")
        return [entry["message"] for entry in entries if entry["level"] in bad]
