// cognate in JavaScript: how similar short texts are, computed where the texts are. Scores are the same
// bits as those of the program and the service.

import { bytesOf } from "./bytes.js";
import { SettingError } from "./errors.js";
import { Instance } from "./module.js";

export { CognateError, MethodError, ModelError, ScoreError, SettingError, TextError } from "./errors.js";

/** The model within the package. */
const DEFAULT_MODEL = new URL("./default.safetensors", import.meta.url);

/** A model, and the questions that can be asked of it. */
export class Cognate {
  #instance;

  /** What the model is. */
  about;

  /** Loads a model: bytes, an address, in Node a file's path; without one the model within the package. */
  static async load(model = DEFAULT_MODEL) {
    const cognate = new Cognate();
    cognate.#instance = await Instance.open(await bytesOf(model));
    cognate.about = Object.freeze(cognate.#ask("about", {}, []).json);
    return cognate;
  }

  /** How similar two texts are. A text that cannot be scored scores 0, unless that is to be an error. */
  similarity(a, b, options = {}) {
    const texts = [text(a, "a"), text(b, "b")];
    return this.#ask("pairs", { ...settings(options), one: true }, texts).numbers[0];
  }

  /** The scores of pairs of texts, and which pairs could not be scored. */
  pairs(pairs, options = {}) {
    const texts = [];
    list(pairs, "pairs").forEach((pair, row) => {
      list(pair, `pairs[${row}]`, 2).forEach((one, side) => texts.push(text(one, `pairs[${row}][${side}]`)));
    });
    const { threshold, ...others } = options;
    const asked = { ...settings(others), threshold: number(threshold, "threshold") };
    const { json, numbers } = this.#ask("pairs", asked, texts);
    return { scores: numbers, ...json };
  }

  /** Candidates in the order of their similarity to a query, best first. */
  rank(query, candidates, options = {}) {
    const { topK, minScore, threshold, ...others } = options;
    const texts = [text(query, "query"), ...allTexts(candidates, "candidates")];
    const least = number(minScore, "minScore");
    const related = number(threshold, "threshold");
    const asked = { ...settings(others), top_k: whole(topK, "topK"), min_score: least, threshold: related };
    return this.#ask("rank", asked, texts).json;
  }

  /** The vectors of texts, one after the other; zeros for a text without one. */
  embed(texts, options = {}) {
    const { json, numbers } = this.#ask("embed", settings(options), allTexts(texts, "texts"));
    return { vectors: numbers, ...json };
  }

  /** What each word adds to the score of two texts. */
  explain(a, b, options = {}) {
    return this.#ask("explain", settings(options), [text(a, "a"), text(b, "b")]).json;
  }

  /** Every method: what it does, and whether this model can serve it. */
  methods() {
    return this.#ask("methods", {}, []).json;
  }

  /** Bytes of memory in use. */
  get memory() {
    return this.#instance.memory;
  }

  /** Frees the model at once. One that nobody holds any more goes by itself. */
  close() {
    this.#instance.close();
  }

  #ask(what, asked, texts) {
    return this.#instance.ask({ ask: what, ...asked }, texts);
  }
}

/** Settings as the module names them. */
function settings(options) {
  const { method, measure, opposites, truncate, unscored = "zero", ...unknown } = options;
  const [other] = Object.keys(unknown);
  if (other !== undefined) throw new SettingError(`${other}: there is no such option`);
  if (unscored !== "zero" && unscored !== "error") {
    throw new SettingError(`unscored: expected zero or error, got ${JSON.stringify(unscored)}`);
  }
  for (const [name, value] of Object.entries({ method, measure, opposites })) {
    if (value !== undefined) text(value, name);
  }
  return { method, measure, opposites, truncate: truncate === true, refuse: unscored === "error" };
}

function text(value, name) {
  if (typeof value === "string") return value;
  throw new TypeError(`${name}: expected a string, got ${kind(value)}`);
}

function list(value, name, length) {
  const fits = Array.isArray(value) && (length === undefined || value.length === length);
  if (fits) return value;
  throw new TypeError(`${name}: expected an array${length ? ` of ${length} texts` : ""}, got ${kind(value)}`);
}

function allTexts(value, name) {
  return list(value, name).map((one, row) => text(one, `${name}[${row}]`));
}

function whole(value, name) {
  if (value === undefined || (Number.isSafeInteger(value) && value >= 0 && value < 2 ** 32)) return value;
  throw new SettingError(`${name}: expected a whole number of at least 0, got ${value}`);
}

function number(value, name) {
  if (value === undefined || Number.isFinite(value)) return value;
  throw new SettingError(`${name}: expected a number, got ${value}`);
}

function kind(value) {
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return value === null ? "null" : typeof value;
}
