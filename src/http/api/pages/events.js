// Shows the events of a stream: each text joins the event of its nearest earlier text at or above a
// threshold, or begins one. The vectors come from `/embed`; what is computed of them is computed here.

import { Refusal, ask } from "./asking.js";
import { element, number, shortened } from "./elements.js";

/** Most texts of a stream on this page; the command line takes any number. */
const MOST = 2000;
/** Texts of one request. */
const BATCH = 250;
/** Texts that are compared with all earlier ones before the page may draw again. */
const TURN = 100;
/** Most events, and texts of an event, that are listed. */
const MOST_EVENTS = 60;
const MOST_TEXTS = 100;

/** Where a stream is cut unless somebody moves it: chosen for `avg-cos` on labelled tweets. */
const USUAL_THRESHOLD = 0.5;

/** Refuses a stream that is empty, or longer than this page takes. */
export function checkLength(length) {
  if (length === 0) throw new Refusal(0, { title: "No texts", detail: "There is no text in the list." });
  if (length <= MOST) return;
  const [actual, limit] = [length, MOST].map((count) => count.toLocaleString("en"));
  const detail = `The list has ${actual} texts, and ${limit} is the most on this page. The command line takes any number.`;
  throw new Refusal(0, { title: "Too many texts", detail });
}

/** The same events from a terminal, where by itself the nearest are looked at twice and vote. */
export function eventsCommand(method, threshold) {
  const once = "--second none --nearest 1 --votes 1 --centre 0";
  return `cognate events tweets.tsv --method ${method} --threshold ${threshold.toFixed(2)} \\\n  ${once} -o events.tsv`;
}

/** The vectors of texts, of length 1, and null for a text that has none. */
export async function embedAll(texts, chosen, signal) {
  const vectors = [];
  let answer;
  for (let from = 0; from < texts.length; from += BATCH) {
    const batch = texts.slice(from, from + BATCH).map(({ text }) => text);
    answer = await ask("/embed", { texts: batch, ...chosen, normalize: true, encoding: "base64" }, signal);
    vectors.push(...answer.embeddings.map((vector) => (vector === null ? null : decoded(vector))));
  }
  return { vectors, method: answer?.method };
}

