// Two texts by every method of the model, in one table: score, threshold, what follows from them, and how long
// the server computed.

import { Refusal, TOOK } from "./asking.js";
import { bar, element, number, scrolling } from "./elements.js";
import { judged } from "./explanation.js";
import { scorePairs } from "./scoring.js";
import * as settings from "./settings.js";

/** Requests that are under way at once. */
const LANES = 4;

// Whether the table is open: it is filled for each question for as long as it is.
let open = false;

export const isOpen = () => open;

/** Opens the table of the next question, or closes it. */
export function setOpen(opened) {
  open = opened;
}

/** The table of two texts, filled when it is opened; `choose` takes a method, `moved` is told of opening. */
export function everyMethod(texts, { model }, signal, choose, moved) {
  const methods = settings.comparing();
  const summary = element("summary", {}, `The same two texts by all ${methods.length} methods`);
  const content = element("div");
  const details = element("details", { class: "card every", open: open ? "" : null }, summary, content);
  const fill = () => {
    if (details.open && content.childElementCount === 0) {
      content.append(...table(methods, { ...texts, model }, signal, choose));
    }
  };
  details.addEventListener("toggle", () => {
    fill();
    if (open !== details.open) moved((open = details.open));
  });
  return details;
}

function table(methods, body, signal, choose) {
  const rows = methods.map((method) => {
    const name = element("button", { type: "button", class: "candidate" }, method.name);
    name.addEventListener("click", () => choose(method.name));
    return { method, row: element("tr", {}, element("th", { scope: "row", title: method.summary }, name)) };
  });
  const titles = ["Method", "Score", "", "Threshold", "Verdict", "\u00b5s"];
  const caption = "Score, threshold, verdict and microseconds of every method";
  const drawn = element(
    "table",
    { class: "methods" },
    element("caption", { class: "unseen" }, caption),
    element("thead", {}, element("tr", {}, ...titles.map((title) => element("th", { scope: "col" }, title)))),
    element("tbody", {}, ...rows.map(({ row }) => row)),
  );
  const left = [...rows];
  const lane = async () => {
    for (let next = left.shift(); next !== undefined && !signal.aborted; next = left.shift()) {
      next.row.append(...(await cells(next.method, body, signal)));
    }
  };
  for (let at = 0; at < LANES; at += 1) lane();
  const note =
    "Choose a method to see its words. Thresholds are calibrated for this model, each for its own method; scores of " +
    "two methods cannot be compared. Microseconds are those of this one request inside the server.";
  return [element("p", { class: "hint" }, note), scrolling(drawn, caption)];
}

/** What a method says of the texts. */
async function cells(method, { a, b, model }, signal) {
  const told = (...parts) => parts.map((part) => element("td", {}, part));
  try {
    const found = await scorePairs([[a, b]], { model, method: method.name }, signal);
    const { scores: [score], answer } = found;
    const threshold = settings.thresholdOf(answer);
    const [unscored, opposed] = [found.unscored.has(0), found.opposed.has(0)];
    const [word, kind] = judged({ score, unscored, opposed }, threshold);
    const took = answer[TOOK] === undefined ? "\u2013" : Math.round(answer[TOOK]).toLocaleString("en");
    return told(
      unscored ? "\u2013" : number(score),
      bar(unscored ? 0 : score, settings.rangeOf(answer)[1], kind),
      threshold ? number(threshold.threshold) : "\u2013",
      word === null ? "\u2013" : element("span", { class: `judged ${kind}` }, word),
      took,
    );
  } catch (error) {
    if (!(error instanceof Refusal) && !signal.aborted) throw error;
    return told("\u2013", "", "\u2013", error.message, "\u2013");
  }
}
