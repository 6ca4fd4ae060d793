// Shows why two texts scored as they did, from the answer of `/explain`.

import { bar, element, number, tag } from "./elements.js";

/** Most words of a text that are shown; a matrix of more is not read by anybody. */
const MOST = 40;

/** How a word was found, where that is worth telling. */
const FOUND = {
  shortened: ["shortened", "In the vocabulary with its drawn-out letters shortened"],
  stem: ["by its stem", "Its stem is in the vocabulary"],
  part: ["a part", "A part of the token is in the vocabulary"],
  n_grams: ["from its letters", "Not in the vocabulary: its vector was made from its letters"],
  pieces: ["from its pieces", "Not in the vocabulary: its vector was made from pieces of the word"],
  hash: ["unknown", "Not in the vocabulary: its vector is a stand-in that resembles no other word"],
};
const MADE = ["n_grams", "pieces", "hash"];
const UNKNOWN = ["unknown", "Not in the vocabulary, and without a vector"];

/** The score and the gist. */
export function verdict(answer, range, threshold) {
  const shown = answer.unscored ? "no score" : number(answer.score);
  const how = answer.measure === "cosine" ? answer.method : `${answer.method}, ${answer.measure}`;
  return [
    element(
      "p",
      { class: "score", "data-score": answer.score },
      element("span", { class: "unseen" }, "Score "),
      element("strong", {}, shown),
      element("span", { class: "hint" }, ` by ${how}`),
    ),
    answer.unscored ? null : scale(answer.score, range, threshold),
    element("p", { class: "sentence" }, answer.sentence),
    answer.unscored || !threshold ? null : element("p", {}, judgement(answer.score, threshold)),
  ].filter((part) => part !== null);
}

/** Where the score lies between the least and the most there can be. */
function scale(score, [least, most], threshold) {
  if (!Number.isFinite(least) || !Number.isFinite(most)) return null;
  const at = (value) => `${(100 * (value - least)) / (most - least)}%`;
  const line = element("div", { class: "line" });
  const put = (kind, from, to) => {
    const mark = element("span", { class: kind });
    mark.style.left = at(from);
    if (to !== undefined) mark.style.width = `${(100 * (to - from)) / (most - least)}%`;
    line.append(mark);
  };
  const from = Math.min(Math.max(0, least), score);
  put(score < 0 ? "reach against" : "reach", from, Math.max(0, score));
  if (threshold) put("threshold", threshold.threshold);
  put("mark", score);
  const ends = least < 0 ? [least, 0, most] : [least, most];
  const labels = ends.map((end) => element("span", {}, String(end).replace("-", "\u2212")));
  const shown = element("div", { class: "scale", "aria-hidden": "true" }, line);
  shown.append(element("div", { class: "ends" }, ...labels));
  return shown;
}

function judgement(score, { threshold, precision, recall, prior }) {
  const side = score >= threshold ? "Related" : "Not related";
  const percent = (part) => `${Math.round(100 * part)} %`;
  const where = prior ? `, of which ${100 * prior} % are related` : "";
  return (
    `${side}: the calibrated threshold is ${number(threshold)}. Of pairs like those it was calibrated ` +
    `on${where}, ${percent(precision)} of those above it are related, and ${percent(recall)} of the ` +
    `related are above it.`
  );
}

/** All that is known of how the score came about. */
export function explanation(answer, texts) {
  const parts = [wordCards(answer, texts)];
  if (answer.matrix.length > 0 && answer.b.words.length > 0) parts.push(matrixCard(answer));
  if (answer.memberships) parts.push(membershipCard(answer));
  return parts;
}

function card(title, note, ...children) {
  const head = element("h2", {}, title);
  return element("section", { class: "card" }, head, element("p", { class: "hint" }, note), ...children);
}

function wordCards(answer, texts) {
  const sides = [answer.a, answer.b];
  const everything = sides.flatMap((side) => [...side.words, ...side.unknown]);
  const full = Math.max(0, ...everything.map((word) => Math.abs(word.share ?? 0)));
  const lists = sides.map((side, place) =>
    element(
      "div",
      {},
      element("h3", {}, texts[place]),
      wordList(side, answer.adds_up ? full : 0),
    ),
  );
  const note = answer.adds_up
    ? "The shares of all words add up to the score. A share below zero pulls it down."
    : `What ${answer.method} scores does not come apart into words, so they are listed without shares.`;
  const both = element("div", { class: "texts" }, ...lists);
  return card("What each word adds", note, both, ...legend(sides));
}

