//! Vectors of pieces of words, so that a word that is not listed gets a vector from its parts.
//!
//! A teacher's vector of a rare word is almost a sum over the pieces into which its tokenizer splits the
//! word. Rows are fitted to many words with known directions: the rows R that minimise
//! Σ_w ω_w |z_w - Σ_{g in pieces(w)} R_g|² + λ |R|² for unit vectors z_w.
//!
//! Only the most used pieces are kept, and words are split into these alone, so a reader needs nothing
//! but their list. [`model::pieces`](cognate::model::pieces) defines how words are split.

pub mod map;
pub mod rare;
mod solve;

use std::collections::HashMap;
use std::ops::Range;

use cognate::model::pieces::cut::{LONGEST_PIECE_BYTES, PieceLengths};
use cognate::model::pieces::{MARK, cut};
use cognate_kernels::simd;
use rayon::prelude::*;

use crate::pieces::solve::Symmetric;
use crate::space;

const RIDGE: f32 = 2.0;

/// A word with a known direction.
#[derive(Debug, Clone, Copy)]
pub struct Example<'e> {
    pub word: &'e str,
    /// A vector of length 1.
    pub direction: &'e [f32],
    /// The weight ω of the word.
    pub weight: f32,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The pieces with their marks, the most used first.
    pub pieces: Vec<String>,
    /// Their rows, one after another.
    pub rows: Vec<f32>,
    /// The mean cosine between a word's direction and the sum of its pieces.
    pub agreement: f64,
}

/// Splits words into pieces as a served model does.
#[derive(Debug)]
struct Cutter<'p> {
    places: HashMap<&'p str, u32>,
    lengths: PieceLengths,
}

