// Tables in files: read from CSV, TSV, lines of JSON or a list of JSON, and written as CSV. What stands in them
// is not known here.

/** Most bytes that are read of a file. */
const MOST_BYTES = 8 << 20;

/** The text of a file, its beginning where it is long, and whether that is all. */
export async function textOf(file) {
  return { text: await file.slice(0, MOST_BYTES).text(), whole: file.size <= MOST_BYTES };
}

/** The names of the columns and the rows of a table, `most` at most, and how many rows there are. */
export function readTable(text, most) {
  const begin = text.replace(/^\ufeff/, "").trimStart();
  const all = begin.startsWith("{") || begin.startsWith("[{") ? objects(begin) : cells(begin);
  return { columns: all.columns, rows: all.rows.slice(0, most), total: all.rows.length };
}

/** Objects of JSON, a line each or in a list; a line that is none is left out. */
function objects(text) {
  const read = (line) => {
    try {
      return JSON.parse(line);
    } catch {
      return null;
    }
  };
  const list = text.startsWith("[") ? (read(text) ?? []) : text.split("\n").map((line) => read(line));
  const found = list.filter((one) => one !== null && typeof one === "object");
  const columns = [...new Set(found.flatMap((one) => Object.keys(one)))];
  const cell = (value) => (typeof value === "object" && value !== null ? JSON.stringify(value) : String(value ?? ""));
  return { columns, rows: found.map((one) => columns.map((name) => cell(one[name]))) };
}

/** Rows of cells between the separator that the first line has most of; the first row names the columns. */
function cells(text) {
  const first = text.split("\n", 1)[0];
  const count = (mark) => first.split(mark).length;
  const separator = ["\t", ",", ";"].reduce((best, mark) => (count(mark) > count(best) ? mark : best));
  const [columns = [], ...rows] = separated(text, separator);
  return { columns: columns.map((name) => name.trim()), rows };
}

/** The rows of a text: between commas by RFC 4180, where a cell in quotes may hold separators, lines, and quotes
    that are doubled; between tabs quotes are letters like others. */
function separated(text, separator) {
  const rows = [];
  let row = [];
  for (let at = 0; at < text.length; ) {
    let cell = "";
    if (text[at] === '"' && separator !== "\t") {
      let from = at + 1;
      let end = text.indexOf('"', from);
      for (; end >= 0 && text[end + 1] === '"'; end = text.indexOf('"', from)) {
        cell += text.slice(from, end + 1);
        from = end + 2;
      }
      if (end < 0) end = text.length;
      cell += text.slice(from, end);
      at = end + 1;
    }
    let end = at;
    while (end < text.length && text[end] !== separator && text[end] !== "\n") end += 1;
    row.push(cell + text.slice(at, end).replace(/\r$/, ""));
    if (end >= text.length || text[end] === "\n") {
      if (row.some((one) => one !== "")) rows.push(row);
      row = [];
    }
    at = end + 1;
  }
  if (row.some((one) => one !== "")) rows.push(row);
  return rows;
}

/** Rows as CSV. A cell that a spreadsheet would compute is no formula: an apostrophe stands before it. */
export function written(rows) {
  const cell = (value) => {
    const text = typeof value === "string" && /^[=+\-@\t]/.test(value) ? `'${value}` : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Gives a text to the reader as a file. */
export function download(name, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}
