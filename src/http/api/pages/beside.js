// Two rankings of one list beside each other, the places of each text joined by a line.

import { element, number } from "./elements.js";

/** Most places that are shown of either. */
const MOST = 50;
const SVG = "http://www.w3.org/2000/svg";

/** The rankings by two methods; `open` compares a text of the list by the method of its side. */
export function beside(answers, candidates, open) {
  const sides = answers.map(({ results, unscored }) => {
    const without = new Set(unscored);
    return results.filter(({ index }) => !without.has(index)).slice(0, MOST);
  });
  const places = sides.map((results) => new Map(results.map(({ index }, place) => [index, place])));
  const rows = Math.max(...sides.map(({ length }) => length), 1);
  const marked = new Map();
  const mark = (index, on) => marked.get(index)?.forEach((part) => part.classList.toggle("marked", on));
  const remember = (index, part) => marked.set(index, [...(marked.get(index) ?? []), part]);
  const lists = sides.map((results, side) => {
    const items = results.map(({ index, score }) => {
      const choose = element("button", { type: "button", class: "candidate" }, candidates[index]);
      choose.addEventListener("click", () => open(candidates[index], answers[side].method));
      const item = element("li", {}, choose, element("span", { class: "value" }, number(score)));
      for (const [event, on] of [["pointerenter", true], ["pointerleave", false], ["focusin", true], ["focusout", false]]) {
        item.addEventListener(event, () => mark(index, on));
      }
      remember(index, item);
      return item;
    });
    return element("div", {}, element("h3", {}, answers[side].method), element("ol", {}, ...items));
  });
  const lines = document.createElementNS(SVG, "svg");
  lines.setAttribute("viewBox", `0 0 100 ${rows}`);
  lines.setAttribute("preserveAspectRatio", "none");
  lines.setAttribute("aria-hidden", "true");
  lines.style.setProperty("--rows", rows);
  for (const [index, place] of places[0]) {
    if (!places[1].has(index)) continue;
    const line = document.createElementNS(SVG, "line");
    const ends = { x1: 0, y1: place + 0.5, x2: 100, y2: places[1].get(index) + 0.5 };
    for (const [name, value] of Object.entries(ends)) line.setAttribute(name, value);
    if (ends.y1 !== ends.y2) line.classList.add("moved");
    lines.append(line);
    remember(index, line);
  }
  const agreed = [...places[0]].filter(([index, place]) => place < 10 && places[1].get(index) < 10).length;
  const first = Math.min(10, sides[0].length);
  const note = `Of the first ${first} of either ${agreed} are the same. A line joins the places of a text. Choose a text to see its words by that method.`;
  return [
    element("h2", {}, `${answers[0].method} beside ${answers[1].method}`),
    element("p", { class: "hint" }, note),
    element("div", { class: "beside-lists" }, lists[0], lines, lists[1]),
  ];
}
