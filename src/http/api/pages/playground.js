// The playground: reads the form, asks, and hands the answers to those who show them.

import * as collections from "./collections.js";
import { ask, command, hasKey, refusalInWords, Refusal, useKey } from "./asking.js";
import * as eventlist from "./eventlist.js";
import { checkLength, embedAll, eventsCommand, nearestEarlier } from "./events.js";
import { banner, explanation, verdict } from "./explanation.js";
import * as offline from "./offline.js";
import { TABS, read, textsOf, written } from "./link.js";
import { ranking } from "./ranking.js";
import { fillIn, filledIn, linesOf, recommending } from "./recommending.js";
import * as settings from "./settings.js";
import { readStream } from "./stream.js";

const by = (id) => document.getElementById(id);
const LISTS = ["candidates", "like", "unlike", "liked", "disliked", "stream"];
const TERMINAL = "The same question from a terminal";
const SUBMITS = { compare: "Compare", rank: "Rank", collections: "Find", events: "Find events" };

let tab = "compare";
// What is being asked in each tab, and what was asked last, to be shown again with it.
const asking = {};
const asked = {};

/** Asks the server what it has; whether it told. */
async function prepare() {
  try {
    await settings.load();
    by("key-form").hidden = true;
    return true;
  } catch (error) {
    refuse(error);
    return false;
  }
}

/* Questions */

const QUESTIONS = {
  compare() {
    const texts = [by("a").value, by("b").value];
    const [a, b] = texts;
    const show = (answer) => {
      by("verdict").replaceChildren(...verdict(answer, settings.rangeOf(answer), settings.thresholdOf(answer)));
      by("explanation").replaceChildren(...explanation(answer, texts));
    };
    const hint =
      "/similarity takes the same texts as pairs, many at once, and answers with the scores alone.";
    return { ...posted("/explain", { a, b, ...settings.chosen() }), show, hint };
  },
  rank() {
    const candidates = linesOf("candidates");
    const query = by("query").value;
    const fields = offline.inUse() ? { query } : recommending(query);
    const chosen = settings.chosen();
    const show = (answer) => {
      const explained = explaining(chosen, (result) => fields.like?.[result.like ?? 0] ?? query);
      const range = settings.rangeOf(answer);
      by("ranking").replaceChildren(...ranking(answer, candidates, range, { ...explained, fields }));
      if (fields.like === undefined) tellUnknown(answer, query, candidates, chosen.model);
    };
    const hint = "Candidates may also be objects with an id and a text; top_k and min_score cut the list.";
    return { ...posted("/rank", { ...fields, candidates, ...chosen }), show, hint };
  },
  collections() {
    const chosen = settings.chosen();
    let body;
    const find = async (signal) => {
      await collections.load(signal);
      await collections.beginWithItem(signal);
      const found = await collections.find(chosen, signal);
      body = found.body;
      return found.answer;
    };
    const show = (answer) => {
      by("found").replaceChildren(...collections.found(answer, body, settings.rangeOf(answer), takeItem));
    };
    const hint = "PUT /collections/NAME makes one, POST /collections/NAME/items fills it, and /match follows a stream.";
    return { find, tell: () => command("/rank", body), show, hint };
  },
  events() {
    const chosen = settings.chosen();
    const stream = readStream(by("stream").value);
    let text = "";
    const find = async (signal) => {
      await eventlist.loadSources(signal);
      const collection = by("of").value;
      if (collection !== "") {
        text = command(eventlist.eventsPath(chosen));
        return { collection, list: await ask(eventlist.eventsPath(chosen), undefined, signal) };
      }
      checkLength(stream.texts.length);
      const vectors = await embedAll(stream.texts, chosen, signal);
      return { vectors, near: await nearestEarlier(stream.texts, vectors, chosen, signal) };
    };
    const tell = () => text;
    const moved = (threshold) => {
      text = eventsCommand(threshold);
      if (asked.events?.tell === tell) by("command-text").textContent = text;
    };
    const show = ({ collection, list, vectors, near }) => {
      const pathOf = (id) => eventlist.eventsPath(chosen, id);
      const shown = collection
        ? eventlist.eventsOfCollection(list, collection, pathOf)
        : eventlist.eventsOfTexts(stream, vectors, near, moved);
      by("event-list").replaceChildren(...shown);
    };
    const hint = () =>
      by("of").value === ""
        ? "Save the texts as posts.ndjson, or under a header as posts.tsv. POST /collections/NAME/match finds the same in a stream that the server remembers."
        : "POST /collections/NAME/match puts texts into it, and /collections/NAME/events/stream tells of events as they begin and grow.";
    return { find, tell, show, hint };
  },
};

/** A question that is one request: how its answer is found, and how it is asked from a terminal. */
function posted(path, body) {
  const find = (signal) => ask(path, body, signal);
  if (!offline.inUse()) return { find, tell: () => command(path, body) };
  return { find, tell: () => offline.program(path, body), title: "The same question in JavaScript" };
}