impl<'p> Cutter<'p> {
    /// A cutter for these pieces; `None` if one is too long for a model.
    fn new(pieces: &[&'p str]) -> Option<Self> {
        let lengths = PieceLengths::new(pieces.iter().copied(), MARK)?;
        let places = (0..).zip(pieces).map(|(place, &piece)| (piece, place)).collect();
        Some(Self { places, lengths })
    }

    /// Appends the indices of a word's pieces.
    fn cut(&self, word: &str, found: &mut Vec<u32>) {
        let find = |place: Range<usize>| {
            let mark = if place.start > 0 { MARK } else { "" };
            self.places.get([mark, &word[place]].concat().as_str()).copied()
        };
        cut::longest_pieces(word, &self.lengths, find, found);
    }
}

/// Keeps the `most` candidates that examples use most, and fits their rows.
pub fn fit(candidates: &[String], examples: &[Example<'_>], most: usize, dims: usize) -> Fitted {
    let bare = |piece: &str| piece.strip_prefix(MARK).unwrap_or(piece).len();
    let short = candidates.iter().map(String::as_str);
    let short: Vec<&str> = short.filter(|piece| bare(piece) <= LONGEST_PIECE_BYTES).collect();
    let mut kept = by_use(&short, examples);
    kept.truncate(most);
    // With only these pieces, some are no longer used, because longer pieces take their place.
    let pieces = by_use(&kept, examples);
    let cuts = cut_all(&pieces, examples);
    let weights = examples.iter().map(|example| example.weight);
    let matrix = Symmetric::of_products(&cuts, weights, pieces.len(), RIDGE);
    let right = right_side(&cuts, examples, pieces.len(), dims);
    let rows = matrix.solve(right, dims);
    let agreement = agreement(&cuts, examples, &rows, dims);
    Fitted { pieces: pieces.into_iter().map(str::to_owned).collect(), rows, agreement }
}

fn cut_all(pieces: &[&str], examples: &[Example<'_>]) -> Vec<Vec<u32>> {
    let cutter = Cutter::new(pieces);
    let cut = |example: &Example<'_>| {
        let mut found = Vec::new();
        if let Some(cutter) = &cutter {
            cutter.cut(example.word, &mut found);
        }
        found
    };
    examples.par_iter().map(cut).collect()
}

/// The pieces that examples are split into, the most used first; equally used ones in list order.
fn by_use<'c>(candidates: &[&'c str], examples: &[Example<'_>]) -> Vec<&'c str> {
    let mut uses = vec![0_u64; candidates.len()];
    for piece in cut_all(candidates, examples).into_iter().flatten() {
        uses[piece as usize] += 1;
    }
    let mut order: Vec<usize> = (0..candidates.len()).filter(|&piece| uses[piece] > 0).collect();
    order.sort_by_key(|&piece| std::cmp::Reverse(uses[piece]));
    order.into_iter().map(|piece| candidates[piece]).collect()
}

/// Returns for every piece the weighted sum of the directions of the words that contain the piece.
fn right_side(cuts: &[Vec<u32>], examples: &[Example<'_>], pieces: usize, dims: usize) -> Vec<f32> {
    let mut holders = vec![Vec::new(); pieces];
    for (word, cut) in cuts.iter().enumerate() {
        cut.iter().for_each(|&piece| holders[piece as usize].push(word));
    }
    let mut right = vec![0.0; pieces * dims];
    right.par_chunks_mut(dims).zip(&holders).for_each(|(row, words)| {
        for &word in words {
            simd::add_scaled(row, [examples[word].weight], [examples[word].direction]);
        }
    });
    right
}

fn agreement(cuts: &[Vec<u32>], examples: &[Example<'_>], rows: &[f32], dims: usize) -> f64 {
    let cosine = |(cut, example): (&Vec<u32>, &Example<'_>)| {
        let mut sum = vec![0.0; dims];
        for &piece in cut {
            simd::add_scaled(&mut sum, [1.0], [&rows[piece as usize * dims..][..dims]]);
        }
        space::unit(&mut sum);
        f64::from(simd::dot(&sum, example.direction))
    };
    let cosines: Vec<f64> = cuts.par_iter().zip(examples).map(cosine).collect();
    cosines.iter().sum::<f64>() / (cosines.len() as f64).max(1.0)
}

#[cfg(test)]
mod tests {
    use cognate_kernels::random::Random;
    use cognate_train::sampling;

    use super::*;

    fn cut(pieces: &[&str], word: &str) -> Vec<String> {
        let mut found = Vec::new();
        Cutter::new(pieces).unwrap().cut(word, &mut found);
        found.into_iter().map(|piece| pieces[piece as usize].to_owned()).collect()
    }

    #[test]
    fn words_are_cut_into_the_longest_pieces_that_fit() {
        let pieces = ["tom", "tomato", "##to", "##e", "##es", "##ü", "a", "##a"];
        assert_eq!(cut(&pieces, "tomatoes"), ["tomato", "##es"]);
        assert_eq!(cut(&pieces, "tomtoe"), ["tom", "##to", "##e"]);
        assert_eq!(cut(&pieces, "xüa"), ["##ü", "##a"], "others are passed over");
        assert_eq!(cut(&pieces, "xyz"), [""; 0]);
    }

    #[test]
    fn rows_that_made_the_words_are_found_again() {
        let dims = 6;
        let pieces: Vec<String> =
            ["al", "be", "ga", "##de", "##ep", "##ze", "##et"].map(str::to_owned).to_vec();
        let mut random = Random::seeded(1);
        let rows: Vec<f32> =
            (0..pieces.len() * dims).map(|_| sampling::normal(&mut random) as f32).collect();
        let (mut words, mut directions) = (Vec::new(), Vec::new());
        for _ in 0..400 {
            let parts: Vec<usize> = std::iter::once(random.below(3))
                .chain((0..random.below(3)).map(|_| 3 + random.below(4)))
                .collect();
            words.push(parts.iter().map(|&part| pieces[part].trim_start_matches('#')).collect());
            let mut sum = vec![0.0; dims];
            for part in parts {
                simd::add_scaled(&mut sum, [1.0], [&rows[part * dims..(part + 1) * dims]]);
            }
            space::unit(&mut sum);
            directions.push(sum);
        }
        let words: Vec<String> = words;
        let examples: Vec<Example<'_>> = words
            .iter()
            .zip(&directions)
            .map(|(word, direction)| Example { word, direction, weight: 1.0 })
            .collect();
        let fitted = fit(&pieces, &examples, 10, dims);
        assert_eq!(fitted.pieces.len(), 7);
        assert!(fitted.agreement > 0.9, "{}", fitted.agreement);
        let few = fit(&pieces, &examples, 5, dims);
        assert_eq!(few.pieces.len(), 5);
        assert!(few.pieces.iter().all(|piece| fitted.pieces.contains(piece)));
        assert!(few.agreement < fitted.agreement);
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| fit(&pieces, &examples, 10, dims))
        };
        assert!(with(1) == fitted && with(4) == fitted);
    }

    #[test]
    fn nothing_to_fit_gives_no_pieces() {
        let fitted = fit(&["a".to_owned()], &[], 5, 3);
        assert!(fitted.pieces.is_empty() && fitted.rows.is_empty());
    }
}
