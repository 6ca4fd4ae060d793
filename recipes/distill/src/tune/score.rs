//! The loss of the scores of all pairs in a block of texts against the teacher's cosines, and its
//! gradient by the word vectors.
//!
//! The score of two texts is the mean of two: the cosine of their sums, and how well each of them
//! covers the other, D(X, Y) = (Σ_j∈X w_j max_k∈Y c_jk + Σ_k∈Y w_k max_j∈X c_jk) / (Σ_X w + Σ_Y w),
//! with c = max(0, cosine) and w_j = |v_j|^1.5: `avg-cos` and `dynamax-weighted`. With t the
//! teacher's cosine, the loss is Σ_S f_S · 20 · m (a_S S + b_S - t)² over S of the mean, the cosine
//! and the coverage, where m = 0.1 + max(0, t), and a_S, b_S are learned along.

use cognate_kernels::{simd, vector};

/// The weights f_S of the mean, the cosine and the coverage.
const COUNTS: [f32; 3] = [1.0, 0.3, 0.3];
const SQUARES: f32 = 20.0;
/// The weight of a pair with cosine 0.
const UNLIKE: f32 = 0.1;
/// Vectors shorter than this have no direction.
const SHORTEST: f32 = 1e-6;

/// a_S and b_S of the mean, the cosine and the coverage.
pub(super) type Scales = [[f32; 2]; 3];

/// Texts that are scored in all pairs.
pub(super) struct Block<'b> {
    /// The words of each text as indices; no text is empty.
    pub(super) texts: Vec<&'b [u32]>,
    /// The teacher's cosines, a row for each text.
    pub(super) wanted: Vec<f32>,
}

/// The loss and gradients of a block.
#[derive(Debug, Default)]
pub(super) struct Pull {
    /// The words of all texts, one text after another.
    pub(super) words: Vec<u32>,
    pub(super) gradients: Vec<f32>,
    /// The gradients of a_S and b_S.
    pub(super) scales: Scales,
    /// The part of the loss that belongs to the mean.
    pub(super) loss: f64,
}

impl Block<'_> {
    /// Σ m over the pairs.
    pub(super) fn weight(&self) -> f64 {
        let texts = self.texts.len();
        let pairs = (0..texts).flat_map(|x| (x + 1..texts).map(move |y| x * texts + y));
        pairs.map(|pair| f64::from(UNLIKE + self.wanted[pair].max(0.0))).sum()
    }

    /// Computes the gradients of a block; each pair's weight is multiplied by `share`.
    pub(super) fn pull(&self, rows: &[f32], dims: usize, scales: &Scales, share: f32) -> Pull {
        let words = Words::of(self, rows, dims);
        let mut pull = Pull { words: self.texts.concat(), ..Pull::default() };
        let texts = self.texts.len();
        let mut found = ScoreGradients {
            to_units: vec![0.0; words.units.len()],
            to_sums: vec![0.0; words.sums.len()],
            to_weights: vec![0.0; pull.words.len()],
        };
        let mut best = Vec::new();
        for x in 0..texts {
            for y in x + 1..texts {
                let cosine = words.cosines[x * texts + y];
                let coverage = words.coverage(x, y, &mut best);
                let wanted = self.wanted[x * texts + y];
                let weight = share * (UNLIKE + wanted.max(0.0));
                let scores = [f32::midpoint(cosine, coverage), cosine, coverage];
                let mut slopes = [0.0; 3];
                for (at, score) in scores.into_iter().enumerate() {
                    let [factor, offset] = scales[at];
                    let apart = factor * score + offset - wanted;
                    let slope = 2.0 * COUNTS[at] * SQUARES * weight * apart;
                    pull.scales[at][0] += slope * score;
                    pull.scales[at][1] += slope;
                    slopes[at] = slope * factor;
                    if at == 0 {
                        pull.loss += f64::from(weight) * f64::from(apart) * f64::from(apart);
                    }
                }
                let to_cosine = slopes[1] + 0.5 * slopes[0];
                let to_coverage = slopes[2] + 0.5 * slopes[0];
                for (from, to) in [(x, y), (y, x)] {
                    let other = &words.sums[from * dims..(from + 1) * dims];
                    let row = &mut found.to_sums[to * dims..(to + 1) * dims];
                    simd::add_scaled(row, [to_cosine], [other]);
                }
                words.spread([x, y], coverage, to_coverage, &best, &mut found);
            }
        }
        pull.gradients = words.gradients(found);
        pull
    }
}

/// The words of a block with directions, lengths and weights, and the directions of the texts.
struct Words {
    dims: usize,
    /// The index of each text's first word, and finally the number of words.
    starts: Vec<usize>,
    units: Vec<f32>,
    lengths: Vec<f32>,
    weights: Vec<f32>,
    gram: Vec<f32>,
    /// The texts' unit sums, the lengths of the sums, and the cosines between texts.
    sums: Vec<f32>,
    sum_lengths: Vec<f32>,
    cosines: Vec<f32>,
}

