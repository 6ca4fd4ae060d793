// Words and phrases that tell an event apart from the stream that it stands in, by the same rule as the
// service names the events of a collection. Only the words that are too common to name anything are listed
// here, because this page does not have the counts of the model.

/** Words of three letters and more that make up over a thousandth of English, by the counts of the default model. */
const COMMON = new Set(
  (
    "the and for was that with from his this not are have but you which were has had one they her all she who their " +
    "also new said will been first there its after more would when utc two about other can people out time talk some " +
    "into what him may our only made than over year years world now like them should then such"
  ).split(" "),
);
/** The share of the texts with a word in which it stands beside another one, from which on both are one name. */
const TOGETHER = 0.6;
/** The fewest texts that hold a phrase. */
const LEAST = 2;

/** The words and pairs of words of a text, each once. */
function termsOf(text) {
  const terms = new Set();
  let before = null;
  for (const [word] of text.toLowerCase().replace(/https?:\/\/\S+|@\w+/g, " . ").matchAll(/[\p{L}\p{N}]+/gu)) {
    if ([...word].length < 3 || COMMON.has(word)) {
      before = null;
      continue;
    }
    terms.add(word);
    if (before !== null && before !== word) terms.add(`${before} ${word}`);
    before = word;
  }
  return terms;
}

/** In how many texts each term stands. */
export function countsOf(texts) {
  const counts = new Map();
  for (const text of texts) for (const term of termsOf(text)) counts.set(term, (counts.get(term) ?? 0) + 1);
  return { texts: texts.length, counts };
}

/** The names of an event among all texts, those that tell most first. */
export function namesOf(event, all, most) {
  const share = event.texts / all.texts;
  const told = (word, count) => count * Math.log(count / Math.max((all.counts.get(word) ?? count) * share, 0.01));
  const words = [...event.counts].filter(([term]) => !term.includes(" "));
  words.sort(([one, a], [other, b]) => told(other, b) - told(one, a) || b - a || (one < other ? -1 : 1));
  const phrases = new Map();
  for (const [term, count] of event.counts) {
    const parts = term.split(" ");
    const ofMost = Math.max(...parts.map((part) => event.counts.get(part)));
    if (parts.length < 2 || count < LEAST || count < TOGETHER * ofMost) continue;
    for (const part of parts) {
      if (count > (phrases.get(part)?.count ?? 0)) phrases.set(part, { count, term });
    }
  }
  const names = [];
  const named = new Set();
  for (const [word] of words) {
    if (names.length === most) break;
    if (named.has(word)) continue;
    const phrase = phrases.get(word)?.term;
    const name = phrase && !phrase.split(" ").some((part) => named.has(part)) ? phrase : word;
    name.split(" ").forEach((part) => named.add(part));
    names.push(name);
  }
  return names;
}
