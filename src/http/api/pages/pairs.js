// The tab of a file of pairs: its scores as a table and a histogram, a threshold to move, and how right it is
// where a column holds labels.

import { Refusal } from "./asking.js";
import { element, number, scrolling, shortened, thresholdRow } from "./elements.js";
import { judged } from "./explanation.js";
import { scorePairs } from "./scoring.js";
import { download, readTable, written } from "./table.js";

const by = (id) => document.getElementById(id);

/** Most pairs. */
const MOST = 5000;
/** Rows that are listed, and bins of the histogram. */
const LISTED = 100;
const BINS = 40;

/** Names that columns commonly have. */
const NAMES = {
  first: ["a", "text1", "text_1", "text_a", "sentence1", "sentence_1", "question1", "first", "left", "query"],
  second: ["b", "text2", "text_2", "text_b", "sentence2", "sentence_2", "question2", "second", "right", "title"],
  label: ["label", "gold", "is_duplicate", "duplicate", "related", "same", "match", "score", "similarity", "y"],
};
const FIELDS = Object.keys(NAMES);
const YES = ["1", "true", "yes", "y", "t", "duplicate", "related", "same", "match", "paraphrase", "entailment"];

// What an address asked for before the table was read.
let wanted = {};

/** Fills in what an address names. */
export function fillIn(fields) {
  wanted = fields;
}

/** The columns that are chosen, as they stand in an address. */
export function filledIn() {
  return Object.fromEntries(FIELDS.map((id) => [id, by(id).value]).filter(([, value]) => value !== ""));
}

/** The table of the form, with its columns on offer. */
export function load() {
  const table = readTable(by("table").value, MOST);
  const known = table.columns.some((name) => Object.values(NAMES).flat().includes(name.toLowerCase()));
  // A first row of sentences names nothing.
  if (!known && table.columns.some((name) => /\s/.test(name))) {
    table.rows.unshift(table.columns);
    table.total += 1;
    table.columns = table.columns.map((_, place) => `column ${place + 1}`);
  }
  const places = placesOf(table);
  for (const id of FIELDS) {
    const options = table.columns.map((name) => element("option", { value: name }, name));
    by(id).replaceChildren(...(id === "label" ? [element("option", { value: "" }, "none")] : []), ...options);
    by(id).value = table.columns[places[id]] ?? "";
  }
  wanted = {};
  if (table.columns.length < 2 || table.rows.length === 0) {
    const detail = "A table of two columns of texts, a pair a row, is the least. Its first row names the columns.";
    throw new Refusal(0, { title: "No pairs", detail });
  }
  return { ...table, places };
}

/** Where texts and labels stand: as asked for, else by the names of the columns, else the first two of texts. */
function placesOf({ columns, rows }) {
  const chosen = (id) => columns.indexOf(wanted[id] ?? by(id).value);
  const kept = chosen("first") >= 0 && chosen("second") >= 0;
  if (kept) return Object.fromEntries(FIELDS.map((id) => [id, chosen(id)]));
  const named = (id) => columns.findIndex((name) => NAMES[id].includes(name.toLowerCase()));
  const texts = columns.flatMap((_, place) => (/\p{L}/u.test(rows[0]?.[place] ?? "") ? [place] : []));
  const first = named("first") >= 0 ? named("first") : (texts[0] ?? 0);
  const second = named("second") >= 0 ? named("second") : (texts.find((place) => place !== first) ?? 1);
  return { first, second, label: named("label") };
}

/** The score of each row, null of one that has none; which are opposed; and the answer of the last request. */
export async function scoreAll({ rows, places }, chosen, signal) {
  const pairs = rows.map((row) => [row[places.first] ?? "", row[places.second] ?? ""]);
  const { scores, unscored, opposed, answer } = await scorePairs(pairs, chosen, signal);
  return { scores: scores.map((score, at) => (unscored.has(at) ? null : score)), opposed, answer };
}

