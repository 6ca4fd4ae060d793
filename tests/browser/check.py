#!/usr/bin/env python3
"""Looks at the pages of a running service with a real browser.

    tests/browser/check.py http://127.0.0.1:8080 [--key KEY] [--cognate PROGRAM] [--pictures FOLDER]

Needs Debian's chromium and chromium-driver, and installs them where it may. With a key the service
is held to ask for it; with the program the page of a report that it makes is looked at, too.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import traceback
import urllib.error
import urllib.request

from driver import KEYS, Browser
from many import ManyTexts
from reading import Reading

SCORED = "const at = document.querySelector('[data-score]'); return at && at.dataset.score"
LISTED = "return document.querySelectorAll('#ranking .ranked li').length"


class Pages(ManyTexts, Reading):
    """The checks, in the order in which they are made."""

    def __init__(self, browser, arguments):
        self.browser = browser
        self.url = arguments.url.rstrip("/")
        self.key = arguments.key
        self.cognate = arguments.cognate
        self.pictures = arguments.pictures

    def picture(self, name):
        if self.pictures:
            os.makedirs(self.pictures, exist_ok=True)
            self.browser.picture(os.path.join(self.pictures, f"{name}.png"))

    def quiet(self, besides=()):
        """No complaint on the console, besides refusals that the check provoked."""
        told = self.browser.complaints()
        provoked = [f"status of {status}" for status in besides]
        told = [line for line in told if not any(part in line for part in provoked)]
        assert not told, told

    def fits(self, width):
        found = self.browser.run("return document.documentElement.scrollWidth")
        assert found <= width, f"{found} px of page in {width} px"

    def compare(self, first, second):
        """The score of two texts typed in."""
        self.browser.run("document.querySelector('#verdict').replaceChildren()")
        self.browser.type("#a", first)
        self.browser.type("#b", second)
        self.browser.click("#ask")
        return float(self.browser.until(SCORED))

    def choose(self, method):
        self.browser.run("document.querySelector('#verdict').replaceChildren()")
        self.browser.run(
            "const at = document.querySelector('#method'); at.value = arguments[0];"
            "at.dispatchEvent(new Event('change'))",
            method,
        )
        return float(self.browser.until(SCORED))

    def signed_in(self):
        """Gives a page that was opened anew the key, if it needs one."""
        if self.key:
            self.browser.until("return !document.querySelector('#key-form').hidden")
            self.browser.type("#key", self.key + KEYS["enter"])

    def curl(self):
        """What the command shown on the page answers."""
        command = self.browser.run("return document.querySelector('#command-text').textContent")
        assert command.startswith("curl ") and (not self.key or self.key not in command), command
        environment = {**os.environ, "API_KEY": self.key or ""}
        ran = subprocess.run(
            ["sh", "-c", command + " -sS"], env=environment, capture_output=True, text=True, timeout=30
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def first_sight(self):
        """The page shows an answer before anybody has done anything."""
        self.browser.look(1280, "light")
        self.browser.open(self.url + "/")
        if self.key:
            shown = "return !document.querySelector('#key-form').hidden"
            self.browser.until(shown)
            self.browser.type("#key", "not-the-key" + KEYS["enter"])
            self.browser.until("return document.querySelector('#problem').textContent")
            self.picture("key")
            self.browser.type("#key", self.key + KEYS["enter"])
        score = float(self.browser.until(SCORED))
        assert -1 <= score <= 1, score
        assert not self.browser.run("return document.querySelector('#key-form').offsetHeight")
        assert self.browser.run("return document.querySelector('#problem').textContent") == ""
        self.picture("compare-light")
        self.quiet(besides=(401,) if self.key else ())

    def comparison(self):
        """Two texts are compared, explained, and asked about by the command alike."""
        score = self.compare("the earthquake", "the earthquake")
        assert score > 0.99, score
        score = self.compare("it's a 'quake' in L.A.", "a \"tremor\" shakes $HOME")
        answer = self.curl()
        assert abs(answer["score"] - score) < 1e-6, (answer["score"], score)
        cells = self.browser.run("return document.querySelectorAll('.heat td').length")
        assert cells == len(answer["a"]["words"]) * len(answer["b"]["words"]) > 0, cells
        words = self.browser.run("return document.querySelectorAll('.words li').length")
        known = sum(len(answer[side][kind]) for side in "ab" for kind in ("words", "unknown"))
        assert words == known, (words, known)
        assert answer["sentence"] in self.browser.run("return document.body.innerText")
        self.quiet()

    def opposites(self):
        """What opposes texts is told beside the score and on the words, and such texts are not called related."""
        self.browser.look(390, "light")
        self.compare("the order has arrived at the station", "the order has not arrived at the station")
        told = self.browser.run("return document.querySelector('#verdict').innerText")
        assert "Opposed by negation: not" in told and "\nRelated" not in told, told
        tags = self.browser.run("return [...document.querySelectorAll('.tag.opposed')].map((at) => at.textContent)")
        assert tags == ["negation"], tags
        self.compare("turn on dark mode", "turn off dark mode")
        told = self.browser.run("return document.querySelector('#verdict').innerText")
        assert "Opposed by antonym: on against off" in told, told
        self.fits(390)
        self.picture("opposites-390")
        self.browser.look(1280, "light")
        self.quiet()

    def escaped(self):
        """Texts are never markup."""
        self.compare("<img src=x onerror=alert(1)> <b>quake</b>", "</script><script>alert(1)</script>")
        made = self.browser.run("return document.querySelectorAll('main :is(img, b, script)').length")
        assert made == 0, made
        self.quiet()

    def methods(self):
        """Every method that the server has answers; its measure is offered where there is one."""
        offered = self.browser.run(
            "return [...document.querySelectorAll('#method option:enabled')].map((at) => at.value)"
        )
        assert len(offered) > 5 and offered[0] == "auto", offered
        self.compare("Quake hits L.A.!! \u5730\u9707", "Earthquake shakes Los Angeles")
        for method in offered:
            self.choose(method)
            assert self.browser.run("return document.querySelector('#method-summary').textContent")
            measured = self.browser.run("return !document.querySelector('#measure-field').hidden")
            if measured:
                self.browser.run(
                    "document.querySelector('#verdict').replaceChildren();"
                    "const at = document.querySelector('#measure'); at.value = 'euclidean';"
                    "at.dispatchEvent(new Event('change'))"
                )
                score = float(self.browser.until(SCORED))
                assert 0 <= score <= 1 and self.curl()["measure"] == "euclidean"
        if "dynamax-jaccard" in offered:
            self.choose("dynamax-jaccard")
            assert self.browser.run("return document.querySelectorAll('.members td').length")
            self.picture("memberships")
        self.choose("auto")
        self.quiet()

    def refused(self):
        """A refusal is told in words, and goes when its cause has gone."""
        self.browser.type("#a", " " + KEYS["enter"])
        told = self.browser.until("return document.querySelector('#problem').innerText")
        assert "Empty text" in told and "The first text." in told, told
        assert told.lower().count("empty text") == 1, f"said more than once: {told}"
        assert self.browser.run("return document.querySelector('#compare-answer').hidden")
        self.picture("refusal")
        self.quiet(besides=(422,))
        self.compare("Quake hits L.A.!!", "Earthquake shakes Los Angeles")
        assert self.browser.run("return document.querySelector('#problem').textContent") == ""
        self.quiet()

    def ranking(self):
        """A list is put in order; the keyboard leads there."""
        self.browser.type("#compare-tab", KEYS["right"], clear=False)
        self.browser.type("#matrix-tab", KEYS["right"], clear=False)
        self.browser.type("#pairs-tab", KEYS["right"], clear=False)
        count = self.browser.until(LISTED)
        assert self.browser.run("return document.activeElement.id") == "rank-tab"
        answer = self.curl()
        assert count == len(answer["results"]) > 3
        shown = "return [...document.querySelectorAll('.ranked .value')].map((at) => at.textContent)"
        scores = [float(text.replace("\u2212", "-")) for text in self.browser.run(shown)]
        assert scores == sorted(scores, reverse=True), scores
        first = self.browser.run("return document.querySelector('.ranked .candidate').textContent")
        assert "earthquake" in first.lower(), first
        self.picture("rank-light")
        self.quiet()

    def told_apart(self):
        """The best of a list has the longest bar, also where scores have no bounds."""
        offered = "return [...document.querySelectorAll('#method option:enabled')].map((at) => at.value)"
        bars = "return [...document.querySelectorAll('.ranked .fill')].map((at) => at.offsetWidth)"
        for method in [name for name in self.browser.run(offered) if name in ("rm3", "ql", "bm25")]:
            self.browser.run(
                "document.querySelector('#ranking').replaceChildren();"
                "const at = document.querySelector('#method'); at.value = arguments[0];"
                "at.dispatchEvent(new Event('change'))",
                method,
            )
            self.browser.until(LISTED)
            widths = self.browser.run(bars)
            assert widths == sorted(widths, reverse=True) and widths[0] > widths[-1], (method, widths)
            self.picture(f"rank-{method}")
        self.browser.run(
            "document.querySelector('#ranking').replaceChildren();"
            "const at = document.querySelector('#method'); at.value = 'auto';"
            "at.dispatchEvent(new Event('change'))"
        )
        self.browser.until(LISTED)
        self.quiet()

    def service(self, verb, path, body=None):
        """What the service itself answers."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=verb)
        request.add_header("content-type", "application/json")
        if self.key:
            request.add_header("authorization", f"Bearer {self.key}")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def forget(self, collection):
        """Sees to it that there is no such collection."""
        try:
            self.service("DELETE", f"/collections/{collection}")
        except urllib.error.HTTPError as error:
            assert error.code == 404, error

    def shown_events(self):
        """The words and the texts of each event, by time."""
        self.browser.run("document.querySelectorAll('.event:not([open]) summary').forEach((at) => at.click())")
        self.browser.until("return [...document.querySelectorAll('.event')].every((at) => at.querySelector('li'))")
        return self.browser.run(
            "return [...document.querySelectorAll('.event')].map((at) => ["
            "at.querySelector('b').textContent.split(' \u00b7 '),"
            "[...at.querySelectorAll('li > span:nth-child(2)')].map((text) => text.textContent)])"
        )

    def events(self):
        """A stream comes apart into the events that `match` finds; the threshold moves them, and the command too."""
        self.browser.click("#events-tab")
        rows = "return document.querySelectorAll('.event').length"
        self.browser.until(rows)
        sizes = "return [...document.querySelectorAll('.event summary .value')].map((at) => Number(at.textContent))"
        found = self.browser.run(sizes)
        assert found == sorted(found, reverse=True) and len(found) == 3 and min(found) > 2, found
        assert not self.browser.run("return document.querySelector('#method').offsetHeight"), "it is always one"
        told = "return document.querySelector('.event .course').textContent"
        assert "2026-03-14 08:02 to 08:41 \u00b7 11\u00a0an\u00a0hour" in self.browser.run(told), self.browser.run(told)
        bars = "return new Set([...document.querySelectorAll('.event .moment')].map((at) => at.offsetHeight)).size"
        assert self.browser.run(bars) > 1, "a bar is the higher the more texts it stands for"
        self.picture("events-light")
        shown = self.shown_events()
        self.picture("events-open")
        stream = self.browser.run("return document.querySelector('#stream').value").splitlines()
        self.matched(stream, shown)
        told = "return document.querySelector('#command-text').textContent"
        assert self.browser.run(told) == "cognate events posts.tsv -o events.tsv"
        move = (
            "const at = document.querySelector('#threshold'); at.value = arguments[0];"
            "at.dispatchEvent(new Event('input'))"
        )
        self.browser.run(move, "1")
        assert self.browser.run("return document.querySelectorAll('.event').length") <= 1, "equal texts alone"
        assert "--threshold 1.00" in self.browser.run(told)
        self.browser.run(move, "0")
        assert self.browser.run(sizes)[0] > found[0]
        refused = "return document.querySelector('#problem').innerText.includes(arguments[0])"
        fill = "document.querySelector('#stream').value = arguments[0]"
        self.browser.run(fill, "")
        self.browser.click("#ask")
        self.browser.until(refused, "No texts")
        lines = [{"created_at": f"Wed Aug 27 13:0{at}:45 +0000 2008", "text": "<b>fire</b> in town"} for at in (5, 4)]
        self.browser.run(fill, "\n".join(json.dumps(line) for line in lines))
        self.browser.run("document.querySelector('#event-list').replaceChildren()")
        self.browser.click("#ask")
        self.browser.until(rows)
        shown = self.browser.run("return document.querySelector('#event-list').textContent")
        assert "2008-08-27 13:04 to 13:05" in shown, shown
        assert not self.browser.run("return document.querySelector('#event-list li b')"), "texts are never markup"
        self.browser.run("const at = document.querySelector('#stream'); at.value = at.defaultValue")
        self.browser.click("#ask")
        self.browser.until("return document.querySelectorAll('.event').length === 3")
        for width, scheme in ((360, "dark"), (390, "light"), (1280, "dark")):
            self.browser.look(width, scheme)
            self.fits(width)
            self.picture(f"events-{width}-{scheme}")
        self.browser.look(1280, "light")
        self.quiet()

    def matched(self, stream, shown):
        """What a collection that was sent the stream has of events is what the page found, and the page opens it."""
        path = "/collections/page-stream"
        self.service("PUT", path, {})
        try:
            lines = [line.split("\t") for line in stream]
            items = [{"id": f"p{at:02}", "time": time, "text": text} for at, (time, text) in enumerate(lines)]
            self.service("POST", f"{path}/match", {"items": items})
            events = self.service("GET", f"{path}/events?sort=size")["events"]
            texts = [self.service("GET", f"{path}/events/{event['id']}")["items"] for event in events]
            expected = [[event["words"], [item["text"] for item in of]] for event, of in zip(events, texts)]
            assert shown == expected, (shown, expected)
            self.browser.click("#ask")
            self.browser.until("return document.querySelector('#of').offsetHeight")
            choose = "const at = document.querySelector(arguments[0]); at.value = arguments[1];"
            choose += "at.dispatchEvent(new Event('change'))"
            self.browser.run(choose, "#of", "page-stream")
            title = "return document.querySelector('#event-list h2')?.textContent"
            self.browser.until("return document.querySelector('#event-list h2').textContent.includes('page-stream')")
            assert self.browser.run(title) == "3 events in page-stream"
            assert "chatter" in self.browser.run("return document.querySelector('.event .course').textContent")
            self.picture("events-collection")
            assert self.shown_events() == expected
            assert self.curl()["events"] == events
            link = self.browser.run("return location.href")
            assert "of=page-stream&sort=size" in link, link
            self.browser.run("document.querySelector('#event-list').replaceChildren()")
            self.browser.run(choose, "#sort", "chatter")
            self.browser.until("return document.querySelectorAll('.event').length === 3")
            least = self.service("GET", f"{path}/events?sort=chatter")["events"]
            words = "return [...document.querySelectorAll('.event b')].map((at) => at.textContent)"
            assert self.browser.run(words) == [" \u00b7 ".join(event["words"]) for event in least]
            for width in (360, 390):
                self.browser.look(width, "light")
                self.fits(width)
            self.picture("events-collection-390")
            self.browser.look(1280, "light")
            self.browser.run("document.querySelector('#event-list').replaceChildren()")
            self.browser.run(choose, "#of", "")
            self.browser.until("return document.querySelectorAll('.event').length === 3")
        finally:
            self.service("DELETE", path)
        self.quiet()

    def collections(self):
        """A catalogue is made where there is none; it begins with an item, is asked, filtered, and asked for what is
        like some items and not like others, with variety and reasons."""
        count = "return document.querySelectorAll('#found .ranked li').length"
        first = "return document.querySelector('#found .candidate').textContent"
        told = "return document.querySelector('#found').innerText"
        said = "return document.querySelector('#found')?.innerText.includes(arguments[0])"
        self.forget("titles")
        self.browser.click("#collections-tab")
        self.browser.until("return document.querySelector('#no-collections').offsetHeight > 0")
        self.browser.until("return document.querySelector('#problem').innerText.includes('No collections')")
        self.picture("collections-none")
        self.browser.click("#make-collection")
        self.browser.until(count)
        assert not self.browser.run("return document.querySelector('#no-collections').offsetHeight")
        assert self.browser.run("return document.querySelector('#collection').value") == "titles"
        assert self.browser.run("return document.querySelector('#problem').textContent") == ""
        answer = self.curl()
        assert (answer["items"], len(answer["results"])) == (999, self.browser.run(count)), answer["items"]
        assert self.browser.run("return document.querySelector('#liked').value") == "t1"
        assert self.browser.run(first) == answer["results"][0]["text"]
        shown = self.browser.run(told)
        assert "By likeness to \u201cTomatoes for beginners\u201d" in shown, shown
        assert shown.count("By the words") == 20, shown
        assert f"\u00b7 {answer['results'][0]['time'][:10]}" in shown, "the moment in which it was made"
        self.picture("collections-light")
        self.browser.type("#wanted", "growing herbs" + KEYS["enter"])
        self.browser.until(said, "By likeness to the query")
        assert "herbs" in self.browser.run(first).lower()
        assert self.curl()["items"] == 1000
        self.browser.type("#filter", '{"shelf": "kitchen"}' + KEYS["enter"])
        self.browser.until(said, "The best of 100 in titles")
        assert "shelf kitchen" in self.browser.run(told) and "shelf garden" not in self.browser.run(told)
        link = self.browser.run("return location.href")
        assert "collection=titles" in link and "filter=" in link, link
        self.browser.type("#filter", "{year" + KEYS["enter"])
        self.browser.until("return document.querySelector('#problem').innerText.includes('not JSON')")
        self.browser.run("document.querySelector('#filter').value = ''")
        self.browser.click("#ask")
        self.browser.until(said, "The best of 1,000 in titles")
        chosen = self.browser.run(first)
        self.browser.click("#found .candidate")
        self.browser.until(said, f"By likeness to \u201c{chosen}\u201d")
        assert chosen not in self.browser.run("return document.querySelector('#found ol').innerText")
        self.browser.click("#found .step:nth-child(2)")
        self.browser.until(said, "The best of 998 in titles")
        assert "disliked=t" in self.browser.run("return location.href")
        self.browser.run(
            "document.querySelector('#found').replaceChildren();"
            "const at = document.querySelector('#varied'); at.value = '0.4'; at.dispatchEvent(new Event('change'))"
        )
        self.browser.until(count)
        command = self.browser.run("return document.querySelector('#command-text').textContent")
        assert '"diversify":{"lambda":0.4}' in command and '"unlike":[{"id":"t' in command, command
        self.browser.type("#liked", "b9\nt1")
        self.browser.type("#filter", '{"colour": {"ne": "red"}}')
        self.browser.click("#ask")
        self.browser.until("return document.querySelector('#found').innerText.includes('has no item b9')")
        assert "attribute colour" in self.browser.run("return document.querySelector('#found').innerText")
        self.browser.run("document.querySelector('#filter').value = ''")
        self.browser.type("#wanted", "gardn" + KEYS["enter"])
        self.browser.until(said, "Of the words of the query 0 % are known.")
        self.browser.run("document.querySelector('#wanted').value = ''")
        self.browser.type("#liked", "b9")
        self.browser.click("#ask")
        self.browser.until("return document.querySelector('#problem').innerText.includes('none of the liked items')")
        self.browser.run("document.querySelector('#found').replaceChildren(); location.href = arguments[0]", link)
        self.browser.until(said, "The best of 100 in titles")
        for width, scheme in ((360, "dark"), (1280, "dark")):
            self.browser.look(width, scheme)
            self.fits(width)
            self.picture(f"collections-{width}-{scheme}")
        self.browser.look(1280, "light")
        self.quiet(besides=(422,))
        # A link that names another tab leads back to where the checks go on.
        self.browser.run("location.hash = '#rank'")
        self.browser.until("return !document.querySelector('#rank').hidden")
        self.browser.until(LISTED)

    def opened(self):
        """A ranked text opens its explanation, and the way back leads to the list."""
        first = self.browser.run("return document.querySelector('.ranked .candidate').textContent")
        self.browser.click(".ranked .candidate")
        self.browser.until("return document.querySelector('#b').value === arguments[0]", first)
        self.browser.until(SCORED)
        self.browser.run("history.back()")
        self.browser.until("return !document.querySelector('#rank').hidden")
        self.browser.until(LISTED)
        self.quiet()

    def recommended(self):
        """Liked texts put a list in order; it is folded, differs and says why, and its link asks the same."""
        clear = "document.querySelector('#ranking').replaceChildren();"
        self.browser.run(clear + "document.querySelector('#more').open = true")
        self.browser.type("#like", "Quake hits L.A.!!\nHow to bake bread")
        self.browser.type("#unlike", "LA Lakers win again")
        self.browser.type("#collapse", "0.5")
        self.browser.type("#diversify", "0.7")
        self.browser.click("#explain")
        self.browser.click("#ask")
        self.browser.until(LISTED)
        answer = self.curl()
        told = self.browser.run("return document.querySelector('#ranking').innerText")
        assert told.count("By the words") == sum(bool(one["words"]) for one in answer["results"]), told
        folded = sum(len(one.get("duplicates", [])) for one in answer["results"])
        assert told.count("Stands for") == folded, told
        assert "texts you like" in told and "How to bake bread" in told, told
        self.picture("recommended")
        link = self.browser.run("return location.href")
        self.browser.run(clear)
        self.browser.run("location.hash = '#rank'")
        self.browser.until(LISTED)
        assert self.browser.run("return document.querySelector('#like').value") == ""
        self.browser.run(clear)
        self.browser.run("location.href = arguments[0]", link)
        self.browser.until(LISTED)
        assert self.browser.run("return document.querySelector('#ranking').innerText") == told
        self.browser.run(clear + "location.hash = '#rank'")
        self.browser.until(LISTED)
        self.quiet()

    def linked(self):
        """The page's address holds the question; no key is in it, and long texts are left out of it."""
        texts = "caf\u00e9 & 50 % off #now", "a+b = 'c'\n\u5730\u9707"
        self.browser.click("#compare-tab")
        address = "return location.href"
        self.browser.run(
            "[document.querySelector('#a').value, document.querySelector('#b').value] = arguments", *texts
        )
        self.browser.run("document.querySelector('#verdict').replaceChildren()")
        self.choose("avg-cos")
        score = float(self.browser.run(SCORED))
        link = self.browser.until("return location.hash.includes('avg-cos') && location.href")
        assert not self.key or self.key not in link, link
        self.browser.open("about:blank")
        self.browser.open(link)
        self.signed_in()
        assert abs(float(self.browser.until(SCORED)) - score) < 1e-6
        fields = "return ['a', 'b', 'method'].map((id) => document.getElementById(id).value)"
        assert self.browser.run(fields) == [*texts, "avg-cos"], self.browser.run(fields)
        assert self.browser.run(address) == link
        self.browser.run("location.hash = '#compare?a=one&b=two&method=nope'")
        self.browser.until("return document.querySelector('#notice').textContent.includes('nope')")
        self.browser.until("return document.querySelector('#method').value === 'auto'")
        self.browser.until("return !location.hash.includes('nope')")
        self.quiet(besides=(401,) if self.key else ())

    def folded(self):
        """Of a long text little is shown at first, and no link holds it."""
        words = " ".join(f"word{place} storm flood" for place in range(150))
        self.browser.run("document.querySelector('#a').value = arguments[0]", words * 2)
        self.browser.run("document.querySelector('#b').value = 'a storm'")
        self.browser.run("document.querySelector('#verdict').replaceChildren()")
        self.browser.click("#ask")
        told = self.browser.until(
            "return document.querySelector('[data-score], .problem') && document.querySelector('main').innerText"
        )
        if "Too many tokens" in told:
            self.browser.run("document.querySelector('#a').value = arguments[0]", words)
            self.browser.click("#ask")
            self.browser.until(SCORED)
        tall = self.browser.run("return document.documentElement.scrollHeight")
        assert tall < 4500, f"{tall} px of page"
        assert self.browser.run("return document.querySelectorAll('.words > li, details').length") > 12
        self.picture("long")
        self.browser.complaints()

    def unknown(self):
        """Words that the model does not know are named before the score."""
        self.compare("xqzt vbnkk", "Earthquake shakes Los Angeles")
        told = self.browser.run("return document.querySelector('.banner')?.innerText ?? ''")
        assert "xqzt" in told and "first text" in told and "second" not in told, told
        self.picture("unknown")
        self.compare("Quake hits L.A.!!", "Earthquake shakes Los Angeles")
        assert not self.browser.run("return document.querySelector('.banner')")
        self.quiet()

    def copied(self):
        """The command can be copied."""
        permissions = ["clipboardReadWrite", "clipboardSanitizedWrite"]
        self.browser.command("Browser.grantPermissions", permissions=permissions)
        self.browser.click("#copy")
        self.browser.until("return document.querySelector('#copied').textContent === 'Copied.'")
        self.quiet()

    def labelled(self):
        """Every field has a label, and every part that changes by itself is announced."""
        bare = self.browser.run(
            "return [...document.querySelectorAll('input, select, textarea')]"
            ".filter((at) => at.labels.length === 0).map((at) => at.id)"
        )
        assert not bare, bare
        live = "[aria-live], [role=alert], [role=status]"
        for part in ("verdict", "ranking", "problem", "copied"):
            script = "return document.getElementById(arguments[0]).matches(arguments[1])"
            assert self.browser.run(script, part, live), part

    def narrow_and_dark(self):
        """Nothing is wider than a small telephone; the dark has colours of its own."""
        self.browser.look(360, "dark")
        self.fits(360)
        self.picture("rank-narrow-dark")
        self.browser.click("#compare-tab")
        self.compare("Quake hits L.A.!! #breakingnewsfromthewestcoast", "Earthquake shakes Los Angeles")
        self.fits(360)
        tall = "return Math.max(...[...document.querySelectorAll('tr')].map((at) => at.offsetHeight))"
        tallest = self.browser.run(tall)
        assert tallest < 150, f"a row of {tallest} px: its words are broken letter by letter"
        ground = "return getComputedStyle(document.body).backgroundColor"
        dark = self.browser.run(ground)
        self.picture("compare-narrow-dark")
        self.browser.look(360, "light")
        assert self.browser.run(ground) != dark
        self.picture("compare-narrow-light")
        self.browser.look(1280, "dark")
        self.picture("compare-dark")
        self.quiet()

    def documentation(self):
        """The document is drawn, and nothing of the console complains about the policy."""
        for width, scheme in ((1280, "light"), (1280, "dark"), (360, "light")):
            self.browser.look(width, scheme)
            self.browser.open(self.url + "/docs")
            drawn = self.browser.until("return document.querySelectorAll('.opblock').length")
            assert drawn >= 8, drawn
            self.fits(width)
            self.picture(f"docs-{width}-{scheme}")
        self.browser.look(1280, "light")
        self.browser.run("document.querySelector('.opblock-post .opblock-summary-control').click()")
        self.browser.until("return document.querySelector('.opblock-body .response')")
        # The codes of refusals stand below each other; their examples are there for who wants them.
        shown = "return [...document.querySelectorAll('.refusal .model-example')].filter((e) => e.checkVisibility())"
        assert self.browser.run("return document.querySelectorAll('.refusal').length") > 5
        assert self.browser.run(shown) == []
        self.picture("docs-open")
        self.browser.click("tr.response[data-code='422'] summary")
        assert "/problems/" in self.browser.until(f"{shown}[0]?.textContent")
        self.quiet()

    def own_host(self):
        """No page asked another host for anything."""
        for path in ("/", "/docs"):
            self.browser.open(self.url + path)
            asked = self.browser.until(
                "const at = performance.getEntriesByType('resource').map((entry) => entry.name);"
                "return at.length > 2 && at"
            )
            abroad = [name for name in asked if not name.startswith((self.url, "data:"))]
            assert not abroad, abroad

    def report(self):
        """The report on events is readable on a telephone: dates, words, found events in another colour."""
        self.browser.open(self.url + "/")
        stream = self.browser.run("return document.querySelector('#stream').value").splitlines()
        names = {"lima": "quake", "paris": "strike", "perth": "<b>fire</b>"}
        with tempfile.TemporaryDirectory(prefix="cognate-report-") as folder:
            rows = ["time\ttext\tevent"]
            for line in stream:
                event = next((event for name, event in names.items() if name in line.lower()), "")
                rows.append(f"{line}\t{event}")
            table, page = os.path.join(folder, "stream.tsv"), os.path.join(folder, "report.html")
            with open(table, "w", encoding="utf-8") as out:
                out.write("\n".join(rows) + "\n")
            asked = ["eval", "events", table, "--gold", "event", "--second", "coverage", "--html", page]
            asked += ["--model", "models/default.safetensors"]
            subprocess.run([self.cognate, *asked], check=True, capture_output=True)
            for width, scheme in ((360, "dark"), (390, "light"), (1280, "light")):
                self.browser.look(width, scheme)
                self.browser.open(f"file://{page}")
                self.fits(width)
                self.picture(f"report-events-{width}-{scheme}")
            sections = self.browser.run(
                "return Object.fromEntries([...document.querySelectorAll('section')].map((at) => "
                "[at.querySelector('h2').textContent, at.innerText]))"
            )
            labelled, found = sections["Labelled events"], sections["Events found"]
            for told in (labelled, found):
                assert "2026-03-14 08:02 to 2026-03-14 08:41" in told, told
                assert "lima" in told and "wildfire" in told, told
            assert "All 3, " in labelled and "All 3, " in found, (labelled, found)
            assert "<b>fire</b>" in labelled and "100 % are of quake" in found, (labelled, found)
            colour = "return getComputedStyle(document.querySelector(arguments[0])).fill"
            colours = [self.browser.run(colour, f".courses.{kind} rect") for kind in ("c0", "c1")]
            assert len(set(colours)) == 2, colours
            tall = "return Math.min(...[...document.querySelectorAll('.courses svg')].map((at) => at.clientHeight))"
            assert self.browser.run(tall) >= 16, "a drawing does not shrink with the window"
            # A row a threshold, and the heads of the three tables.
            settings = "return [...document.querySelectorAll('section')].at(-1).querySelectorAll('tr').length"
            assert self.browser.run(settings) == 15 + 19 + 19 + 3, self.browser.run(settings)
        self.quiet(besides=(401,) if self.key else ())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("--key", help="the service asks for this key")
    parser.add_argument("--cognate", help="the program, whose report on events is looked at")
    parser.add_argument("--only", metavar="CHECKS", help="these checks alone, and the first sight of the page")
    parser.add_argument("--pictures", metavar="FOLDER", help="where to put pictures of the pages")
    arguments = parser.parse_args()
    checks = (
        "first_sight comparison opposites every_method languages escaped methods refused ranking told_apart collections "
        "opened recommended two_rankings readers events replayed matrix pairs titles linked folded unknown copied labelled "
        "narrow_and_dark documentation executed guides own_host report"
    )
    checks = [name for name in checks.split() if name != "report" or arguments.cognate]
    if arguments.only:
        checks = [name for name in checks if name in ["first_sight", *arguments.only.split()]]
    failed = 0
    with Browser() as browser:
        pages = Pages(browser, arguments)
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