/// Gradients by word directions, by text directions, and by word weights.
struct ScoreGradients {
    to_units: Vec<f32>,
    to_sums: Vec<f32>,
    to_weights: Vec<f32>,
}

/// The most similar word of the other text, and the cosine, at least 0.
type Best = (usize, f32);

impl Words {
    fn of(block: &Block<'_>, rows: &[f32], dims: usize) -> Self {
        let mut starts = vec![0];
        let (mut units, mut sums) = (Vec::new(), Vec::new());
        for text in &block.texts {
            let mut sum = vec![0.0; dims];
            for &word in *text {
                let row = &rows[word as usize * dims..(word as usize + 1) * dims];
                simd::add_scaled(&mut sum, [1.0], [row]);
                units.extend_from_slice(row);
            }
            sums.extend(sum);
            starts.push(units.len() / dims);
        }
        let lengths = normalise(&mut units, dims);
        let sum_lengths = normalise(&mut sums, dims);
        let weights = lengths.iter().map(|length| length * length.sqrt()).collect();
        let (mut gram, mut cosines) = (Vec::new(), Vec::new());
        vector::gram(&units, dims, &mut gram);
        vector::gram(&sums, dims, &mut cosines);
        Self { dims, starts, units, lengths, weights, gram, sums, sum_lengths, cosines }
    }

    fn places(&self, text: usize) -> std::ops::Range<usize> {
        self.starts[text]..self.starts[text + 1]
    }

    /// Returns the coverage D of two texts. Writes the best partner of every word into `best`.
    fn coverage(&self, x: usize, y: usize, best: &mut Vec<Best>) -> f32 {
        let all = self.lengths.len();
        best.clear();
        let (mut covered, mut whole) = (0.0, 0.0);
        for (text, other) in [(x, y), (y, x)] {
            for word in self.places(text) {
                let partners = self.places(other);
                let cosines = &self.gram[word * all..(word + 1) * all][partners.clone()];
                let mut most = (partners.start, 0.0);
                for (partner, &cosine) in partners.zip(cosines) {
                    if cosine > most.1 {
                        most = (partner, cosine);
                    }
                }
                covered += self.weights[word] * most.1;
                whole += self.weights[word];
                best.push(most);
            }
        }
        covered / whole.max(SHORTEST)
    }

    /// Propagates the gradient by D to the words of the pair.
    fn spread(
        &self,
        pair: [usize; 2],
        coverage: f32,
        slope: f32,
        best: &[Best],
        to: &mut ScoreGradients,
    ) {
        let dims = self.dims;
        let words = || pair.into_iter().flat_map(|text| self.places(text));
        let whole: f32 = words().map(|word| self.weights[word]).sum();
        let slope = slope / whole.max(SHORTEST);
        for (word, &(partner, cosine)) in words().zip(best) {
            to.to_weights[word] += slope * (cosine - coverage);
            if cosine > 0.0 {
                for (from, onto) in [(partner, word), (word, partner)] {
                    let unit = &self.units[from * dims..(from + 1) * dims];
                    let row = &mut to.to_units[onto * dims..(onto + 1) * dims];
                    simd::add_scaled(row, [slope * self.weights[word]], [unit]);
                }
            }
        }
    }

    /// Sums the gradients with respect to the word vectors.
    fn gradients(&self, found: ScoreGradients) -> Vec<f32> {
        let dims = self.dims;
        let ScoreGradients { to_units: mut gradients, mut to_sums, to_weights } = found;
        across(&mut to_sums, &self.sums, &self.sum_lengths, dims);
        across(&mut gradients, &self.units, &self.lengths, dims);
        for text in 0..self.starts.len() - 1 {
            for word in self.places(text) {
                let row = &mut gradients[word * dims..(word + 1) * dims];
                simd::add_scaled(row, [1.0], [&to_sums[text * dims..(text + 1) * dims]]);
                // d |v|^1.5 / dv = 1.5 |v|^0.5 u
                let along = 1.5 * self.lengths[word].sqrt() * to_weights[word];
                simd::add_scaled(row, [along], [&self.units[word * dims..(word + 1) * dims]]);
            }
        }
        gradients
    }
}

/// Scales rows to length 1, or to zeros, and returns their lengths.
fn normalise(rows: &mut [f32], dims: usize) -> Vec<f32> {
    let unit = |row: &mut [f32]| {
        let length = simd::dot(row, row).sqrt();
        let length = if length > SHORTEST { length } else { 0.0 };
        let factor = if length > 0.0 { 1.0 / length } else { 0.0 };
        row.iter_mut().for_each(|number| *number *= factor);
        length
    };
    rows.chunks_exact_mut(dims).map(unit).collect()
}

