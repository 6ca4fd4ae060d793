//! A network at work: one query against many posts.
//!
//! A convolution's product of a word with a tap of a kernel depends on nothing else, so a post costs
//! sums and maxima of numbers that its words have already ([`Kept`]), and the layers above them,
//! which are products of matrices over a block of posts. Cosines of `patt` only scale those
//! numbers. The kernels of `qatt`, `U ⊗ Q_t`, are never made: a word is multiplied with `Q_t` first,
//! `U · (Q_t ⊗ x)`, which is the same product.
//!
//! Every number is made in an order that depends on the query and the post alone, so a score is the
//! same bit for bit whatever block it is in and whatever was kept.

use cognate_kernels::simd::Packed;
use cognate_kernels::{convolution, elementary, simd};

use crate::methods::ranker::section::{Encoder, Encoding, Weights};
use crate::methods::ranker::words::{Kept, Met, Query, RankerBuffers, Work, known, read_rows};
use crate::model::{Phrase, WordId};

/// Numbers of words and posts that are worked on together, 8 MiB of them: what a block of long posts
/// takes must not grow with their number.
const BLOCK_NUMBERS: usize = 1 << 21;
/// A query that a word takes more numbers for, by `qatt`, does not remember words.
const CROSSED_NUMBERS: usize = 1 << 16;

pub(super) struct Network {
    pub(super) weights: Weights,
    /// The factors of words: the kernels of the general encoder, and for `patt` those of the other.
    kernels: Vec<f32>,
    kept: Kept,
}

impl Network {
    pub(super) fn new(mut weights: Weights, words: usize) -> Self {
        let mut kernels = std::mem::take(&mut weights.general.kernels);
        if weights.shape.encoder == Encoder::Patt {
            kernels.append(&mut weights.attention.kernels);
        }
        let kept = Kept::new(words, kernels.len() / weights.shape.dims.max(1));
        Self { weights, kernels, kept }
    }

    /// The same network with a table of the first `words` words.
    #[cfg(test)]
    pub(super) fn keeping(self, words: usize) -> Self {
        Self { kept: Kept::of_first(words), ..self }
    }

    /// Returns how many numbers a word has under one set of kernels: one for each tap.
    pub(super) fn taps(&self) -> usize {
        self.weights.shape.kernel * self.weights.width
    }

    /// Numbers of a word that depend on it alone.
    fn each(&self) -> usize {
        self.kernels.len() / self.weights.shape.dims.max(1)
    }

    /// Numbers of a word that depend on the query too and are remembered, 0 if none are.
    fn crossed(&self, words_of_query: usize) -> usize {
        let numbers = words_of_query.saturating_mul(self.taps());
        let worth = self.weights.shape.encoder == Encoder::Qatt && numbers <= CROSSED_NUMBERS;
        if worth { numbers } else { 0 }
    }

