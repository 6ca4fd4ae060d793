// A question as the part of the page's address behind `#`. That part stays in the browser: it is sent
// to no server. What the fields mean is not known here.

/** Most characters of such a part: chat programs and browsers cut longer addresses. */
const LONGEST = 8000;

const TEXTS = {
  compare: ["a", "b"],
  matrix: ["many"],
  pairs: ["table"],
  rank: ["query", "candidates"],
  collections: ["wanted", "liked", "disliked", "filter", "within"],
  events: ["stream"],
};
const MORE = {
  compare: ["all"],
  matrix: [],
  pairs: ["first", "second", "label"],
  rank: ["like", "unlike", "collapse", "diversify", "explain", "beside"],
  collections: ["collection", "varied", "reasons"],
  events: ["of", "sort"],
};
const SETTINGS = ["model", "method", "measure"];

/** The names of the tabs, the first one first. */
export const TABS = Object.keys(TEXTS);

/** The fields that hold the texts of a tab. */
export const textsOf = (tab) => TEXTS[tab];

/** The part for a question, `""` for the page as it opens, and the texts that it leaves out, the longest first,
    because it would be too long with them. */
export function written(tab, fields) {
  const left = [];
  for (const texts = TEXTS[tab].filter((name) => fields[name] !== undefined); ; ) {
    const names = [...texts, ...MORE[tab], ...SETTINGS].filter((name) => fields[name] !== undefined);
    const asked = new URLSearchParams(names.map((name) => [name, fields[name]])).toString();
    const part = asked === "" && tab === TABS[0] ? "" : `#${tab}${asked === "" ? "" : `?${asked}`}`;
    if (part.length <= LONGEST || texts.length === 0) return { part: part.length > LONGEST ? `#${tab}` : part, left };
    const longest = texts.reduce((one, other) => (fields[other].length > fields[one].length ? other : one));
    texts.splice(texts.indexOf(longest), 1);
    left.push(longest);
  }
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
