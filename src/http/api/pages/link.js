// A question as the part of the page's address behind `#`. That part stays in the browser: it is sent
// to no server. What the fields mean is not known here.

/** Most characters of such a part: chat programs and browsers cut longer addresses. */
const LONGEST = 8000;

const TEXTS = {
  compare: ["a", "b"],
  rank: ["query", "candidates"],
  collections: ["wanted", "liked", "disliked", "filter", "within"],
  events: ["stream"],
};
const MORE = {
  compare: [],
  rank: ["like", "unlike", "collapse", "diversify", "explain"],
  collections: ["collection", "varied", "reasons"],
  events: ["of", "sort"],
};
const SETTINGS = ["model", "method", "measure"];

/** The names of the tabs, the first one first. */
export const TABS = Object.keys(TEXTS);

/** The fields that hold the texts of a tab. */
export const textsOf = (tab) => TEXTS[tab];

/** The part for a question, `""` for the page as it opens, or null where it would be too long. */
export function written(tab, fields) {
  const names = [...TEXTS[tab], ...MORE[tab], ...SETTINGS].filter((name) => fields[name] !== undefined);
  const asked = new URLSearchParams(names.map((name) => [name, fields[name]])).toString();
  if (asked === "") return tab === TABS[0] ? "" : `#${tab}`;
  const part = `#${tab}?${asked}`;
  return part.length > LONGEST ? null : part;
}

/** The tab and the fields that such a part names; null where it is none of ours. */
export function read(part) {
  if (part.length > LONGEST) return null;
  const [, tab, asked] = /^#?([a-z]*)\??(.*)$/s.exec(part);
  if (tab !== "" && !Object.hasOwn(TEXTS, tab)) return null;
  const known = tab || TABS[0];
  const given = new URLSearchParams(asked);
  const names = [...TEXTS[known], ...MORE[known], ...SETTINGS].filter((name) => given.has(name));
  return { tab: known, fields: Object.fromEntries(names.map((name) => [name, given.get(name)])) };
}
