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

/** Pairs of a round, few enough that nothing else comes between, and rounds, the first to warm up. */
const PER_ROUND = 400;
const ROUNDS = 60;

/** Pairs a second by each method, the best of many rounds, and how long loading takes; `clock` gives
    milliseconds. */
export async function measure(address, clock = () => performance.now()) {
  const { Cognate } = await import(address);
  const { isFused } = await import(new URL("fused.js", address));
  const begun = performance.now();
  const model = await Cognate.load();
  const found = { fused: isFused(), load_ms: performance.now() - begun, memory: model.memory, pairs_per_second: {} };
  const asked = pairs();
  for (const method of METHODS) {
    const rates = Array.from({ length: ROUNDS }, (_, round) => {
      const from = (round * PER_ROUND) % asked.length;
      const some = asked.slice(from, from + PER_ROUND);
      const start = clock();
      model.pairs(some, { method });
      return (1000 * some.length) / (clock() - start);
    });
    found.pairs_per_second[method] = Math.max(...rates);
  }
  const start = clock();
  for (let round = 0; round < 2000; round += 1) model.similarity(...asked[round]);
  found.one_call_us = (1000 * (clock() - start)) / 2000;
  return found;
}
