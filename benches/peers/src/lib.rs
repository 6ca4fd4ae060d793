//! What the Rust contestants share: the pairs, and the protocol by which they take turns. How a text
//! is scored is each contestant's own.
//!
//! A contestant loads once, then reads lines `go METHOD EVERY`, makes one pass over every EVERY-th
//! pair, and prints `NANOSECONDS MEAN_SCORE`, or `absent` where it has no such method.

use std::io::Write;
use std::path::Path;
use std::time::Instant;
use std::{fs, io};

/// Two texts to be compared.
pub type Pair = (String, String);

/// What one pass took, and the mean of its scores, which shows that the work was the same work.
#[derive(Debug, Clone, Copy)]
pub struct Turn {
    /// Wall time of the pass.
    pub nanos: u128,
    /// Mean score.
    pub mean: f64,
}

impl Turn {
    /// Times a pass whose results are scores.
    pub fn scoring(pass: impl FnOnce() -> Vec<f32>) -> Self {
        let start = Instant::now();
        let scores = std::hint::black_box(pass());
        Self { nanos: start.elapsed().as_nanos(), mean: mean(&scores) }
    }

    /// Times a pass that makes results of another type; `scores` scores them after the clock has stopped.
    pub fn making<T>(pass: impl FnOnce() -> T, scores: impl FnOnce(T) -> Vec<f32>) -> Self {
        let start = Instant::now();
        let made = std::hint::black_box(pass());
        let nanos = start.elapsed().as_nanos();
        Self { nanos, mean: mean(&scores(made)) }
    }
}

fn mean(scores: &[f32]) -> f64 {
    scores.iter().map(|&score| f64::from(score)).sum::<f64>() / scores.len().max(1) as f64
}

/// Returns the command's arguments; stops with an error unless there is one for each name.
pub fn arguments<const N: usize>(names: [&str; N]) -> [String; N] {
    let given: Vec<String> = std::env::args().skip(1).collect();
    given.try_into().unwrap_or_else(|_| panic!("usage: {}", names.join(" ")))
}

/// Answers every line of standard input by a turn over the pairs of a file.
pub fn take_turns(path: &str, mut turn: impl FnMut(&str, &[Pair]) -> Option<Turn>) {
    let all = read_pairs(Path::new(path));
    for line in io::stdin().lines() {
        let line = line.expect("the driver writes text");
        let (method, every) = line
            .strip_prefix("go ")
            .and_then(|rest| rest.split_once(' '))
            .expect("go METHOD EVERY");
        let every: usize = every.parse().expect("EVERY is a number");
        let pairs: Vec<Pair> = all.iter().step_by(every).cloned().collect();
        match turn(method, &pairs) {
            Some(turn) => println!("{} {}", turn.nanos, turn.mean),
            None => println!("absent"),
        }
        io::stdout().flush().expect("the driver reads");
    }
}

fn read_pairs(path: &Path) -> Vec<Pair> {
    let text = fs::read_to_string(path).expect("the pairs are readable");
    let pair = |line: &str| {
        let (one, other) = line.split_once('\t').expect("two columns");
        (one.to_owned(), other.to_owned())
    };
    text.lines().map(pair).collect()
}

/// Returns the cosine, computed in the plainest way; 0 if a vector has no direction.
pub fn cosine(one: &[f32], other: &[f32]) -> f32 {
    let norms = dot(one, one).sqrt() * dot(other, other).sqrt();
    if norms > 0.0 { dot(one, other) / norms } else { 0.0 }
}

/// Dot product in the plainest way.
pub fn dot(one: &[f32], other: &[f32]) -> f32 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}
