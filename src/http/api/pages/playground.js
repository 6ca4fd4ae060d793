// The playground: reads the form, asks, and hands the answers to those who show them.

import { beside } from "./beside.js";
import * as collections from "./collections.js";
import { ask, hasKey, refusalInWords, Refusal, useKey } from "./asking.js";
import { element } from "./elements.js";
import * as eventlist from "./eventlist.js";
import { checkLength, cutStream, embedAll, eventsCommand, nearestEarlier } from "./events.js";
import { everyMethod, isOpen, setOpen } from "./everymethod.js";
import { banner, explanation, verdict } from "./explanation.js";
import * as live from "./live.js";
import { TABS, read, textsOf, written } from "./link.js";
import * as matrix from "./matrix.js";
import * as offline from "./offline.js";
import * as pairs from "./pairs.js";
import { programs } from "./programs.js";
import { ranking } from "./ranking.js";
import { fillIn, filledIn, linesOf, recommending } from "./recommending.js";
import * as settings from "./settings.js";
import { readStream } from "./stream.js";
import { textOf } from "./table.js";

const by = (id) => document.getElementById(id);
const LISTS = ["many", "table", "candidates", "like", "unlike", "liked", "disliked", "stream"];
/** Of each tab what it asks, what to do there, and what its button says. */
const HEADS = {
  compare: [
    "How similar are two short texts?",
    "Type two texts and see which of their words the score comes from.",
    "Compare",
  ],
  matrix: [
    "Which of many texts are alike?",
    "Paste a list and see every pair at once, with like beside like.",
    "Compare all",
  ],
  pairs: [
    "How good are the scores on your own pairs?",
    "Open a table of pairs: see how the scores fall, move the threshold, and take the scores with you.",
    "Score",
  ],
  rank: [
    "Which texts are most like this one?",
    "Rank a list by its similarity to a query, or to texts that you like.",
    "Rank",
  ],
  collections: [
    "What is like this among stored texts?",
    "Ask a collection that the server remembers: by a query, or by items that you like.",
    "Find",
  ],
  events: [
    "Which texts tell of the same event?",
    "Find the events in a stream of texts, or look at those that a collection has found.",
    "Find events",
  ],
};

