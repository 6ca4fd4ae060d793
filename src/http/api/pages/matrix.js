// The tab of many texts: all their pairs as a map of colours, in an order in which like stands beside like, with
// groups by a threshold.

import { Refusal } from "./asking.js";
import { element, number, scrolling, shortened, thresholdRow } from "./elements.js";
import { groupsAt, linked } from "./groups.js";
import { scorePairs } from "./scoring.js";
import { download, written } from "./table.js";

/** Most texts. */
const MOST = 200;
/** Pixels of a cell: at most, and from which on it has a number or its row a text; and of that text. */
const LARGEST = 44;
const NUMBERED = 34;
const LABELLED = 13;
const LABEL = 240;

/** Refuses fewer than two texts, and more than are drawn. */
export function checkLength(length) {
  if (length < 2) throw new Refusal(0, { title: "Too few texts", detail: "Two texts, one a line, is the least." });
  if (length <= MOST) return;
  const detail = `The list has ${length.toLocaleString("en")} texts, and ${MOST} is the most that is drawn.`;
  throw new Refusal(0, { title: "Too many texts", detail });
}

/** The scores of all pairs, which of them are opposed, and the answer of the last request. */
export async function scoreAll(texts, chosen, signal) {
  const count = texts.length;
  const places = [];
  for (let one = 0; one < count; one += 1) for (let other = one + 1; other < count; other += 1) places.push([one, other]);
  const pairs = places.map(([one, other]) => [texts[one], texts[other]]);
  const found = await scorePairs(pairs, chosen, signal);
  const scores = new Float32Array(count * count);
  const opposed = new Set();
  for (const [at, [one, other]] of places.entries()) {
    scores[one * count + other] = scores[other * count + one] = found.scores[at];
    if (found.opposed.has(at)) opposed.add(one * count + other).add(other * count + one);
  }
  return { scores, opposed, answer: found.answer };
}

/** The map of the texts and their groups; `open` compares two of them. */
export function matrix(texts, { scores, opposed, answer }, [, most], threshold, open) {
  const count = texts.length;
  const tree = linked(scores, count);
  const { order } = tree;
  let groups = [];
  const title = element("h2", { "aria-live": "polite" });
  const told = element("p", { class: "hint", "aria-live": "polite" });
  const list = element("div");
  const canvas = element("canvas", {
    tabindex: "0",
    role: "img",
    "aria-label": "The scores of all pairs. The arrow keys choose a pair, and Enter compares it.",
  });
  const at = (row, column) => order[row] * count + order[column];
  const drawn = drawing(canvas, { count, label: (row) => `${order[row] + 1}  ${texts[order[row]]}` }, (row, column) => {
    const place = at(row, column);
    return row === column ? null : { score: scores[place], part: scores[place] / most, opposed: opposed.has(place) };
  });
  const tell = ([row, column]) => {
    const [one, other] = [order[row], order[column]];
    const named = (place) => `${place + 1} \u201c${shortened(texts[place])}\u201d`;
    const verdict = opposed.has(at(row, column)) ? ", opposed" : "";
    told.textContent =
      row === column ? named(one) : `${named(one)} and ${named(other)}: ${number(scores[at(row, column)])}${verdict}`;
  };
  following(canvas, drawn, tell, ([row, column]) => row !== column && open(texts[order[row]], texts[order[column]]));
  const show = (least) => {
    groups = groupsAt(tree, least);
    const several = groups.filter((group) => group.length > 1);
    const alone = groups.length - several.length;
    title.textContent =
      `${several.length} group${several.length === 1 ? "" : "s"} and ${alone} text${alone === 1 ? "" : "s"} ` +
      `alone, with ${answer.method}`;
    drawn.outline(groups.map((group) => group.length));
    list.replaceChildren(...several.map((group, place) => groupList(group, place, texts)));
  };
  const [row, start] = thresholdRow("matrix-threshold", threshold ?? 0.5, show);
  start();
  const save = element("button", { type: "button" }, "Download as CSV");
  save.addEventListener("click", () => download("matrix.csv", written(rowsOf(texts, order, groups, scores))));
  const calibrated = threshold === undefined ? "" : " It begins at the one calibrated for pairs.";
  const note =
    "Texts that are alike stand beside each other. A group holds texts whose mean score reaches the threshold " +
    `(average linkage).${calibrated} A grey cell is a pair that is opposed. Choose a cell to compare its texts.`;
  told.textContent = "Point at a cell, or use the arrow keys.";
  const tools = element("div", { class: "tools" }, save);
  return [title, row, element("p", { class: "hint" }, note), scrolling(canvas, "The map"), told, tools, list];
}

function groupList(group, place, texts) {
  const items = group.map((text) => element("li", { value: text + 1 }, shortened(texts[text])));
  return element("section", {}, element("h3", {}, `Group ${place + 1}: ${group.length} texts`), element("ol", {}, ...items));
}

