// The package as its users meet it: answers, exceptions by kind, bad models, memory.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import { DEFAULT, PACKAGE, ROOT, cognate, folder, part, program } from "./support.mjs";

const { Cognate, CognateError, MethodError, ModelError, SettingError, TextError } = cognate;
const { CognateWorker } = await part("worker.js");
const { isFused } = await part("fused.js");
const model = await Cognate.load();

test("what the README shows", (t) => {
  assert.equal(isFused(), process.env.FUSED === "yes");
  assert.equal(Math.fround(0.65576607), model.similarity("Quake hits L.A.!!", "Earthquake shakes Los Angeles"));
  const news = ["a cat naps", "quake hits city", "a tremor was felt in Chile"];
  const { method, results } = model.rank("earthquake", news, { topK: 2 });
  assert.equal(method, model.about.auto);
  assert.deepEqual(results.map(({ index }) => index), [1, 2]);
  const least = model.rank("earthquake", news, { minScore: results[1].score });
  assert.deepEqual(least.results, results);
  const { vectors, dimensions } = model.embed(news);
  assert.equal(vectors.length, 3 * dimensions);
  const { scores, unscored, reasons } = model.pairs([["a quake", "a tremor"], ["", "x"]]);
  assert.deepEqual([scores.length, scores[1], unscored, reasons], [2, 0, [1], ["empty"]]);
  assert.match(model.explain("a quake", "an earthquake").sentence, /closest words/);
  assert.deepEqual(model.pairs([]).scores.length, 0);
  assert.deepEqual(model.rank("earthquake", []).results, []);
});

test("a model comes from bytes, an address, a file or an answer", async () => {
  const bytes = readFileSync(DEFAULT);
  const sources = [bytes, bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length), DEFAULT];
  sources.push(new URL(`file://${DEFAULT}`), new Response(bytes), Promise.resolve(bytes));
  for (const source of sources) {
    const loaded = await Cognate.load(source);
    assert.equal(loaded.about.fingerprint, model.about.fingerprint);
    loaded.close();
  }
  await assert.rejects(Cognate.load("/there/is/no/such.safetensors"), ModelError);
  await assert.rejects(Cognate.load(new Response("", { status: 404 })), /status 404/);
  await assert.rejects(Cognate.load(7), TypeError);
});

test("liked texts rank, duplicates fold, opposed candidates go", () => {
  const titles = ["Strong quake hits Chile", "Quake hits Chile, strong", "Cat naps on the sofa", "How to bake bread"];
  const { results } = model.rank(null, titles, { like: ["an earthquake", { text: "a tremor", weight: 2 }], unlike: ["bread"] });
  assert.deepEqual(new Set(results.slice(0, 2).map(({ index }) => index)), new Set([0, 1]));
  const one = model.rank(null, titles, { like: ["an earthquake"] }).results;
  assert.deepEqual(one, model.rank("an earthquake", titles).results);
  const folded = model.rank("an earthquake", titles, { collapse: 0.9 }).results;
  assert.deepEqual(folded[0].duplicates.length, 1);
  assert.equal(folded.length, 3);
  const switches = ["turn off dark mode", "enable dark mode"];
  const kept = model.rank("turn on dark mode", switches, { opposes: "drop" }).results;
  assert.deepEqual(kept.map(({ index }) => index), [1]);
});

test("vectors of length 1 are asked for", () => {
  const { vectors } = model.embed(["a quake", ""], { normalize: true });
  const square = (from, to) => vectors.subarray(from, to).reduce((sum, value) => sum + value * value, 0);
  const dims = vectors.length / 2;
  assert.ok(Math.abs(square(0, dims) - 1) < 1e-6);
  assert.equal(square(dims, 2 * dims), 0);
});

const STREAM = [
  "Strong earthquake shakes Chile, buildings damaged",
  "Cup final tonight in Madrid",
  "Earthquake in Chile: strong shaking, buildings damaged",
  "Strong earthquake shakes Chile, buildings damaged!",
];

