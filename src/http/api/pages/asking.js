// Asks the server, and puts what it refuses into words. What is asked is not known here.

import { element } from "./elements.js";

/** Milliseconds after which an answer is no longer waited for. */
const PATIENCE_MS = 60000;

// In memory alone: neither in the page's address nor in the browser's store.
let key = "";

/** Of an answer, the microseconds that the server computed. */
export const TOOK = Symbol("microseconds");

// Who answers in the server's place, if anybody does.
let answerer = null;

/** Has another answer from now on; null for the server. */
export function answerBy(other) {
  answerer = other;
}

/** Uses a key from now on. */
export function useKey(text) {
  key = text.trim();
}

/** Whether a key is in use. */
export function hasKey() {
  return key !== "";
}

/** An answer that is none, with the problem document if there is one. */
export class Refusal extends Error {
  constructor(status, problem) {
    super(problem.title);
    this.status = status;
    this.problem = problem;
  }
}

/** Asks one route: a post with a body unless another method is said, else a get. */
export async function ask(path, body, signal, method = body === undefined ? "GET" : "POST") {
  if (answerer !== null) return answerer(path, body);
  const headers = {};
  if (body !== undefined) headers["content-type"] = "application/json";
  if (key !== "") headers.authorization = `Bearer ${key}`;
  const limit = new AbortController();
  const stop = () => limit.abort();
  const timer = setTimeout(stop, PATIENCE_MS);
  signal?.addEventListener("abort", stop);
  try {
    const response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: limit.signal,
    });
    const answer = await response.json().catch(() => null);
    if (response.ok && answer !== null) {
      const took = /compute;dur=([\d.]+)/.exec(response.headers.get("server-timing") ?? "");
      if (took) answer[TOOK] = 1000 * Number(took[1]);
      return answer;
    }
    throw new Refusal(response.status, answer ?? nothingReadable(response));
  } catch (error) {
    if (error instanceof Refusal || signal?.aborted) throw error;
    throw new Refusal(0, {
      title: "No answer",
      detail: "The server cannot be reached from this page, or did not answer in time.",
    });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", stop);
  }
}

/** The lines of JSON of an answer as they come, for as long as they do. */
export async function* linesFrom(path, signal) {
  const response = await fetch(path, { headers: key === "" ? {} : { authorization: `Bearer ${key}` }, signal });
  if (!response.ok) throw new Refusal(response.status, (await response.json().catch(() => null)) ?? nothingReadable(response));
  let rest = "";
  for (const reader = response.body.pipeThrough(new TextDecoderStream()).getReader(); ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.trim() !== "") yield JSON.parse(line);
  }
}

function nothingReadable(response) {
  const detail = `Something answered with status ${response.status} and nothing this page can read.`;
  return { title: "Unexpected answer", detail };
}

/** A refusal in words, each thing said once. */
export function refusalInWords(refusal) {
  const { problem, status } = refusal;
  const [title, lines] = status === 401 ? UNAUTHORISED : [problem.title ?? "Refused", linesOf(problem)];
  const small = [];
  if (problem.retry_after_s) small.push(`Worth another try in ${problem.retry_after_s} s.`);
  if (problem.code) small.push(`Status ${status}, code ${problem.code}.`);
  if (problem.request_id) small.push(`The server's log knows it as ${problem.request_id}.`);
  return element(
    "div",
    { class: "problem" },
    element("h2", {}, title),
    ...lines.map((line) => element("p", {}, line)),
    small.length > 0 ? element("p", { class: "hint" }, small.join(" ")) : null,
  );
}

// The server's own words are for programs, which send the key in a header.
const UNAUTHORISED = ["This key was not accepted", ["Enter another one above."]];

const PLACES = {
  "/a": "The first text",
  "/b": "The second text",
  "/query": "The query",
  "/candidates": "The list of candidates",
  "/like": "The list of texts you like",
  "/unlike": "The list of texts you do not like",
  "/within": "The span of time",
};

/** Where a pointer points, if that is a part of the form with texts. */
function placeInWords(pointer) {
  const candidate = /^\/candidates\/(\d+)/.exec(pointer);
  if (candidate) return `Candidate ${Number(candidate[1]) + 1}`;
  return PLACES[pointer];
}

/** What is wrong with which text; for anything else the server's own sentence. */
function linesOf({ code, detail, errors = [] }) {
  const faults = errors.map((fault) => ({ ...fault, place: placeInWords(fault.pointer ?? "") }));
  // Not the list is at fault, but what the collection has.
  const inWords = faults.length > 0 && code !== "unknown_item" && faults.every(({ place }) => place);
  if (!inWords) return detail ? [detail] : [];
  return faults.map((fault) => {
    // The heading names the fault already, unless it is another one.
    const what = fault.code === code ? "" : `: ${String(fault.code).replaceAll("_", " ")}`;
    const counts = ({ actual, limit }) =>
      ` has ${actual.toLocaleString("en")}, and ${limit.toLocaleString("en")} is the most`;
    return `${fault.place}${fault.limit === undefined ? "" : counts(fault)}${what}.`;
  });
}
