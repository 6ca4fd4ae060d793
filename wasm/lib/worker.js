// A model in a thread of its own: the questions of `Cognate`, answered by promises, while the page goes on.

import { bytesOf } from "./bytes.js";
import * as errors from "./errors.js";

const { CognateError } = errors;

/** A model that answers in a worker: a web worker, or a thread of Node. */
export class CognateWorker {
  #worker;
  #waiting = new Map();
  #asked = 0;
  #closed = null;

  /** What the model is. */
  about;

  /** Loads a model as `Cognate.load` does. */
  static async load(model) {
    // Addresses are relative to the page and answers of fetch stay in their thread, so bytes are sent.
    const sources = model === undefined ? [] : [new Uint8Array(await bytesOf(model))];
    const loaded = new CognateWorker();
    loaded.#worker = await started(
      (answer) => loaded.#settle(answer),
      (error) => loaded.#end(failure(error)),
    ).catch((error) => Promise.reject(failure(error)));
    try {
      const transfer = sources.map((bytes) => bytes.buffer);
      loaded.about = Object.freeze(await loaded.#ask("load", sources, transfer));
    } catch (error) {
      loaded.close();
      throw error;
    }
    return loaded;
  }

  similarity(...args) {
    return this.#ask("similarity", args);
  }

  pairs(...args) {
    return this.#ask("pairs", args);
  }

  rank(...args) {
    return this.#ask("rank", args);
  }

  embed(...args) {
    return this.#ask("embed", args);
  }

  events(...args) {
    return this.#ask("events", args);
  }

  dedupe(...args) {
    return this.#ask("dedupe", args);
  }

  explain(...args) {
    return this.#ask("explain", args);
  }

  methods() {
    return this.#ask("methods", []);
  }

  /** Ends the worker at once; questions without an answer are rejected. */
  close() {
    this.#end(new CognateError("this model was closed"));
  }

  #ask(what, args, transfer) {
    return new Promise((resolve, reject) => {
      if (this.#closed !== null) throw this.#closed;
      const id = (this.#asked += 1);
      this.#worker.postMessage({ id, what, args }, transfer);
      this.#waiting.set(id, { resolve, reject });
      // Node waits for threads: for this one only while it has something to answer.
      this.#worker.ref?.();
    });
  }

  #settle({ id, value, error }) {
    const asked = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (this.#waiting.size === 0) this.#worker.unref?.();
    if (error === undefined) asked?.resolve(value);
    else asked?.reject(raised(error));
  }

  #end(error) {
    this.#closed ??= error;
    this.#worker.terminate();
    this.#waiting.forEach(({ reject }) => reject(this.#closed));
    this.#waiting.clear();
  }
}

/** The thread, with functions for its answers and for its failure. */
async function started(answered, failed) {
  if (typeof Worker === "function") {
    const worker = new Worker(new URL("./answering.js", import.meta.url), { type: "module" });
    worker.onmessage = ({ data }) => answered(data);
    worker.onerror = failed;
    worker.onmessageerror = failed;
    return worker;
  }
  const threads = await import("node:worker_threads");
  const worker = new threads.Worker(new URL("./answering.js", import.meta.url));
  return worker.on("message", answered).on("error", failed).on("messageerror", failed);
}

/** What ends a model whose thread failed. A script that cannot be loaded brings an event without a message. */
function failure(error) {
  const why = error.message ?? "its script or an answer cannot be loaded";
  return new CognateError(`the worker failed: ${why}`, { cause: error });
}

/** The exception that the thread met. */
function raised({ name, message, argument, index }) {
  const kind = errors[name] ?? { TypeError }[name] ?? CognateError;
  return new kind(message, argument, index);
}
