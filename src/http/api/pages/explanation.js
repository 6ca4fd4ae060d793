// Shows why two texts scored as they did, from the answer of `/explain`.

import { bar, element, number, scrolling, shortened, tag } from "./elements.js";

/** Most words of a text that are listed and drawn at once; the others are folded away. */
const MOST = 12;
/** Most words of a text that are listed at all. */
const MOST_FOLDED = 300;

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
  const [word, kind] = judged({ ...answer, opposed: answer.opposes?.length > 0 }, threshold);
  return [
    banner(answer),
    element(
      "p",
      { class: "score", "data-score": answer.score },
      element("span", { class: "unseen" }, "Score "),
      element("strong", {}, shown),
      word === null ? null : element("span", { class: `judged ${kind}` }, word),
      element("span", { class: "hint" }, ` by ${how}`),
    ),
    ...(answer.opposes ?? []).map(opposition),
    answer.unscored ? null : scale(answer.score, range, threshold, kind),
    element("p", { class: "sentence" }, answer.sentence),
    answer.unscored || !threshold ? null : element("p", {}, judgement(answer, threshold)),
  ].filter((part) => part !== null);
}

/** One way in which the texts are opposed, and the words that carry it. */
function opposition({ kind, a, b }) {
  const sides = [a, b].filter((words) => words.length > 0);
  const words = sides.map((words) => words.map(({ token }) => shortened(token)).join(", "));
  return element("p", { class: "opposed" }, `Opposed by ${kind}: ${words.join(" against ")}`);
}

/** Which words nothing is known of, where that is half of a text or more. */
export function banner({ a, b }, names = ["first text", "second text"]) {
  const lines = [a, b].map((side, place) => {
    const made = side.words.filter(({ found }) => MADE.includes(found));
    const unknown = [...made, ...side.unknown].map(({ token }) => token);
    const all = side.words.length + side.unknown.length;
    if (names[place] === undefined || unknown.length === 0 || 2 * unknown.length < all) return null;
    const some = unknown.slice(0, 6).map((token) => `\u201c${shortened(token)}\u201d`).join(", ");
    const more = unknown.length > 6 ? " and others" : "";
    const count = all === 1 ? "The only word" : `${unknown.length} of ${all} words`;
    const verb = unknown.length === 1 ? "is" : "are";
    return `${count} of the ${names[place]} ${verb} not in the model's vocabulary: ${some}${more}.`;
  });
  const told = lines.filter((line) => line !== null);
  if (told.length === 0) return null;
  const note = "Scores of such texts say little: check the language and the spelling.";
  return element("div", { class: "banner", role: "note" }, ...[...told, note].map((line) => element("p", {}, line)));
}

/** Where the score lies between the least and the most there can be. */
function scale(score, [least, most], threshold, kind) {
  if (!Number.isFinite(least) || !Number.isFinite(most)) return null;
  // Scores below zero are rare; without one the lower half would be empty.
  const low = Math.min(score, threshold?.threshold ?? 0) >= 0 ? Math.max(least, 0) : least;
  const part = (value) => `${((100 * value) / (most - low)).toFixed(2)}%`;
  const line = element("div", { class: "line" });
  const put = (kind, from, to) => {
    const mark = element("span", { class: kind });
    mark.style.left = part(from - low);
    if (to !== undefined) mark.style.width = part(to - from);
    line.append(mark);
  };
  put(`reach ${kind}${score < 0 ? " against" : ""}`, Math.min(0, score), Math.max(0, score));
  const shown = element("div", { class: "scale", "aria-hidden": "true" });
  if (threshold) {
    const at = part(threshold.threshold - low);
    const label = element("span", {}, `threshold ${number(threshold.threshold)}`);
    label.style.left = at;
    // As much of the label lies left of the mark as of the line does: it never leaves the line.
    label.style.transform = `translateX(-${at})`;
    shown.append(element("div", { class: "above" }, label));
    put("threshold", threshold.threshold);
  }
  put("mark", score);
  const ends = low < 0 ? [low, 0, most] : [low, most];
  const labels = ends.map((end) => element("span", {}, String(end).replace("-", "\u2212")));
  shown.append(line, element("div", { class: "ends" }, ...labels));
  return shown;
}

