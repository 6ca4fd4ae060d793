// Scores of pairs of texts, many a request. What is made of them is not known here.

import { Refusal, ask } from "./asking.js";

/** Pairs of one request. */
const BATCH = 500;

// Models that know no opposites.
const without = new Set();

/** The score of each pair, which pairs have none, which are opposed, and the answer of the last request. */
export async function scorePairs(pairs, chosen, signal) {
  const found = { scores: [], unscored: new Set(), opposed: new Set(), answer: undefined };
  for (let from = 0; from < pairs.length; from += BATCH) {
    const body = { pairs: pairs.slice(from, from + BATCH), ...chosen, truncate: true };
    found.answer = await askOpposes(body, signal);
    const { scores, unscored, opposes = [] } = found.answer;
    found.scores.push(...scores);
    for (const at of unscored) found.unscored.add(from + at);
    for (const [at, kinds] of opposes.entries()) if (kinds.length > 0) found.opposed.add(from + at);
  }
  return found;
}

async function askOpposes(body, signal) {
  if (without.has(body.model)) return ask("/similarity", body, signal);
  try {
    return await ask("/similarity", { ...body, return_opposes: true }, signal);
  } catch (error) {
    const faults = error instanceof Refusal ? (error.problem.errors ?? []) : [];
    if (!faults.some(({ pointer }) => pointer === "/return_opposes")) throw error;
    without.add(body.model);
    return ask("/similarity", body, signal);
  }
}
