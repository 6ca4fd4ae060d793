/** Bytes, an answer of `fetch`, an address, or in Node the path of a file. */
export type Source = ArrayBuffer | ArrayBufferView | Response | URL | string;

/** Why something has no score: a text is empty, has no known word, or is too long. */
export type Reason = "empty" | "unknown" | "too_long";

export type Measure = "cosine" | "euclidean";

export type Opposites = "count" | "without_names" | "ignore";

/** How a question is answered. */
export interface Options {
  /** A method's name, or `auto`, the model's own choice. */
  method?: string;
  /** What vectors are compared by; that of the method if not said. */
  measure?: Measure;
  /**
   * Whether opposed meaning lowers the score of two texts. Default: as the method does. Such
   * texts are not `related`, unless opposites are ignored.
   */
  opposites?: Opposites;
  /** Cut a text that is too long, not refuse it. */
  truncate?: boolean;
  /** What becomes of a text that cannot be scored: 0 and a place among the unscored, or an exception. */
  unscored?: "zero" | "error";
}

export interface PairOptions extends Options {
  /** From which score on texts are related, such as one of `about.thresholds`: the answer has `related` then. */
  threshold?: number;
  /** Also tell how the texts of each pair are opposed: the answer has `opposes` then. */
  returnOpposes?: boolean;
}

export interface RankOptions extends Omit<PairOptions, "returnOpposes"> {
  /** Most results wanted. */
  topK?: number;
  /** The least score wanted; candidates without a score are left out then. */
  minScore?: number;
  /** Candidates at least so much like a better one are folded into it, and listed under its `duplicates`. */
  collapse?: number;
  /** Leave out candidates that say the opposite of the query. */
  opposes?: "drop";
  /** Texts that candidates should be like; the query is null then. */
  like?: readonly (string | { text: string; weight?: number })[];
  /** Texts that they should not be like. */
  unlike?: readonly string[];
  /** What the scores with several liked texts come to: the best of them if not said. */
  strategy?: "best" | "mean" | "sum";
  /** What the best score with a disliked text counts, which is subtracted: a half if not said. */
  unlikeWeight?: number;
}

export interface EmbedOptions extends Options {
  /** Scale vectors to length 1. */
  normalize?: boolean;
}

/** How a stream is followed; what is not said is as the service's `match` has it. */
export interface EventOptions {
  /** When each text was written: dates, or milliseconds since 1970. */
  times?: readonly (Date | number)[];
  /** The kind of the stream: topics among posts about nothing else, or stories of a few posts each. */
  preset?: "topics" | "stories";
  method?: string;
  /** A method that scores the nearest once more, or `none`. */
  second?: string;
  /** Number of preceding texts that each text is compared with, at most 100,000. */
  last?: number;
  /** How much earlier near texts may be, in milliseconds. */
  within?: number;
  threshold?: number;
}

export interface DedupeOptions {
  /** The method that scores; `auto` if not said. */
  method?: string;
  /** The least score of duplicates: 0.8 if not said. */
  threshold?: number;
}

export type OppositionKind = "negation" | "antonym" | "number" | "roles" | "name";

interface Unscored {
  /** The method, `auto` resolved. */
  method: string;
  /** Places of what could not be scored. */
  unscored: number[];
  /** Why, for each of them. */
  reasons: Reason[];
  /** Places of what was cut short. */
  truncated: number[];
}

export interface Scores extends Unscored {
  measure: Measure;
  /** A score a pair; 0 for one that cannot be scored. */
  scores: Float32Array;
  /** With `threshold`, whether the texts of each pair are related: they reach it, and say no opposites. */
  related?: boolean[];
  /** With `returnOpposes`, how the texts of each pair are opposed; an empty list where they are not. */
  opposes?: OppositionKind[][];
}

export interface Ranking extends Unscored {
  measure: Measure;
  /**
   * Best first; candidates that cannot be scored come last, with null. With `threshold` those with a score have
   * `related`, as pairs have it.
   */
  results: {
    index: number;
    score: number | null;
    related?: boolean;
    /** With `collapse`, candidates that were folded into this one, best first. */
    duplicates?: { index: number; score: number; similarity: number }[];
  }[];
  /** The share of the query's words that the model lists; null where it lists all of them. */
  queryKnown: number | null;
}

export interface Embeddings extends Unscored {
  /** Vectors one after the other; zeros for a text without one. */
  vectors: Float32Array;
  dimensions: number;
}