/** A row a text: its group, itself, and its score with each. */
function rowsOf(texts, order, groups, scores) {
  const groupOf = new Map(groups.flatMap((group, place) => group.map((text) => [text, place + 1])));
  const row = (one) => order.map((other) => (one === other ? "" : scores[one * texts.length + other]));
  const rows = order.map((one) => [groupOf.get(one), texts[one], ...row(one)]);
  return [["group", "text", ...order.map((one) => texts[one])], ...rows];
}

/** Draws cells on a canvas; `cellOf` says what is at a row and a column. */
function drawing(canvas, { count, label }, cellOf) {
  let sizes = [];
  let cursor = null;
  let side = 0;
  let left = 0;
  const draw = () => {
    const room = canvas.parentElement?.clientWidth ?? 0;
    if (room === 0) return;
    const beside = Math.min(LABEL, 0.4 * room);
    side = Math.min(LARGEST, Math.floor((room - beside) / count));
    left = side >= LABELLED ? beside : 0;
    if (left === 0) side = Math.max(2, Math.min(LABELLED - 1, Math.floor(room / count)));
    const [width, height] = [left + side * count, side * count];
    const scale = devicePixelRatio;
    [canvas.width, canvas.height] = [width * scale, height * scale];
    [canvas.style.width, canvas.style.height] = [`${width}px`, `${height}px`];
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    const on = canvas.getContext("2d");
    on.scale(scale, scale);
    on.textBaseline = "middle";
    const gap = side > 8 ? 1 : 0;
    for (let row = 0; row < count; row += 1) {
      const y = row * side;
      if (left > 0) {
        on.font = `${Math.min(14, side - 1)}px ${style.fontFamily}`;
        on.fillStyle = colour("ink");
        let text = label(row);
        while (text.length > 1 && on.measureText(text).width > left - 8) text = `${text.slice(0, -2)}\u2026`;
        on.fillText(text, 0, y + side / 2);
      }
      for (let column = 0; column < count; column += 1) {
        const cell = cellOf(row, column);
        if (cell === null) continue;
        const x = left + column * side;
        const ground = cell.opposed ? "soft" : cell.score < 0 ? "against" : "for";
        const part = Math.round(85 * Math.min(1, Math.abs(cell.part)) ** 1.5);
        on.fillStyle = `color-mix(in srgb, ${colour(ground)} ${part}%, ${colour("track")})`;
        on.fillRect(x, y, side - gap, side - gap);
        if (side < NUMBERED) continue;
        on.font = `12px ${style.fontFamily}`;
        on.fillStyle = colour("ink");
        on.textAlign = "center";
        on.fillText(number(cell.score), x + (side - gap) / 2, y + side / 2);
        on.textAlign = "start";
      }
    }
    on.strokeStyle = colour("ink");
    on.lineWidth = 2;
    let from = 0;
    for (const size of sizes) {
      if (size > 1) on.strokeRect(left + from * side, from * side + 1, size * side - gap, size * side - gap - 1);
      from += size;
    }
    if (cursor === null) return;
    on.strokeStyle = colour("accent");
    on.lineWidth = 3;
    on.strokeRect(left + cursor[1] * side, cursor[0] * side + 1, side - gap, side - gap);
  };
  new ResizeObserver(() => canvas.parentElement && draw()).observe(document.body);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => canvas.isConnected && draw());
  requestAnimationFrame(draw);
  return {
    outline(those) {
      sizes = those;
      draw();
    },
    /** Marks a cell, or none. */
    mark(cell) {
      cursor = cell;
      draw();
    },
    cursor: () => cursor,
    /** The cell at a point of the canvas, where there is one. */
    at(x, y) {
      const cell = [Math.floor(y / side), Math.floor((x - left) / side)];
      return cell.every((place) => place >= 0 && place < count) ? cell : null;
    },
    last: count - 1,
  };
}

/** Lets pointer and arrow keys choose a cell. */
function following(canvas, drawn, tell, open) {
  const choose = (cell) => {
    if (cell === null) return;
    drawn.mark(cell);
    tell(cell);
  };
  canvas.addEventListener("pointermove", ({ offsetX, offsetY }) => choose(drawn.at(offsetX, offsetY)));
  canvas.addEventListener("click", ({ offsetX, offsetY }) => {
    const cell = drawn.at(offsetX, offsetY);
    if (cell !== null) open(cell);
  });
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  canvas.addEventListener("keydown", (event) => {
    const cell = drawn.cursor() ?? [0, 0];
    if (event.key === "Enter") open(cell);
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    choose(cell.map((place, axis) => Math.max(0, Math.min(drawn.last, place + step[axis]))));
  });
}
