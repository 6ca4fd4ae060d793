// Finds the events of a stream as `cognate events` and `match` do by themselves: the nearest earlier texts
// by vectors are scored once more, and the best of each event speak for it. Vectors and scores come from the
// server; what is decided by them is decided here. How events are shown is not known here.

import { Refusal, ask } from "./asking.js";

/** Most texts of a stream on this page: so many are looked back at by themselves. */
const MOST = 2000;
/** Texts, and pairs of texts, of one request. */
const BATCH = 250;
const PAIRS = 1000;
/** Texts that are compared with all earlier ones before the page may draw again. */
const TURN = 100;

/** What the nearest are found by, and what scores them once more. */
const METHOD = "avg-cos";
export const SECOND = "coverage";
/** How many of the nearest are looked at, the least cosine of those, and how many of an event speak for it. */
const NEAREST = 16;
const FLOOR = 0.2;
const VOTES = 4;
/** The score of texts of the same words, of which one joins the event of the other. */
const DUPLICATE = 1;
/** The least score of an event, unless somebody moves it: chosen on labelled tweets. */
export const USUAL_THRESHOLD = 0.48;

/** Refuses a stream that is empty, or longer than this page takes. */
export function checkLength(length) {
  if (length === 0) throw new Refusal(0, { title: "No texts", detail: "There is no text in the list." });
  if (length <= MOST) return;
  const [actual, limit] = [length, MOST].map((count) => count.toLocaleString("en"));
  const detail = `The list has ${actual} texts, and ${limit} is the most on this page. The command line takes any number.`;
  throw new Refusal(0, { title: "Too many texts", detail });
}

/** As many lines of a file as are taken here, and what is said of the others. */
export function cutStream(text, whole) {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  if (whole && lines.length <= MOST) return { text, note: "" };
  const some = `${whole ? "" : "more than "}${lines.length.toLocaleString("en")}`;
  const note = `The file has ${some} lines; its first ${MOST.toLocaleString("en")} are here.`;
  return { text: lines.slice(0, MOST).join("\n"), note };
}

/** The same events from a terminal. */
export function eventsCommand(threshold) {
  const moved = threshold === USUAL_THRESHOLD ? "" : ` --threshold ${threshold.toFixed(2)}`;
  return `cognate events posts.tsv${moved} -o events.tsv`;
}

/** The vectors of texts, of length 1, and null for a text that has none. */
export async function embedAll(texts, chosen, signal) {
  const vectors = [];
  for (let from = 0; from < texts.length; from += BATCH) {
    const batch = texts.slice(from, from + BATCH).map(({ text }) => text);
    const how = { ...chosen, method: METHOD, normalize: true, encoding: "base64", truncate: true };
    const { embeddings } = await ask("/embed", { texts: batch, ...how }, signal);
    vectors.push(...embeddings.map((vector) => (vector === null ? null : decoded(vector))));
  }
  return vectors;
}

function decoded(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/** For each text the nearest earlier ones with their scores, the best first; of equal ones the latest. */
export async function nearestEarlier(texts, vectors, chosen, signal) {
  const near = [];
  for (const [place, vector] of vectors.entries()) {
    const found = [];
    for (let earlier = 0; vector !== null && earlier < place; earlier += 1) {
      if (vectors[earlier] === null) continue;
      const score = productOf(vector, vectors[earlier]);
      if (score >= FLOOR) found.push({ place: earlier, score });
    }
    near.push(found.sort(bestFirst).slice(0, NEAREST));
    if (place % TURN === TURN - 1) await new Promise((resume) => setTimeout(resume));
    signal?.throwIfAborted();
  }
  const pairs = near.flatMap((found, place) => found.map((one) => [texts[place].text, texts[one.place].text]));
  const scores = [];
  for (let from = 0; from < pairs.length; from += PAIRS) {
    const how = { ...chosen, method: SECOND, truncate: true };
    const answer = await ask("/similarity", { pairs: pairs.slice(from, from + PAIRS), ...how }, signal);
    scores.push(...answer.scores);
  }
  let next = 0;
  return near.map((found) => found.map(({ place }) => ({ place, score: scores[next++] })).sort(bestFirst));
}

function bestFirst(one, other) {
  return other.score - one.score || other.place - one.place;
}

export function productOf(one, other) {
  let sum = 0;
  for (let at = 0; at < one.length; at += 1) sum += one[at] * other[at];
  return sum;
}

/**
 * The events at a threshold, the largest first, equally large ones by their beginning: the places of their
 * texts, and for each the score at which it joined, null of the first.
 */
export function eventsAt(near, threshold) {
  const events = [];
  const eventOf = [];
  for (const [place, found] of near.entries()) {
    const best = bestEvent(found, events, eventOf);
    const joins = best !== null && best.score >= threshold;
    eventOf.push(joins ? best.event : events.length);
    if (!joins) events.push([]);
    events[eventOf[place]].push({ place, score: joins ? best.score : null });
  }
  return events.toSorted((one, other) => other.length - one.length || one[0].place - other[0].place);
}

/** The event that the nearest of a text speak for: that of the highest mean, votes that are missing counting 0. */
function bestEvent(found, events, eventOf) {
  const votes = Map.groupBy(found, ({ place }) => eventOf[place]);
  let best = null;
  for (const [event, [first, ...others]] of votes) {
    const wanted = Math.min(VOTES, events[event].length);
    const sum = [first, ...others].slice(0, wanted).reduce((all, { score }) => all + score, 0);
    const score = first.score >= DUPLICATE ? first.score : sum / wanted;
    if (best === null || score > best.score) best = { event, score };
  }
  return best;
}
