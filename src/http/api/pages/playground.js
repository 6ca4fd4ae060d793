// The playground: reads the form, asks, and hands the answers to those who show them.

import { ask, command, hasKey, refusalInWords, Refusal, useKey } from "./asking.js";
import { element } from "./elements.js";
import { explanation, verdict } from "./explanation.js";
import { ranking } from "./ranking.js";

const by = (id) => document.getElementById(id);
const AUTO = "auto";
const TABS = ["compare", "rank"];
const SUBMITS = { compare: "Compare", rank: "Rank" };

let models = [];
let methods = { auto: "", methods: [] };
let tab = "compare";
// What is being asked in each tab, and what was asked last, to be shown again with it.
const asking = {};
const asked = {};

function methodOf(name) {
  const canonical = name === AUTO ? methods.auto : name;
  return methods.methods.find((method) => method.name === canonical);
}

/* Settings */

async function load() {
  try {
    models = (await ask("/models")).models;
    fillModels();
    await loadMethods();
    by("key-form").hidden = true;
    return true;
  } catch (error) {
    refuse(error);
    return false;
  }
}

async function loadMethods() {
  const model = by("model").value;
  methods = await ask(models.length > 1 ? `/methods?model=${encodeURIComponent(model)}` : "/methods");
  fillMethods();
  tellServed();
}

function fillModels() {
  const options = models.map(({ name }) => element("option", { value: name }, name));
  by("model").replaceChildren(...options);
  by("model-field").hidden = models.length < 2;
}

const GROUPS = [
  ["One vector a text", (method) => method.kind === "similarity" && method.embeds],
  ["Both texts at once", (method) => method.kind === "similarity" && !method.embeds],
  ["Only for ranking", (method) => method.kind !== "similarity"],
];

function fillMethods() {
  const before = by("method").value || AUTO;
  const fits = (method) => tab === "rank" || method.kind === "similarity";
  const groups = GROUPS.map(([label, belongs]) => {
    const members = methods.methods.filter((method) => fits(method) && belongs(method));
    return element("optgroup", { label }, ...members.map(methodOption));
  });
  const auto = element("option", { value: AUTO }, `auto (${methods.auto})`);
  by("method").replaceChildren(auto, ...groups.filter((group) => group.children.length > 0));
  by("method").value = before;
  // A choice that does not exist here, as a ranker in the other tab.
  if (by("method").selectedIndex < 0) by("method").value = AUTO;
  tellMethod();
}

function methodOption({ name, available }) {
  const text = available ? name : `${name} (not with this model)`;
  return element("option", { value: name, disabled: available ? null : "" }, text);
}

function tellMethod() {
  const method = methodOf(by("method").value);
  if (!method) return;
  const note = method.note ? ` Note: ${method.note}.` : "";
  by("method-summary").textContent = method.summary + note;
  by("measure-field").hidden = !method.embeds;
  const options = ["cosine", "euclidean"].map((name) => element("option", { value: name }, name));
  by("measure").replaceChildren(...options);
  by("measure").value = method.measure;
}

function tellServed() {
  const model = models.find(({ name }) => name === methods.model);
  if (!model) return;
  const size = `${model.words.toLocaleString("en")} words, ${model.dimensions} dimensions`;
  const licence = model.licence ? ` Terms: ${model.licence}.` : "";
  by("served").textContent = `Model ${model.name}: ${size}, fingerprint ${model.fingerprint}.${licence}`;
}

/** Model, method and measure as fields of a question; what is usual is left out. */
function settings() {
  const chosen = {};
  const name = by("method").value || AUTO;
  const method = methodOf(name);
  if (models.length > 1) chosen.model = by("model").value;
  if (name !== AUTO) chosen.method = name;
  if (method?.embeds && by("measure").value !== method.measure) {
    chosen.method = method.name;
    chosen.measure = by("measure").value;
  }
  return chosen;
}

/** Between which numbers the scores of an answer lie. */
function rangeOf({ method, measure }) {
  if (measure === "euclidean") return [0, 1];
  return methods.methods.find(({ name }) => name === method)?.range ?? [-1, 1];
}

