// Asks the server, and puts what it refuses into words. What is asked is not known here.

import { element } from "./elements.js";

/** Milliseconds after which an answer is no longer waited for. */
const PATIENCE_MS = 60000;

// In memory alone: neither in the page's address nor in the browser's store.
let key = "";

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

/** Asks one route: a post with a body, else a get. */
export async function ask(path, body, signal) {
  const headers = {};
  if (body !== undefined) headers["content-type"] = "application/json";
  if (key !== "") headers.authorization = `Bearer ${key}`;
  const limit = new AbortController();
  const stop = () => limit.abort();
  const timer = setTimeout(stop, PATIENCE_MS);
  signal?.addEventListener("abort", stop);
  try {
    const response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: limit.signal,
    });
    const answer = await response.json().catch(() => null);
    if (response.ok && answer !== null) return answer;
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

function nothingReadable(response) {
  const detail = `Something answered with status ${response.status} and nothing this page can read.`;
  return { title: "Unexpected answer", detail };
}

/** The same question as a command. The key is never part of it. */
export function command(path, body) {
  const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const lines = [`curl ${quote(location.origin + path)}`];
  if (key !== "") lines.push(`-H "Authorization: Bearer $API_KEY"`);
  lines.push("-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

/** A refusal in words. */
export function refusalInWords({ problem, status }) {
  const faults = (problem.errors ?? []).map((fault) => element("li", {}, faultInWords(fault)));
  const small = [];
  if (problem.retry_after_s) small.push(`Worth another try in ${problem.retry_after_s} s.`);
  if (problem.code) small.push(`Status ${status}, code ${problem.code}.`);
  if (problem.request_id) small.push(`The server's log knows it as ${problem.request_id}.`);
  return element(
    "div",
    { class: "problem" },
    element("h2", {}, problem.title ?? "Refused"),
    element("p", {}, problem.detail ?? ""),
    faults.length > 0 ? element("ul", {}, ...faults) : null,
    small.length > 0 ? element("p", { class: "hint" }, small.join(" ")) : null,
  );
}

const PLACES = {
  "": "The request",
  "/a": "The first text",
  "/b": "The second text",
  "/query": "The query",
  "/candidates": "The list of candidates",
  "/method": "The method",
  "/measure": "The measure",
  "/model": "The model",
};

/** Where a pointer points. */
function placeInWords(pointer) {
  const candidate = /^\/candidates\/(\d+)/.exec(pointer);
  if (candidate) return `Candidate ${Number(candidate[1]) + 1}`;
  return PLACES[pointer] ?? `The field ${pointer}`;
}

function faultInWords({ pointer, code, limit, actual }) {
  const counts = limit === undefined ? "" : ` (${actual} where ${limit} is the most)`;
  return `${placeInWords(pointer)}: ${String(code).replaceAll("_", " ")}${counts}`;
}
