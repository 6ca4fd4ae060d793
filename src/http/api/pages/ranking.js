// Shows a ranking: candidates best first, each with its score and a way to its explanation.

import { bar, element, number, shortened, tag } from "./elements.js";

/** Most candidates that are shown. */
const MOST = 200;

/** Why a candidate has no score. */
const REASONS = {
  empty: ["empty", "There is nothing to score"],
  unknown: ["no known word", "Nothing to score it by"],
  too_long: ["too long", "Longer than this server takes"],
};

/** A ranking of the candidates that were asked about by these fields; `open` explains one, at the address
    `link`. */
export function ranking(answer, candidates, range, { link, open, by, fields }) {
  const reasons = new Map(answer.unscored.map((index, place) => [index, answer.reasons?.[place]]));
  const scores = answer.results.filter(({ index }) => !reasons.has(index)).map(({ score }) => score);
  const { from, to, note } = scaleOf(scores, range, answer.method);
  const rows = answer.results.slice(0, MOST).map((result) => {
    const { index, score } = result;
    const scored = !reasons.has(index);
    const text = candidates[index];
    const [label, title] = REASONS[reasons.get(index)] ?? REASONS.unknown;
    return element(
      "li",
      { class: scored ? "" : "without" },
      scored ? opening(text, link(text, result), () => open(text, result)) : element("span", {}, shortened(text)),
      scored ? bar(score - from, to - from) : tag(label, title, "unknown"),
      element("span", { class: "value" }, scored ? number(score) : "\u2013"),
      ...besides(result, candidates, fields),
    );
  });
  const left = answer.results.length - rows.length;
  const other = by === answer.method ? "" : `, by ${by}`;
  const liked = fields.like !== undefined;
  const what = liked ? "a text you like" : "the query";
  const told = `${note} Choose a text to see how it compares with ${what}, word by word${other}.`;
  return [
    element("h2", {}, `Ranked by similarity to ${liked ? "texts you like" : "the query"}, with ${answer.method}`),
    scores.length > 0 ? element("p", { class: "hint" }, told.trim()) : null,
    element("ol", { class: "ranked" }, ...rows),
    left > 0 ? element("p", { class: "hint" }, `${left} more are not shown.`) : null,
  ].filter((part) => part !== null);
}

/** What is told of a result below its text: the words that speak for it, and what it stands for. */
function besides({ words = [], like, duplicates = [] }, candidates, fields) {
  const lines = [];
  if (words.length > 0) {
    const shares = words.map(({ token, share }) => `${token} ${number(share)}`).join(", ");
    const liked = like === undefined ? "" : ` with \u201c${shortened(fields.like[like])}\u201d`;
    lines.push(`By the words ${shares}${liked}.`);
  }
  for (const { index, similarity } of duplicates) {
    lines.push(`Stands for \u201c${shortened(candidates[index])}\u201d, alike by ${number(similarity)}.`);
  }
  return lines.map((line) => element("p", { class: "hint beside" }, line));
}

/** A text that opens its explanation. */
function opening(text, link, open) {
  const made = element("a", { href: link || location.pathname, class: "candidate" }, shortened(text));
  made.addEventListener("click", (event) => {
    // Whoever wants the link in a tab of its own gets it there.
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    open();
  });
  return made;
}

/** Which scores have no bar and a full one. Scores without bounds are drawn against their list. */
export function scaleOf(scores, [least, most], method) {
  if (Number.isFinite(least) && Number.isFinite(most)) return { from: 0, to: most, note: "" };
  const [low, high] = [Math.min(...scores), Math.max(...scores)];
  const unbounded = `Scores of ${method} have no fixed range: bars run from`;
  if (low >= 0) return { from: 0, to: high, note: `${unbounded} 0 to the best score of this list.` };
  // The last one keeps a short bar; where all are alike, all have a full one.
  const room = high > low ? 0.06 * (high - low) : 1;
  return { from: low - room, to: high, note: `${unbounded} the lowest to the highest score of this list.` };
}
