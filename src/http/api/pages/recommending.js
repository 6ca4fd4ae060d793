// The fields of the list's tab beyond query and candidates: liked and disliked texts, duplicates, variety,
// reasons. What is made of an answer is not known here.

const by = (id) => document.getElementById(id);

/** The names of the fields, as an address names them. */
export const FIELDS = ["like", "unlike", "collapse", "diversify", "explain"];

/** The texts of a field, one a line. */
export function linesOf(id) {
  const lines = by(id).value.split("\n").map((line) => line.trim());
  return lines.filter((line) => line !== "");
}

/** The number of a field, or null where there is none. */
function numberOf(id) {
  const text = by(id).value.trim();
  return text === "" || !Number.isFinite(Number(text)) ? null : Number(text);
}

/** What candidates are compared with, and what is made of them, as fields of a question. */
export function recommending(query) {
  const [like, unlike] = [linesOf("like"), linesOf("unlike")];
  const fields = like.length > 0 ? { like } : { query };
  if (like.length > 0 && unlike.length > 0) fields.unlike = unlike;
  const [collapse, lambda] = [numberOf("collapse"), numberOf("diversify")];
  if (collapse !== null) fields.collapse = collapse;
  if (lambda !== null) fields.diversify = { lambda };
  if (by("explain").checked) fields.explain = true;
  return fields;
}

/** The fields that are filled in, as they stand in an address. */
export function filledIn() {
  const fields = {};
  for (const id of FIELDS) {
    const value = id === "explain" ? (by(id).checked ? "1" : "") : by(id).value;
    if (value.trim() !== "") fields[id] = value;
  }
  return fields;
}

/** Fills in what an address names, and shows it. */
export function fillIn(fields) {
  for (const id of FIELDS) {
    if (id === "explain") by(id).checked = fields[id] === "1";
    else by(id).value = fields[id] ?? "";
  }
  if (FIELDS.some((id) => fields[id] !== undefined)) by("more").open = true;
}
