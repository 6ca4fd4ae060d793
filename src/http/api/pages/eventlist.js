// Shows events: those of the texts on the page, with a threshold to move, and those of a collection. How they
// are found is not known here.

import { Refusal, ask } from "./asking.js";
import { bar, element, number, shortened, thresholdRow } from "./elements.js";
import { SECOND, USUAL_THRESHOLD, eventsAt, productOf } from "./events.js";
import { countsOf, namesOf } from "./names.js";

const by = (id) => document.getElementById(id);

/** Most events, and texts of an event, that are listed; and texts by which the density of one is drawn. */
const MOST_EVENTS = 60;
const MOST_TEXTS = 100;
const MOST_DRAWN = 1000;
/** Words that name an event, and bars of its course. */
const NAMES = 6;
const BARS = 60;
const HOUR_MS = 3600000;
const DAY_MS = 24 * HOUR_MS;
/** Events that are listed at first. */
const FIRST = 15;
/** Lengths between two marks of the axis, and the most of those. */
const STEPS_MS = [1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60000).concat(
  [1, 2, 3, 6, 12, 24, 48, 168, 336].map((hours) => hours * HOUR_MS),
);
const MARKS = 5;
/** A rate says nothing of a shorter time. */
const LEAST_SPAN_MS = 60000;

/* Texts on the page */

/** The stream's events, with a threshold to move; `moved` is told of each new one. */
export function eventsOfTexts({ texts, timed, without }, vectors, near, moved) {
  const title = element("h2", { "aria-live": "polite" });
  const list = element("div", { class: "events" });
  const all = countsOf(texts.map(({ text }) => text));
  const moments = texts.map(({ time }, place) => (timed ? time : place));
  const span = { from: moments[0] ?? 0, to: moments.at(-1) ?? 0, timed };
  let largest = 1;
  const row = (members) => {
    const said = members.map(({ place }) => texts[place].text);
    const times = members.map(({ place }) => moments[place]);
    const entry = {
      words: namesOf(countsOf(said), all, NAMES),
      text: said[central(members.map(({ place }) => vectors[place]))],
      size: members.length,
      first: times[0],
      last: times.at(-1),
      perHour: timed ? perHour(times) : undefined,
    };
    const told = members.map(({ score }, at) => ({ time: times[at], text: said[at], score: scored(score) }));
    const { details, strip, open } = eventRow(entry, span, largest);
    strip.replaceChildren(...density(times, span));
    // Many events are never opened.
    details.addEventListener("toggle", () => open.replaceChildren(...textList(told, members.length, span)), { once: true });
    return details;
  };
  const show = (threshold) => {
    const events = eventsAt(near, threshold);
    const several = events.filter((members) => members.length > 1);
    const alone = events.length - several.length;
    title.textContent = `${counted(several.length, "event")} and ${counted(alone, "text")} alone`;
    const left = several.length - MOST_EVENTS;
    largest = several[0]?.length ?? 1;
    list.replaceChildren(...folded(several.slice(0, MOST_EVENTS).map(row)));
    if (left > 0) list.append(element("p", { class: "hint" }, `${counted(left, "smaller event")} not shown.`));
    moved(threshold);
  };
  const [slider, start] = thresholdRow("threshold", USUAL_THRESHOLD, show);
  start();
  const notes = [
    "A text joins the event whose texts speak for it: the mean score of the four most similar is at least the " +
      "threshold. Choose an event to read it.",
    timed ? null : "Not every text has a time, so the order of the lines stands for it.",
    without > 0 ? `${counted(without, "line")} without a text left out.` : null,
  ];
  return [
    title,
    slider,
    ...notes.filter((note) => note !== null).map((note) => element("p", { class: "hint" }, note)),
    axis(span),
    list,
  ];
}

function scored(score) {
  return score === null ? "first" : number(score);
}

/** Texts an hour; none where these are less than a minute apart. */
function perHour(times) {
  const span = times.at(-1) - times[0];
  return span >= LEAST_SPAN_MS ? (times.length * HOUR_MS) / span : undefined;
}

/** The place of the vector nearest to the mean of all. */
function central(vectors) {
  const known = vectors.filter((vector) => vector !== null);
  if (known.length === 0) return 0;
  const mean = new Float32Array(known[0].length);
  for (const vector of known) for (let at = 0; at < mean.length; at += 1) mean[at] += vector[at];
  const products = vectors.map((vector) => (vector === null ? -Infinity : productOf(mean, vector)));
  return products.indexOf(Math.max(...products));
}

/* Collections */

/** What comes first in the list of a collection. */
const SORTS = {
  size: "the largest first",
  last: "the latest first",
  per_hour: "those with the most an hour first",
  peak: "those with the most within an hour first",
  chatter: "the least chatter first",
};

// What an address asked for before the server told what it has.
let wanted;

