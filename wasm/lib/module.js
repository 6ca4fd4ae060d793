// The compiled module: how questions and texts get into its memory, and answers out of it.

import { bytesOf } from "./bytes.js";
import { CognateError, ModelError, raised } from "./errors.js";
import { isFused } from "./fused.js";

/** Numbers of 32 bits at the head of an answer. */
const HEAD = 6;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
let compiled = null;

/** The module, compiled once for all models: that for a fused multiply-add where the engine has one. */
function compile() {
  compiled ??= bytesOf(address()).then((bytes) => WebAssembly.compile(bytes));
  // What failed may do better another time.
  compiled.catch(() => (compiled = null));
  return compiled;
}

/** Both addresses are written out, as bundlers look for that. */
function address() {
  if (isFused()) return new URL("./cognate-fused.wasm", import.meta.url);
  return new URL("./cognate.wasm", import.meta.url);
}

/** An instance of the module with one model: its memory goes when nobody holds it any more. */
export class Instance {
  #exports;
  #engine = 0;

  /** Opens a model of bytes. */
  static async open(model) {
    const instance = new Instance();
    instance.#exports = (await WebAssembly.instantiate(await compile())).exports;
    instance.#engine = instance.#guarded(() => {
      const reply = instance.#exports.engine_open(instance.#written(model));
      return instance.#read(reply).engine;
    });
    return instance;
  }

  /** The answer to one question. */
  ask(settings, texts) {
    if (this.#engine === 0) throw new CognateError("this model was closed");
    const lengths = Uint32Array.from(texts, (text) => text.length);
    const joined = texts.length === 0 ? "" : `${texts.join("\n")}\n`;
    return this.#guarded(() => {
      const written = [encoder.encode(JSON.stringify(settings)), encoder.encode(joined), lengths];
      const [asked, all, parts] = written.map((bytes) => this.#written(bytes));
      return this.#read(this.#exports.engine_ask(this.#engine, asked, all, parts));
    });
  }

  /** Frees the model. */
  close() {
    if (this.#engine !== 0) this.#exports.engine_close(this.#engine);
    this.#engine = 0;
    this.#exports = null;
  }

  /** Bytes of the module's memory. */
  get memory() {
    return this.#exports?.memory.buffer.byteLength ?? 0;
  }

  /** After a fault within the module nothing in its memory can be trusted. */
  #guarded(run) {
    try {
      return run();
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) throw error;
      this.#engine = 0;
      this.#exports = null;
      throw new CognateError("cognate failed, and this model is lost; load it again", { cause: error });
    }
  }

  /** Bytes copied to where the module finds them. */
  #written(bytes) {
    const { buffer, byteOffset, byteLength } = bytes;
    const reserved = this.#exports.bytes_reserve(byteLength);
    if (reserved === 0) throw new ModelError(`there is no memory for ${byteLength} bytes`);
    // Reserving may have moved the memory, so it is looked up afterwards.
    const at = this.#exports.bytes_at(reserved);
    new Uint8Array(this.#exports.memory.buffer, at, byteLength).set(new Uint8Array(buffer, byteOffset, byteLength));
    return reserved;
  }

  /** What an answer says; a failure is thrown. */
  #read(reply) {
    const { buffer } = this.#exports.memory;
    const head = new Uint32Array(buffer, reply, HEAD);
    const [failed, jsonAt, jsonBytes, numbersAt, count, engine] = head;
    const json = JSON.parse(decoder.decode(new Uint8Array(buffer, jsonAt, jsonBytes)));
    const numbers = new Float32Array(buffer, numbersAt, count).slice();
    this.#exports.reply_free(reply);
    if (failed !== 0) throw raised(json);
    return { json, numbers, engine };
  }
}