test("texts are followed as the program follows them", () => {
  const { events, begins, nearest, scores, duplicate } = model.events(STREAM, { preset: "stories" });
  const lines = STREAM.map((text) => `${JSON.stringify({ text })}\n`).join("");
  const answers = program(["events", "--preset", "stories", "--model", DEFAULT], lines).trim().split("\n").map(JSON.parse);
  // The program counts records from 1.
  const told = answers.map(({ event }) => event - 1);
  assert.deepEqual(scores, answers.map(({ score }) => score && Math.fround(score)));
  assert.deepEqual(events, told);
  assert.deepEqual(begins, [true, true, false, false]);
  assert.deepEqual([nearest[3], duplicate[3]], [0, true]);
  const day = 86_400_000;
  const times = STREAM.map((_, row) => new Date(row * day));
  assert.deepEqual(model.events(STREAM, { preset: "stories", times, within: day / 2 }).begins, [true, true, true, true]);
});

test("duplicates stand with the text that stays", () => {
  const { kept } = model.dedupe(STREAM);
  const groups = kept.map(({ index, duplicates }) => [index, ...duplicates.map((twin) => twin.index)]);
  assert.deepEqual(groups, [[0, 2, 3], [1]]);
  assert.deepEqual(model.dedupe([]).kept, []);
});

test("opposites count unless they are ignored", () => {
  const pair = ["turn on dark mode", "turn off dark mode"];
  const plain = model.similarity(...pair, { method: "coverage-blend" });
  assert.equal(model.similarity(...pair, { opposites: "ignore" }), plain);
  assert.ok(model.similarity(...pair) < plain);
  assert.equal(model.rank(pair[0], [pair[1]], { opposites: "ignore" }).method, "coverage-blend");
  const told = { kind: "antonym", a: [{ token: "on", span: [5, 7] }], b: [{ token: "off", span: [5, 8] }] };
  assert.deepEqual(model.explain(...pair).opposes, [told]);
});

test("opposed texts are not related unless opposites are ignored", () => {
  const [on, ...others] = ["turn on dark mode", "turn off dark mode", "enable dark mode", "how do I bake bread", ""];
  const { threshold } = model.about.thresholds.find(({ method }) => method === model.about.auto);
  for (const [asked, expected] of [
    [{ threshold }, [false, true, false]],
    [{ threshold: 0.5, method: "coverage-blend" }, [false, true, false]],
    [{ threshold: 0.5, opposites: "ignore" }, [true, true, false]],
  ]) {
    const { related } = model.pairs(others.map((other) => [on, other]), asked);
    assert.deepEqual(related, [...expected, false]);
    const ranked = model.rank(on, others, asked).results.sort((one, other) => one.index - other.index);
    assert.deepEqual(ranked.map(({ related }) => related), [...expected, undefined]);
  }
  const told = model.pairs([[on, others[0]], [on, others[1]]], { returnOpposes: true });
  assert.deepEqual([told.opposes, told.related], [[["antonym"], []], undefined]);
  const untold = model.pairs([[on, on]]);
  assert.deepEqual([untold.related, untold.opposes], [undefined, undefined]);
  assert.throws(() => model.pairs([[on, on]], { threshold: "high" }), /threshold: expected a number/);
});