/** The verdict on a pair in a word or two, and its kind; null without a threshold. A pair that is opposed is
    not related, whatever its score. */
export function judged({ score, unscored, opposed }, threshold) {
  if (unscored) return ["no score", "unscored"];
  if (opposed) return ["opposed", "opposed"];
  if (!threshold) return [null, ""];
  return score >= threshold.threshold ? ["related", "related"] : ["not related", "apart"];
}

function judgement({ score, opposes = [] }, { threshold, precision, recall, prior }) {
  const side = score >= threshold ? "above" : "below";
  const but = opposes.length > 0 && side === "above" ? ", and yet the texts are not related, as they are opposed" : "";
  const percent = (part) => `${Math.round(100 * part)} %`;
  const where = prior ? `, of which ${100 * prior} % are related` : "";
  return (
    `The score is ${side} the calibrated threshold of ${number(threshold)}${but}. Of pairs like those it was ` +
    `calibrated on${where}, ${percent(precision)} of those above it are related, and ${percent(recall)} of the ` +
    `related are above it.`
  );
}

/** All that is known of how the score came about. */
export function explanation(answer, texts) {
  const parts = [wordCards(answer, texts)];
  const drawn = closest(answer);
  if (answer.matrix.length > 0 && answer.b.words.length > 0) parts.push(matrixCard(answer, drawn));
  if (answer.memberships) parts.push(membershipCard(answer, drawn));
  return parts;
}

/** The places of the words of either text that are drawn: of many, those closest to the other text. */
function closest({ a, b, matrix }) {
  const chosen = (words, nearness) => {
    const all = [...words.keys()];
    if (all.length <= MOST) return all;
    const places = all.filter((place) => words.findIndex(({ token }) => token === words[place].token) === place);
    places.sort((one, other) => nearness(other) - nearness(one));
    return places.slice(0, MOST).sort((one, other) => one - other);
  };
  const ofRow = matrix.map((row) => Math.max(...row));
  const ofColumn = b.words.map((_, column) => Math.max(...matrix.map((row) => row[column])));
  return {
    a: chosen(a.words, (row) => ofRow[row]),
    b: chosen(b.words, (column) => ofColumn[column]),
  };
}

/** What is left out of a drawing. */
function leftOut({ a, b }, drawn) {
  const cut = a.words.length > drawn.a.length || b.words.length > drawn.b.length;
  return cut ? ` Of each text the ${MOST} words are shown that are closest to the other text.` : "";
}

function card(title, note, ...children) {
  const head = element("h2", {}, title);
  return element("section", { class: "card" }, head, element("p", { class: "hint" }, note), ...children);
}

function wordCards(answer, texts) {
  const sides = [answer.a, answer.b];
  const full = Math.max(0, ...sides.map(largestShare));
  const lists = sides.map((side, place) =>
    element(
      "div",
      {},
      element("h3", {}, shortened(texts[place])),
      wordList(marked(side, answer.opposes ?? [], "ab"[place]), answer.adds_up ? full : 0),
    ),
  );
  const note = answer.adds_up
    ? "The shares of all words add up to the score. A share below zero pulls it down."
    : `The score of ${answer.method} cannot be split by word, so words are shown without shares.`;
  const both = element("div", { class: "texts" }, ...lists);
  return card("What each word adds", note, both, ...legend(sides));
}

/** A text whose words name the kind by which they oppose it to the other. */
function marked(side, opposes, at) {
  const kinds = new Map(opposes.flatMap((told) => told[at].map(({ span }) => [span.join(), told.kind])));
  const words = side.words.map((word) => ({ ...word, opposed: kinds.get(word.span.join()) }));
  return { ...side, words };
}