/** Columns, a row a text. */
export interface Events {
  /** The method that scored the nearest, and the least score of an event. */
  method: string;
  threshold: number;
  /** The index of the text that its event began with. */
  events: number[];
  /** Its nearest text before it, null where there is none. */
  nearest: (number | null)[];
  scores: (number | null)[];
  /** Whether its event begins with it. */
  begins: boolean[];
  /** Whether it says what its nearest says. */
  duplicate: boolean[];
}

export interface Deduped {
  method: string;
  threshold: number;
  /** The texts that stay, in their order, each with its duplicates. */
  kept: { index: number; duplicates: { index: number; score: number }[] }[];
}

export interface ExplainedWord {
  /** The token that was looked up. */
  token: string;
  /** Bytes of the text's UTF-8 that the token comes from: first and end. */
  span: [number, number];
  /** The vocabulary's word; null where the vector was made for this text. */
  word: string | null;
  found: string;
  /** The pieces that its vector was made from, where it was made so. */
  pieces?: string[];
  idf: number | null;
  /** The length of the word's vector. */
  norm: number;
  /** What it adds to the score, where the score comes apart. */
  share: number | null;
}

export interface OpposedWord {
  token: string;
  /** Bytes of the text's UTF-8 that the token comes from: first and end. */
  span: [number, number];
}

export interface ExplainedText {
  words: ExplainedWord[];
  unknown: { token: string; share: number | null }[];
  /** The share of its tokens that the model lists. */
  known: number;
  /** True where it was cut short. */
  truncated?: boolean;
}

export interface Explanation {
  method: string;
  measure: Measure;
  fingerprint: string;
  score: number;
  unscored: boolean;
  a: ExplainedText;
  b: ExplainedText;
  /** Cosines of the words' vectors: a row a word of `a`. */
  matrix: number[][];
  adds_up: boolean;
  /** How the texts are opposed, and the words of either that carry it. */
  opposes: { kind: OppositionKind; a: OpposedWord[]; b: OpposedWord[] }[];
  sentence: string;
  memberships?: { a: [number, number][]; b: [number, number][] };
  attention?: { word: number; token: string; to: { word: number; token: string; weight: number; cosine?: number }[] }[];
}

export interface Method {
  name: string;
  kind: "similarity" | "ranker";
  summary: string;
  paper: string;
  /** Between which numbers its scores lie; null where they have no bound. */
  range: [number | null, number | null];
  embeds: boolean;
  measure: Measure;
  reads: "words" | "tokens";
  available: boolean;
  /** Why it is not available. */
  reason: string | null;
}

export interface Threshold {
  method: string;
  measure: Measure;
  /** Lowest score that counts as related. */
  threshold: number;
  aim: string;
  precision: number;
  recall: number;
  f1: number;
}

export interface About {
  /** Sixteen hexadecimal digits that change with every byte of the model. */
  fingerprint: string;
  words: number;
  dimensions: number;
  bytes: number;
  licence: string | null;
  /** What `auto` stands for. */
  auto: string;
  /** The same for vectors. */
  auto_embedding: string;
  thresholds: Threshold[];
}

/** A model, and the questions that can be asked of it. */
export class Cognate {
  private constructor();
  /** Loads a model; without a source the model within the package. */
  static load(model?: Source | Promise<Source>): Promise<Cognate>;
  /** What the model is. */
  readonly about: Readonly<About>;
  /** Bytes of memory in use. */
  readonly memory: number;
  similarity(a: string, b: string, options?: Options): number;
  pairs(pairs: readonly (readonly [string, string])[], options?: PairOptions): Scores;
  rank(query: string | null, candidates: readonly string[], options?: RankOptions): Ranking;
  embed(texts: readonly string[], options?: EmbedOptions): Embeddings;
  events(texts: readonly string[], options?: EventOptions): Events;
  /** At most 100,000 texts. */
  dedupe(texts: readonly string[], options?: DedupeOptions): Deduped;
  explain(a: string, b: string, options?: Options): Explanation;
  methods(): Method[];
  /** Frees the model at once. One that nobody holds any more goes by itself. */
  close(): void;
}

/** The root of all exceptions of this package. */
export class CognateError extends Error {}
/** A model cannot be used: it cannot be fetched, is damaged, cut short, or no model at all. */
export class ModelError extends CognateError {}
/** A method does not exist, or cannot do with this model what was asked. */
export class MethodError extends CognateError {}
/** A setting has a value that it cannot have. */
export class SettingError extends CognateError {}
/** A score is no finite number: the model's vectors are not sound. */
export class ScoreError extends CognateError {}
/** A text cannot be scored, and that was to be an error. */
export class TextError extends CognateError {
  /** The name of the argument that the text was passed in. */
  readonly argument: string;
  /** The text's place in it, or null where one text was passed. */
  readonly index: number | null;
}