test("what is wrong is said by kind, with the text at fault", () => {
  const refuses = (run, kind, message) => assert.throws(run, (error) => error instanceof kind && message.test(error.message));
  const strict = { unscored: "error" };
  refuses(() => model.similarity("a", "b", { method: "dynamix" }), MethodError, /nearest names/);
  refuses(() => model.similarity("a", "b", { method: "bm25" }), MethodError, /only ranks/);
  refuses(() => model.pairs([["a", "b"]], { method: "dynamax", measure: "euclidean" }), MethodError, /euclidean/);
  refuses(() => model.embed(["a"], { method: "dynamax" }), MethodError, /./);
  refuses(() => model.similarity("a", "b", { measure: "manhattan" }), SettingError, /cosine or euclidean/);
  refuses(() => model.similarity("a", "b", { opposites: "yes" }), SettingError, /without_names or ignore/);
  refuses(() => model.similarity("a", "b", { method: "sif", opposites: "count" }), MethodError, /does not count/);
  refuses(() => model.similarity("a", "b", { mehtod: "sif" }), SettingError, /mehtod/);
  for (const topK of [-1, 0]) {
    refuses(() => model.rank("a", ["b"], { topK }), SettingError, /^topK: expected a whole number of at least 1, got/);
  }
  refuses(() => model.rank("a", ["b"], { minScore: NaN }), SettingError, /minScore/);
  refuses(() => model.rank("a", ["b"], { unlike: ["c"] }), SettingError, /unlike: this stands beside like/);
  refuses(() => model.rank("a", ["b"], { like: ["c"] }), SettingError, /like: expected null/);
  refuses(() => model.rank(null, ["b"], { like: [{ text: "c", weight: 1001 }] }), SettingError, /like: expected a number above 0/);
  refuses(() => model.rank("a", ["b"], { opposes: "keep" }), SettingError, /opposes: expected drop/);
  const likes = { like: ["c"], strategy: "x" };
  refuses(() => model.rank(null, ["b"], likes), SettingError, /^strategy: expected best, mean or sum, got "x"$/);
  refuses(() => model.events(["a"], { times: [] }), TypeError, /^times: expected an array of 1/);
  refuses(() => model.events(["a"], { preset: "tweets" }), SettingError, /^preset: expected topics or stories, got "tweets"$/);
  refuses(() => model.events(["a"], { last: 1e6 }), SettingError, /last: expected/);
  refuses(() => model.dedupe(["a"], { threshold: 7 }), SettingError, /expected a number from/);
  refuses(() => model.similarity("a", 7), TypeError, /^b: expected a string, got number/);
  refuses(() => model.pairs([["a", "b"], ["c"]]), TypeError, /^pairs\[1\]/);
  refuses(() => model.pairs([["a", null]]), TypeError, /^pairs\[0\]\[1\]: expected a string, got null/);
  refuses(() => model.rank("  ", ["b"]), TextError, /^query is empty/);
  refuses(() => model.embed(["a quake", ""], strict), TextError, /^texts\[1\] is empty/);
  refuses(() => model.pairs([["a", "b"], ["c", " "]], strict), TextError, /^pairs\[1\]\[1\] is empty/);
  const long = "word ".repeat(100000);
  refuses(() => model.explain("a quake", long), TextError, /^b has/);
  try {
    model.rank("a quake", ["a tremor", long], strict);
    assert.fail("a candidate that is too long was taken");
  } catch (error) {
    assert.deepEqual([error.name, error.argument, error.index], ["TextError", "candidates", 1]);
    assert.ok(error instanceof CognateError && error instanceof Error);
  }
  // None of it did the model any harm.
  assert.ok(model.similarity("a quake", "a tremor") > 0.3);
});

/** Whether a model of these bytes is opened; whatever it is, it is neither a trap nor another error. */
async function opens(bytes) {
  try {
    const opened = await Cognate.load(bytes);
    opened.pairs([["a quake", "a tremor"], ["the the", "zzqxvkw!"]]);
    opened.close();
    return true;
  } catch (error) {
    if (error instanceof ModelError) return false;
    throw error;
  }
}

test("bad models are refused without a trap", async () => {
  const seeds = join(ROOT, "fuzz/corpus/model_open");
  const outcomes = { true: 0, false: 0 };
  for (const name of readdirSync(seeds)) outcomes[await opens(readFileSync(join(seeds, name)))] += 1;
  assert.ok(outcomes.true >= 3 && outcomes.false >= 10, JSON.stringify(outcomes));

  const sound = readFileSync(join(ROOT, "crates/core/tests/data/model/cognate-1.safetensors"));
  assert.ok(await opens(sound));
  for (let at = 0; at < sound.length; at += 37) {
    assert.ok(!(await opens(sound.subarray(0, at))), `cut after ${at} bytes`);
    const damaged = Uint8Array.from(sound);
    damaged[at] ^= 1 << at % 8;
    assert.ok(!(await opens(damaged)), `byte ${at} changed`);
  }
  const head = new Uint8Array(4096).fill(0xff);
  assert.ok(!(await opens(head)) && !(await opens(new Uint8Array(0))));
});

