// Answers the page's questions without the server, by the package `cognate-text`. Only a page that stands
// beside the package offers that (`wasm/build.sh` makes one); the service's own page does not.

import { Refusal, answerBy } from "./asking.js";

/** Where the package is. */
const PLACE = document.documentElement.dataset.offline;

/** Whether there is a package. */
export const IS_OFFERED = PLACE !== undefined;

export const HINT = "pairs() scores many pairs at once, and embed() gives vectors. Node runs the same package.";

/** What the one model is called. */
const NAME = "default";

let using = false;
let loading = null;

/** Whether questions are answered here. */
export const inUse = () => using;

/** Answers questions here from now on, or leaves them to the server. */
export async function use(on) {
  using = on;
  if (!on) {
    answerBy(null);
    return;
  }
  loading ??= load();
  try {
    const model = await loading;
    if (using) answerBy(async (path, body) => answer(model, path, body));
  } catch (error) {
    loading = null;
    throw new Refusal(0, { title: "The model cannot be loaded", detail: String(error.message) });
  }
}

async function load() {
  const { Cognate } = await import(new URL(`${PLACE}cognate.js`, document.baseURI));
  return Cognate.load();
}

const ROUTES = {
  "/models": (model) => ({ models: [{ name: NAME, default: true, ...model.about }] }),
  "/methods": (model) => ({
    model: NAME,
    fingerprint: model.about.fingerprint,
    auto: model.about.auto,
    methods: model.methods(),
  }),
  "/explain": (model, { a, b, ...options }) => ({ model: NAME, ...model.explain(a, b, options) }),
  "/rank"(model, { query, candidates, ...options }) {
    const ranking = model.rank(query, candidates, options);
    const results = ranking.results.map(({ index, score }) => ({ index, score: score ?? 0 }));
    return { model: NAME, ...ranking, results };
  },
  "/similarity"(model, { pairs, return_opposes: returnOpposes, ...options }) {
    const { scores, ...others } = model.pairs(pairs, { ...options, returnOpposes });
    return { model: NAME, ...others, scores: [...scores] };
  },
  "/embed"(model, { texts, method, measure, truncate }) {
    const { vectors, dimensions, unscored, ...others } = model.embed(texts, { method, measure, truncate });
    const without = new Set(unscored);
    const vector = (row) => unit(vectors.subarray(row * dimensions, (row + 1) * dimensions));
    const embeddings = texts.map((_, row) => (without.has(row) ? null : encoded(vector(row))));
    return { model: NAME, ...others, embeddings };
  },
};

/** The answer that the server would give. */
function answer(model, path, { model: _, ...body } = {}) {
  try {
    return ROUTES[path](model, body);
  } catch (error) {
    if (!("argument" in error)) throw new Refusal(0, { title: "This cannot be answered", detail: error.message });
    throw new Refusal(0, { title: "This text cannot be scored", detail: `${worded(error)}.` });
  }
}

const PLACES = { a: "The first text", b: "The second text", query: "The query" };

/** What is wrong with which text, as people see it. */
function worded({ argument, index, message }) {
  const what = message.replace(/^\S+/, "");
  return (PLACES[argument] ?? `Text ${index + 1}`) + what;
}

function unit(vector) {
  const length = Math.hypot(...vector);
  return length === 0 ? vector : vector.map((number) => number / length);
}

function encoded(vector) {
  const bytes = new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength);
  return btoa(String.fromCharCode(...bytes));
}

/** The same question as a program. */
export function program(path, { model: _, ...body }) {
  const { a, b, query, candidates, ...options } = body;
  const written = [a ?? query, b ?? candidates].map((value) => JSON.stringify(value, null, 2));
  if (Object.keys(options).length > 0) written.push(JSON.stringify(options));
  return [
    'import { Cognate } from "cognate-text";',
    "",
    "const model = await Cognate.load();",
    `console.log(model.${path.slice(1)}(${written.join(", ")}));`,
  ].join("\n");
}
