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

/** A number with two digits after the point, or more; what is shown as zero has no sign. */
export function number(value, digits = 2) {
  const rounded = value.toFixed(digits);
  return (Number(rounded) === 0 ? rounded.replace("-", "") : rounded).replace("-", "\u2212");
}

/** Most characters of a text that is shown beside others. */
const LONGEST = 120;

/** The beginning of a text, and how long it is where that is not all. */
export function shortened(text) {
  const characters = [...text];
  if (characters.length <= LONGEST) return text;
  const length = characters.length.toLocaleString("en");
  return `${characters.slice(0, LONGEST - 20).join("").trimEnd()}\u2026 (${length} characters)`;
}

/** A box that scrolls by itself, also by the keyboard, and shows on which side there is more. */
export function scrolling(content, label) {
  const box = element("div", { class: "scrolling", role: "region", tabindex: "0", "aria-label": label }, content);
  const frame = element("div", { class: "frame" }, box);
  const look = () => {
    const hidden = box.scrollWidth - box.clientWidth;
    frame.classList.toggle("more-left", box.scrollLeft > 1);
    frame.classList.toggle("more-right", box.scrollLeft < hidden - 1);
  };
  box.addEventListener("scroll", look, { passive: true });
  new ResizeObserver(look).observe(box);
  return frame;
}

/** A bar as long as the value is large against `full`. The number stands beside it. */
export function bar(value, full, kind = "") {
  const fill = element("span", { class: `fill ${kind}${value < 0 ? " against" : ""}` });
  const part = full > 0 ? Math.min(Math.abs(value) / full, 1) : 0;
  fill.style.width = `${(100 * part).toFixed(1)}%`;
  return element("span", { class: "track", "aria-hidden": "true" }, fill);
}

/** A word or two that tells something about its neighbour. */
export function tag(text, title, kind) {
  return element("span", { class: `tag ${kind}`, title }, text);
}

/** A threshold to move from `begin` on, and what shows the first time; `show` is told of each. */
export function thresholdRow(id, begin, show) {
  const value = element("output", { for: id });
  const slider = element("input", { id, type: "range", min: "0", max: "1", step: "0.01", value: String(begin) });
  const moved = () => {
    value.textContent = number(Number(slider.value));
    show(Number(slider.value));
  };
  slider.addEventListener("input", moved);
  return [element("div", { class: "threshold-row" }, element("label", { for: id }, "Threshold"), slider, value), moved];
}
