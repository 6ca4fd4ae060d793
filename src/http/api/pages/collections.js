// The tab of collections: which the server has, what is asked of the chosen one, and what was found there.

import { Refusal, ask } from "./asking.js";
import { NAME, itemsOf, readersOf } from "./catalogue.js";
import { bar, element, number, shortened } from "./elements.js";
import { scaleOf } from "./ranking.js";
import { linesOf } from "./recommending.js";

const by = (id) => document.getElementById(id);

/** Items of one request, and of an answer. */
const BATCH = 500;
const MOST = 30;

// The texts of items that were seen, by their ids.
const texts = new Map();

// What an address asked for before the server told what it has.
let wanted;

/** Fills in what an address names; the collection is chosen as soon as it is known. */
export function fillIn({ collection, varied = "", reasons = "1" }) {
  wanted = collection;
  by("varied").value = varied;
  by("reasons").checked = reasons === "1";
}

/** The fields that are chosen, as they stand in an address. */
export function filledIn() {
  const fields = { collection: by("collection").value };
  if (by("varied").value !== "") fields.varied = by("varied").value;
  if (!by("reasons").checked) fields.reasons = "0";
  return fields;
}

/** Forgets which items are liked, and which are not. */
export function forgetItems() {
  for (const id of ["liked", "disliked", "reader"]) by(id).value = "";
}

/** Takes the items that the chosen reader likes. */
export function takeReader() {
  const reader = readersOf().find(({ name }) => name === by("reader").value);
  for (const id of ["wanted", "disliked"]) by(id).value = "";
  by("liked").value = (reader?.liked ?? []).join("\n");
}

/** Offers the readers of the catalogue where it is chosen. */
function offerReaders() {
  by("reader-field").hidden = by("collection").value !== NAME;
  if (by("reader").options.length > 1) return;
  by("reader").append(...readersOf().map(({ name }) => element("option", { value: name }, name)));
}

/** Offers the collections that the server has. */
export async function load(signal) {
  const { collections } = await ask("/collections", undefined, signal);
  // The largest stands first: small ones are often trials.
  collections.sort((one, other) => other.items - one.items);
  const before = wanted ?? by("collection").value;
  const told = ({ name, items }) => `${name} (${items.toLocaleString("en")})`;
  const options = collections.map((one) => element("option", { value: one.name }, told(one)));
  by("collection").replaceChildren(...options);
  if (collections.some(({ name }) => name === before)) by("collection").value = before;
  wanted = undefined;
  by("no-collections").hidden = collections.some(({ name }) => name === NAME);
  offerReaders();
  if (collections.length > 0) return;
  const detail = "Texts that the server remembers are in collections, and there is none yet.";
  throw new Refusal(0, { title: "No collections", detail });
}

/** Makes the collection of the catalogue, and chooses it. */
export async function makeExample() {
  const path = `/collections/${NAME}`;
  await ask(path, {}, undefined, "PUT");
  const items = itemsOf();
  for (let from = 0; from < items.length; from += BATCH) {
    await ask(`${path}/items`, { items: items.slice(from, from + BATCH) });
  }
  forgetItems();
  wanted = NAME;
}

/** Begins with the first item of the collection where nothing is asked. */
export async function beginWithItem(signal) {
  if (by("wanted").value.trim() !== "" || linesOf("liked").length > 0) return;
  const { items } = await ask(`/collections/${by("collection").value}/items?limit=1`, undefined, signal);
  if (items.length === 0) {
    const detail = "The collection has no items yet. POST /collections/NAME/items puts some in.";
    throw new Refusal(0, { title: "Nothing to find", detail });
  }
  by("liked").value = items[0].id;
  texts.set(items[0].id, items[0].text);
}

/** What is found by the chosen method, and the body that asks for it. A method whose scores do not divide
    into words gives no reasons. */
export async function find(chosen, signal) {
  const body = question(chosen);
  try {
    return { body, answer: await ask("/rank", body, signal) };
  } catch (error) {
    const faults = error instanceof Refusal ? (error.problem.errors ?? []) : [];
    if (!body.explain || !faults.some(({ pointer }) => pointer === "/explain")) throw error;
    const plain = { ...body, explain: undefined };
    return { body: plain, answer: await ask("/rank", plain, signal) };
  }
}

