// The tab of collections: which the server has, what is asked of the chosen one, and what was found there.

import { Refusal, ask } from "./asking.js";
import { bar, element, number, shortened } from "./elements.js";
import { scaleOf } from "./ranking.js";
import { linesOf } from "./recommending.js";

const by = (id) => document.getElementById(id);

/** A collection to begin with, where there is none. */
const EXAMPLE = {
  name: "books",
  items: [
    ["b1", "The Lord of the Rings: the fellowship of the ring", "en", 1954],
    ["b2", "The Hobbit, or there and back again", "en", 1937],
    ["b3", "Cooking with herbs from your own garden", "en", 2019],
    ["b4", "A kitchen garden: herbs and vegetables in pots", "en", 2021],
    ["b5", "Dragons and magic rings: tales of old quests", "en", 2008],
  ].map(([id, text, lang, year]) => ({ id, text, attributes: { lang, year } })),
};

// What an address asked for before the server told what it has.
let wanted;

/** Chooses a collection as soon as it is known. */
export function want(name) {
  wanted = name;
}

/** Offers the collections that the server has. */
export async function load(signal) {
  const { collections } = await ask("/collections", undefined, signal);
  const before = wanted ?? by("collection").value;
  const told = ({ name, items }) => `${name} (${items.toLocaleString("en")})`;
  const options = collections.map((one) => element("option", { value: one.name }, told(one)));
  by("collection").replaceChildren(...options);
  if (collections.some(({ name }) => name === before)) by("collection").value = before;
  wanted = undefined;
  by("no-collections").hidden = collections.length > 0;
  if (collections.length > 0) return;
  const detail = "Texts that the server remembers are in collections, and there is none yet.";
  throw new Refusal(0, { title: "No collections", detail });
}

/** Makes a collection to begin with. */
export async function makeExample() {
  const path = `/collections/${EXAMPLE.name}`;
  await ask(path, {}, undefined, "PUT");
  await ask(`${path}/items`, { items: EXAMPLE.items });
}

/** The fields of the question. */
export function question(chosen) {
  const like = linesOf("liked").map((id) => ({ id }));
  const asked = like.length > 0 ? { like } : { query: by("wanted").value };
  const filter = filterOf(by("filter").value.trim());
  const within = by("within").value.trim();
  return {
    collection: by("collection").value,
    ...asked,
    ...(filter === undefined ? {} : { filter }),
    ...(within === "" ? {} : { within }),
    return_text: true,
    top_k: 20,
    ...chosen,
  };
}

function filterOf(text) {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    const detail = 'The filter is not JSON. One that can be read: {"year": {"gte": 2000}}.';
    throw new Refusal(0, { title: "No filter", detail });
  }
}

/** What was found; `likeThis` asks for what is like an item. */
export function found(answer, range, likeThis) {
  const scores = answer.results.map(({ score }) => score);
  const { from, to, note } = scaleOf(scores, range, answer.method);
  const rows = answer.results.map(({ id, score, text, attributes = {} }) => {
    const choose = element("button", { type: "button", class: "candidate" }, shortened(text));
    choose.addEventListener("click", () => likeThis(id));
    const told = Object.entries(attributes).map(([name, value]) => `${name} ${value}`);
    return element(
      "li",
      {},
      choose,
      bar(score - from, to - from),
      element("span", { class: "value" }, number(score)),
      element("p", { class: "hint beside" }, [id, ...told].join(" \u00b7 ")),
    );
  });
  const count = answer.items.toLocaleString("en");
  const unscored = answer.unscored > 0 ? ` ${answer.unscored.toLocaleString("en")} of them cannot be scored.` : "";
  return [
    element("h2", {}, `The best of ${count} in ${answer.collection}, with ${answer.method}`),
    element("p", { class: "hint" }, `${note} Choose an item to find what is like it.${unscored}`.trim()),
    element("ol", { class: "ranked" }, ...rows),
  ];
}
