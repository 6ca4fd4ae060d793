// What the tests share: the package under test, the program that it must be equal to, texts and models.
// `COGNATE` names the program, and `PACKAGE` the folder of the package.

import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { gunzipSync } from "node:zlib";

export const ROOT = resolve(import.meta.dirname, "../..");
export const PACKAGE = resolve(required("PACKAGE"));
const PROGRAM = required("COGNATE");

/** A file of the package. */
export const part = (name) => import(pathToFileURL(join(PACKAGE, name)));

export const cognate = await part("cognate.js");
export const DEFAULT = join(ROOT, "models/default.safetensors");

function required(name) {
  const value = process.env[name];
  if (value) return value;
  throw new Error(`${name} is not set; run wasm/test.sh`);
}

/** What the program prints. */
export function program(words, input = "") {
  return execFileSync(PROGRAM, words, { input, encoding: "utf8", maxBuffer: 1 << 30, stdio: ["pipe", "pipe", "pipe"] });
}

/** A folder that is gone in the end. */
export function folder(test) {
  const made = mkdtempSync(join(tmpdir(), "cognate-wasm-"));
  test.after(() => rmSync(made, { recursive: true }));
  return made;
}

const ODD = [
  "Quake hits L.A.!!",
  "#NewYork2020 marathon: 50,000 runners @nyrr https://t.co/x",
  "straße über den Dächern 😀",
  "地震 hits 東京 — again…",
  "zzqxvkw",
  "!!!",
  "",
  " \n\t",
  "it's soooo goooood",
  "the the the",
  "a\u0000b\nc\r\nd",
  "e\u0301clair et na\u00efvete\u0301",
  "lone \ud800 half",
  "word ".repeat(60),
];

/** Texts of all kinds: odd ones, sentences of the documents, and tweets where there are some. */
export function texts() {
  const documents = readdirSync(join(ROOT, "docs")).filter((name) => name.endsWith(".md"));
  const prose = documents.map((name) => readFileSync(join(ROOT, "docs", name), "utf8")).join("\n");
  const sentences = prose.split(/(?<=[.!?:|])\s+|\n+/).map((text) => text.trim());
  const some = sentences.filter((text) => text.length > 15 && text.length < 240);
  return [...ODD, ...every(some, 500), ...every(tweets(), 500)];
}

/** Every n-th, so that about so many are left. */
function every(list, most) {
  const step = Math.max(1, Math.floor(list.length / most));
  return list.filter((_, place) => place % step === 0).slice(0, most);
}

function tweets() {
  const file = join(ROOT, "../shared/data/tweets/crisislex-pairs-train.tsv.gz");
  if (!existsSync(file)) return [];
  const rows = gunzipSync(readFileSync(file)).toString().split("\n").slice(1, 20000);
  return rows.map((row) => row.split("\t")[5]).filter(Boolean);
}

/** Each text beside a few others, and beside itself. */
export function paired(list) {
  const pairs = [];
  list.forEach((text, place) => {
    for (const step of [0, 1, 7, 101]) pairs.push([text, list[(place + step) % list.length]]);
  });
  return pairs;
}

/** Numbers that are the same in every run, from 0 to 1. */
function* dice(seed) {
  let state = seed;
  for (;;) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    yield state / 2 ** 32;
  }
}

/** The words of texts, the most frequent first, with their counts. */
function counted(list) {
  const counts = new Map();
  for (const text of list) {
    for (const word of text.toLowerCase().match(/[a-z]+/g) ?? []) counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  return [...counts].sort(([one, n], [other, m]) => m - n || (one < other ? -1 : 1)).slice(0, 1500);
}

/** Packs a model with vectors of all magnitudes: those of a word lie around ten to some power. */
export function packed(at, { dtype, dims, powers }, list) {
  const roll = dice(dims);
  const next = () => roll.next().value;
  const words = counted(list);
  const number = (scale) => ((next() + next() + next() - 1.5) * scale).toPrecision(9);
  const row = ([word]) => {
    const scale = 10 ** (powers[0] + next() * (powers[1] - powers[0]));
    return `${word} ${Array.from({ length: dims }, () => number(scale)).join(" ")}`;
  };
  const path = (name) => join(at, `${dtype}-${dims}-${name}`);
  writeFileSync(path("vectors.txt"), `${words.map(row).join("\n")}\n`);
  const sentences = list.filter((text) => /^[ -~]+$/.test(text));
  writeFileSync(path("sentences.txt"), `${sentences.join("\n")}\n`);
  const model = path("model.safetensors");
  const kind = ["--format", "glove", "--dtype", dtype, "--corpus", path("sentences.txt")];
  program(["pack", path("vectors.txt"), ...kind, "-o", model]);
  program(["fit", model, "--components", path("sentences.txt")]);
  program(["fit", model, "--universe", "axes:16"]);
  return model;
}