/** Chooses a collection and an order as soon as they are known. */
export function want({ of, sort }) {
  wanted = of ?? "";
  by("sort").value = Object.hasOwn(SORTS, sort) ? sort : "size";
}

/** Offers the collections that the server has; none where it does not tell. */
export async function loadSources(signal) {
  let collections = [];
  try {
    ({ collections } = await ask("/collections", undefined, signal));
  } catch (error) {
    // Texts that stand on the page need no collection.
    if (!(error instanceof Refusal)) throw error;
  }
  const before = wanted ?? by("of").value;
  const told = ({ name, items }) => element("option", { value: name }, `${name} (${items.toLocaleString("en")})`);
  by("of").replaceChildren(element("option", { value: "" }, "the texts below"), ...collections.map(told));
  by("of").value = collections.some(({ name }) => name === before) ? before : "";
  wanted = undefined;
  by("of-field").hidden = collections.length === 0;
  turnSource();
}

/** Shows the fields of what is chosen. */
export function turnSource() {
  by("stream-field").hidden = by("of").value !== "";
  for (const id of ["sort-field", "live-field"]) by(id).hidden = by("of").value === "";
}

/** What the address of an event of a collection, or of all, is asked for. */
export function eventsPath(chosen, id) {
  const asked = new URLSearchParams(chosen);
  if (id === undefined) asked.set("sort", by("sort").value);
  asked.set("limit", String(id === undefined ? MOST_EVENTS : MOST_DRAWN));
  const event = id === undefined ? "" : `/${encodeURIComponent(id)}`;
  return `/collections/${encodeURIComponent(by("of").value)}/events${event}?${asked}`;
}

/** The events of a collection; `pathOf` says where one is asked for. */
export function eventsOfCollection({ events, total }, name, pathOf) {
  const times = events.flatMap(({ first, last }) => [Date.parse(first), Date.parse(last)]);
  const span = { from: Math.min(...times), to: Math.max(...times), timed: true };
  const largest = Math.max(...events.map(({ size }) => size));
  const rows = events.map((event) => {
    const { id, first, last, per_hour, peak } = event;
    const [begins, ends] = [Date.parse(first), Date.parse(last)];
    const { details, strip, open } = eventRow({ ...event, first: begins, last: ends, perHour: per_hour }, span, largest);
    const most = Date.parse(peak.from);
    strip.replaceChildren(reach(begins, ends, span, "lasts"), reach(most, Math.min(most + HOUR_MS, ends), span, "peak"));
    details.addEventListener("toggle", async () => {
      try {
        const { items, size } = await ask(pathOf(id));
        const told = items.map(({ time, text }) => ({ time: Date.parse(time), text }));
        if (items.length === size) strip.replaceChildren(...density(told.map(({ time }) => time), span));
        open.replaceChildren(...textList(told, size, span));
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
        open.replaceChildren(element("p", { class: "hint" }, `${error.message}: ${error.problem.detail ?? ""}`));
      }
    }, { once: true });
    return details;
  });
  const order = SORTS[by("sort").value];
  const told = total > events.length ? `The first ${events.length} of them, ${order}.` : `All of them, ${order}.`;
  const none = "No two items of it belong together. Items get events when they are matched: POST /collections/NAME/match.";
  const hint = "A bar lasts from the first item to the last, the hour with most is dark. Choose an event to read it.";
  return [
    element("h2", { "aria-live": "polite" }, `${counted(total, "event")} in ${name}`),
    element("p", { class: "hint" }, events.length > 0 ? `${told} ${hint}` : none),
    ...(events.length > 0 ? [axis(span)] : []),
    element("div", { class: "events" }, ...folded(rows)),
  ];
}

/* Both */

/** One event: its words and central text, when it was, and a place for its texts. */
function eventRow({ words, text, size, first, last, perHour: rate, chatter }, span, largest) {
  const strip = element("span", { class: "moments", "aria-hidden": "true" });
  const told = [
    spanInWords(first, last, span),
    rate === undefined ? null : `${rate < 10 ? number(rate, 1) : Math.round(rate).toLocaleString("en")}\u00a0an\u00a0hour`,
    chatter === undefined ? null : `chatter\u00a0${number(chatter)}`,
  ];
  const open = element("div", { class: "event-texts" });
  const details = element(
    "details",
    { class: "event" },
    element(
      "summary",
      {},
      element(
        "span",
        { class: "about" },
        element("b", {}, words.join(" \u00b7 ")),
        element("span", { class: "hint" }, shortened(text)),
      ),
      element(
        "span",
        { class: "course" },
        strip,
        element("span", { class: "hint" }, told.filter((part) => part !== null).join(" \u00b7 ")),
      ),
      element("span", { class: "value" }, size.toLocaleString("en"), bar(size, largest)),
    ),
    open,
  );
  return { details, strip, open };
}

