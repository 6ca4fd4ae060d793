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

use cognate_kernels::convolution;

use crate::methods::ranker::layers::{
    conclude, encode, known, length, mean, more, products, read_rows, scale,
};
use crate::methods::ranker::memory::{Memory, Query, Work};
use crate::methods::ranker::section::{Encoder, Encoding, Weights};
use crate::methods::ranker::words::{Kept, Met};
use crate::model::{Phrase, WordId};

/// Numbers of words and posts that are worked on together, 8 MiB of them: what a block of long posts
/// takes must not grow with their number.
const BLOCK_NUMBERS: usize = 1 << 21;
/// A query that a word takes more numbers for, by `qatt`, does not remember words.
const CROSSED_NUMBERS: usize = 1 << 16;

/// A network, and what it keeps of words.
pub(super) struct Network {
    pub(super) weights: Weights,
    /// What words are multiplied with: the kernels of the general encoder, and for `patt` those of
    /// the other.
    kernels: Vec<f32>,
    kept: Kept,
}

impl Network {
    /// A network for a vocabulary of `words` words.
    pub(super) fn new(mut weights: Weights, words: usize) -> Self {
        let mut kernels = std::mem::take(&mut weights.general.kernels);
        if weights.shape.encoder == Encoder::Patt {
            kernels.append(&mut weights.attention.kernels);
        }
        let kept = Kept::new(words, kernels.len() / weights.shape.dims.max(1));
        Self { weights, kernels, kept }
    }

    /// The same network, which keeps the numbers of the first `words` words.
    #[cfg(test)]
    pub(super) fn keeping(self, words: usize) -> Self {
        Self { kept: Kept::of_first(words), ..self }
    }

    /// Numbers of a word under one set of kernels: a tap after the other.
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

    /// Scores the query that was prepared with each of the posts.
    pub(super) fn score(&self, mut posts: &[Phrase<'_>], mut out: &mut [f32], memory: &mut Memory) {
        while !posts.is_empty() {
            let together = self.together(posts, memory.query.ids.len());
            let (now, later) = posts.split_at(together);
            let Some((scores, rest)) = out.split_at_mut_checked(together) else { return };
            self.block(now, scores, memory);
            (posts, out) = (later, rest);
        }
    }

    /// How many of the posts to work on at once, at least one.
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

    /// Prepares what belongs to a query.
    pub(super) fn prepare(&self, query: &Phrase<'_>, memory: &mut Memory) {
        memory.query.ids.clear();
        memory.query.ids.extend(known(query));
        memory.met.begin(self.each());
        memory.crossed.begin(self.crossed(memory.query.ids.len()));
        self.meet(std::slice::from_ref(query), memory);
        let Memory { query: prepared, met, work, .. } = memory;
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
    pub(super) fn meet(&self, texts: &[Phrase<'_>], memory: &mut Memory) {
        let Memory { met, work, .. } = memory;
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
    fn cross(&self, texts: &[Phrase<'_>], memory: &mut Memory) {
        let Memory { query, crossed, work, .. } = memory;
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

    /// Scores a block of posts.
    fn block(&self, posts: &[Phrase<'_>], out: &mut [f32], memory: &mut Memory) {
        memory.met.tidy();
        memory.crossed.tidy();
        self.meet(posts, memory);
        self.cross(posts, memory);
        memory.work.pooled.clear();
        memory.work.attended.clear();
        for post in posts {
            self.read(post, memory);
        }
        let Memory { query, work, .. } = memory;
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

    /// Pools one post, of which all words were met.
    fn read(&self, post: &Phrase<'_>, memory: &mut Memory) {
        let Memory { query, met, crossed, work } = memory;
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
