// What the package answers is, bit for bit, what the program answers: every method, models of every kind
// of number.

import assert from "node:assert/strict";
import { test } from "node:test";

import { DEFAULT, cognate, folder, packed, paired, program, texts } from "./support.mjs";

const TEXTS = texts();
const PAIRS = paired(TEXTS);
// Programs read rows of JSON, which have no lone halves of characters.
const sound = (text) => text.isWellFormed();

/** Vectors of usual sizes, of sizes at both ends of single precision, of half precision with subnormal numbers,
    and bytes; rows that fill registers and rows that do not. */
const KINDS = [
  { dtype: "f32", dims: 37, powers: [-1, 1] },
  { dtype: "f32", dims: 64, powers: [-38, 10] },
  { dtype: "f16", dims: 50, powers: [-7, 3] },
  { dtype: "int8", dims: 83, powers: [-3, 3] },
];

const bits = (number) => new Uint32Array(Float32Array.of(number).buffer)[0];

/** Two lists of numbers are the same to the last bit; the program's are written in decimals. */
function same(found, expected, what) {
  assert.equal(found.length, expected.length, what);
  found.forEach((number, place) => {
    const other = expected[place];
    const fits = number === null || other === null ? number === other : bits(number) === bits(other);
    assert.ok(fits, `${what}, number ${place}: ${number} here, ${other} by the program`);
  });
}

/** The program's scores of pairs; null where there is none, or a message where it refuses. */
function scored(model, method, pairs, measure) {
  const rows = pairs.map(([a, b]) => `${JSON.stringify({ a, b })}\n`).join("");
  const flags = ["--model", model, "--method", method, "--format", "ndjson", "--input", "-"];
  const by = measure ? ["--measure", measure] : [];
  const answered = outcome(() => program(["similarity", ...flags, ...by], rows));
  if (answered.refused) return answered;
  return answered.value.trim().split("\n").map((row) => JSON.parse(row).score);
}

/** What a function gives back, or that it refuses. */
function outcome(run) {
  try {
    return { value: run() };
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return { refused: String(error.stderr ?? error.message) };
  }
}

function compared(model, path, method, measure) {
  const pairs = PAIRS.filter((pair) => pair.every(sound));
  const expected = scored(path, method, pairs, measure);
  const found = outcome(() => model.pairs(pairs, { method, measure }));
  const what = `${method}${measure ? ` by ${measure}` : ""}`;
  if (expected.refused || found.refused) {
    assert.ok(expected.refused && found.refused, `${what}: ${found.refused} here, ${expected.refused} by the program`);
    return 0;
  }
  const { scores, unscored } = found.value;
  const without = new Set(unscored);
  same(Array.from(scores, (score, place) => (without.has(place) ? null : score)), expected, what);
  return scores.length;
}

function ranked(model, path, method) {
  const candidates = TEXTS.filter((text) => sound(text) && !/[\n\r]/.test(text)).slice(0, 250);
  let compared = 0;
  for (const query of candidates.filter((text) => text.trim() !== "").slice(0, 6)) {
    const flags = ["rank", "--json", "--model", path, "--method", method];
    const asked = outcome(() => JSON.parse(program([...flags, query, "-"], candidates.map((text) => `${text}\n`).join(""))));
    const found = outcome(() => model.rank(query, candidates, { method }));
    const what = `ranked by ${method}`;
    if (asked.refused || found.refused) {
      assert.ok(asked.refused && found.refused, `${what}: ${found.refused} here, ${asked.refused} by the program`);
      continue;
    }
    const without = new Set(asked.value.unscored);
    const places = (results) => results.map(({ index }) => index);
    assert.deepEqual(places(found.value.results), places(asked.value.results), what);
    const expected = asked.value.results.map(({ index, score }) => (without.has(index) ? null : score));
    same(found.value.results.map(({ score }) => score), expected, what);
    compared += expected.length;
  }
  return compared;
}

function embedded(model, path, method) {
  const lines = TEXTS.filter((text) => sound(text) && !/[\n\r]/.test(text) && text.trim() !== "").slice(0, 60);
  const flags = ["embed", "--json", "--model", path, "--method", method, "-"];
  const asked = outcome(() => JSON.parse(program(flags, lines.map((text) => `${text}\n`).join(""))));
  const found = outcome(() => model.embed(lines, { method }));
  if (asked.refused || found.refused) {
    assert.ok(asked.refused && found.refused, `${method}: ${found.refused} here, ${asked.refused} by the program`);
    return;
  }
  const { vectors, dimensions } = found.value;
  asked.value.embeddings.forEach((vector, row) => {
    const here = vectors.subarray(row * dimensions, (row + 1) * dimensions);
    same(here, vector ?? new Float32Array(dimensions), `vector ${row} by ${method}`);
  });
}

async function everything(t, path) {
  const model = await cognate.Cognate.load(path);
  const available = model.methods().filter((method) => method.available);
  let numbers = 0;
  for (const { name, kind, embeds } of [{ name: "auto", kind: "similarity" }, ...available]) {
    if (kind === "similarity") numbers += compared(model, path, name);
    if (embeds) ["cosine", "euclidean"].forEach((measure) => (numbers += compared(model, path, name, measure)));
    if (embeds) embedded(model, path, name);
    numbers += ranked(model, path, name);
  }
  model.close();
  assert.ok(numbers > 20000, `only ${numbers} scores were compared`);
  t.diagnostic(`${available.length} methods, ${numbers} scores`);
}

test("the default model", (t) => everything(t, DEFAULT));

for (const kind of KINDS) {
  const { dtype, dims, powers } = kind;
  test(`${dtype}, ${dims} dimensions, ten to ${powers.join(" to ")}`, (t) => everything(t, packed(folder(t), kind, TEXTS)));
}

test("explanations", async () => {
  const model = await cognate.Cognate.load();
  for (const method of model.methods().filter((one) => one.available && one.kind === "similarity")) {
    const [a, b] = ["Quake hits L.A.!! #zzqxvkw", "Earthquake shakes Los Angeles"];
    const asked = JSON.parse(program(["explain", "--json", "--model", DEFAULT, "--method", method.name, a, b]));
    const { model: _, ...expected } = asked;
    // Where there are none they are left out there, and told here.
    expected.opposes ??= [];
    const narrowed = (value) => JSON.parse(JSON.stringify(value), (_, one) => (typeof one === "number" ? Math.fround(one) : one));
    assert.deepEqual(narrowed(model.explain(a, b, { method: method.name })), narrowed(expected), method.name);
  }
  model.close();
});
