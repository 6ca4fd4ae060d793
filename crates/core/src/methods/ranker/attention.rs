//! Which words of a post the reading for a query word came from, for explanations.
//!
//! For each query word a network keeps of every kernel only the best answer of all windows, and of
//! that only what is above 0: those answers are all that the layers above ever hear of the post. So
//! a word of the post weighs as much as the share of the kernels whose best answer, above 0, came
//! from a window that holds it; of equal windows the first counts. A window holds several words, and
//! kernels without such an answer belong to none, so weights do not add up to 1. What later layers
//! make of an answer is not reported.

use cognate_kernels::simd;

use crate::methods::ranker::network::Network;
use crate::methods::ranker::section::Encoder;
use crate::methods::ranker::words::RankerBuffers;
use crate::model::Phrase;

/// Words of the post that are reported for each word of the query.
pub const MAX_ATTENDED: usize = 16;

/// The words of the other text that a word of the query attends to.
#[derive(Debug, Clone, PartialEq)]
pub struct Attention {
    /// The word's place among the words of the query.
    pub word: usize,
    /// Words of the post, those that weigh most first, at most [`MAX_ATTENDED`] of them.
    pub to: Vec<Attended>,
}

/// A word of the post, as a word of the query saw it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Attended {
    /// The word's index among the words of the post.
    pub word: usize,
    /// The share of the kernels whose best answer came from a window that holds it.
    pub weight: f32,
    /// The cosine of both words, the factor of its vector under `patt`.
    pub cosine: Option<f32>,
}

impl Network {
    /// The attention of each word of the prepared query; none if texts are encoded apart.
    pub(super) fn attention(
        &self,
        query: &Phrase<'_>,
        post: &Phrase<'_>,
        memory: &mut RankerBuffers,
    ) -> Option<Vec<Attention>> {
        let (encoder, dims) = (self.weights.shape.encoder, self.weights.shape.dims);
        if encoder == Encoder::Bicnn {
            return None;
        }
        self.meet(std::slice::from_ref(post), memory);
        let RankerBuffers { query: prepared, met, work, .. } = memory;
        self.find_cosines(post, prepared, work);
        let places = listed(post);
        let (cosines, ones) = (std::mem::take(&mut work.cosines), vec![1.0; places.len()]);
        let mut found = Vec::new();
        for (number, word) in listed(query).into_iter().enumerate() {
            let start = number * places.len();
            let cosines = cosines.get(start..start + places.len()).unwrap_or_default();
            let answers = if encoder == Encoder::Patt {
                let words = work.ids.iter().filter_map(|id| self.numbers(*id, met));
                let words: Vec<&[f32]> = words.filter_map(|all| all.get(self.taps()..)).collect();
                self.answers(&words, cosines)
            } else {
                let row = prepared.rows.get(number * dims..(number + 1) * dims);
                self.cross_text(row.unwrap_or_default(), work);
                let words: Vec<&[f32]> = work.products.chunks_exact(self.taps()).collect();
                self.answers(&words, &ones)
            };
            let attended = |((&word, &weight), &cosine): ((&usize, &f32), &f32)| Attended {
                word,
                weight,
                cosine: (encoder == Encoder::Patt).then_some(cosine),
            };
            let of_words = places.iter().zip(&answers).zip(cosines);
            let mut to: Vec<Attended> = of_words.map(attended).collect();
            // The sort is stable: words of equal weight stay in the order of the text.
            to.sort_by(|a, b| b.weight.total_cmp(&a.weight));
            to.truncate(MAX_ATTENDED);
            found.push(Attention { word, to });
        }
        Some(found)
    }

    /// For each word the share of the kernels whose best positive response comes from a window with that
    /// word.
    fn answers(&self, words: &[&[f32]], scales: &[f32]) -> Vec<f32> {
        let (width, kernel) = (self.weights.width, self.weights.shape.kernel);
        let (mut best, mut of) = (vec![f32::NEG_INFINITY; width], vec![0; width]);
        let mut won = vec![0_u32; words.len() + kernel - 1];
        for window in 0..won.len() {
            // The sums of `convolution::pool`, in its order.
            let mut sums = vec![0.0; width];
            for tap in 0..kernel {
                let at = (window + tap + 1).checked_sub(kernel);
                let word = at.and_then(|at| Some((words.get(at)?, *scales.get(at)?)));
                let Some((numbers, by)) = word else { continue };
                let numbers = numbers.get(tap * width..).unwrap_or_default();
                simd::add_scaled(&mut sums, [by], [numbers]);
            }
            for ((best, of), &sum) in best.iter_mut().zip(&mut of).zip(&sums) {
                if sum > *best {
                    (*best, *of) = (sum, window);
                }
            }
        }
        for ((best, of), bias) in best.iter().zip(&of).zip(&self.weights.attention.bias) {
            if let Some(won) = won.get_mut(*of).filter(|_| best + bias > 0.0) {
                *won += 1;
            }
        }
        let filters = self.weights.shape.filters as f32;
        let share = |windows: &[u32]| windows.iter().sum::<u32>() as f32 / filters;
        // A word belongs to the window that ends with it and to the `kernel - 1` windows after that.
        won.windows(kernel).take(words.len()).map(share).collect()
    }
}

fn listed(phrase: &Phrase<'_>) -> Vec<usize> {
    let words = phrase.words().iter().enumerate();
    words.filter(|(_, word)| phrase.id(**word).is_some()).map(|(place, _)| place).collect()
}
