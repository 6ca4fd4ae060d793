// The form's settings: models, methods and measures that this server has, and what is chosen of them.

import { ask } from "./asking.js";
import { element } from "./elements.js";

const by = (id) => document.getElementById(id);
export const AUTO = "auto";

let models = [];
let methods = { auto: "", methods: [] };
// The tab whose methods are offered.
let offered = "compare";
// What an address asked for and the form does not offer yet.
let wanted = {};

/** Whether the server has been asked what it has. */
export const known = () => methods.methods.length > 0;

/** Forgets what the server has. */
export function forget() {
  methods = { auto: "", methods: [] };
}

/** Asks the server what it has. */
export async function load() {
  models = (await ask("/models")).models;
  fillModels();
  pick("model", wanted.model);
  await loadMethods();
}

/** Wants settings that an address named, as soon as they are on offer. */
export function want(fields) {
  const { model, method = AUTO, measure, beside = "" } = fields;
  wanted = { model, method, measure, beside };
}

/** Chooses what is wanted of a server that has been asked before. */
export async function takeWanted() {
  const other = wanted.model !== undefined && wanted.model !== by("model").value;
  if (models.length > 1 && other && pick("model", wanted.model)) await loadMethods();
  else applyWanted();
}

/** Offers the methods that fit a tab. */
export function offer(tab) {
  offered = tab;
  if (known()) fillMethods();
}

function comparesTwo({ kind }) {
  return kind === "similarity";
}

/** Which methods fit a tab: only lists are ranked, and events are always found in the same way. */
const FITS = {
  compare: comparesTwo,
  matrix: comparesTwo,
  pairs: comparesTwo,
  rank: () => true,
  collections: () => true,
  events: () => true,
};

/** A method of this server by its name. */
export function methodOf(name) {
  const canonical = name === AUTO ? methods.auto : name;
  return methods.methods.find((method) => method.name === canonical);
}

/** The methods of the chosen model that compare two texts. */
export const comparing = () => methods.methods.filter(({ kind, available }) => kind === "similarity" && available);

/** Asks which methods the chosen model has. */
export async function loadMethods() {
  const model = by("model").value;
  methods = await ask(models.length > 1 ? `/methods?model=${encodeURIComponent(model)}` : "/methods");
  fillMethods();
  applyWanted();
  tellServed();
}

/** Chooses what is on offer; tells whether it is. */
function pick(id, value) {
  const offered = [...by(id).options].some((option) => option.value === value && !option.disabled);
  if (offered) by(id).value = value;
  return offered || value === undefined;
}

/** Takes over the settings that an address asked for, and says which of them are not to be had. */
function applyWanted() {
  const missing = [];
  if (!pick("model", wanted.model) && models.length > 1) missing.push(`model ${wanted.model}`);
  if (!pick("method", wanted.method)) {
    missing.push(`method ${wanted.method}`);
    by("method").value = AUTO;
  }
  pick("beside", wanted.beside);
  tellMethod();
  if (wanted.measure && !by("measure-field").hidden) pick("measure", wanted.measure);
  by("notice").textContent =
    missing.length > 0 ? `The link asks for the ${missing.join(" and the ")}, which this server does not offer.` : "";
  wanted = {};
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
  const groups = GROUPS.map(([label, belongs]) => {
    const members = methods.methods.filter((method) => FITS[offered](method) && belongs(method));
    return element("optgroup", { label }, ...members.map(methodOption));
  });
  if (offered === "rank") {
    const second = by("beside").value;
    const none = element("option", { value: "" }, "no other method");
    by("beside").replaceChildren(none, ...groups.map((group) => group.cloneNode(true)));
    by("beside").value = second;
    if (by("beside").selectedIndex < 0) by("beside").value = "";
  }
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

/** Tells what the chosen method does. */
export function tellMethod() {
  const method = methodOf(by("method").value);
  if (!method) return;
  const note = method.note ? ` Note: ${method.note}.` : "";
  by("method-summary").textContent = method.summary + note;
  by("measure-field").hidden = offered === "events" || !method.embeds;
  for (const id of ["method-field", "method-summary"]) by(id).hidden = offered === "events";
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
export function chosen() {
  const fields = {};
  const name = by("method").value || AUTO;
  const method = methodOf(name);
  if (models.length > 1) fields.model = by("model").value;
  if (offered === "events") return fields;
  if (name !== AUTO) fields.method = name;
  if (method?.embeds && by("measure").value !== method.measure) {
    fields.method = method.name;
    fields.measure = by("measure").value;
  }
  return fields;
}

/** Between which numbers the scores of an answer lie. */
export function rangeOf({ method, measure }) {
  if (measure === "euclidean") return [0, 1];
  return methods.methods.find(({ name }) => name === method)?.range ?? [-1, 1];
}

/** The calibrated threshold that an answer can be judged by. */
export function thresholdOf(answer) {
  const model = models.find(({ name }) => name === answer.model);
  const fits = ({ method, measure }) => method === answer.method && measure === answer.measure;
  return model?.thresholds.find(fits);
}
