"""Checks of what the playground does with many texts: all methods, the map, a file of pairs, two rankings, a replay."""

import csv
import io
import json
import shutil
import subprocess

from driver import KEYS

# What the page gives as a file, caught instead of stored.
CATCH = (
    "window.caught = null;"
    "URL.createObjectURL = (blob) => { blob.text().then((text) => (window.caught = text)); return '#'; };"
    "HTMLAnchorElement.prototype.click = () => {};"
)
CHANGE = (
    "const at = document.querySelector(arguments[0]); at.value = arguments[1];"
    "at.dispatchEvent(new Event(arguments[2]))"
)
TEXT = "return document.querySelector(arguments[0])?.innerText ?? ''"


class ManyTexts:
    """Checks beside those of `check.py`, whose fields and helpers they use."""

    def text(self, css):
        return self.browser.run(TEXT, css)

    def change(self, css, value, event="change"):
        self.browser.run(CHANGE, css, value, event)

    def looks(self, name):
        """Pictures at both widths, light and dark; nothing is wider than its window."""
        for width in (390, 1280):
            for scheme in ("light", "dark"):
                self.browser.look(width, scheme)
                self.browser.run("return new Promise((resume) => setTimeout(resume, 100))")
                self.fits(width)
                self.picture(f"{name}-{width}-{scheme}")
        self.browser.look(1280, "light")

    def saved(self, css):
        """The rows of a file that a button gives."""
        self.browser.run(CATCH)
        self.browser.click(css)
        return list(csv.reader(io.StringIO(self.browser.until("return window.caught"))))

    def every_method(self):
        """Two texts have a row for each method, with the method's own score; the link opens the table again."""
        filled = "return [...document.querySelectorAll('.methods tbody tr')].every((row) => row.cells.length === 6) && "
        filled += "[...document.querySelectorAll('.methods tbody tr')].map((row) => [...row.cells].map((at) => at.innerText))"
        self.compare("turn on dark mode", "turn off dark mode")
        self.browser.click(".every summary")
        rows = self.browser.until(filled)
        methods = self.service("GET", "/methods")["methods"]
        offered = [one["name"] for one in methods if one["kind"] == "similarity" and one["available"]]
        assert [row[0].removesuffix("\u00a0\u203a") for row in rows] == offered, rows
        auto = self.service("GET", "/methods")["auto"]
        shown = next(row for row in rows if row[0].startswith(auto))
        assert shown[1] == self.text(".score strong") and shown[4] == "opposed", shown
        assert all(int(row[5].replace(",", "")) > 0 for row in rows), rows
        assert "opposed" in self.text(".score"), "the verdict stands beside the number"
        assert self.browser.run("return document.querySelector('.scale .reach').classList.contains('opposed')")
        self.looks("every-method")
        link = self.browser.until("return location.hash.includes('all=1') && location.href")
        self.browser.run("document.querySelector('.methods').remove()")
        self.browser.click(".every summary")
        self.browser.until("return !location.hash.includes('all=1')")
        self.browser.run("location.href = arguments[0]", link)
        self.browser.until(filled)
        name = "return [...document.querySelectorAll('.methods .candidate')].find((at) => at.textContent === arguments[0])"
        self.browser.run(name.replace("return ", "(") + ").click()", "avg-cos")
        self.browser.until("return document.querySelector('.score .hint')?.textContent === ' by avg-cos'")
        self.browser.until(filled)
        self.choose("auto")
        self.browser.click(".every summary")
        self.quiet()

    def languages(self):
        """Python and JavaScript ask the same as curl, and get the same."""
        self.compare("it's a 'quake' in L.A.", "a \"tremor\" shakes \\ $HOME \u5730\u9707")
        expected = self.curl()
        runs = {"Python": ["python3", "-"], "JavaScript": [shutil.which("node"), "--input-type=module"]}
        for language, command in runs.items():
            button = f"#languages button:nth-child({2 + list(runs).index(language)})"
            assert self.text(button) == language
            self.browser.click(button)
            program = self.text("#command-text")
            assert not self.key or self.key not in program, program
            if command[0] is None:
                continue
            if language == "JavaScript":
                program = program.replace("console.log(await answer.json())", "console.log(JSON.stringify(await answer.json()))")
            else:
                program = program.replace("print(json.load(", "print(json.dumps(json.load(") + ")"
            environment = {"PATH": "/usr/bin:/bin", "API_KEY": self.key or ""}
            ran = subprocess.run(command, input=program, env=environment, capture_output=True, text=True, timeout=30)
            assert ran.returncode == 0, ran.stderr
            assert json.loads(ran.stdout) == expected, ran.stdout
        self.browser.click("#languages button")
        self.quiet()

    def titles(self):
        """Each tab has a heading of its own, and the page its title."""
        titles = set()
        for tab in ("matrix", "pairs", "rank", "events", "compare"):
            self.browser.click(f"#{tab}-tab")
            title = self.browser.run("return document.title")
            assert title == f"cognate: {self.text('#heading').lower()}", title
            titles.add(title)
        assert len(titles) == 5, titles
        self.browser.complaints()

    def matrix(self):
        """Many texts are a map, in groups that the threshold moves; the keyboard chooses a pair."""
        self.browser.click("#matrix-tab")
        self.browser.until("return document.querySelector('#map canvas')")
        assert "3 groups" in self.text("#map h2") or "4 groups" in self.text("#map h2"), self.text("#map h2")
        first = self.text("#map section")
        assert "earthquake" in first or "strike" in first or "wildfire" in first, first
        colours = (
            "const at = document.querySelector('#map canvas');"
            "const all = at.getContext('2d').getImageData(0, 0, at.width, at.height).data;"
            "return new Set(Uint32Array.from(new Uint32Array(all.buffer))).size"
        )
        assert self.browser.run(colours) > 20
        self.looks("matrix")
        rows = self.saved("#map .tools button")
        assert len(rows) == 14 and len(rows[1]) == 15, rows[0]
        by_name = {row[1]: dict(zip(rows[0][2:], row[2:])) for row in rows[1:]}
        one, other = rows[1][1], rows[2][1]
        score = self.service("POST", "/similarity", {"pairs": [[one, other]]})["scores"][0]
        assert abs(float(by_name[one][other]) - score) < 1e-6
        self.change("#matrix-threshold", "1", "input")
        assert self.text("#map h2").startswith("0 groups and 13 texts alone"), self.text("#map h2")
        self.browser.type("#map canvas", KEYS["right"], clear=False)
        assert f"\u201c{one}\u201d and" in self.text("#map"), self.text("#map")
        self.browser.type("#map canvas", KEYS["enter"], clear=False)
        self.browser.until("return document.querySelector('#a').value === arguments[0]", one)
        self.browser.run("history.back()")
        self.browser.until("return !document.querySelector('#matrix').hidden")
        many = [f"text {at} of the {kind}" for at in range(50) for kind in ("storm", "football", "bread", "moon")]
        self.browser.run("document.querySelector('#many').value = arguments[0]", "\n".join(many))
        self.browser.run("document.querySelector('#map').replaceChildren()")
        self.browser.click("#ask")
        self.browser.until("return document.querySelector('#map canvas')")
        self.looks("matrix-200")
        self.browser.run("document.querySelector('#many').value += '\\nand one more'")
        self.browser.click("#ask")
        self.browser.until("return document.querySelector('#problem').innerText.includes('201 texts')")
        self.browser.run("const at = document.querySelector('#many'); at.value = at.defaultValue")
        self.quiet()

    def opened_file(self, field, name, text):
        """Chooses a file as a person does."""
        script = (
            "const transfer = new DataTransfer(); transfer.items.add(new File([arguments[2]], arguments[1]));"
            "const at = document.querySelector(arguments[0]); at.files = transfer.files;"
            "at.dispatchEvent(new Event('change'))"
        )
        self.browser.run(script, field, name, text)

    def pairs(self):
        """A table of pairs has scores, a histogram, and with labels precision and recall; a long one its first rows."""
        self.browser.click("#pairs-tab")
        self.browser.until("return document.querySelectorAll('#scores tbody tr').length === 12")
        columns = "return ['first', 'second', 'label'].map((id) => document.getElementById(id).value)"
        assert self.browser.run(columns) == ["text1", "text2", "related"]
        assert "Precision" in self.text("#scores") and "recall" in self.text("#scores")
        assert self.browser.run("return document.querySelectorAll('#scores .bin').length") == 40
        self.looks("pairs")
        self.change("#pairs-threshold", "0", "input")
        told = self.text("#scores h2")
        assert told.startswith("11 of 12 pairs related"), "an opposed pair is not related: " + told
        assert "recall 100 %" in self.text("#scores"), self.text("#scores")
        rows = self.saved("#scores .tools button")
        assert rows[0] == ["text1", "text2", "related", "score", "is_related"] and len(rows) == 13, rows[0]
        expected = self.service("POST", "/similarity", {"pairs": [row[:2] for row in rows[1:]]})["scores"]
        assert all(abs(float(row[3]) - score) < 1e-6 for row, score in zip(rows[1:], expected))
        self.change("#pairs-order", "high")
        values = "return [...document.querySelectorAll('#scores tbody td:first-child')].map((at) => Number(at.innerText))"
        shown = self.browser.run(values)
        assert shown == sorted(shown, reverse=True), shown
        lines = ["\ufefftitle_a;title_b;gold"] + [f'"a ""storm""; {at}";a flood {at};{at % 6}' for at in range(6000)]
        self.opened_file("#table-file", "pairs.csv", "\r\n".join(lines))
        self.browser.until("return document.querySelector('#notice').innerText.includes('6,000 rows')")
        self.browser.until("return document.querySelectorAll('#scores tbody tr').length === 100")
        assert self.browser.run(columns)[:2] == ["title_a", "title_b"], self.browser.run(columns)
        assert 'a "storm"; 0' in self.text("#scores tbody"), self.text("#scores tbody tr")
        assert "5,000 pairs" in self.text("#scores h2"), self.text("#scores h2")
        hint = self.browser.until("return document.querySelector('#link-hint').innerText.includes('without the table')")
        assert hint
        self.opened_file("#table-file", "pairs.ndjson", '{"a": "a quake", "b": "an earthquake"}\n{"a": "=1+1", "b": "x"}')
        self.browser.until("return document.querySelectorAll('#scores tbody tr').length === 2")
        assert self.saved("#scores .tools button")[2][0] == "'=1+1"
        self.browser.run("const at = document.querySelector('#table'); at.value = at.defaultValue")
        self.quiet()

    def two_rankings(self):
        """Two methods rank a list beside each other; a line joins the places of each text, and the link says both."""
        self.browser.click("#rank-tab")
        self.browser.until("return document.querySelectorAll('#ranking .ranked li').length")
        self.change("#beside", "bm25")
        self.browser.until("return document.querySelectorAll('.beside-lists li').length")
        sides = "return [...document.querySelectorAll('.beside-lists ol')].map((at) => [...at.querySelectorAll('.candidate')].map((one) => one.textContent))"
        left, right = self.browser.run(sides)
        answer = self.curl()
        candidates = self.browser.run("return document.querySelector('#candidates').value").split("\n")
        assert left == [candidates[one["index"]] for one in answer["results"] if one["index"] not in answer["unscored"]]
        lines = self.browser.run("return document.querySelectorAll('.beside-lists line').length")
        assert lines == len(set(left) & set(right)) > 0, lines
        self.looks("beside")
        link = self.browser.run("return location.href")
        assert "beside=bm25" in link, link
        self.browser.open("about:blank")
        self.browser.open(link)
        self.signed_in()
        self.browser.until("return document.querySelectorAll('.beside-lists li').length")
        self.change("#beside", "")
        self.browser.until("return document.querySelectorAll('#ranking .ranked li').length")
        self.quiet(besides=(401,) if self.key else ())

    def readers(self):
        """A reader's likes find titles of her shelf."""
        self.browser.click("#collections-tab")
        self.browser.until("return document.querySelector('#reader').options.length === 6")
        for reader in self.browser.run("return [...document.querySelector('#reader').options].slice(1).map((at) => at.value)"):
            self.browser.run("document.querySelector('#found').replaceChildren()")
            self.change("#reader", reader)
            self.browser.until("return document.querySelectorAll('#found .ranked li').length")
            assert len(self.browser.run("return document.querySelector('#liked').value").split("\n")) == 3
        self.change("#reader", "Ada, who gardens")
        self.browser.until("return document.querySelector('#found li').innerText.includes('for beginners')")
        self.looks("readers")
        self.quiet()

    def replayed(self):
        """A stream that is replayed is matched as it came, its alerts are listed, and the events grow with it."""
        self.browser.click("#events-tab")
        self.browser.until("return document.querySelectorAll('.event').length")
        told = [
            f"2026-03-14T08:0{at // 60}:{at % 60:02}Z\t{text} {at}"
            for at, text in enumerate(["Strong earthquake shakes the city of Lima", "The train strike in Paris goes on"] * 90)
        ]
        self.browser.run("document.querySelector('#stream').value = arguments[0]", "\n".join(told))
        try:
            self.browser.click("#replay")
            self.browser.until("return document.querySelectorAll('#live li').length")
            self.browser.until("return document.querySelector('#live-hint').innerText.startsWith('180 of 180')")
            self.browser.until(
                "return [...document.querySelectorAll('.event summary .value')].some((at) => at.innerText.trim() === '90')"
            )
            assert "an event" in self.text("#live"), self.text("#live")
            assert self.browser.run("return document.querySelector('#of').value") == "playground-replay"
            assert self.browser.run("return document.querySelectorAll('.mark-at').length") > 1
            self.looks("replayed")
            self.browser.click("#follow")
            assert not self.browser.run("return document.querySelector('#live').offsetHeight")
            self.browser.click("#follow")
            self.browser.until("return document.querySelector('#follow').ariaPressed === 'true'")
            self.browser.run("return new Promise((resume) => setTimeout(resume, 300))")
            lines = [{"id": f"n{at}", "text": "The river floods the old town of Passau"} for at in range(2)]
            self.service("POST", "/collections/playground-replay/match", {"items": lines})
            self.browser.until("return document.querySelector('#live').innerText.includes('Passau')")
            self.browser.click("#follow")
        finally:
            self.forget("playground-replay")
        self.change("#of", "")
        self.browser.run("const at = document.querySelector('#stream'); at.value = at.defaultValue")
        self.browser.complaints()
