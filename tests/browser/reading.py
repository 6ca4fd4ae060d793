"""Checks of the API document and of the guides."""

CODE = "return document.querySelector('.opblock.is-open .responses-table.live-responses-table .response-col_status')?.innerText"
# What a fresh server cannot do: no folder of copies is set, there is nothing to reload, and the event of one item is gone with the item.
NOT_200 = {("post", "/-/backup"), ("post", "/-/reload"), ("delete", "/collections/{name}/events/{id}")}


class Reading:
    """Checks beside those of `check.py`, whose fields and helpers they use."""

    def executed(self):
        """The first example of every operation is answered with success, those that make things first."""
        self.browser.look(1280, "light")
        self.browser.open(self.url + "/docs")
        self.browser.until("return document.querySelectorAll('.opblock').length")
        listed = self.browser.run(
            "return [...document.querySelectorAll('.opblock')].map((at) => "
            "[at.querySelector('.opblock-summary-method').innerText.toLowerCase(), at.querySelector('.opblock-summary-path').dataset.path])"
        )
        order = ["put", "post", "patch", "get", "delete"]
        deep = lambda path: (path.startswith("/collections"), path.count("/"), path)
        steps = sorted(
            (tuple(one) for one in listed if tuple(one) not in NOT_200),
            key=lambda one: (order.index(one[0]) == 4, -deep(one[1])[1] if one[0] == "delete" else order.index(one[0]), deep(one[1])),
        )
        refused = []
        for method, path in steps:
            at = "[...document.querySelectorAll('.opblock')].find((at) => at.classList.contains(`opblock-${arguments[0]}`) && "
            at += "at.querySelector('.opblock-summary-path').dataset.path === arguments[1])"
            self.browser.run(f"{at}.querySelector('.opblock-summary-control').click()", method, path)
            for button in (".try-out__btn", ".execute"):
                self.browser.until(f"return {at}.querySelector('{button}')", method, path)
                self.browser.run(f"{at}.querySelector('{button}').click()", method, path)
            code = self.browser.until(f"return {at}.querySelector('.live-responses-table .response .response-col_status')?.innerText", method, path)
            if not code.strip().startswith("2"):
                body = self.browser.run(f"return {at}.querySelector('.live-responses-table .response').innerText", method, path)
                refused.append((method, path, body[:300]))
            self.browser.run(f"{at}.querySelector('.opblock-summary-control').click()", method, path)
        assert not refused, refused
        self.browser.complaints()

    def guides(self):
        """Each guide has a line in the list, is found by its words, fits a telephone, and its code can be copied."""
        self.browser.look(1280, "light")
        self.browser.open(self.url + "/guides")
        lines = self.browser.run("return [...document.querySelectorAll('main li')].map((at) => at.innerText)")
        assert len(lines) > 15 and all(len(line) > 20 for line in lines), lines
        self.picture("guides-1280")
        self.browser.type("#search", "webhook alert")
        found = "return [...document.querySelectorAll('.found a')].map((at) => at.getAttribute('href'))"
        self.browser.until("return document.querySelectorAll('.found a').length")
        assert "/guides/alerts#alerts" in self.browser.run(found), self.browser.run(found)
        self.picture("guides-found")
        guides = self.browser.run("return [...document.querySelectorAll('main > ul a')].map((at) => at.href)")
        for width, scheme in ((390, "light"), (1280, "dark")):
            self.browser.look(width, scheme)
            for guide in guides:
                self.browser.open(guide)
                self.fits(width)
                assert self.browser.run("return document.querySelectorAll('nav a').length") or "start" not in guide
            self.browser.open(self.url + "/guides/events")
            self.picture(f"guide-events-{width}-{scheme}")
        buttons = "return [document.querySelectorAll('pre').length, document.querySelectorAll('.copy').length]"
        codes, copies = self.browser.run(buttons)
        assert codes == copies > 5, (codes, copies)
        self.browser.command("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])
        self.browser.run("document.querySelector('.copy').click()")
        self.browser.until("return document.querySelector('.copy').innerText === 'Copied'")
        self.browser.look(1280, "light")
        self.quiet()
