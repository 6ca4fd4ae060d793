//! What others find near texts by: tf-idf with the idf of the stream itself (the reference of
//! Mazoyer et al. 2020), and MinHash (Broder 1997) of sets of words. Words are those that the model's
//! rules cut.

use std::collections::{HashMap, HashSet, VecDeque};

use cognate::engine::Engine;
use cognate::text;
use cognate::text::Tokens;
use cognate::window::Near;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The words of each text with how often each stands there, as numbers.
fn bags(engine: &Engine, texts: &[String]) -> (Vec<Vec<(usize, f64)>>, usize) {
    let mut known: HashMap<String, usize> = HashMap::new();
    let mut tokens = Tokens::new();
    let mut bags = Vec::with_capacity(texts.len());
    for said in texts {
        text::tokenise(engine.model().normalisation(), said, &mut tokens);
        let mut counts: std::collections::BTreeMap<usize, f64> = Default::default();
        for (word, _) in tokens.iter() {
            let next = known.len();
            let number = *known.entry(word.to_owned()).or_insert(next);
            *counts.entry(number).or_default() += 1.0;
        }
        bags.push(counts.into_iter().collect());
    }
    (bags, known.len())
}

/// The best of scored texts, as the window has them.
fn best(mut near: Vec<Near>, most: usize) -> Vec<Near> {
    near.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then(other.number.cmp(&one.number))
    });
    near.truncate(most);
    near
}

/// The nearest of each text before it by tf-idf, found through lists of the texts that hold a word.
pub(super) fn tf_idf(
    engine: &Engine,
    texts: &[String],
    last: usize,
    most: usize,
) -> Vec<Vec<Near>> {
    let (mut bags, words) = bags(engine, texts);
    let mut frequencies = vec![0.0_f64; words];
    for &(word, _) in bags.iter().flatten() {
        frequencies[word] += 1.0;
    }
    let all = texts.len() as f64;
    for bag in &mut bags {
        for (word, weight) in bag.iter_mut() {
            *weight *= ((1.0 + all) / (1.0 + frequencies[*word])).ln() + 1.0;
        }
        let length = bag.iter().map(|(_, weight)| weight * weight).sum::<f64>().sqrt();
        bag.iter_mut().for_each(|(_, weight)| *weight /= length.max(f64::MIN_POSITIVE));
    }
    let mut lists: Vec<VecDeque<(usize, f64)>> = vec![VecDeque::new(); words];
    let mut nearest = Vec::with_capacity(bags.len());
    for (number, bag) in bags.iter().enumerate() {
        let mut scores: HashMap<usize, f64> = HashMap::new();
        for &(word, weight) in bag {
            let list = &mut lists[word];
            while list.front().is_some_and(|&(at, _)| at + last < number) {
                list.pop_front();
            }
            for &(at, other) in list.iter() {
                *scores.entry(at).or_default() += weight * other;
            }
            list.push_back((number, weight));
        }
        let near = scores
            .into_iter()
            .map(|(at, score)| Near { number: at as u64, score: score.min(1.0) as f32 });
        nearest.push(best(near.collect(), most));
    }
    nearest
}

/// Hashes of a text.
const HASHES: usize = 128;
/// Hashes that must all agree for two texts to be looked at: of 64 groups of two, texts that share
/// three words of ten agree in at least one with a chance of 0.998.
const ROWS: usize = 2;

/// The nearest of each text before it by MinHash among those that agree in a group of hashes.
pub(super) fn min_hash(
    engine: &Engine,
    texts: &[String],
    last: usize,
    most: usize,
) -> Vec<Vec<Near>> {
    let (bags, _) = bags(engine, texts);
    let sketches: Vec<Option<Vec<u32>>> = bags.iter().map(|bag| sketch(bag)).collect();
    let mut groups: Vec<HashMap<&[u32], VecDeque<usize>>> = vec![HashMap::new(); HASHES / ROWS];
    let mut nearest = Vec::with_capacity(texts.len());
    for (number, sketch) in sketches.iter().enumerate() {
        let Some(sketch) = sketch else {
            nearest.push(Vec::new());
            continue;
        };
        let mut met: HashSet<usize> = HashSet::new();
        for (group, rows) in groups.iter_mut().zip(sketch.chunks_exact(ROWS)) {
            let list = group.entry(rows).or_default();
            while list.front().is_some_and(|&at| at + last < number) {
                list.pop_front();
            }
            met.extend(list.iter());
            list.push_back(number);
        }
        let near = met.into_iter().filter_map(|at| {
            let other = sketches.get(at)?.as_ref()?;
            let same = sketch.iter().zip(other).filter(|(one, other)| one == other).count();
            Some(Near { number: at as u64, score: same as f32 / HASHES as f32 })
        });
        nearest.push(best(near.collect(), most));
    }
    nearest
}

/// The least hash of a text's words by each function; nothing for a text without words.
fn sketch(bag: &[(usize, f64)]) -> Option<Vec<u32>> {
    let hash = |seed: u64, word: usize| xxh3_64_with_seed(&word.to_le_bytes(), seed) as u32;
    (0..HASHES as u64).map(|seed| bag.iter().map(|&(word, _)| hash(seed, word)).min()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sketch_tells_the_share_of_common_words() {
        let bag = |words: std::ops::Range<usize>| -> Vec<(usize, f64)> {
            words.map(|word| (word, 1.0)).collect()
        };
        let (one, other) = (sketch(&bag(0..30)).unwrap(), sketch(&bag(10..40)).unwrap());
        let same = one.iter().zip(&other).filter(|(one, other)| one == other).count();
        // Half of all words are common; four standard errors are 0.18.
        assert!((same as f64 / HASHES as f64 - 0.5).abs() < 0.18, "{same}");
        assert_eq!(sketch(&[]), None);
    }
}