/** The largest share that is drawn of a text. */
function largestShare({ words, unknown }) {
  const all = [...words, ...unknown].map((word) => ({ word }));
  const drawn = all.length > MOST + 2 ? merged(all) : all;
  return Math.max(0, ...drawn.map(({ word }) => Math.abs(word.share ?? 0)));
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
  const all = [
    ...words.map((word) => ({ word, row: wordRow })),
    ...unknown.map((word) => ({ word, row: unknownRow })),
  ];
  // In a long text a word that stands there several times is listed once, with what it adds in all.
  const rows = all.length > MOST + 2 ? merged(all) : all;
  const list = (listed) =>
    element("ul", { class: full > 0 ? "words with-shares" : "words" }, ...listed.map(({ word, row, count }) => row(word, full, count)));
  if (rows.length === 0) return element("p", { class: "hint" }, "no words at all");
  if (rows.length <= MOST + 2) return list(rows);
  // The words that add or take most, in the order of the text.
  const size = ({ word }) => Math.abs(word.share ?? 0);
  const first = new Set([...rows].sort((one, other) => size(other) - size(one)).slice(0, MOST));
  const others = rows.filter((row) => !first.has(row)).slice(0, MOST_FOLDED);
  const left = rows.length - first.size - others.length;
  const largest = full > 0 ? `, none with more than ${number(Math.max(...others.map(size)), 3)}` : "";
  const rest = element(
    "details",
    {},
    element("summary", {}, `${others.length} more words${largest}`),
    list(others),
    left > 0 ? element("p", { class: "hint" }, `${left} more are not listed.`) : null,
  );
  return element("div", {}, list(rows.filter((row) => first.has(row))), rest);
}

/** The same rows, each token once. */
function merged(rows) {
  const found = new Map();
  for (const { word, row } of rows) {
    const kept = found.get(word.token);
    if (!kept) {
      found.set(word.token, { word: { ...word }, row, count: 1 });
    } else {
      kept.count += 1;
      kept.word.opposed ??= word.opposed;
      if (typeof kept.word.share === "number") kept.word.share += word.share ?? 0;
    }
  }
  return [...found.values()];
}

function unknownRow(token, full, count) {
  const name = nameOf(token.token, [tag(...UNKNOWN, "unknown")], null, count);
  return element("li", token.share ? {} : { class: "without" }, name, ...shareOf(token, full));
}

function wordRow(word, full, count) {
  const [label, title] = FOUND[word.found] ?? [];
  const marks = label ? [tag(label, title, MADE.includes(word.found) ? "unknown" : "found")] : [];
  if (word.opposed) marks.push(tag(word.opposed, "It opposes its text to the other", "opposed"));
  const listed = word.word !== null && word.word !== word.token ? word.word : null;
  const other = word.pieces ? word.pieces.join(" ") : listed;
  return element("li", {}, nameOf(word.token, marks, other, count), ...shareOf(word, full));
}

function nameOf(token, marks, word, count = 1) {
  const times = count > 1 ? element("span", { class: "hint" }, ` \u00d7\u2009${count}`) : null;
  const read = word ? element("span", { class: "hint" }, ` as ${word}`) : null;
  const spaced = marks.flatMap((mark) => [" ", mark]);
  return element("span", { class: "word" }, element("span", {}, token), times, read, ...spaced);
}

function shareOf({ share }, full) {
  if (full === 0) return [];
  const known = share !== undefined && share !== null;
  const value = element("span", { class: "value" }, known ? number(share) : "\u2013");
  return [bar(known ? share : 0, full), value];
}

function matrixCard(answer, drawn) {
  const head = drawn.b.map((column) => {
    return element("th", { scope: "col" }, element("span", {}, shortened(answer.b.words[column].token)));
  });
  const body = drawn.a.map((row) => {
    const cells = drawn.b.map((column) => heat(answer.matrix[row][column]));
    return element("tr", {}, rowHead(answer.a.words[row]), ...cells);
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
  const note = `The cosine of every two words: 1 means used in the same way, 0 unrelated.${leftOut(answer, drawn)}`;
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

function membershipCard(answer, drawn) {
  const { a, b, memberships } = answer;
  const all = [...memberships.a, ...memberships.b].flat();
  const full = Math.max(...all.map(Math.abs));
  const listed = new Set();
  // A word of both texts belongs to them alike, wherever it stands.
  const isNew = ({ token }) => !listed.has(token) && listed.add(token);
  const rows = [["a", a], ["b", b]].flatMap(([side, { words }]) =>
    drawn[side].filter((place) => isNew(words[place])).map((place) => {
      const word = words[place];
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
  const told = note + leftOut(answer, drawn);
  return card("How much each word belongs to either text", told, scrolling(table, "Memberships"));
}