/** What the tags on the words mean, for those that occur. */
function legend(sides) {
  const kinds = new Set(sides.flatMap(({ words }) => words.map((word) => FOUND[word.found])));
  if (sides.some(({ unknown }) => unknown.length > 0)) kinds.add(UNKNOWN);
  return [...kinds]
    .filter((kind) => kind !== undefined)
    .map(([label, title]) => element("p", { class: "hint" }, tag(label, null, "found"), ` ${title}.`));
}

function wordList({ words, unknown }, full) {
  const rows = words.slice(0, MOST).map((word) => wordRow(word, full));
  const left = words.length - rows.length;
  if (left > 0) rows.push(element("li", { class: "hint" }, `${left} more words are not shown`));
  for (const token of unknown.slice(0, MOST)) {
    const without = token.share ? {} : { class: "without" };
    const name = nameOf(token.token, tag(...UNKNOWN, "unknown"));
    rows.push(element("li", without, name, ...shareOf(token, full)));
  }
  const leftUnknown = unknown.length - MOST;
  if (leftUnknown > 0) {
    rows.push(element("li", { class: "hint" }, `${leftUnknown} more unknown tokens`));
  }
  if (rows.length === 0) rows.push(element("li", { class: "hint" }, "no words at all"));
  return element("ul", { class: full > 0 ? "words with-shares" : "words" }, ...rows);
}

function wordRow(word, full) {
  const [label, title] = FOUND[word.found] ?? [];
  const mark = label ? tag(label, title, MADE.includes(word.found) ? "unknown" : "found") : null;
  const listed = word.word !== null && word.word !== word.token ? word.word : null;
  const other = word.pieces ? word.pieces.join(" ") : listed;
  return element("li", {}, nameOf(word.token, mark, other), ...shareOf(word, full));
}

function nameOf(token, mark, word) {
  const read = word ? element("span", { class: "hint" }, ` as ${word}`) : null;
  return element("span", { class: "word" }, element("span", {}, token), read, mark ? " " : null, mark);
}

function shareOf({ share }, full) {
  if (full === 0) return [];
  const known = share !== undefined && share !== null;
  const value = element("span", { class: "value" }, known ? number(share) : "\u2013");
  return [bar(known ? share : 0, full), value];
}

function matrixCard(answer) {
  const [rows, columns] = [answer.a.words, answer.b.words];
  const head = columns.slice(0, MOST).map((word) => element("th", { scope: "col" }, word.token));
  const body = rows.slice(0, MOST).map((word, row) => {
    const cells = answer.matrix[row].slice(0, MOST).map(heat);
    return element("tr", {}, rowHead(word), ...cells);
  });
  const corner = element("th", { scope: "col" }, element("span", { class: "unseen" }, "Word"));
  const caption = "Words of the first text down, of the second across";
  const table = element(
    "table",
    { class: "heat" },
    element("caption", { class: "unseen" }, caption),
    element("thead", {}, element("tr", {}, corner, ...head)),
    element("tbody", {}, ...body),
  );
  const cut = rows.length > MOST || columns.length > MOST ? ` Only ${MOST} words of a text are shown.` : "";
  const note = `The cosine of every two words: 1 means used in the same way, 0 unrelated.${cut}`;
  return card("How close the words are", note, scrolling(table, caption));
}

function rowHead({ token }) {
  return element("th", { scope: "row" }, element("span", {}, token));
}

function heat(cosine) {
  const cell = element("td", { class: cosine < 0 ? "against" : "" }, number(cosine));
  cell.style.setProperty("--heat", Math.min(Math.abs(cosine), 1).toFixed(3));
  return cell;
}

/** A box that scrolls by itself, also by the keyboard. */
function scrolling(content, label) {
  return element("div", { class: "scrolling", role: "region", tabindex: "0", "aria-label": label }, content);
}

function membershipCard({ a, b, memberships }) {
  const all = [...memberships.a, ...memberships.b].flat();
  const full = Math.max(...all.map(Math.abs));
  const rows = [["a", a], ["b", b]].flatMap(([side, { words }]) =>
    words.slice(0, MOST).map((word, place) => {
      const cells = memberships[side][place].map((value) => {
        const shown = element("span", { class: "value" }, number(value));
        return element("td", {}, element("span", { class: "member" }, bar(value, full), shown));
      });
      return element("tr", {}, rowHead(word), ...cells);
    }),
  );
  const titles = ["Word", "in the first text", "in the second text"];
  const head = titles.map((title) => element("th", { scope: "col" }, title));
  const table = element(
    "table",
    { class: "members" },
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...rows),
  );
  const note =
    "Each text is a fuzzy set: every word belongs to it as much as it resembles the text's own " +
    "words. The more alike the two columns, the higher the score.";
  return card("How much each word belongs to either text", note, scrolling(table, "Memberships"));
}
