// Builds what the page shows. Texts become text nodes and never markup, whatever is in them.

/** An element with attributes, and with children that are elements or texts. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

/** A number with two digits after the point; what is shown as zero has no sign. */
export function number(value) {
  const rounded = value.toFixed(2);
  return Number(rounded) === 0 ? "0.00" : rounded.replace("-", "\u2212");
}

/** A bar as long as the value is large against `full`. The number stands beside it. */
export function bar(value, full) {
  const fill = element("span", { class: value < 0 ? "fill against" : "fill" });
  const part = full > 0 ? Math.min(Math.abs(value) / full, 1) : 0;
  fill.style.width = `${(100 * part).toFixed(1)}%`;
  return element("span", { class: "track", "aria-hidden": "true" }, fill);
}

/** A word or two that tells something about its neighbour. */
export function tag(text, title, kind) {
  return element("span", { class: `tag ${kind}`, title }, text);
}