/** Whether each row is labelled as related, null where it has no label; numbers in degrees are cut in the middle. */
function labelsOf({ rows, places }) {
  if (places.label < 0) return null;
  const cells = rows.map((row) => (row[places.label] ?? "").trim().toLowerCase());
  const numbers = cells.filter((cell) => cell !== "").map(Number);
  if (numbers.length > 0 && numbers.every(Number.isFinite)) {
    const least = numbers.reduce((low, one) => Math.min(low, one));
    const most = numbers.reduce((high, one) => Math.max(high, one));
    return cells.map((cell) => (cell === "" ? null : 2 * Number(cell) > least + most));
  }
  return cells.map((cell) => (cell === "" ? null : YES.includes(cell)));
}

/** How right the scores are at a threshold. An opposed pair is not related. */
function rightness(labels, scores, opposed, threshold) {
  const counts = { hits: 0, found: 0, labelled: 0 };
  for (const [at, label] of labels.entries()) {
    if (label === null) continue;
    const is = scores[at] !== null && scores[at] >= threshold && !opposed.has(at);
    if (is) counts.found += 1;
    if (label) counts.labelled += 1;
    if (is && label) counts.hits += 1;
  }
  const { hits, found, labelled } = counts;
  return { precision: found ? hits / found : 0, recall: labelled ? hits / labelled : 0, f1: hits ? (2 * hits) / (found + labelled) : 0 };
}

/** The scores of a table, with a threshold to move; `open` compares a pair. */
export function pairsTable(table, { scores, opposed, answer }, threshold, open) {
  const labels = labelsOf(table);
  const { rows, places, total } = table;
  const title = element("h2", { "aria-live": "polite" });
  const rightly = element("p", { "aria-live": "polite" });
  const bins = histogram(scores, labels);
  const list = element("tbody");
  const order = element("select", { id: "pairs-order" });
  const offered = { file: "as in the file", high: "highest first", low: "lowest first" };
  if (labels) offered.wrong = "wrong ones first";
  order.append(...Object.entries(offered).map(([value, name]) => element("option", { value }, name)));
  let least = threshold ?? 0.5;
  const isRelated = (at) => scores[at] !== null && scores[at] >= least && !opposed.has(at);
  const fill = () => {
    const score = (at) => scores[at] ?? -Infinity;
    const wrong = (at) => labels?.[at] !== null && labels?.[at] !== isRelated(at);
    const orders = {
      file: () => 0,
      high: (one, other) => score(other) - score(one),
      low: (one, other) => score(one) - score(other),
      wrong: (one, other) => wrong(other) - wrong(one) || Math.abs(score(other) - least) - Math.abs(score(one) - least),
    };
    const shown = [...rows.keys()].sort(orders[order.value]).slice(0, LISTED);
    list.replaceChildren(
      ...shown.map((at) => {
        const [a, b] = [rows[at][places.first] ?? "", rows[at][places.second] ?? ""];
        const choose = element("button", { type: "button", class: "candidate" }, shortened(a));
        choose.addEventListener("click", () => open(a, b));
        const pair = { score: scores[at], unscored: scores[at] === null, opposed: opposed.has(at) };
        const [word, kind] = judged(pair, { threshold: least });
        const verdict = element("span", { class: `judged ${kind}` }, word);
        const cells = [scores[at] === null ? "\u2013" : number(scores[at]), choose, shortened(b), verdict];
        if (labels) cells.push(element("span", wrong(at) ? { class: "notice" } : {}, `${rows[at][places.label] ?? ""}${wrong(at) ? ", wrong" : ""}`));
        return element("tr", {}, ...cells.map((cell) => element("td", {}, cell)));
      }),
    );
  };
  const [row, start] = thresholdRow("pairs-threshold", least, (moved) => {
    least = moved;
    const related = [...rows.keys()].filter(isRelated).length;
    title.textContent = `${related.toLocaleString("en")} of ${counted(rows.length)} related, with ${answer.method}`;
    bins.mark(least);
    if (labels) {
      const { precision, recall, f1 } = rightness(labels, scores, opposed, least);
      rightly.textContent = `Precision ${percent(precision)}, recall ${percent(recall)}, F1 ${number(f1)}. ${bestOf(labels, scores, opposed)}`;
    }
    fill();
  });
  start();
  order.addEventListener("change", fill);
  const save = element("button", { type: "button" }, "Download as CSV");
  save.addEventListener("click", () => {
    const told = rows.map((cells, at) => [...table.columns.map((_, place) => cells[place] ?? ""), scores[at] ?? "", isRelated(at)]);
    download("scores.csv", written([[...table.columns, "score", "is_related"], ...told]));
  });
  const without = scores.filter((score) => score === null).length;
  const notes = [
    total > rows.length ? `The table has ${counted(total)}; the first ${rows.length.toLocaleString("en")} are scored here, the command line takes any number.` : null,
    without > 0 ? `${counted(without)} without a score: a text has no word that the model knows.` : null,
    threshold === undefined ? null : "The threshold begins at the one calibrated for this method.",
    rows.length > LISTED ? `${LISTED} rows are listed; the file has them all.` : null,
  ];
  const heads = ["Score", "First text", "Second text", "Verdict", ...(labels ? ["Label"] : [])];
  const drawn = element(
    "table",
    { class: "methods pairs" },
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
    list,
  );
  return [
    title,
    bins.drawn,
    row,
    labels ? rightly : null,
    ...notes.filter((note) => note !== null).map((note) => element("p", { class: "hint" }, note)),
    element("div", { class: "tools" }, element("label", { for: "pairs-order" }, "Rows"), order, save),
    scrolling(drawn, "The scores"),
  ].filter((part) => part !== null);
}

