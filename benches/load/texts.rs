//! What is compared: real pairs of sentences when the shared data is beside the checkout, otherwise
//! made-up ones from the model's own words.

use cognate::model::Model;

use crate::chance::Chance;
use crate::support;

/// Pairs of sentences.
pub struct Texts {
    /// The pairs.
    pub pairs: Vec<(String, String)>,
    /// Where they are from.
    pub source: &'static str,
}

impl Texts {
    /// The shared pairs, or 4,000 made-up ones.
    pub fn load(model: &Model, seed: u64) -> Self {
        let shared = support::shared_data().map(|folder| folder.join("sts/stsb-train.tsv"));
        if let Some(text) = shared.and_then(|path| std::fs::read_to_string(path).ok()) {
            let pairs = text.lines().filter_map(|line| {
                let mut cells = line.split('\t').skip(1).map(str::trim);
                let pair = (cells.next()?.to_owned(), cells.next()?.to_owned());
                (!pair.0.is_empty() && !pair.1.is_empty()).then_some(pair)
            });
            return Self { pairs: pairs.collect(), source: "STS Benchmark, train" };
        }
        let words: Vec<&str> = model.vocabulary().words().collect();
        let mut chance = Chance::new(seed, "texts");
        let mut sentence = || {
            let count = 6 + chance.below(12);
            let words = (0..count).map(|_| {
                // Common words stand first in the file; a square makes them common here too.
                let place = chance.unit() * chance.unit() * words.len() as f64;
                words.get(place as usize).copied().unwrap_or("word")
            });
            words.collect::<Vec<_>>().join(" ")
        };
        let pairs = (0..4000).map(|_| (sentence(), sentence()));
        Self { pairs: pairs.collect(), source: "made up from the model's words" }
    }

    /// Returns `count` pairs from a start that moves with `turn`; after the last pair comes the first.
    pub fn run(&self, turn: usize, count: usize) -> Vec<(&str, &str)> {
        let from = turn.wrapping_mul(7919) % self.pairs.len();
        let pairs = self.pairs.iter().cycle().skip(from).take(count);
        pairs.map(|(a, b)| (a.as_str(), b.as_str())).collect()
    }

    /// `count` single sentences, likewise.
    pub fn sentences(&self, turn: usize, count: usize) -> Vec<&str> {
        let pairs = self.run(turn, count.div_ceil(2));
        pairs.into_iter().flat_map(|(a, b)| [a, b]).take(count).collect()
    }
}