/** The fields of the question: a query goes before liked items. */
function question(chosen) {
  const query = by("wanted").value.trim();
  const [like, unlike] = [linesOf("liked"), linesOf("disliked")].map((ids) => ids.map((id) => ({ id })));
  const asked = query === "" ? { like, ...(unlike.length > 0 ? { unlike } : {}) } : { query };
  const filter = filterOf(by("filter").value.trim());
  const within = by("within").value.trim();
  const varied = by("varied").value;
  return {
    collection: by("collection").value,
    ...asked,
    ...(filter === undefined ? {} : { filter }),
    ...(within === "" ? {} : { within }),
    ...(varied === "" ? {} : { diversify: { lambda: Number(varied) } }),
    ...(by("reasons").checked ? { explain: true } : {}),
    return_text: true,
    top_k: MOST,
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

/** What was found by a question; `take` puts an item among the liked ones, alone or beside others, or among
    the disliked ones, and asks again. */
export function found(answer, body, range, take) {
  const scores = answer.results.map(({ score }) => score);
  const { from, to, note } = scaleOf(scores, range, answer.method);
  const rows = answer.results.map((result) => {
    const { id, score, text } = result;
    texts.set(id, text);
    const choose = button("candidate", shortened(text), () => take(id, "alone"));
    const steps = [button("step", "Like this, too", () => take(id, "liked"))];
    if (body.like !== undefined) steps.push(button("step", "Not like this", () => take(id, "disliked")));
    return element(
      "li",
      {},
      choose,
      bar(score - from, to - from),
      element("span", { class: "value" }, number(score)),
      element("p", { class: "hint beside" }, about(result)),
      ...reasons(result, body).map((line) => element("p", { class: "hint beside" }, line)),
      element("p", { class: "beside steps" }, ...steps),
    );
  });
  const count = answer.items.toLocaleString("en");
  const unscored = answer.unscored > 0 ? ` ${answer.unscored.toLocaleString("en")} of them cannot be scored.` : "";
  const by = body.like === undefined ? "the query" : body.like.map(({ id }) => called(id)).join(", ");
  return [
    element("h2", {}, `The best of ${count} in ${answer.collection}, with ${answer.method}`),
    ...noticed(answer, body).map((line) => element("p", { class: "notice" }, line)),
    element("p", { class: "hint" }, `By likeness to ${by}. ${note} Choose an item to go on from it.${unscored}`),
    element("ol", { class: "ranked" }, ...rows),
  ];
}

function button(kind, label, act) {
  const made = element("button", { type: "button", class: kind }, label);
  made.addEventListener("click", act);
  return made;
}

/** What an item is called: by its text, where it was seen. */
const called = (id) => (texts.has(id) ? `\u201c${shortened(texts.get(id))}\u201d` : id);

/** Id, time, event and attributes of an item. */
function about({ id, time, event, attributes = {} }) {
  const told = Object.entries(attributes).map(([name, value]) => `${name} ${value}`);
  const when = time === undefined ? [] : [time.replace("T", " ").replace(/(:\d\d)?(\.\d+)?Z$/, "")];
  const of = event === undefined ? [] : [`event ${event}`];
  return [id, ...when, ...of, ...told].join(" \u00b7 ");
}

/** The words that speak for an item, and the liked one that they are shared with, if there are several. */
function reasons({ words = [], like }, body) {
  if (words.length === 0) return [];
  const tokens = words.map(({ token }) => token).join(", ");
  const liked = body.like?.length > 1 && like !== undefined ? `, with ${called(body.like[like].id)}` : "";
  return [`By the words ${tokens}${liked}.`];
}

/** What went otherwise than it was asked. */
function noticed({ like_missing = [], unlike_missing = [], filter_unknown = [], query_known }, body) {
  const gone = [...like_missing.map((at) => body.like[at].id), ...unlike_missing.map((at) => body.unlike[at].id)];
  const lines = gone.map((id) => `The collection has no item ${id}.`);
  lines.push(...filter_unknown.map((name) => `No item of the collection has the attribute ${name}.`));
  if (query_known !== undefined) {
    lines.push(`Of the words of the query ${Math.round(100 * query_known)} % are known.`);
  }
  return lines;
}