/** At which threshold F1 is best, of a hundred. */
function bestOf(labels, scores, opposed) {
  let best = { f1: -1 };
  for (let at = 0; at <= 100; at += 1) {
    const { f1 } = rightness(labels, scores, opposed, at / 100);
    if (f1 > best.f1) best = { f1, at: at / 100 };
  }
  return `F1 is best at ${number(best.at)}, where it is ${number(best.f1)}.`;
}

/** How many pairs have which score; of those with labels, how many are labelled as related. */
function histogram(scores, labels) {
  const known = scores.filter((score) => score !== null);
  const low = known.some((score) => score < 0) ? -1 : 0;
  const counts = Array.from({ length: BINS }, () => ({ yes: 0, no: 0 }));
  for (const [at, score] of scores.entries()) {
    if (score === null) continue;
    const bin = Math.max(0, Math.min(BINS - 1, Math.floor((BINS * (score - low)) / (1 - low))));
    counts[bin][labels?.[at] === false ? "no" : "yes"] += 1;
  }
  const most = Math.max(1, ...counts.map(({ yes, no }) => yes + no));
  const bars = counts.map(({ yes, no }) => {
    const parts = [["against", no], ["", yes]].map(([kind, count]) => {
      const part = element("span", { class: `fill ${kind}` });
      part.style.height = `${((100 * count) / most).toFixed(1)}%`;
      return part;
    });
    return element("span", { class: "bin", title: `${yes + no}` }, ...parts);
  });
  const line = element("span", { class: "threshold" });
  const ends = [low, 1].map((end) => element("span", {}, String(end).replace("-", "\u2212")));
  const label = `How many pairs have which score, from ${low} to 1; the most of a bar are ${most}.`;
  const legend = labels ? element("p", { class: "hint" }, "Blue: labelled as related, orange: not.") : null;
  return {
    drawn: element(
      "div",
      { class: "histogram" },
      element("div", { class: "bins", role: "img", "aria-label": label }, ...bars, line),
      element("div", { class: "ends" }, ...ends),
      legend,
    ),
    mark(threshold) {
      line.style.left = `${((100 * (threshold - low)) / (1 - low)).toFixed(1)}%`;
    },
  };
}

const counted = (count) => `${count.toLocaleString("en")} pair${count === 1 ? "" : "s"}`;
const percent = (part) => `${Math.round(100 * part)} %`;

/** Takes the table from a file: its first rows where it is long. */
export function cut(text, whole) {
  const { columns, rows, total } = readTable(text, MOST);
  if (whole && total <= MOST) return { text, note: "" };
  const some = whole ? total.toLocaleString("en") : `more than ${total.toLocaleString("en")}`;
  return { text: written([columns, ...rows]), note: `The file has ${some} rows; its first ${rows.length.toLocaleString("en")} are here.` };
}