/** Texts of an event, of which there are so many in all. */
function textList(texts, size, span) {
  const rows = texts.slice(0, MOST_TEXTS).map(({ time, text, score }) =>
    element(
      "li",
      {},
      element("span", { class: "hint" }, momentInWords(time, span)),
      element("span", {}, text),
      score === undefined ? null : element("span", { class: "value" }, score),
    ),
  );
  const left = size - rows.length;
  const more = left > 0 ? [element("p", { class: "hint" }, `${counted(left, "more text")} not shown.`)] : [];
  return [element("ol", {}, ...rows), ...more];
}

/** Bars for the texts of an event over the time of all: the higher, the more came then. */
function density(times, span) {
  const counts = new Array(BARS).fill(0);
  for (const time of times) counts[Math.min(BARS - 1, Math.floor(BARS * part(time, span)))] += 1;
  const most = Math.max(...counts);
  return counts.flatMap((count, at) => {
    if (count === 0) return [];
    const bar = element("span", { class: "moment" });
    bar.style.left = `${((100 * at) / BARS).toFixed(2)}%`;
    bar.style.width = `${(100 / BARS).toFixed(2)}%`;
    // One text beside hundreds is still seen.
    bar.style.height = `${(25 + 75 * Math.sqrt(count / most)).toFixed(0)}%`;
    return [bar];
  });
}

function reach(from, to, span, kind) {
  const bar = element("span", { class: `moment ${kind}` });
  bar.style.left = `${(100 * part(from, span)).toFixed(2)}%`;
  bar.style.width = `${(100 * (part(to, span) - part(from, span))).toFixed(2)}%`;
  return bar;
}

/** Where a moment lies in the time of all texts, from 0 to 1. */
function part(time, { from, to }) {
  return to > from ? (time - from) / (to - from) : 0;
}

/** The first rows, and a button that shows the others. */
function folded(rows) {
  const others = rows.slice(FIRST);
  if (others.length === 0) return rows;
  const more = element("button", { type: "button", class: "more" }, `Show ${others.length} more`);
  more.addEventListener("click", () => {
    more.replaceWith(...others);
    others[0].querySelector("summary").focus();
  });
  return [...rows.slice(0, FIRST), more];
}

/** The time of all texts with round moments marked, above the strips of the events. */
function axis(span) {
  const { from, to, timed } = span;
  const marks = timed ? roundMoments(from, to) : [from, to].map((time) => [time, `text ${time + 1}`]);
  const drawn = marks.map(([time, name]) => {
    const at = part(time, span);
    const mark = element("span", { class: "mark-at" }, name);
    mark.style.left = `${(100 * at).toFixed(2)}%`;
    // As much of a name lies left of its mark as of the axis does: none leaves it.
    mark.style.transform = `translateX(-${(100 * at).toFixed(2)}%)`;
    return mark;
  });
  const day = timed && to - from < 2 * DAY_MS ? momentInWords(from, span).slice(0, 10) : "";
  const scale = element("span", { class: "axis", "aria-hidden": "true" }, ...drawn);
  return element("p", { class: "hint event-axis" }, element("span", {}, day), scale);
}

/** Round moments between two, and their names: of a day hours, of a year months. */
function roundMoments(from, to) {
  const enough = (step) => (to - from) / step <= MARKS;
  const step = STEPS_MS.find(enough);
  const moments = [];
  if (step !== undefined) {
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) moments.push(time);
  } else {
    const months = [1, 2, 3, 6, 12, 24, 60, 120].find((count) => enough(count * 30 * DAY_MS)) ?? 600;
    const first = new Date(from);
    for (let month = 0; ; month += months) {
      const start = first.getUTCMonth() - (first.getUTCMonth() % Math.min(months, 12));
      const time = Date.UTC(first.getUTCFullYear(), start + month);
      if (time > to) break;
      if (time >= from) moments.push(time);
    }
  }
  const format = step === undefined ? { month: "short", year: "numeric" } : step < DAY_MS ? {} : { day: "numeric", month: "short" };
  const named = (time) =>
    step < DAY_MS ? new Date(time).toISOString().slice(11, 16) : new Date(time).toLocaleDateString("en", { ...format, timeZone: "UTC" });
  return moments.map((time) => [time, named(time)]);
}

/** From when to when, the day said once. */
function spanInWords(first, last, span) {
  const [from, to] = [momentInWords(first, span), momentInWords(last, span)];
  if (from === to) return from;
  const isSameDay = span.timed && from.slice(0, 10) === to.slice(0, 10);
  return `${from} to ${isSameDay ? to.slice(11) : to}`;
}

/** In the time of Greenwich, as the command line writes it; the number of a text where texts have no times. */
function momentInWords(time, { timed }) {
  return timed ? new Date(time).toISOString().slice(0, 16).replace("T", " ") : `text ${time + 1}`;
}

function counted(count, what) {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}
