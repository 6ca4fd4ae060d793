//! How fast the parts and the whole are, each beside a baseline in the same run.
//!
//! `cargo bench --bench speed` prints a table of medians and ratios and records it; a word after
//! `--` runs the parts whose names hold it, and a second word the contestants whose names hold that.

mod default_model;
mod ground;
mod kernels;
mod parts;
mod peak;
mod port;
mod ranking;
#[path = "../support/mod.rs"]
mod support;
mod texts;

use cognate::model::format::Dtype;
use cognate_kernels::simd;
use cognate_kernels::simd::Width;
use serde_json::json;
use support::{Clock, Contestant};

/// Rounds of every contest.
const ROUNDS: usize = 9;

/// Contests, and what came of them.
pub struct Contests {
    only: Option<String>,
    contestant: Option<String>,
    figures: Vec<serde_json::Value>,
}

impl Contests {
    /// Whether a part is wanted.
    pub fn wants(&self, name: &str) -> bool {
        self.only.as_ref().is_none_or(|only| name.contains(only.as_str()))
    }

    /// Lets contestants take turns, each doing `items` items a turn, and tells the nanoseconds an
    /// item and how many times as long as the first each takes.
    pub fn hold(&mut self, name: &str, items: usize, contestants: Vec<Contestant<'_>>) {
        self.hold_by(Clock::Thread, name, items, contestants);
    }

    /// [`Contests::hold`] by a clock of choice.
    pub fn hold_by(
        &mut self,
        clock: Clock,
        name: &str,
        items: usize,
        mut contestants: Vec<Contestant<'_>>,
    ) {
        if let Some(wanted) = &self.contestant {
            contestants.retain(|(name, _)| name.contains(wanted.as_str()));
        }
        let seconds = support::interleaved_by(clock, &mut contestants, ROUNDS);
        println!("\n{name}");
        for ((contestant, _), taken) in contestants.iter().zip(&seconds) {
            let nanos = taken / items as f64 * 1e9;
            let ratio = taken / seconds[0];
            println!("  {contestant:<44} {nanos:>11.1} ns {ratio:>8.2} x");
            self.note(name, contestant, json!({"nanos": nanos, "ratio": ratio}));
        }
    }

    /// Keeps a figure.
    pub fn note(&mut self, part: &str, name: &str, mut figure: serde_json::Value) {
        figure["part"] = part.into();
        figure["name"] = name.into();
        self.figures.push(figure);
    }
}

/// Runs `work` at a register width, then sets the widest width again.
pub fn at<T>(width: Width, work: impl FnOnce() -> T) -> T {
    simd::limit(width);
    let done = work();
    simd::limit(simd::widest());
    done
}

/// The widths this processor has, widest first.
pub fn widths() -> impl Iterator<Item = (Width, &'static str)> {
    let least = if cfg!(target_arch = "aarch64") { "NEON" } else { "plain code" };
    let all = [(Width::Avx512, "AVX-512"), (Width::Avx2, "AVX2"), (Width::Least, least)];
    all.into_iter().filter(|(width, _)| *width <= simd::widest())
}

fn main() {
    // Cargo hands `--bench` on.
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let (only, contestant) = (words.next(), words.next());
    let mut contests = Contests { only, contestant, figures: Vec::new() };
    let pairs = ground::pairs();
    if contests.wants(default_model::NAME) {
        default_model::all(&mut contests, &pairs);
    }
    if contests.only.as_ref().is_none_or(|only| !default_model::NAME.contains(only.as_str())) {
        of_glove(&mut contests, &pairs);
    }
    support::record("speed", &json!({ "figures": contests.figures }));
}

/// The parts and the whole on vectors of f32.
fn of_glove(contests: &mut Contests, pairs: &[(String, String)]) {
    let folder = tempfile::tempdir().expect("room for models");
    let vectors = ground::vectors();
    let engine = vectors.engine(folder.path(), Dtype::F32);
    println!(
        "{} words of {} dimensions, {} pairs, {:?}",
        vectors.words.len(),
        vectors.dims,
        pairs.len(),
        simd::widest()
    );
    parts::all(contests, &engine, &vectors, pairs);
    texts::all(contests, &engine, &vectors, pairs, folder.path());
    kernels::all(contests, &engine, &vectors, pairs, folder.path());
    ranking::all(contests, &vectors, pairs, folder.path());
}
