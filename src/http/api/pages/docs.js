// Draws the document of this server. No validator is asked: nothing of it leaves this host.
"use strict";

const dark = matchMedia("(prefers-color-scheme: dark)");
const follow = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", follow);
follow();

const surface = document.getElementById("surface");
// What is asked most stands first in its group; the rest follows in the order of the alphabet.
const FIRST = ["/similarity", "/rank", "/embed", "/explain", "/models"];

function place(operation) {
  const found = FIRST.indexOf(operation.get("path"));
  return found < 0 ? FIRST.length : found;
}

/** What stands in the fields of parameters, so that an operation can be executed as it is shown: the examples of
    bodies make a collection `news` with these items. */
const PARAMETERS = {
  name: "news",
  id: "a",
  model: "default",
  method: "avg-cos",
  names: "lang",
  follow: false,
  all: true,
};
/** Parameters that are only filled in where they stand in the address. */
const ONLY_IN_PATHS = ["model", "method"];
// Of an operation what makes stands first, and what deletes last.
const METHODS = ["put", "post", "get", "patch", "delete"];

/** Fills in the fields of an operation; of its examples those come first that need nothing stored. */
function fillIn(path, operation) {
  for (const parameter of operation.parameters ?? []) {
    if (ONLY_IN_PATHS.includes(parameter.name) && parameter.in !== "path") continue;
    const example = path.startsWith("/v1/models") ? "default" : PARAMETERS[parameter.name];
    if (example !== undefined) parameter.example = example;
  }
  for (const content of Object.values(operation.requestBody?.content ?? {})) {
    if (!content.examples) continue;
    const stored = ([, { value }]) => Object.hasOwn(value, "collection");
    const examples = Object.entries(content.examples).sort((one, other) => stored(one) - stored(other));
    content.examples = Object.fromEntries(examples);
  }
}

/** What the drawing does not need or cannot show. */
function prepared(spec) {
  // There is one server, this one.
  delete spec.servers;
  // Locks would ask for keys where none are set.
  const locked = surface.dataset.keys === "true";
  if (!locked) delete spec.components.securitySchemes;
  const operations = Object.entries(spec.paths).flatMap(([path, own]) => Object.values(own).map((one) => [path, one]));
  for (const [path, operation] of operations) {
    fillIn(path, operation);
    if (!locked) delete operation.security;
    // Summaries are drawn as they stand, without markup.
    if (operation.summary) operation.summary = operation.summary.replaceAll("`", "");
  }
  return spec;
}

/** An answer of the document: of a refusal its codes are told, and its examples are folded. */
function foldRefusals(Response, { React }) {
  return class extends Response {
    render() {
      const row = super.render();
      if (!/^[45]/.test(this.props.code)) return row;
      const cells = React.Children.toArray(row.props.children);
      const told = cells.findIndex((cell) => cell.props.className?.includes("description"));
      const [codes, ...examples] = React.Children.toArray(cells[told].props.children);
      const summary = React.createElement("summary", null, "Examples");
      const folded = React.createElement("details", { className: "refusal" }, summary, ...examples);
      cells[told] = React.cloneElement(cells[told], null, codes, folded);
      return React.cloneElement(row, null, cells);
    }
  };
}

async function draw() {
  const answer = await fetch("/openapi.json");
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  SwaggerUIBundle({
    spec: prepared(await answer.json()),
    dom_id: "#surface",
    deepLinking: true,
    plugins: [{ wrapComponents: { response: foldRefusals } }],
    validatorUrl: null,
    displayRequestDuration: true,
    defaultModelsExpandDepth: 0,
    operationsSorter: (one, other) =>
      place(one) - place(other) ||
      one.get("path").localeCompare(other.get("path")) ||
      METHODS.indexOf(one.get("method")) - METHODS.indexOf(other.get("method")),
  });
}

draw().catch((error) => {
  surface.textContent = `The document cannot be read (${error.message}). Reload the page to try again.`;
});
