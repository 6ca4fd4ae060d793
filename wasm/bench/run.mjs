// The package in Node and headless Chromium beside the program on one core, in one run:
// `node wasm/bench/run.mjs COGNATE [FOLDER]`; FOLDER is what `wasm/build.sh` made, by default wasm/dist.
// Needs taskset, gzip, brotli, python3 and Debian's chromium with its driver. Node 20 takes the module for a fused
// multiply-add with --experimental-wasm-relaxed-simd.

import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

import { METHODS, measure, pairs } from "./measure.mjs";

const HERE = import.meta.dirname;
const program = resolve(process.argv[2] ?? "cognate");
const folder = resolve(process.argv[3] ?? join(HERE, "../dist"));
const model = join(folder, "package/default.safetensors");

/** Rows of the program's input: enough that starting it does not count. */
const TIMES = 50;

/** Pairs a second of the program's own time on one core, reading and writing rows of JSON included. */
function native() {
  const work = mkdtempSync(join(tmpdir(), "cognate-bench-"));
  const input = join(work, "pairs.ndjson");
  const rows = pairs().map(([a, b]) => `${JSON.stringify({ a, b })}\n`);
  writeFileSync(input, rows.join("").repeat(TIMES));
  const rate = (method) => {
    const flags = ["similarity", "--model", model, "--method", method, "--input", input, "-o", join(work, "scores.ndjson")];
    const timed = `TIMEFORMAT="%U %S"; time taskset -c 0 "$@" >/dev/null 2>&1`;
    const told = execFileSync("bash", ["-c", `{ ${timed}; } 2>&1`, "bash", program, ...flags], { encoding: "utf8" });
    const [user, system] = told.trim().split(" ").map(Number);
    return (rows.length * TIMES) / (user + system);
  };
  const found = Object.fromEntries(METHODS.map((method) => [method, Math.max(rate(method), rate(method), rate(method))]));
  rmSync(work, { recursive: true });
  return found;
}

/** Milliseconds of this process' own time. Browsers tell only the time of the clock. */
function ownTime() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

function browser() {
  copyFileSync(join(HERE, "measure.mjs"), join(folder, "measure.mjs"));
  const printed = execFileSync(join(HERE, "../tests/browser.py"), [folder, "--measure"], { encoding: "utf8" });
  rmSync(join(folder, "measure.mjs"));
  return JSON.parse(printed.trim().split("\n").at(-1));
}

function sizes(name) {
  const file = join(folder, "package", name);
  const packed = (words) => execFileSync(words[0], [...words.slice(1), file], { maxBuffer: 1 << 26 }).length;
  const raw = statSync(file).size;
  return { raw, gzip: packed(["gzip", "-9", "-c"]), brotli: packed(["brotli", "-q", "11", "-c"]) };
}

const thousands = (number) => `${(number / 1000).toFixed(number < 100000 ? 1 : 0)} k`;
const version = (command) => execFileSync(command, ["--version"], { encoding: "utf8" }).trim();

const found = {
  program: native(),
  node: await measure(pathToFileURL(join(folder, "package/cognate.js")), ownTime),
  browser: browser(),
};
for (const name of ["cognate.wasm", "cognate-fused.wasm"]) {
  const { raw, gzip, brotli } = sizes(name);
  console.log(`${name}: ${raw} bytes, ${gzip} by gzip -9, ${brotli} by brotli -q 11`);
}
console.log(`Node ${process.version}, ${version("chromium")}, ${readFileSync("/proc/cpuinfo", "utf8").match(/model name\s*: (.*)/)?.[1]}`);
for (const [name, { fused, load_ms, memory, one_call_us }] of [["Node", found.node], ["Chromium", found.browser]]) {
  console.log(`${name}, multiply-add ${fused ? "fused" : "emulated"}: loaded in ${load_ms.toFixed(0)} ms, ${(memory / 1e6).toFixed(1)} MB, one call ${one_call_us.toFixed(1)} µs`);
}
console.log("\n| pairs a second | program, one core | Node | Chromium |\n|---|---|---|---|");
for (const method of METHODS) {
  const rates = [found.program[method], found.node.pairs_per_second[method], found.browser.pairs_per_second[method]];
  console.log(`| ${method} | ${rates.map(thousands).join(" | ")} |`);
}
