// Runs a program for WASI, as cargo calls it: `wasi.mjs PROGRAM ARGUMENT...`. With it the kernels' own tests run
// in an engine of WebAssembly (`wasm/tests/kernels.sh`).

import { readFile } from "node:fs/promises";
import { WASI } from "node:wasi";

const args = process.argv.slice(2);
const wasi = new WASI({ version: "preview1", args, env: process.env, preopens: { "/": process.cwd() } });
const { instance } = await WebAssembly.instantiate(await readFile(args[0]), wasi.getImportObject());
process.exitCode = wasi.start(instance);