function decoded(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

/** For each vector, which earlier one is nearest, and their cosine; of equally near ones the latest. */
export async function nearestEarlier(vectors, signal) {
  const nearest = [];
  for (const [place, vector] of vectors.entries()) {
    let [best, score] = [-1, -Infinity];
    for (let earlier = 0; vector !== null && earlier < place; earlier += 1) {
      if (vectors[earlier] === null) continue;
      const product = productOf(vector, vectors[earlier]);
      if (product >= score) [best, score] = [earlier, product];
    }
    nearest.push({ place: best, score });
    if (place % TURN === TURN - 1) await new Promise((resume) => setTimeout(resume));
    signal?.throwIfAborted();
  }
  return nearest;
}

function productOf(one, other) {
  let sum = 0;
  for (let at = 0; at < one.length; at += 1) sum += one[at] * other[at];
  return sum;
}

/** The events at a threshold, as lists of places, the largest first, equally large ones by their beginning. */
export function eventsAt(nearest, threshold) {
  const events = [];
  const eventOf = [];
  for (const [place, { place: earlier, score }] of nearest.entries()) {
    const joins = earlier >= 0 && score >= threshold;
    eventOf.push(joins ? eventOf[earlier] : events.length);
    if (joins) events[eventOf[place]].push(place);
    else events.push([place]);
  }
  return events.toSorted((one, other) => other.length - one.length || one[0] - other[0]);
}

/** The stream's events, with a threshold to move; `moved` is told of each new one. */
export function eventList({ texts, timed, without }, { vectors, method }, nearest, moved) {
  const title = element("h2", { "aria-live": "polite" });
  const value = element("output", { for: "threshold" });
  const slider = element("input", {
    id: "threshold",
    type: "range",
    min: "0",
    max: "1",
    step: "0.01",
    value: String(USUAL_THRESHOLD),
  });
  const list = element("div", { class: "events" });
  const span = spanOf(texts, timed);
  const show = () => {
    const threshold = Number(slider.value);
    const events = eventsAt(nearest, threshold);
    const several = events.filter((places) => places.length > 1);
    const alone = events.length - several.length;
    title.textContent = `${counted(several.length, "event")} and ${counted(alone, "text")} alone, by ${method}`;
    value.textContent = number(threshold);
    const rows = several.slice(0, MOST_EVENTS).map((places) => eventRow(places, texts, vectors, nearest, span));
    const left = several.length - rows.length;
    if (left > 0) rows.push(element("p", { class: "hint" }, `${counted(left, "smaller event")} not shown.`));
    list.replaceChildren(...rows);
    moved(threshold, method);
  };
  slider.addEventListener("input", show);
  show();
  const notes = [
    "A text joins the event of the most similar earlier text, if their cosine is at least the threshold. Choose an event to read it.",
    timed ? null : "Not every text has a time, so the order of the lines stands for it.",
    without > 0 ? `${counted(without, "line")} without a text left out.` : null,
  ];
  return [
    title,
    element("div", { class: "threshold-row" }, element("label", { for: "threshold" }, "Threshold"), slider, value),
    ...notes.filter((note) => note !== null).map((note) => element("p", { class: "hint" }, note)),
    list,
    element("p", { class: "hint ends" }, element("span", {}, span.from), element("span", {}, span.to)),
  ];
}

/** One event: what it is about, when its texts came, and the texts behind a click. */
function eventRow(places, texts, vectors, nearest, span) {
  const dots = places.map((place) => {
    const dot = element("span", { class: "moment" });
    dot.style.left = `${(100 * span.part(place)).toFixed(2)}%`;
    return dot;
  });
  const told = places.slice(0, MOST_TEXTS).map((place, order) => {
    const score = order === 0 ? "first" : number(nearest[place].score);
    return element(
      "li",
      {},
      element("span", { class: "hint" }, span.told(place)),
      element("span", {}, shortened(texts[place].text)),
      element("span", { class: "value" }, score),
    );
  });
  const left = places.length - told.length;
  return element(
    "details",
    { class: "event" },
    element(
      "summary",
      {},
      element("span", { class: "about" }, shortened(texts[central(places, vectors)].text)),
      element("span", { class: "moments", "aria-hidden": "true" }, ...dots),
      element("span", { class: "value" }, places.length.toLocaleString("en")),
    ),
    element("ol", {}, ...told),
    left > 0 ? element("p", { class: "hint" }, `${counted(left, "more text")} not shown.`) : null,
  );
}

/** The text nearest to the mean of its event. */
function central(places, vectors) {
  const known = places.filter((place) => vectors[place] !== null);
  if (known.length === 0) return places[0];
  const mean = new Float32Array(vectors[known[0]].length);
  for (const place of known) for (let at = 0; at < mean.length; at += 1) mean[at] += vectors[place][at];
  const products = known.map((place) => productOf(mean, vectors[place]));
  return known[products.indexOf(Math.max(...products))];
}

/** The stretch of time of a stream: where each text lies in it, and how its moment is told. */
function spanOf(texts, timed) {
  const moments = texts.map(({ time }, place) => (timed ? time : place));
  const [first, last] = [moments[0] ?? 0, moments.at(-1) ?? 0];
  const told = (place) => (timed ? momentInWords(moments[place]) : `text ${place + 1}`);
  return {
    part: (place) => (last > first ? (moments[place] - first) / (last - first) : 0),
    told,
    from: texts.length > 0 ? told(0) : "",
    to: texts.length > 0 ? told(texts.length - 1) : "",
  };
}

/** In the time of Greenwich, as the command line writes it. */
function momentInWords(time) {
  return new Date(time).toISOString().slice(0, 16).replace("T", " ");
}

function counted(count, what) {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}
