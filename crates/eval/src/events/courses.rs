//! The times of labelled and found events, and their characteristic words, for the report.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use cognate::engine::Engine;
use cognate::window::naming;
use cognate::window::naming::{TermCounts, Terms};

use crate::events::draws::Labelled;

/// Most labelled events, and most found events, whose course is shown.
const SHOWN: usize = 20;
/// Words and phrases that name an event, and terms counted to find them.
const NAMES: usize = 6;
const TERMS: usize = 1 << 16;

/// An event and the times of its texts, in rising order.
#[derive(Debug, Clone)]
pub(super) struct Course {
    /// The label; for a found event the label of most of its texts.
    pub(super) name: String,
    pub(super) found: bool,
    pub(super) words: Vec<String>,
    pub(super) times: Vec<i64>,
}

/// The courses of the largest labelled events, by name, and of the largest found events.
pub(super) fn courses(engine: &Engine, stream: &Labelled, found: &[u64]) -> Vec<Course> {
    let mut terms = Terms::default();
    let mut all = TermCounts::default();
    for text in &stream.texts {
        terms.read(engine, text);
        all.add(&terms, TERMS);
    }
    let named = |gold: u64| stream.names.get(usize::try_from(gold).ok()?);
    let mut course = |labels: &[u64], label: u64, found: bool, name: String| {
        let mut counts = TermCounts::default();
        let mut times = Vec::new();
        let texts = stream.texts.iter().zip(&stream.times).zip(labels);
        for ((text, &time), _) in texts.filter(|&(_, &known)| known == label) {
            terms.read(engine, text);
            counts.add(&terms, TERMS);
            times.push(time);
        }
        let words = naming::names(&counts, &all, NAMES);
        Course { name, found, words: words.into_iter().map(str::to_owned).collect(), times }
    };
    let gold =
        largest(&stream.gold).into_iter().filter_map(|(_, label)| Some((label, named(label)?)));
    let mut gold: Vec<(u64, &String)> = gold.take(SHOWN).collect();
    gold.sort_unstable();
    let mut courses: Vec<Course> = gold
        .into_iter()
        .map(|(label, name)| course(&stream.gold, label, false, name.clone()))
        .collect();
    let several = largest(found).into_iter().filter(|&(size, _)| size > 1);
    for (size, event) in several.take(SHOWN) {
        let members = stream.gold.iter().zip(found).filter(|&(_, &known)| known == event);
        let members: Vec<u64> = members.map(|(&gold, _)| gold).collect();
        // The labelled event of most of its texts, if there is one.
        let most =
            largest(&members).into_iter().find_map(|(count, gold)| Some((count, named(gold)?)));
        let name = most.map_or_else(
            || "no text of a labelled event".to_owned(),
            |(count, name)| format!("{:.0} % are of {name}", 100.0 * count as f64 / size as f64),
        );
        courses.push(course(found, event, true, name));
    }
    courses
}

/// The sizes of labels, the largest first.
pub(super) fn largest(labels: &[u64]) -> Vec<(usize, u64)> {
    let mut sizes = BTreeMap::<u64, usize>::new();
    for &label in labels {
        *sizes.entry(label).or_default() += 1;
    }
    let mut sizes: Vec<_> = sizes.into_iter().map(|(label, size)| (size, label)).collect();
    sizes.sort_by_key(|&(size, label)| (Reverse(size), label));
    sizes
}
