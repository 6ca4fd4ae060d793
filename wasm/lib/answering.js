// The worker's side of `worker.js`: a model, and questions asked of it by messages.

import { Cognate } from "./cognate.js";

let model;

/** Answers a question by a message to the same port. */
async function answer(port, { id, what, args }) {
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

// Nothing is awaited before a web worker listens: what was sent until then would be lost.
if (typeof WorkerGlobalScope === "function") self.onmessage = ({ data }) => answer(self, data);
else import("node:worker_threads").then(({ parentPort: port }) => port.on("message", (asked) => answer(port, asked)));