    /// Scores each of the posts for the prepared query.
    pub(super) fn score(
        &self,
        mut posts: &[Phrase<'_>],
        mut out: &mut [f32],
        memory: &mut RankerBuffers,
    ) {
        while !posts.is_empty() {
            let together = self.together(posts, memory.query.ids.len());
            let (now, later) = posts.split_at(together);
            let Some((scores, rest)) = out.split_at_mut_checked(together) else { return };
            self.block(now, scores, memory);
            (posts, out) = (later, rest);
        }
    }

    /// Number of posts to work on at once, at least one.
    fn together(&self, posts: &[Phrase<'_>], words_of_query: usize) -> usize {
        let a_word = self.each() + self.crossed(words_of_query);
        let a_post = (words_of_query + 1).saturating_mul(self.weights.width);
        let mut numbers = 0_usize;
        let fits = |post: &&Phrase<'_>| {
            numbers = numbers.saturating_add(post.words().len() * a_word + a_post);
            numbers <= BLOCK_NUMBERS
        };
        posts.iter().take_while(fits).count().max(1)
    }

    pub(super) fn prepare(&self, query: &Phrase<'_>, memory: &mut RankerBuffers) {
        memory.query.ids.clear();
        memory.query.ids.extend(known(query));
        memory.met.begin(self.each());
        memory.crossed.begin(self.crossed(memory.query.ids.len()));
        self.meet(std::slice::from_ref(query), memory);
        let RankerBuffers { query: prepared, met, work, .. } = memory;
        let words: Vec<&[f32]> =
            prepared.ids.iter().filter_map(|id| self.numbers(*id, met)).collect();
        read_rows(query, &prepared.ids, self.weights.shape.dims, &mut prepared.rows);
        prepared.norms.clear();
        prepared.norms.extend(prepared.rows.chunks_exact(self.weights.shape.dims).map(length));
        let general = &self.weights.general;
        work.pooled.clear();
        work.pooled.resize(self.weights.width, 0.0);
        self.pool(&words, None, general, &mut work.ones, &mut work.pooled);
        encode(general, &work.pooled, &mut work.encoded);
        let hidden = self.weights.shape.hidden;
        products(&work.encoded, &self.weights.joint_query, hidden, &mut prepared.joint);
        for (joint, offset) in prepared.joint.iter_mut().zip(&self.weights.joint_offset) {
            *joint += offset;
        }
    }

    /// The numbers of a word under the kernels, once it was met.
    pub(super) fn numbers<'n>(&'n self, id: WordId, met: &'n Met) -> Option<&'n [f32]> {
        self.kept.get(id).or_else(|| met.get(id))
    }

    /// Multiplies words of texts that were not met yet with the kernels.
    pub(super) fn meet(&self, texts: &[Phrase<'_>], memory: &mut RankerBuffers) {
        let RankerBuffers { met, work, .. } = memory;
        work.gather(texts, |id| self.numbers(id, met).is_none());
        let Some(text) = texts.first().filter(|_| !work.ids.is_empty()) else { return };
        let dims = self.weights.shape.dims;
        read_rows(text, &work.ids, dims, &mut work.rows);
        products(&work.rows, &self.kernels, dims, &mut work.products);
        for (&id, numbers) in work.ids.iter().zip(work.products.chunks_exact(self.each())) {
            if !self.kept.put(id, numbers) {
                met.put(id, numbers);
            }
        }
    }

    /// Multiplies words that were not met yet, times each word of the query, with the kernels.
    fn cross(&self, texts: &[Phrase<'_>], memory: &mut RankerBuffers) {
        let RankerBuffers { query, crossed, work, .. } = memory;
        let each = self.crossed(query.ids.len());
        work.gather(texts, |id| each > 0 && crossed.get(id).is_none());
        let Some(text) = texts.first().filter(|_| !work.ids.is_empty()) else { return };
        let dims = self.weights.shape.dims;
        read_rows(text, &work.ids, dims, &mut work.rows);
        work.scaled.clear();
        for row in work.rows.chunks_exact(dims) {
            for of_query in query.rows.chunks_exact(dims) {
                scale(row, of_query, &mut work.scaled);
            }
        }
        products(&work.scaled, &self.weights.attention.kernels, dims, &mut work.products);
        for (&id, numbers) in work.ids.iter().zip(work.products.chunks_exact(each)) {
            crossed.put(id, numbers);
        }
    }

    /// The numbers of each word of a text whose vectors are in `rows`, times one word of the query.
    pub(super) fn cross_text(&self, of_query: &[f32], work: &mut Work) {
        let dims = self.weights.shape.dims;
        work.scaled.clear();
        for row in work.rows.chunks_exact(dims) {
            scale(row, of_query, &mut work.scaled);
        }
        products(&work.scaled, &self.weights.attention.kernels, dims, &mut work.products);
    }

    /// Writes into `cosines` the cosine of each word of the query with each word of a text, 0 where
    /// one has no length: a row a word of the query.
    pub(super) fn find_cosines(&self, text: &Phrase<'_>, query: &Query, work: &mut Work) {
        let dims = self.weights.shape.dims;
        work.read(text, dims);
        products(&query.rows, &work.rows, dims, &mut work.cosines);
        work.norms.clear();
        work.norms.extend(work.rows.chunks_exact(dims).map(length));
        let words = work.norms.len().max(1);
        for (row, of_query) in work.cosines.chunks_exact_mut(words).zip(&query.norms) {
            for (cosine, of_text) in row.iter_mut().zip(&work.norms) {
                let lengths = of_query * of_text;
                *cosine = if lengths > 0.0 { *cosine / lengths } else { 0.0 };
            }
        }
    }

    /// The convolution over words and its best answers. Without weights every word counts the same.
    fn pool(
        &self,
        words: &[&[f32]],
        weights: Option<&[f32]>,
        encoding: &Encoding,
        ones: &mut Vec<f32>,
        out: &mut [f32],
    ) {
        let weights = weights.unwrap_or_else(|| {
            ones.clear();
            ones.resize(words.len(), 1.0);
            ones
        });
        convolution::pool(words, weights, self.weights.shape.kernel, &encoding.bias, out);
    }

    fn block(&self, posts: &[Phrase<'_>], out: &mut [f32], memory: &mut RankerBuffers) {
        memory.met.tidy();
        memory.crossed.tidy();
        self.meet(posts, memory);
        self.cross(posts, memory);
        memory.work.pooled.clear();
        memory.work.attended.clear();
        for post in posts {
            self.read(post, memory);
        }
        let RankerBuffers { query, work, .. } = memory;
        let hidden = self.weights.shape.hidden;
        let words_of_query = query.ids.len();
        // The post alone, and the mean of it over the words of the query.
        encode(&self.weights.general, &work.pooled, &mut work.encoded);
        let width = self.weights.joint_post.len() / self.weights.shape.joint;
        work.joint.clear();
        for encoded in work.encoded.chunks_exact(hidden) {
            work.joint.extend_from_slice(encoded);
            work.joint.resize(work.joint.len() + (width - hidden), 0.0);
        }
        if width > hidden && words_of_query > 0 {
            encode(&self.weights.attention, &work.attended, &mut work.encoded);
            let of_posts = work.encoded.chunks_exact(hidden * words_of_query);
            for (joint, encoded) in work.joint.chunks_exact_mut(width).zip(of_posts) {
                mean(encoded, joint.get_mut(hidden..).unwrap_or_default());
            }
        }
        products(&work.joint, &self.weights.joint_post, width, &mut work.products);
        let rows = work.products.chunks_exact(self.weights.shape.joint);
        for (score, row) in out.iter_mut().zip(rows) {
            *score = conclude(&self.weights, row, &query.joint);
        }
    }

    /// Pools one post whose words were all met.
    fn read(&self, post: &Phrase<'_>, memory: &mut RankerBuffers) {
        let RankerBuffers { query, met, crossed, work } = memory;
        let (weights, taps) = (&self.weights, self.taps());
        let numbers = |id| self.numbers(id, met);
        let words: Vec<&[f32]> = known(post).filter_map(numbers).collect();
        let mut pooled = std::mem::take(&mut work.pooled);
        let into = more(&mut pooled, weights.width);
        self.pool(&words, None, &weights.general, &mut work.ones, into);
        work.pooled = pooled;
        if weights.shape.encoder == Encoder::Bicnn {
            return;
        }
        let mut attended = std::mem::take(&mut work.attended);
        match weights.shape.encoder {
            Encoder::Patt => {
                self.find_cosines(post, query, work);
                let words: Vec<&[f32]> = words.iter().filter_map(|word| word.get(taps..)).collect();
                for place in 0..query.ids.len() {
                    let start = place * words.len();
                    let cosines = work.cosines.get(start..start + words.len());
                    let into = more(&mut attended, weights.width);
                    self.pool(&words, cosines, &weights.attention, &mut work.ones, into);
                }
            }
            Encoder::Qatt if self.crossed(query.ids.len()) > 0 => {
                let all: Vec<&[f32]> = known(post).filter_map(|id| crossed.get(id)).collect();
                for place in 0..query.ids.len() {
                    let start = place * taps;
                    let words: Vec<&[f32]> =
                        all.iter().filter_map(|word| word.get(start..start + taps)).collect();
                    let into = more(&mut attended, weights.width);
                    self.pool(&words, None, &weights.attention, &mut work.ones, into);
                }
            }
            Encoder::Qatt => {
                work.read(post, weights.shape.dims);
                for of_query in query.rows.chunks_exact(weights.shape.dims) {
                    self.cross_text(of_query, work);
                    let words: Vec<&[f32]> = work.products.chunks_exact(taps).collect();
                    let into = more(&mut attended, weights.width);
                    self.pool(&words, None, &weights.attention, &mut work.ones, into);
                }
            }
            Encoder::Bicnn => {}
        }
        work.attended = attended;
    }
}

/// Writes into `out` the products of each row of `a` with each row of `b`: a line for each row of `a`.
pub(super) fn products(a: &[f32], b: &[f32], dims: usize, out: &mut Vec<f32>) {
    out.clear();
    out.resize((a.len() / dims) * (b.len() / dims), 0.0);
    simd::products(Packed { values: a, dims }, Packed { values: b, dims }, dims, out);
}

/// Writes into `out`, for each row of `pooled`, the numbers of the layer above the convolution: products
/// with the layer's rows plus its offsets, at least 0.
pub(super) fn encode(encoding: &Encoding, pooled: &[f32], out: &mut Vec<f32>) {
    products(pooled, &encoding.weight, encoding.bias.len(), out);
    for row in out.chunks_exact_mut(encoding.offset.len()) {
        for (number, offset) in row.iter_mut().zip(&encoding.offset) {
            *number = positive(*number + offset);
        }
    }
}

/// Writes the mean of rows into `out`, which is one of them long.
pub(super) fn mean(rows: &[f32], out: &mut [f32]) {
    let count = rows.len() / out.len().max(1);
    out.fill(0.0);
    for row in rows.chunks_exact(out.len().max(1)) {
        for (sum, number) in out.iter_mut().zip(row) {
            *sum += number;
        }
    }
    for sum in out {
        *sum /= count as f32;
    }
}

pub(super) fn scale(row: &[f32], by: &[f32], out: &mut Vec<f32>) {
    out.extend(row.iter().zip(by).map(|(number, by)| number * by));
}

pub(super) fn length(row: &[f32]) -> f32 {
    simd::dot(row, row).sqrt()
}

/// Adds `count` zeros to a list.
pub(super) fn more(list: &mut Vec<f32>, count: usize) -> &mut [f32] {
    let start = list.len();
    list.resize(start + count, 0.0);
    list.get_mut(start..).unwrap_or_default()
}

/// The logarithm of the chance that a post is relevant, from what the joint layer makes of the
/// post and of the query.
pub(super) fn conclude(weights: &Weights, of_post: &[f32], of_query: &[f32]) -> f32 {
    let sums = of_post.iter().zip(of_query).map(|(post, query)| positive(post + query));
    let norm = weights.scale.iter().zip(&weights.shift);
    let terms = sums.zip(norm).zip(&weights.output);
    let difference = terms.fold(weights.output_offset, |sum, ((joint, (scale, shift)), output)| {
        sum + f64::from(scale * joint + shift) * output
    });
    log_chance(difference)
}

/// `-ln(1 + e^x)`, never above 0 and never without end.
fn log_chance(x: f64) -> f32 {
    let log = 0.0 - (x.max(0.0) + elementary::ln_1p(elementary::exp(-x.abs())));
    (log as f32).max(f32::MIN)
}

fn positive(number: f32) -> f32 {
    if number > 0.0 { number } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_have_finite_logarithms() {
        let ln = |x: f64| (-(1.0 + x.exp()).ln()) as f32;
        for x in [-9.0, -2.5, 0.0, 0.1, 3.0, 40.0] {
            assert!((log_chance(x) - ln(x)).abs() <= 1e-6 * ln(x).abs(), "{x}");
        }
        assert_eq!(log_chance(-1e300).to_bits(), 0.0_f32.to_bits(), "no negative zero");
        assert_eq!(log_chance(1e300), f32::MIN);
        assert_eq!(log_chance(800.0), -800.0);
    }

    #[test]
    fn a_mean_of_rows_is_that_of_each_column() {
        let mut out = [9.0; 2];
        mean(&[1.0, 2.0, 3.0, 8.0], &mut out);
        assert_eq!(out, [2.0, 5.0]);
    }

    #[test]
    fn what_is_no_number_counts_as_nothing_above_a_sum() {
        assert_eq!([positive(f32::NAN), positive(-1.0), positive(2.0)], [0.0, 0.0, 2.0]);
    }
}