/** Asks for what is like an item of the collection, alone or beside others, or not like it. */
function takeItem(id, how) {
  by("wanted").value = "";
  const field = by(how === "disliked" ? "disliked" : "liked");
  if (how === "alone") collections.forgetItems();
  field.value = [...linesOf(field.id), id].join("\n");
  begin();
}

/** How a result is explained, beside the text that it is compared with: by the method where it compares
    pairs, or else by `auto`. */
function explaining(chosen, comparedWith) {
  const ranks = settings.methodOf(chosen.method ?? settings.AUTO)?.kind !== "similarity";
  const { model, method, measure } = chosen;
  const kept = ranks ? { model } : { model, method, measure };
  const fields = (text, result) => ({ a: comparedWith(result), b: text, ...kept });
  return {
    by: settings.methodOf(ranks ? settings.AUTO : (method ?? settings.AUTO))?.name,
    link: (text, result) => written("compare", fields(text, result)),
    open(text, result) {
      const link = written("compare", fields(text, result));
      history.pushState(null, "", link || location.pathname);
      go({ tab: "compare", fields: fields(text, result) });
      by("compare-tab").focus();
      scrollTo({ top: 0 });
    },
  };
}

/** Tells which words of the query the model does not know; the best candidate stands in for a pair. */
async function tellUnknown(ranked, query, candidates, model) {
  const current = asking.rank;
  const best = candidates[ranked.results[0]?.index];
  if (best === undefined || ranked.unscored.length === candidates.length) return;
  try {
    const told = banner(await ask("/explain", { a: query, b: best, model }, current.signal), ["query"]);
    if (told && asking.rank === current) by("ranking").prepend(told);
  } catch (error) {
    // The ranking stands without it.
    if (!(error instanceof Refusal) && !current.signal.aborted) throw error;
  }
}

async function answer() {
  const here = tab;
  const { find, tell, title = TERMINAL, show, hint } = QUESTIONS[here]();
  asking[here]?.abort();
  const current = new AbortController();
  asking[here] = current;
  by("ask").setAttribute("aria-busy", "true");
  try {
    const result = await find(current.signal);
    if (asking[here] !== current) return;
    show(result);
    const told = typeof hint === "function" ? hint() : hint;
    asked[here] = { tell, title, hint: title === TERMINAL ? told : offline.HINT, link: linkOf(here) };
    if (here === tab) {
      by("problem").replaceChildren();
      by("key-form").hidden = true;
      showAnswers();
    }
  } catch (error) {
    if (asking[here] === current && here === tab) refuse(error);
  } finally {
    if (asking[here] === current) by("ask").removeAttribute("aria-busy");
  }
}

function showAnswers() {
  for (const name of TABS) by(`${name}-answer`).hidden = name !== tab || !asked[name];
  by("command").hidden = !asked[tab];
  if (!asked[tab]) return;
  by("command-title").textContent = asked[tab].title;
  by("command-text").textContent = asked[tab].tell();
  by("command-hint").textContent = asked[tab].hint;
  by("copied").textContent = "";
  const { link } = asked[tab];
  by("copy-link").hidden = link === null;
  by("link-hint").textContent =
    link === null
      ? "These texts are too long for a link."
      : "The address of this page holds the question. What follows # in it stays in the browser.";
  history.replaceState(null, "", link || location.pathname);
}

/** What an address says of a tab besides its texts. */
const MORE = {
  rank: filledIn,
  collections: collections.filledIn,
  events: () => (by("of").value === "" ? {} : { of: by("of").value, sort: by("sort").value }),
};

/** The question in the form, as it stands in the page's address. */
function linkOf(name) {
  const texts = textsOf(name).map(by);
  const own = texts.every((field) => field.value === field.defaultValue);
  const fields = Object.fromEntries(own ? [] : texts.map((field) => [field.id, field.value]));
  const more = MORE[name]?.() ?? {};
  return written(name, { ...fields, ...more, ...settings.chosen() });
}

/** Shows why there is no answer, in place of the one before. */
function refuse(error) {
  if (!(error instanceof Refusal)) throw error;
  delete asked[tab];
  showAnswers();
  if (error.status === 401) {
    by("key-form").hidden = false;
    by("key").focus();
    // The first time, the field says it all.
    if (!hasKey()) {
      by("problem").replaceChildren();
      return;
    }
  }
  by("problem").replaceChildren(refusalInWords(error));
}

/* What people do */

function choose(name, focus) {
  tab = name;
  for (const each of TABS) {
    const chosen = each === name;
    by(`${each}-tab`).setAttribute("aria-selected", String(chosen));
    by(`${each}-tab`).tabIndex = chosen ? 0 : -1;
    by(each).hidden = !chosen;
  }
  if (focus) by(`${name}-tab`).focus();
  by("ask").textContent = SUBMITS[name];
  by("problem").replaceChildren();
  settings.offer(name);
  showAnswers();
}

