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
    const { threshold, returnOpposes, ...others } = options;
    const told = { threshold: number(threshold, "threshold"), opposes: returnOpposes === true };
    const asked = { ...settings(others), ...told };
    const { json, numbers } = this.#ask("pairs", asked, texts);
    return { scores: numbers, ...json };
  }

  /**
   * Candidates in the order of their similarity to a query, best first. With `like` the query is null: texts that
   * candidates should be like.
   */
  rank(query, candidates, options = {}) {
    const { topK, minScore, threshold, collapse, opposes, like, unlike, strategy, unlikeWeight, ...others } = options;
    if (opposes !== undefined && opposes !== "drop") throw new SettingError(`opposes: expected drop, got ${opposes}`);
    const { texts, likes } = wanted(query, { like, unlike, strategy, unlikeWeight });
    const ranking = {
      likes,
      top_k: whole(topK, "topK", 1),
      min_score: number(minScore, "minScore"),
      collapse: number(collapse, "collapse"),
      drop_opposed: opposes === "drop",
    };
    const asked = { ...settings(others), threshold: number(threshold, "threshold"), ranking };
    return this.#ask("rank", asked, [...texts, ...allTexts(candidates, "candidates")]).json;
  }

  /** The vectors of texts, one after the other; zeros for a text without one. */
  embed(texts, options = {}) {
    const { normalize, ...others } = options;
    const asked = { ...settings(others), normalize: normalize === true };
    const { json, numbers } = this.#ask("embed", asked, allTexts(texts, "texts"));
    return { vectors: numbers, ...json };
  }

  /** The event of each text of a stream, in the order in which they came. */
  events(texts, options = {}) {
    const { times, preset, method, second, last, within, threshold, ...unknown } = options;
    settings(unknown);
    const stream = {
      times: times && list(times, "times", texts.length).map((time, row) => moment(time, `times[${row}]`)),
      preset: word(preset, "preset"),
      method: word(method, "method"),
      second: word(second, "second"),
      last: whole(last, "last", 1),
      within: whole(within, "within", 0),
      threshold: number(threshold, "threshold"),
    };
    return this.#ask("events", { stream }, allTexts(texts, "texts")).json;
  }

  /** The texts that are duplicates of none before them, and the duplicates of each. */
  dedupe(texts, options = {}) {
    const { method = "auto", threshold, ...unknown } = options;
    settings(unknown);
    const stream = { second: word(method, "method"), threshold: number(threshold, "threshold"), only_new: true };
    const { json } = this.#ask("events", { stream }, allTexts(texts, "texts"));
    const groups = new Map();
    json.duplicate.forEach((twin, index) => {
      if (!twin) groups.set(index, { index, duplicates: [] });
      else groups.get(json.nearest[index]).duplicates.push({ index, score: json.scores[index] });
    });
    return { method: json.method, threshold: json.threshold, kept: [...groups.values()] };
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
  Object.entries({ method, measure, opposites }).forEach(([name, value]) => word(value, name));
  return { method, measure, opposites, truncate: truncate === true, refuse: unscored === "error" };
}

/** What candidates are ranked for: the query, or liked texts and then disliked ones. */
function wanted(query, { like, unlike, strategy, unlikeWeight }) {
  if (like === undefined) {
    for (const [name, value] of Object.entries({ unlike, strategy, unlikeWeight })) {
      if (value !== undefined) throw new SettingError(`${name}: this stands beside like alone`);
    }
    return { texts: [text(query, "query")] };
  }
  if (query !== null) throw new SettingError("like: expected null as the query beside it");
  if (list(like, "like").length === 0) throw new SettingError("like: expected at least one text");
  const liked = like.map((one) => (typeof one === "string" ? { text: one } : one ?? {}));
  const disliked = allTexts(unlike ?? [], "unlike");
  const weights = liked.map(({ weight = 1 }, row) => number(weight, `like[${row}].weight`));
  const texts = [...liked.map((one, row) => text(one.text, `like[${row}]`)), ...disliked];
  const unlike_weight = number(unlikeWeight, "unlikeWeight");
  return { texts, likes: { weights, disliked: disliked.length, strategy: word(strategy, "strategy"), unlike_weight } };
}

/** A date, or milliseconds since 1970. */
function moment(value, name) {
  const time = value instanceof Date ? value.getTime() : value;
  if (Number.isSafeInteger(time)) return time;
  throw new SettingError(`${name}: expected a date or milliseconds, got ${value}`);
}

function text(value, name) {
  if (typeof value === "string") return value;
  throw new TypeError(`${name}: expected a string, got ${kind(value)}`);
}

function word(value, name) {
  return value === undefined ? value : text(value, name);
}

function list(value, name, length) {
  const fits = Array.isArray(value) && (length === undefined || value.length === length);
  if (fits) return value;
  throw new TypeError(`${name}: expected an array${length ? ` of ${length} texts` : ""}, got ${kind(value)}`);
}

function allTexts(value, name) {
  return list(value, name).map((one, row) => text(one, `${name}[${row}]`));
}

function whole(value, name, least) {
  if (value === undefined || (Number.isSafeInteger(value) && value >= least && value < 2 ** 32)) return value;
  throw new SettingError(`${name}: expected a whole number of at least ${least}, got ${value}`);
}

function number(value, name) {
  if (value === undefined || Number.isFinite(value)) return value;
  throw new SettingError(`${name}: expected a number, got ${value}`);
}

function kind(value) {
  if (Array.isArray(value)) return `an array of ${value.length}`;
  return value === null ? "null" : typeof value;
}