let tab = "compare";
// The language in which a question is shown as a program.
let language;
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
    const chosen = settings.chosen();
    const show = (answer) => {
      by("verdict").replaceChildren(...verdict(answer, settings.rangeOf(answer), settings.thresholdOf(answer)));
      by("every").replaceChildren(everyMethod({ a, b }, chosen, asking.compare.signal, takeMethod, turnEvery));
      by("explanation").replaceChildren(...explanation(answer, texts));
    };
    const hint =
      "/similarity takes the same texts as pairs, many at once, and answers with the scores alone.";
    return { ...posted("/explain", { a, b, ...chosen }), show, hint };
  },
  matrix() {
    const [texts, chosen] = [linesOf("many"), settings.chosen()];
    const find = async (signal) => {
      matrix.checkLength(texts.length);
      return matrix.scoreAll(texts, chosen, signal);
    };
    const show = (found) => {
      const threshold = settings.thresholdOf(found.answer)?.threshold;
      by("map").replaceChildren(...matrix.matrix(texts, found, settings.rangeOf(found.answer), threshold, comparing(chosen)));
    };
    const body = { pairs: texts.slice(1).map((text) => [texts[0], text]), ...chosen };
    const hint = "The program asks for the first row alone; the page asks for every pair, 500 a request.";
    return { ...posted("/similarity", body), find, show, hint };
  },
  pairs() {
    const chosen = settings.chosen();
    let table;
    let body = {};
    const find = async (signal) => {
      table = pairs.load();
      body = { pairs: table.rows.slice(0, 3).map((row) => [row[table.places.first], row[table.places.second]]), ...chosen };
      return pairs.scoreAll(table, chosen, signal);
    };
    const show = (found) => {
      const threshold = settings.thresholdOf(found.answer)?.threshold;
      by("scores").replaceChildren(...pairs.pairsTable(table, found, threshold, comparing(chosen)));
    };
    const hint = "The program asks for the first three rows; one request takes many, and the command line whole files: cognate similarity --help.";
    return { ...posted("/similarity", body), find, tell: () => posted("/similarity", body).tell(), show, hint };
  },
  rank() {
    const candidates = linesOf("candidates");
    const query = by("query").value;
    const fields = offline.inUse() ? { query } : recommending(query);
    const chosen = settings.chosen();
    const second = by("beside").value;
    if (second !== "") return rankBeside(candidates, fields, query, chosen, second);
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
    return { find, tell: () => programs("/rank", body), show, hint };
  },
  events() {
    const chosen = settings.chosen();
    const stream = readStream(by("stream").value);
    let told = {};
    const find = async (signal) => {
      await eventlist.loadSources(signal);
      const collection = by("of").value;
      if (collection !== "") {
        told = programs(eventlist.eventsPath(chosen));
        return { collection, list: await ask(eventlist.eventsPath(chosen), undefined, signal) };
      }
      checkLength(stream.texts.length);
      const vectors = await embedAll(stream.texts, chosen, signal);
      return { vectors, near: await nearestEarlier(stream.texts, vectors, chosen, signal) };
    };
    const tell = () => told;
    const moved = (threshold) => {
      told = { "a terminal": eventsCommand(threshold) };
      if (asked.events?.tell === tell) showPrograms();
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

/** A question that is one request: how its answer is found, and the programs that ask the same. */
function posted(path, body) {
  const find = (signal) => ask(path, body, signal);
  if (!offline.inUse()) return { find, tell: () => programs(path, body) };
  return { find, tell: () => ({ JavaScript: offline.program(path, body) }), besides: offline.HINT };
}

/** The same list ranked by two methods. */
function rankBeside(candidates, fields, query, chosen, second) {
  const { measure, ...other } = chosen;
  const bodies = [chosen, { ...other, method: second }].map((how) => ({ ...fields, candidates, ...how }));
  const find = (signal) => Promise.all(bodies.map((body) => ask("/rank", body, signal)));
  const open = (text, method) => explaining({ ...other, method }, () => fields.like?.[0] ?? query).open(text, {});
  const show = (answers) => by("ranking").replaceChildren(...beside(answers, candidates, open));
  return { ...posted("/rank", bodies[0]), find, show, hint: "The program asks for the first of both rankings." };
}

/** Compares by another method. */
function takeMethod(name) {
  by("method").value = name;
  settings.tellMethod();
  begin();
}

/** Opens the table of all methods, or closes it. */
function turnEvery(opened) {
  setOpen(opened);
  asked.compare.link = linkOf("compare");
  showAnswers();
}

/** Asks for what is like an item of the collection, alone or beside others, or not like it. */
function takeItem(id, how) {
  by("wanted").value = "";
  const field = by(how === "disliked" ? "disliked" : "liked");
  if (how === "alone") collections.forgetItems();
  field.value = [...linesOf(field.id), id].join("\n");
  begin();
}

/** Compares two texts by the same method. */
const comparing = (chosen) => (a, b) => openComparison({ a, b, ...chosen });

/** Goes to the comparison of two texts, from which the way back leads here. */
function openComparison(fields) {
  history.pushState(null, "", written("compare", fields).part || location.pathname);
  go({ tab: "compare", fields });
  by("compare-tab").focus();
  scrollTo({ top: 0 });
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
    link: (text, result) => written("compare", fields(text, result)).part,
    open: (text, result) => openComparison(fields(text, result)),
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
  const { find, tell, show, hint, besides } = QUESTIONS[here]();
  asking[here]?.abort();
  const current = new AbortController();
  asking[here] = current;
  by("ask").setAttribute("aria-busy", "true");
  try {
    const result = await find(current.signal);
    if (asking[here] !== current) return;
    show(result);
    const told = typeof hint === "function" ? hint() : hint;
    asked[here] = { tell, hint: besides ?? told, link: linkOf(here) };
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
  showPrograms();
  by("command-hint").textContent = asked[tab].hint;
  by("copied").textContent = "";
  const { part, left } = asked[tab].link;
  const without = left.map((id) => LEFT_OUT[id] ?? `the field ${id}`).join(" and ");
  by("link-hint").textContent =
    left.length > 0
      ? `The address of this page holds the question without ${without}, too long for a link.`
      : "The address of this page holds the question. What follows # in it stays in the browser.";
  history.replaceState(null, "", part || location.pathname);
}

/** What a link may leave out, in words. */
const LEFT_OUT = {
  a: "the first text",
  b: "the second text",
  many: "the list of texts",
  table: "the table",
  query: "the query",
  candidates: "the candidates",
  stream: "the list of texts",
};

/** Shows the question as a program, in the language that was chosen where there are several. */
function showPrograms() {
  const told = asked[tab].tell();
  const names = Object.keys(told);
  const shown = names.includes(language) ? language : names[0];
  by("command-title").textContent = names.length > 1 ? "The same question as" : `The same question in ${names[0]}`;
  const buttons = names.map((name) => {
    const button = element("button", { type: "button", "aria-pressed": String(name === shown) }, name);
    button.addEventListener("click", () => {
      language = name;
      showPrograms();
      by("languages").querySelector("[aria-pressed=true]").focus();
    });
    return button;
  });
  by("languages").replaceChildren(...(names.length > 1 ? buttons : []));
  by("command-text").textContent = told[shown];
}

/** What an address says of a tab besides its texts. */
const MORE = {
  compare: () => (isOpen() ? { all: "1" } : {}),
  pairs: pairs.filledIn,
  rank: () => ({ ...filledIn(), ...(by("beside").value === "" ? {} : { beside: by("beside").value }) }),
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
  const [heading, lead, submit] = HEADS[name];
  by("heading").textContent = heading;
  by("lead").textContent = lead;
  by("ask").textContent = submit;
  document.title = `cognate: ${heading.toLowerCase()}`;
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
  if (name === "compare") setOpen(fields.all === "1");
  if (name === "pairs") pairs.fillIn(fields);
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

/** Lets a list be taken from a file, opened or dropped; `cut` makes it as long as the page takes. */
function fromFile(list, field, cut) {
  const open = async (file) => {
    const { text, whole } = await textOf(file);
    const taken = cut(text, whole);
    by(list).value = taken.text;
    by(field).value = "";
    await begin();
    by("notice").textContent = taken.note;
  };
  by(field).addEventListener("change", () => {
    const [file] = by(field).files;
    if (file) open(file);
  });
  by(list).addEventListener("dragover", (event) => event.preventDefault());
  by(list).addEventListener("drop", (event) => {
    const [file] = event.dataTransfer.files;
    // Text that is dropped goes where text goes.
    if (!file) return;
    event.preventDefault();
    open(file);
  });
}

fromFile("table", "table-file", pairs.cut);
fromFile("stream", "stream-file", cutStream);
for (const id of ["first", "second", "label"]) by(id).addEventListener("change", begin);

for (const example of document.querySelectorAll("[data-a]")) {
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
  stopFollowing();
  eventlist.turnSource();
  begin();
});
by("make-collection").addEventListener("click", () => trying(collections.makeExample).then((made) => made && begin()));
by("reader").addEventListener("change", () => {
  collections.takeReader();
  begin();
});
by("beside").addEventListener("change", begin);

/** Does something that the server may refuse; whether it was done. */
async function trying(act) {
  try {
    await act();
    return true;
  } catch (error) {
    if (!(error instanceof DOMException && error.name === "AbortError")) refuse(error);
    return false;
  }
}

/* Live */

// What is followed or replayed, if anything is.
let following = null;

function stopFollowing() {
  following?.abort();
  following = null;
  by("follow").setAttribute("aria-pressed", "false");
  by("live-hint").textContent = "";
  by("live").hidden = true;
}

/** Follows the chosen collection until it is stopped. */
async function follow() {
  following = new AbortController();
  const { signal } = following;
  by("follow").setAttribute("aria-pressed", "true");
  by("live").replaceChildren();
  by("live").hidden = false;
  const changed = () => tab === "events" && begin();
  const lasted = await trying(() => live.follow(by("of").value, by("live"), changed, signal));
  if (!signal.aborted && !lasted) stopFollowing();
}

by("follow").addEventListener("click", () => {
  if (following !== null) stopFollowing();
  else {
    by("live-hint").textContent = "New alerts come here as texts are matched.";
    follow();
  }
});
by("replay").addEventListener("click", async () => {
  const stream = readStream(by("stream").value);
  if (!(await trying(async () => checkLength(stream.texts.length))) || !(await trying(live.begin))) return;
  eventlist.want({ of: live.REPLAYED, sort: "size" });
  await trying(() => eventlist.loadSources());
  stopFollowing();
  follow();
  const { signal } = following;
  const told = (text) => (by("live-hint").textContent = text);
  if (await trying(() => live.replay(stream, told, signal))) begin();
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