test("memory is freed", async () => {
  const small = readFileSync(join(ROOT, "crates/core/tests/data/model/cognate-1.safetensors"));
  const texts = Array.from({ length: 2000 }, (_, n) => `quake number ${n} hits L.A. ${"so ".repeat(n % 30)}`);
  const ask = (asked) => {
    asked.embed(texts);
    asked.rank(texts[0], texts);
    asked.explain(texts[1], texts[2]);
    assert.throws(() => asked.similarity("a", "b", { method: "none" }));
  };
  for (let round = 0; round < 3; round += 1) ask(model);
  const after = model.memory;
  for (let round = 0; round < 60; round += 1) ask(model);
  assert.equal(model.memory, after, "questions leave nothing behind");

  // Instances go with their models: each of the default model takes 15 MB.
  const settle = async () => {
    for (let round = 0; round < 5; round += 1) {
      globalThis.gc();
      await new Promise((done) => setTimeout(done, 20));
    }
    return process.memoryUsage().rss;
  };
  const bytes = readFileSync(DEFAULT);
  const round = async (count) => {
    for (let at = 0; at < count; at += 1) {
      const opened = await Cognate.load(at % 2 === 0 ? bytes : small);
      if (at % 4 === 0) opened.close();
    }
    return settle();
  };
  const before = await round(10);
  const later = await round(60);
  assert.ok(later - before < 150e6, `${((later - before) / 1e6).toFixed(0)} MB more after 60 models`);
  const closed = await Cognate.load(small);
  closed.close();
  closed.close();
  assert.throws(() => closed.similarity("a", "b"), /closed/);
});

test("a worker answers what the model answers", async () => {
  const worker = await CognateWorker.load();
  assert.deepEqual(worker.about, model.about);
  const texts = ["a quake", "an earthquake", "a cat naps"];
  const asked = [
    ["similarity", texts[0], texts[1], { method: "dynamax" }],
    ["pairs", [[texts[0], texts[1]], ["", "x"]]],
    ["rank", texts[0], texts, { topK: 2 }],
    ["embed", texts],
    ["explain", texts[0], texts[1]],
    ["methods"],
  ];
  const answers = await Promise.all(asked.map(([what, ...args]) => worker[what](...args)));
  asked.forEach(([what, ...args], place) => assert.deepEqual(answers[place], model[what](...args), what));

  await assert.rejects(worker.rank("a", ["b", " "], { unscored: "error" }), (error) => {
    assert.deepEqual([error.name, error.argument, error.index], ["TextError", "candidates", 1]);
    return error instanceof TextError && /^candidates\[1\] is empty/.test(error.message);
  });
  await assert.rejects(worker.similarity("a", "b", { method: "dynamix" }), MethodError);
  await assert.rejects(worker.similarity("a", 7), TypeError);
  await assert.rejects(worker.pairs([["a", () => 1]]), { name: "DataCloneError" });
  assert.equal(await worker.similarity(texts[0], texts[1]), model.similarity(texts[0], texts[1]));

  const late = worker.methods();
  worker.close();
  worker.close();
  await assert.rejects(late, CognateError);
  await assert.rejects(worker.methods(), /closed/);
});

test("a worker's model comes from where a model comes from", async () => {
  const bytes = readFileSync(DEFAULT);
  for (const source of [bytes, new Response(bytes), DEFAULT]) {
    const worker = await CognateWorker.load(source);
    assert.equal(worker.about.fingerprint, model.about.fingerprint);
    worker.close();
  }
  assert.ok(bytes.equals(readFileSync(DEFAULT)), "the caller's bytes stay with the caller");
  await assert.rejects(CognateWorker.load(new Uint8Array(100)), ModelError);
  await assert.rejects(CognateWorker.load("/there/is/no/such.safetensors"), ModelError);
});

test("a worker that has nothing to answer keeps no process", (t) => {
  const script = join(folder(t), "asking.mjs");
  const worker = pathToFileURL(join(PACKAGE, "worker.js"));
  writeFileSync(
    script,
    `import { CognateWorker } from "${worker}";
    const worker = await CognateWorker.load();
    console.log(await worker.similarity("a quake", "an earthquake"));`,
  );
  const told = execFileSync(process.execPath, [script], { encoding: "utf8", timeout: 60000 });
  assert.equal(Number(told), model.similarity("a quake", "an earthquake"));
});

test("the types name what there is", () => {
  const types = readFileSync(join(PACKAGE, "cognate.d.ts"), "utf8");
  const ours = Object.getOwnPropertyNames(Cognate.prototype).filter((name) => name !== "constructor");
  for (const name of [...ours, ...Object.keys(cognate)]) assert.match(types, new RegExp(`\\b${name}\\b`), name);
  const ofWorker = readFileSync(join(PACKAGE, "worker.d.ts"), "utf8");
  for (const name of Object.getOwnPropertyNames(CognateWorker.prototype).filter((name) => name !== "constructor")) {
    assert.match(ofWorker, new RegExp(`\\b${name}\\b`), name);
  }
});
