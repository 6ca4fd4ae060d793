// Puts texts beside those that they are most like, and cuts the order into groups: average linkage, by scores of
// all pairs. Where scores come from is not known here.

/**
 * The order of texts by their scores, and the merges that it comes from: each the first of its texts in the
 * order of merging, those of either side, and the mean score between them, which never grows.
 */
export function linked(scores, count) {
  const sums = Float64Array.from(scores);
  const clusters = Array.from({ length: count }, (_, place) => [place]);
  const active = new Set(clusters.keys());
  const merges = [];
  while (active.size > 1) {
    let best = { mean: -Infinity };
    for (const one of active) {
      for (const other of active) {
        if (other <= one) continue;
        const mean = sums[one * count + other] / (clusters[one].length * clusters[other].length);
        if (mean > best.mean) best = { mean, one, other };
      }
    }
    const { mean, one, other } = best;
    merges.push({ mean, one: clusters[one][0], other: clusters[other][0] });
    clusters[one] = [...clusters[one], ...clusters[other]];
    active.delete(other);
    for (const third of active) {
      if (third === one) continue;
      const sum = sums[one * count + third] + sums[other * count + third];
      sums[one * count + third] = sums[third * count + one] = sum;
    }
  }
  return { order: clusters[0] ?? [], merges };
}

/** The groups at a threshold, in the order: lists of places. */
export function groupsAt({ order, merges }, threshold) {
  const parents = Array.from(order.keys());
  const root = (place) => (parents[place] === place ? place : (parents[place] = root(parents[place])));
  for (const { mean, one, other } of merges) {
    if (mean >= threshold) parents[root(other)] = root(one);
  }
  return [...Map.groupBy(order, root).values()];
}