/// Turns gradients by directions into gradients by vectors: removes the radial part and divides by
/// the length.
fn across(gradients: &mut [f32], units: &[f32], lengths: &[f32], dims: usize) {
    let rows = gradients.chunks_exact_mut(dims).zip(units.chunks_exact(dims));
    for ((row, unit), &length) in rows.zip(lengths) {
        let along = simd::dot(row, unit);
        simd::add_scaled(row, [-along], [unit]);
        let factor = if length > 0.0 { 1.0 / length } else { 0.0 };
        row.iter_mut().for_each(|number| *number *= factor);
    }
}

#[cfg(test)]
mod tests {
    use cognate_kernels::random::Random;
    use cognate_train::sampling;

    use super::*;

    /// A change of the rows or of the scales.
    type Change<'c> = &'c dyn Fn(&mut [f64], &mut [[f64; 2]; 3], f64);

    /// The loss computed by its definition, in double precision.
    fn loss(block: &Block<'_>, rows: &[f64], dims: usize, scales: &[[f64; 2]; 3]) -> f64 {
        let row = |word: u32| &rows[word as usize * dims..(word as usize + 1) * dims];
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let cosine = |a: &[f64], b: &[f64]| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
        let sum = |text: &[u32]| -> Vec<f64> {
            (0..dims).map(|at| text.iter().map(|&word| row(word)[at]).sum()).collect()
        };
        let weight = |word: u32| dot(row(word), row(word)).powf(0.75);
        let covered = |text: &[u32], other: &[u32]| -> f64 {
            let most = |word: u32| {
                other.iter().map(|&partner| cosine(row(word), row(partner))).fold(0.0, f64::max)
            };
            text.iter().map(|&word| weight(word) * most(word)).sum()
        };
        let texts = block.texts.len();
        let mut total = 0.0;
        for x in 0..texts {
            for y in x + 1..texts {
                let [one, other] = [block.texts[x], block.texts[y]];
                let average = cosine(&sum(one), &sum(other));
                let whole: f64 = one.iter().chain(other).map(|&word| weight(word)).sum();
                let coverage = (covered(one, other) + covered(other, one)) / whole;
                let wanted = f64::from(block.wanted[x * texts + y]);
                let scores = [(average + coverage) / 2.0, average, coverage];
                for ((score, [factor, offset]), count) in scores.iter().zip(scales).zip(COUNTS) {
                    let apart = factor * score + offset - wanted;
                    let weight = 0.1 + wanted.max(0.0);
                    total += f64::from(count) * 20.0 * weight * apart * apart;
                }
            }
        }
        total
    }

    #[test]
    fn gradients_are_those_of_the_loss() {
        let (dims, words) = (6, 9);
        let mut random = Random::seeded(4);
        let rows: Vec<f64> = (0..words * dims).map(|_| sampling::normal(&mut random)).collect();
        let texts: [&[u32]; 4] = [&[0, 1, 2], &[3, 1], &[4, 5, 6, 7], &[8, 0, 0]];
        let wanted = (0..16).map(|_| sampling::share(&mut random) as f32 - 0.2).collect();
        let block = Block { texts: texts.to_vec(), wanted };
        let scales = [[1.0, -0.03], [0.87, 0.08], [1.04, -0.08]];
        let narrow: Vec<f32> = rows.iter().map(|&number| number as f32).collect();
        let pull = block.pull(&narrow, dims, &scales.map(|pair| pair.map(|x| x as f32)), 1.0);
        let mut found = vec![0.0_f64; rows.len()];
        for (&word, gradient) in pull.words.iter().zip(pull.gradients.chunks_exact(dims)) {
            for (sum, &number) in found[word as usize * dims..].iter_mut().zip(gradient) {
                *sum += f64::from(number);
            }
        }
        let slope = |change: Change<'_>| {
            let at = |step: f64| {
                let (mut rows, mut scales) = (rows.clone(), scales);
                change(&mut rows, &mut scales, step);
                loss(&block, &rows, dims, &scales)
            };
            (at(1e-5) - at(-1e-5)) / 2e-5
        };
        for (at, &found) in found.iter().enumerate() {
            let expected = slope(&|rows, _, step| rows[at] += step);
            assert!((found - expected).abs() < 2e-3 * (1.0 + expected.abs()), "{found} {expected}");
        }
        for (at, of_score) in pull.scales.iter().enumerate() {
            for (part, &found) in of_score.iter().enumerate() {
                let expected = slope(&|_, scales, step| scales[at][part] += step);
                let found = f64::from(found);
                assert!((found - expected).abs() < 2e-3 * (1.0 + expected.abs()));
            }
        }
    }
}
