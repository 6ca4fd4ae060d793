//! Contenders that find the nearest earlier texts: vectors, vectors with rescoring, and two
//! references. The references are tf-idf with the idf of the stream itself (as in Mazoyer et al.
//! 2020) and MinHash (Broder 1997) over sets of words; words are those of the model's tokenisation.

use std::collections::{HashMap, HashSet, VecDeque};

use cognate::engine::{Embeddings, Engine, Query};
use cognate::methods::Method;
use cognate::text;
use cognate::text::Tokens;
use cognate::window::events::Rule;
use cognate::window::stream::{look_again, without_opposed};
use cognate::window::usual::Preset;
use cognate::window::{Entry, Limits, Near, Window, usual};
use cognate_kernels::vector;
use cognate_kernels::vector::Row;
use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::events::EventsOptions;
use crate::events::draws::Labelled;
use crate::{EvalError, Result};

const VECTORS: Method = Method::AvgCos;
/// Minimum cosine of a text that counts as near.
const FLOOR: f32 = 0.2;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Contender {
    Vectors,
    /// The nearest by vectors, rescored by this method.
    Second(Method),
    /// The cosine of word counts weighted by the idf of the stream.
    TfIdf,
    /// The share of equal minima of hash functions.
    MinHash,
}

impl Contender {
    pub(super) fn all(engine: &Engine, options: &EventsOptions) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        let usual = ["none", "coverage", usual::second(engine, Preset::Topics)];
        let mut names: Vec<&str> = options.seconds.iter().map(String::as_str).collect();
        if names.is_empty() {
            names.extend(usual);
            names.dedup();
        }
        for name in names {
            if name == "none" {
                all.push(Self::Vectors);
                continue;
            }
            let named =
                engine.method(name).map_err(|error| EvalError::Options(error.to_string()))?;
            engine
                .check(&Query::new(named))
                .map_err(|error| EvalError::Options(error.to_string()))?;
            all.push(Self::Second(named));
        }
        if options.references {
            all.extend([Self::TfIdf, Self::MinHash]);
        }
        Ok(all)
    }

    pub(super) fn name(self) -> String {
        match self {
            Self::Vectors => VECTORS.name().to_owned(),
            Self::Second(method) => format!("{}, then {}", VECTORS.name(), method.name()),
            Self::TfIdf => "tf-idf".to_owned(),
            Self::MinHash => "MinHash".to_owned(),
        }
    }

    /// The name of the second method in requests; `None` for references, which requests cannot
    /// name.
    pub(super) fn second(self) -> Option<&'static str> {
        match self {
            Self::Vectors => Some("none"),
            Self::Second(method) => Some(method.name()),
            Self::TfIdf | Self::MinHash => None,
        }
    }

    pub(super) fn has_vectors(self) -> bool {
        matches!(self, Self::Vectors | Self::Second(_))
    }

    /// The method that scores; for references, one with scores on the same scale.
    pub(super) fn method(self) -> Method {
        if let Self::Second(method) = self { method } else { VECTORS }
    }

    /// Returns the rules to try: one for each threshold.
    pub(super) fn rules(
        self,
        preset: Preset,
        votes: usize,
        centre: f32,
    ) -> impl Iterator<Item = Rule> {
        let method = self.method();
        let (steps, duplicate) = (usual::steps(preset, method), usual::duplicate(method));
        let thresholds = if self.has_vectors() { 10..=24_u16 } else { 2..=20 };
        // By division, the threshold is exactly the number that is printed.
        let thresholds = thresholds.map(|step| f32::from(step * 3) / 100.0);
        thresholds.map(move |threshold| Rule { threshold, votes, steps, centre, duplicate })
    }

    pub(super) fn nearest(
        self,
        engine: &Engine,
        stream: &Labelled,
        vectors: &Embeddings,
        options: &EventsOptions,
    ) -> Result<Vec<Vec<Near>>> {
        let (limits, most) = (options.limits, options.nearest);
        let second = match self {
            Self::TfIdf => return Ok(tf_idf(engine, stream, limits, most)),
            Self::MinHash => return Ok(min_hash(engine, stream, limits, most)),
            Self::Vectors => None,
            Self::Second(method) => Some(method),
        };
        let text_of =
            |number: u64| stream.texts.get(usize::try_from(number).ok()?).map(String::as_str);
        let both = stream.texts.par_iter().zip(by_vectors(vectors, &stream.times, limits, most));
        let asked = both.map(|(text, mut near)| {
            if options.drop_opposed {
                near = without_opposed(engine, text, &near, usual::OPPOSITES, text_of)?;
            }
            match second {
                Some(method) => look_again(engine, method, text, &near, text_of, || true),
                None => Ok(near),
            }
        });
        asked.collect::<Result<_, _>>().map_err(refused)
    }
}

fn refused(source: cognate::engine::QueryError) -> EvalError {
    EvalError::Query { file: "the stream".to_owned(), source }
}

fn by_vectors(vectors: &Embeddings, times: &[i64], limits: Limits, most: usize) -> Vec<Vec<Near>> {
    let mut window = Window::new(vectors.vectors.ncols(), limits);
    let both = vectors.iter().zip(times);
    let entries = both.map(|(vector, &time)| Entry { time, vector });
    let entries: Vec<Entry<'_>> = entries.collect();
    window.follow(&entries, most, FLOOR)
}

/// The vectors of the texts at length 1; none of a text whose vector has no direction.
pub(super) fn vectors(engine: &Engine, stream: &Labelled) -> Result<Embeddings> {
    let query = Query { truncate: true, ..Query::new(VECTORS) };
    let mut embedded = engine.embed(&stream.texts, &query).map_err(refused)?;
    for mut vector in embedded.vectors.rows_mut() {
        let length = vector::norm(Row::F32(vector.as_slice().unwrap_or_default()));
        let sound = length.is_finite() && length > 0.0;
        vector.mapv_inplace(|number| if sound { number / length } else { f32::NAN });
    }
    Ok(embedded)
}

/// The numbered words of each text with their counts, and the number of distinct words.
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

pub(super) fn best(mut near: Vec<Near>, most: usize) -> Vec<Near> {
    near.sort_by(|one, other| {
        other.score.total_cmp(&one.score).then(other.number.cmp(&one.number))
    });
    near.truncate(most);
    near
}

/// For each text, the nearest earlier texts by tf-idf, found through an inverted index.
pub(super) fn tf_idf(
    engine: &Engine,
    stream: &Labelled,
    limits: Limits,
    most: usize,
) -> Vec<Vec<Near>> {
    let texts = &stream.texts;
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
            while list.front().is_some_and(|&(at, _)| !stream.keeps(at, number, limits)) {
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

const HASHES: usize = 128;
/// Hash functions in a group; texts are compared if all hashes of at least one group agree. With 64
/// groups of two, texts that share three of ten words agree in a group with probability 0.998.
const ROWS: usize = 2;

/// For each text, the nearest earlier texts by MinHash among those that agree in a group of hashes.
pub(super) fn min_hash(
    engine: &Engine,
    stream: &Labelled,
    limits: Limits,
    most: usize,
) -> Vec<Vec<Near>> {
    let texts = &stream.texts;
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
            while list.front().is_some_and(|&at| !stream.keeps(at, number, limits)) {
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

/// Returns the minimum of each hash function over a text's words; `None` for a text without words.
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
