// Shows a ranking: candidates best first, each with its score.

import { bar, element, number, tag } from "./elements.js";

/** Most candidates that are shown. */
const MOST = 200;

/** A ranking of the candidates that were asked about. */
export function ranking(answer, candidates, range) {
  const unscored = new Set(answer.unscored);
  const scores = answer.results.map(({ score }) => Math.abs(score));
  // Rankers have scores without bounds; those are shown against the largest.
  const full = Math.max(...(range.every(Number.isFinite) ? range.map(Math.abs) : scores));
  const rows = answer.results.slice(0, MOST).map(({ index, score }) => {
    const scored = !unscored.has(index);
    return element(
      "li",
      { class: scored ? "" : "without" },
      element("span", { class: "candidate" }, candidates[index]),
      scored ? bar(score, full) : tag("no known word", "Nothing to score it by", "unknown"),
      element("span", { class: "value" }, scored ? number(score) : "\u2013"),
    );
  });
  const left = answer.results.length - rows.length;
  return [
    element("h2", {}, `By likeness to the query, with ${answer.method}`),
    element("ol", { class: "ranked" }, ...rows),
    left > 0 ? element("p", { class: "hint" }, `${left} more are not shown.`) : null,
  ].filter((part) => part !== null);
}
