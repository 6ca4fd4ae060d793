// Guides: a button that copies each piece of code, and a search through all guides on their list. Both are made
// here, so that a page without scripts has neither.
"use strict";

const SOME = 25;

function made(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

for (const code of document.querySelectorAll("pre")) {
  const button = made("button", { type: "button", class: "copy" }, "Copy");
  button.addEventListener("click", async () => {
    let copied = true;
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch {
      // Pages without TLS have no clipboard.
      getSelection().selectAllChildren(code);
      copied = document.execCommand("copy");
    }
    button.textContent = copied ? "Copied" : "Selected";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  const box = made("div", { class: "code" });
  code.replaceWith(box);
  box.append(code, button);
}

if (location.pathname === "/guides") offerSearch();

function offerSearch() {
  const list = document.querySelector("main ul");
  const field = made("input", { id: "search", type: "search", autocomplete: "off" });
  const found = made("ol", { class: "found", "aria-live": "polite" });
  list.before(made("label", { for: "search" }, "Search in all guides"), field, found);
  let parts;
  field.addEventListener("input", async () => {
    parts ??= Promise.all([...list.querySelectorAll("a")].map(partsOf)).then((all) => all.flat());
    const all = await parts;
    const words = field.value.toLowerCase().split(/\s+/).filter((word) => word !== "");
    const hits = words.length === 0 ? [] : all.filter(({ text }) => words.every((word) => text.toLowerCase().includes(word)));
    // A part whose heading says it stands before those that mention it.
    const named = ({ title }) => words.every((word) => title.toLowerCase().includes(word));
    hits.sort((one, other) => named(other) - named(one));
    found.replaceChildren(...hits.slice(0, SOME).map((part) => made("li", {}, ...shown(part, words[0]))));
    if (words.length > 0 && hits.length === 0) found.append(made("li", {}, "Nothing has all of these words."));
    list.hidden = words.length > 0;
  });
}

/** The parts of a guide: the address, heading and text of each. */
async function partsOf(link) {
  const answer = await fetch(link.href);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const parts = [];
  for (const element of page.querySelector("main").children) {
    const address = /^H[123]$/.test(element.tagName) ? `${link.pathname}#${element.id}` : null;
    if (address) parts.push({ address, title: element.textContent, guide: link.textContent, text: "" });
    if (parts.length > 0) parts.at(-1).text += ` ${element.textContent}`;
  }
  return parts;
}

/** A part that was found, and what stands around the first word. */
function shown({ address, title, guide, text }, word) {
  const at = text.toLowerCase().indexOf(word, title.length + 1);
  const around = at < 0 ? text.slice(title.length + 1, title.length + 160) : text.slice(Math.max(0, at - 60), at + 100);
  const where = title === guide ? "" : ` in ${guide}`;
  return [made("a", { href: address }, title), where, made("p", {}, `\u2026${around.trim()}\u2026`)];
}
