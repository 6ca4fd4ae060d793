// The worker's side of `worker.js`: a model, and questions asked of it by messages.

import { Cognate } from "./cognate.js";

const IS_WEB = typeof WorkerGlobalScope === "function";
const port = IS_WEB ? self : (await import("node:worker_threads")).parentPort;
let model;

async function answer({ id, what, args }) {
  try {
    port.postMessage({ id, value: await ask(what, args) });
  } catch ({ name, message, argument, index }) {
    port.postMessage({ id, error: { name, message, argument, index } });
  }
}

async function ask(what, args) {
  if (what !== "load") return model[what](...args);
  model = await Cognate.load(...args);
  return model.about;
}

if (IS_WEB) port.onmessage = ({ data }) => answer(data);
else port.on("message", answer);
