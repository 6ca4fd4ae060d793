// What happens in a collection as it happens: its alerts, and a stream of texts that is replayed into one, faster
// than it came.

import { Refusal, ask, linesFrom } from "./asking.js";
import { element, shortened } from "./elements.js";

/** How much faster a stream is replayed, and milliseconds between its texts where they have no times. */
const SPEED = 100;
const UNTIMED_MS = 300;
/** The collection that a replay is put into. */
export const REPLAYED = "playground-replay";
/** Alerts that are shown, and milliseconds between two looks at the list of events. */
const SHOWN = 6;
const PATIENCE_MS = 1000;

const WORDS = { begun: "begins", grown: "has grown", bursting: "bursts", merged: "was merged" };

/** Follows the alerts of a collection until it is stopped: each is listed first, and `changed` is told of some. */
export async function follow(collection, list, changed, signal) {
  const path = `/collections/${encodeURIComponent(collection)}/events/stream?grown=3,5,10,20,50,100,1000`;
  let looked = 0;
  let timer;
  const look = () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      looked = Date.now();
      if (!signal.aborted) changed();
    }, Math.max(0, looked + PATIENCE_MS - Date.now()));
  };
  for await (const { kind, size, text, time, detail } of linesFrom(path, signal)) {
    if (kind === "end") throw new Refusal(0, { title: "The stream of alerts has ended", detail });
    if (kind === "open") continue;
    const about = [time?.slice(0, 16).replace("T", " "), `an event ${WORDS[kind] ?? kind}`, `${size} texts`];
    const told = about.filter((part) => part !== undefined).join(" \u00b7 ");
    list.prepend(element("li", {}, element("b", {}, told), text === undefined ? null : ` ${shortened(text)}`));
    while (list.childElementCount > SHOWN) list.lastElementChild.remove();
    look();
  }
}

/** Makes the collection of a replay anew. */
export async function begin(signal) {
  const path = `/collections/${REPLAYED}`;
  try {
    await ask(path, undefined, signal, "DELETE");
  } catch (error) {
    if (!(error instanceof Refusal) || error.status !== 404) throw error;
  }
  await ask(path, {}, signal, "PUT");
}

/** Matches texts at the pace of their times; `told` hears how far it is. */
export async function replay({ texts, timed }, told, signal) {
  const begun = performance.now();
  const due = (place) => (timed ? (texts[place].time - texts[0].time) / SPEED : place * UNTIMED_MS);
  for (let next = 0; next < texts.length && !signal.aborted; ) {
    const wait = due(next) - (performance.now() - begun);
    if (wait > 0) await new Promise((resume) => setTimeout(resume, Math.min(wait, PATIENCE_MS)));
    const from = next;
    while (next < texts.length && due(next) <= performance.now() - begun) next += 1;
    if (next === from) continue;
    const items = texts.slice(from, next).map(({ text, time }, at) => ({
      id: `r${from + at + 1}`,
      text,
      ...(timed ? { time: new Date(time).toISOString() } : {}),
    }));
    await ask(`/collections/${REPLAYED}/match`, { items }, signal);
    const moment = timed ? `, ${items.at(-1).time.slice(0, 16).replace("T", " ")}` : "";
    told(`${next.toLocaleString("en")} of ${texts.length.toLocaleString("en")} texts${moment}, at ${SPEED} times the speed.`);
  }
}
