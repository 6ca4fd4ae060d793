import type { About, Cognate, Source } from "./cognate.js";

type Question = "similarity" | "pairs" | "rank" | "embed" | "events" | "dedupe" | "explain" | "methods";

type Promised = {
  [Name in Question]: (...args: Parameters<Cognate[Name]>) => Promise<ReturnType<Cognate[Name]>>;
};

/** The questions of `Cognate`, answered by promises. */
export interface CognateWorker extends Promised {}

/** A model that answers in a worker: a web worker, or a thread of Node. */
export class CognateWorker {
  private constructor();
  /** Loads a model; without a source the model within the package. */
  static load(model?: Source | Promise<Source>): Promise<CognateWorker>;
  /** What the model is. */
  readonly about: Readonly<About>;
  /** Ends the worker at once; questions without an answer are rejected. */
  close(): void;
}
