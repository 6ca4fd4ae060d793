// How fast the package answers, in Node and in browsers alike: `measure(address of cognate.js)`.

const SUBJECTS = [
  "Earthquake", "A quake", "Wildfire", "A train strike", "The storm", "Flood water", "The prime minister", "Our team",
  "A new phone", "Oil price", "My cat", "Heavy snow", "The airport", "A volcano", "The stock market", "Rescue crew",
];
const NEWS = [
  "shakes Los Angeles", "hits L.A.!!", "closes the school near Perth", "stops every train from Gare de Lyon today",
  "is feared to reach the coast by Saturday morning", "made me late again :(", "felt in Lima #breaking",
  "leaves thousands without power, officials say", "RT @news: more to come https://t.co/x", "wins in extra time",
];

/** Pairs of short texts, the same in every run. */
export function pairs() {
  const texts = SUBJECTS.flatMap((subject) => NEWS.map((news) => `${subject} ${news}`));
  return Array.from({ length: 4000 }, (_, n) => [texts[(n * 7) % texts.length], texts[(n * 31 + 11) % texts.length]]);
}

/** The methods that are measured. */
export const METHODS = ["auto", "dynamax-jaccard", "avg-cos", "sif", "max-cos", "jaccard", "wmd"];

const ROUNDS = 5;

/** Pairs a second by each method, the best of some rounds, and how long loading takes. */
export async function measure(address) {
  const { Cognate } = await import(address);
  const begun = performance.now();
  const model = await Cognate.load();
  const found = { load_ms: performance.now() - begun, memory: model.memory, pairs_per_second: {} };
  const asked = pairs();
  for (const method of METHODS) {
    const rates = Array.from({ length: ROUNDS }, () => {
      const start = performance.now();
      model.pairs(asked, { method });
      return (1000 * asked.length) / (performance.now() - start);
    });
    found.pairs_per_second[method] = Math.max(...rates);
  }
  const start = performance.now();
  for (let round = 0; round < 2000; round += 1) model.similarity(...asked[round]);
  found.one_call_us = (1000 * (performance.now() - start)) / 2000;
  return found;
}