/** Shows a tab, with an answer if there is none yet. */
function turn(name, focus) {
  choose(name, focus);
  if (!asked[name] && settings.known()) answer();
}

/** Takes over what an address asks. */
function fill({ tab: name, fields }) {
  for (const id of textsOf(name)) by(id).value = fields[id] ?? by(id).defaultValue;
  if (name === "rank") fillIn(fields);
  if (name === "collections") collections.fillIn(fields);
  if (name === "events") eventlist.want(fields);
  settings.want(fields);
  delete asked[name];
  choose(name, false);
}

/** Goes to what an address asks, and asks it. */
async function go(question) {
  fill(question);
  try {
    if (settings.known()) await settings.takeWanted();
  } catch (error) {
    refuse(error);
    return;
  }
  await begin();
}

/** Asks, after what the page needs has been loaded. */
async function begin() {
  if (settings.known() || (await prepare())) await answer();
}

for (const name of TABS) {
  by(`${name}-tab`).addEventListener("click", () => turn(name, false));
  by(`${name}-tab`).addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1 };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const shown = TABS.filter((each) => !by(`${each}-tab`).hidden);
    turn(shown.at((shown.indexOf(name) + step) % shown.length), true);
  });
}

by("question").addEventListener("submit", (event) => {
  event.preventDefault();
  begin();
});

// Short texts rarely have lines: Enter asks, and Shift and Enter starts a line. Lists have lines.
for (const id of ["a", "b", "query", "collapse", "diversify", "wanted", "filter", "within", ...LISTS]) {
  by(id).addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    const asks = LISTS.includes(id) ? event.ctrlKey || event.metaKey : !event.shiftKey;
    if (!asks) return;
    event.preventDefault();
    begin();
  });
}

by("stream-file").addEventListener("change", () => {
  const [file] = by("stream-file").files;
  if (file) open(file);
});
by("stream").addEventListener("dragover", (event) => event.preventDefault());
by("stream").addEventListener("drop", (event) => {
  const [file] = event.dataTransfer.files;
  // Text that is dropped goes where text goes.
  if (!file) return;
  event.preventDefault();
  open(file);
});

/** Takes the stream from a file. */
async function open(file) {
  by("stream").value = await file.text();
  by("stream-file").value = "";
  await begin();
}

for (const example of document.querySelectorAll(".examples button")) {
  example.addEventListener("click", () => {
    by("a").value = example.dataset.a;
    by("b").value = example.dataset.b;
    begin();
  });
}

by("collection").addEventListener("change", () => {
  collections.forgetItems();
  begin();
});
for (const id of ["varied", "reasons"]) by(id).addEventListener("change", begin);
by("sort").addEventListener("change", begin);
by("of").addEventListener("change", () => {
  eventlist.turnSource();
  begin();
});
by("make-collection").addEventListener("click", async () => {
  try {
    await collections.makeExample();
  } catch (error) {
    refuse(error);
    return;
  }
  await begin();
});

by("method").addEventListener("change", () => {
  settings.tellMethod();
  begin();
});
by("measure").addEventListener("change", begin);
by("model").addEventListener("change", async () => {
  try {
    await settings.loadMethods();
  } catch (error) {
    refuse(error);
    return;
  }
  await answer();
});

by("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(by("key").value);
  settings.forget();
  by("problem").replaceChildren();
  begin();
});

/** Copies a text; on pages without TLS, which have no clipboard, what `shown` selects of it. */
async function copy(button, text, shown) {
  let copied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    getSelection().selectAllChildren(shown);
    copied = document.execCommand("copy");
  }
  by("copied").textContent = copied ? "Copied." : "Selected; copy it with the keyboard.";
  const label = button.dataset.label;
  button.textContent = copied ? "Copied" : "Selected";
  setTimeout(() => (button.textContent = label), 2000);
}

by("copy").addEventListener("click", () => copy(by("copy"), by("command-text").textContent, by("command-text")));
by("copy-link").addEventListener("click", () => {
  by("link-text").textContent = location.href;
  copy(by("copy-link"), location.href, by("link-text"));
});

addEventListener("popstate", () => {
  const question = read(location.hash);
  if (question) go(question);
});

/** Takes answers from this page or from the server, as the switch says. */
async function takeSide() {
  // What only the server does.
  for (const id of ["more", "collections-tab"]) by(id).hidden = by("offline").checked;
  if (by(`${tab}-tab`).hidden) choose(TABS[0]);
  by("notice").textContent = by("offline").checked ? "Loading the model." : "";
  settings.forget();
  for (const name of TABS) delete asked[name];
  try {
    await offline.use(by("offline").checked);
    by("notice").textContent = "";
  } catch (error) {
    refuse(error);
    return;
  }
  await begin();
}

const first = read(location.hash);
if (first) fill(first);
if (offline.IS_OFFERED) {
  by("offline-field").hidden = false;
  by("offline").addEventListener("change", takeSide);
  takeSide();
} else {
  begin();
}
