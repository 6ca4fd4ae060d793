// A question to the server as programs that ask the same, in each language that is offered. The key is part
// of none. What is asked is not known here.

import { hasKey } from "./asking.js";

/** The languages in which a question to the server is written; the first one is shown at first. */
const LANGUAGES = { curl: shell, Python: python, JavaScript: javascript };

/** The same question in each language, without a body a get. */
export function programs(path, body) {
  const address = location.origin + path;
  return Object.fromEntries(Object.entries(LANGUAGES).map(([name, written]) => [name, written(address, body)]));
}

function shell(address, body) {
  const quote = (text) => `'${text.replaceAll("'", `'\\''`)}'`;
  const lines = [`curl ${quote(address)}`];
  if (hasKey()) lines.push(`-H "Authorization: Bearer $API_KEY"`);
  if (body !== undefined) lines.push("-H 'Content-Type: application/json'", `-d ${quote(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

function python(address, body) {
  const headers = [];
  if (body !== undefined) headers.push('"Content-Type": "application/json"');
  if (hasKey()) headers.push('"Authorization": "Bearer " + os.environ["API_KEY"]');
  const sent = body === undefined ? "" : ", json.dumps(body).encode()";
  const named = headers.length === 0 ? "" : `${sent === "" ? ", headers=" : ", "}{${headers.join(", ")}}`;
  return [
    `import json, ${hasKey() ? "os, " : ""}urllib.request`,
    "",
    ...(body === undefined ? [] : [`body = ${literal(body)}`]),
    `request = urllib.request.Request(${JSON.stringify(address)}${sent}${named})`,
    "print(json.load(urllib.request.urlopen(request)))",
  ].join("\n");
}

/** A value as Python writes it: its strings are those of JSON. */
function literal(value) {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    const fields = Object.entries(value).filter(([, field]) => field !== undefined);
    return `{${fields.map(([name, field]) => `${JSON.stringify(name)}: ${literal(field)}`).join(", ")}}`;
  }
  return { true: "True", false: "False", null: "None" }[String(value)] ?? JSON.stringify(value);
}

function javascript(address, body) {
  const headers = [];
  if (body !== undefined) headers.push('"Content-Type": "application/json"');
  if (hasKey()) headers.push("Authorization: `Bearer ${process.env.API_KEY}`");
  const options = body === undefined ? [] : ['method: "POST"'];
  if (headers.length > 0) options.push(`headers: { ${headers.join(", ")} }`);
  if (body !== undefined) options.push(`body: JSON.stringify(${JSON.stringify(body)})`);
  const how = options.length === 0 ? "" : `, {\n${options.map((option) => `  ${option},\n`).join("")}}`;
  return `const answer = await fetch(${JSON.stringify(address)}${how});\nconsole.log(await answer.json());`;
}