function thresholdOf(answer) {
  const model = models.find(({ name }) => name === answer.model);
  const fits = ({ method, measure }) => method === answer.method && measure === answer.measure;
  return model?.thresholds.find(fits);
}

/* Questions */

const QUESTIONS = {
  compare() {
    const texts = [by("a").value, by("b").value];
    const [a, b] = texts;
    const show = (answer) => {
      by("verdict").replaceChildren(...verdict(answer, rangeOf(answer), thresholdOf(answer)));
      by("explanation").replaceChildren(...explanation(answer, texts));
    };
    const hint =
      "/similarity takes the same body and answers with the score alone, and takes many pairs at once.";
    return { path: "/explain", body: { a, b, ...settings() }, show, hint };
  },
  rank() {
    const lines = by("candidates").value.split("\n").map((line) => line.trim());
    const candidates = lines.filter((line) => line !== "");
    const show = (answer) => by("ranking").replaceChildren(...ranking(answer, candidates, rangeOf(answer)));
    const hint = "Candidates may also be objects with an id and a text; top_k and min_score cut the list.";
    return { path: "/rank", body: { query: by("query").value, candidates, ...settings() }, show, hint };
  },
};

async function answer() {
  const here = tab;
  const { path, body, show, hint } = QUESTIONS[here]();
  asking[here]?.abort();
  const current = new AbortController();
  asking[here] = current;
  by("ask").setAttribute("aria-busy", "true");
  try {
    const result = await ask(path, body, current.signal);
    if (asking[here] !== current) return;
    show(result);
    asked[here] = { text: command(path, body), hint };
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
  by("command-text").textContent = asked[tab].text;
  by("command-hint").textContent = asked[tab].hint;
  by("copied").textContent = "";
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
  history.replaceState(null, "", name === TABS[0] ? location.pathname : `#${name}`);
  if (methods.methods.length > 0) fillMethods();
  showAnswers();
  if (!asked[name] && methods.methods.length > 0) answer();
}

/** Asks, after what the page needs has been loaded. */
async function begin() {
  if (methods.methods.length > 0 || (await load())) await answer();
}

for (const name of TABS) {
  by(`${name}-tab`).addEventListener("click", () => choose(name, false));
  by(`${name}-tab`).addEventListener("keydown", (event) => {
    const steps = { ArrowLeft: -1, ArrowRight: 1 };
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    choose(TABS[(TABS.indexOf(name) + step + TABS.length) % TABS.length], true);
  });
}

by("question").addEventListener("submit", (event) => {
  event.preventDefault();
  begin();
});

// Short texts rarely have lines: Enter asks, and Shift and Enter starts a line. The list has lines.
for (const id of ["a", "b", "query", "candidates"]) {
  by(id).addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    const asks = id === "candidates" ? event.ctrlKey || event.metaKey : !event.shiftKey;
    if (!asks) return;
    event.preventDefault();
    begin();
  });
}

for (const example of document.querySelectorAll(".examples button")) {
  example.addEventListener("click", () => {
    by("a").value = example.dataset.a;
    by("b").value = example.dataset.b;
    begin();
  });
}

by("method").addEventListener("change", () => {
  tellMethod();
  begin();
});
by("measure").addEventListener("change", begin);
by("model").addEventListener("change", async () => {
  try {
    await loadMethods();
  } catch (error) {
    refuse(error);
    return;
  }
  await answer();
});

by("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  useKey(by("key").value);
  methods = { auto: "", methods: [] };
  by("problem").replaceChildren();
  begin();
});

by("copy").addEventListener("click", async () => {
  const text = by("command-text");
  let copied = true;
  try {
    await navigator.clipboard.writeText(text.textContent);
  } catch {
    // Pages without TLS have no clipboard: what is selected can be copied all the same.
    getSelection().selectAllChildren(text);
    copied = document.execCommand("copy");
  }
  by("copied").textContent = copied ? "Copied." : "Selected; copy it with the keyboard.";
  by("copy").textContent = copied ? "Copied" : "Selected";
  setTimeout(() => (by("copy").textContent = "Copy"), 2000);
});

if (location.hash === "#rank") choose("rank", false);
begin();
