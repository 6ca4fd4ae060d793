// A stream of short texts as people paste it: a line each, with a time and an id where there are such.
// What is done with them is not known here.

/** Names that a text, a time and an id commonly have. */
const NAMES = {
  text: ["text", "full_text", "tweet", "title", "body", "content"],
  time: ["time", "created_at", "timestamp", "time_utc", "date", "published_at"],
  id: ["id", "id_str", "tweet_id"],
};

/** The moment at which ids of Twitter began to hold their time, in milliseconds. */
const SNOWFLAKE_EPOCH = 1288834974657n;

/**
 * The texts of a stream in the order of their times, or of their lines where one has no time; and
 * how many lines have no text.
 */
export function readStream(pasted) {
  const lines = pasted.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  const columns = columnsOf(lines[0] ?? "");
  const read = (columns ? lines.slice(1) : lines).map((line) => readLine(line, columns));
  const texts = read.filter(({ text }) => text !== "");
  const timed = texts.length > 0 && texts.every(({ time }) => Number.isFinite(time));
  // Sorting is stable: texts of one moment stay in the order of their lines.
  const ordered = timed ? texts.toSorted((one, other) => one.time - other.time) : texts;
  return { texts: ordered, timed, without: read.length - texts.length };
}

/** Where the columns are, if a line is the head of a table. */
function columnsOf(line) {
  if (!line.includes("\t")) return null;
  const heads = line.split("\t").map((head) => head.trim().toLowerCase());
  const find = (names) => heads.findIndex((head) => names.includes(head));
  const columns = { text: find(NAMES.text), time: find(NAMES.time), id: find(NAMES.id) };
  return columns.text < 0 ? null : columns;
}

/** An object of JSON, a row of a table, a time and a text, or a text alone. */
function readLine(line, columns) {
  if (line.startsWith("{")) {
    try {
      return readObject(JSON.parse(line));
    } catch {
      // A text may begin like an object.
    }
  }
  const cells = line.split("\t").map((cell) => cell.trim());
  if (columns) {
    const cell = (name) => cells[columns[name]] ?? "";
    return made(cell("text"), cell("time"), cell("id"));
  }
  if (cells.length > 1 && Number.isFinite(timeOf(cells[0]))) return made(cells.slice(1).join(" "), cells[0], "");
  return made(cells.join(" "), "", "");
}

function readObject(object) {
  const field = (name) => {
    const found = NAMES[name].find((key) => object[key] !== undefined && object[key] !== null);
    return found === undefined ? "" : String(object[found]);
  };
  return made(field("text"), field("time"), object.id_str === undefined ? field("id") : String(object.id_str));
}

function made(text, time, id) {
  const told = time === "" ? NaN : timeOf(time);
  return { text, time: Number.isFinite(told) ? told : timeOfId(id) };
}

/** Milliseconds of a time: of a number, seconds where they are fewer than those of the year 5138. */
function timeOf(text) {
  if (/^\d{9,13}(\.\d+)?$/.test(text)) return Number(text) * (Number(text) < 1e11 ? 1000 : 1);
  // Other numbers are no dates, though browsers read them as years.
  return /^[\d.]*$/.test(text) ? NaN : Date.parse(text);
}

/** Ids of Twitter hold the moment at which they were given. */
function timeOfId(id) {
  return /^\d{15,20}$/.test(id) ? Number((BigInt(id) >> 22n) + SNOWFLAKE_EPOCH) : NaN;
}
