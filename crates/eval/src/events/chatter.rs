//! How well the score of chatter separates detected events that match no labelled event from those that
//! match one, and which events come first in the order of that score.

use std::collections::BTreeMap;

use cognate::engine::Engine;
use cognate::window::naming::{TermCounts, Terms};
use cognate_stats::classification::roc_auc;
use serde::Serialize;

use crate::events::draws::Labelled;

/// Least number of texts of an event that is counted.
const MIN: usize = 5;
/// List lengths at which chatter events are counted.
const FIRST: [usize; 4] = [10, 20, 50, 100];
/// Limits of the chatter score that are tried; events with a higher score are dropped.
const MAX: [f64; 3] = [0.40, 0.45, 0.50];
/// Most terms of an event; its information counts all of them.
const TERMS: usize = 1 << 11;

#[derive(Debug, Clone, Serialize)]
pub struct ChatterReport {
    pub of: String,
    /// Fewest texts of a counted event.
    pub least: usize,
    pub events: usize,
    /// Number of counted events whose texts mostly have no label.
    pub chatter: usize,
    /// The probability that a random chatter event has a higher score than a random other event.
    pub auc: f64,
    /// Number of chatter events among the first events of each order.
    pub among: Vec<ChatterAmong>,
    /// Number of chatter events and others that each limit of the score keeps.
    pub kept: Vec<ChatterKept>,
}

/// Number of chatter events among the first `first` events, in two orders.
#[derive(Debug, Clone, Serialize)]
pub struct ChatterAmong {
    pub first: usize,
    /// Among the largest events.
    pub by_size: usize,
    /// Among the events with the lowest score of chatter.
    pub by_chatter: usize,
}

/// Events whose score of chatter does not exceed a limit.
#[derive(Debug, Clone, Serialize)]
pub struct ChatterKept {
    pub most: f64,
    pub chatter: usize,
    pub others: usize,
    /// The share of the other events' texts that the kept ones hold.
    pub texts: f64,
}

struct Found {
    size: usize,
    score: f64,
    is_chatter: bool,
}

/// The figures of the events that a contender found; `None` if all of them are chatter, or none.
pub(super) fn report(
    engine: &Engine,
    stream: &Labelled,
    found: &[u64],
    of: &str,
) -> Option<ChatterReport> {
    let mut events: BTreeMap<u64, (TermCounts, usize, usize)> = BTreeMap::new();
    let mut terms = Terms::default();
    for ((text, &gold), &event) in stream.texts.iter().zip(&stream.gold).zip(found) {
        terms.read(engine, text);
        let (counts, size, alone) = events.entry(event).or_default();
        counts.add(&terms, TERMS);
        *size += 1;
        *alone += usize::from(gold >= stream.names.len() as u64);
    }
    let counted = events.into_values().filter(|&(_, size, _)| size >= MIN);
    let mut all: Vec<Found> = counted
        .map(|(counts, size, alone)| Found {
            size,
            score: counts.chatter(),
            is_chatter: 2 * alone > size,
        })
        .collect();
    let labels: Vec<bool> = all.iter().map(|event| event.is_chatter).collect();
    let scores: Vec<f64> = all.iter().map(|event| event.score).collect();
    let auc = roc_auc(&labels, &scores)?;
    let chatter = |all: &[Found], first: usize| {
        all.iter().take(first).filter(|event| event.is_chatter).count()
    };
    // Events of equal size, or score, stay in the order in which they began.
    all.sort_by_key(|event| std::cmp::Reverse(event.size));
    let by_size = FIRST.map(|first| chatter(&all, first));
    all.sort_by(|one, other| one.score.total_cmp(&other.score));
    let both = FIRST.into_iter().zip(by_size).filter(|(first, _)| *first <= all.len());
    let among = both.map(|(first, by_size)| ChatterAmong {
        first,
        by_size,
        by_chatter: chatter(&all, first),
    });
    let texts = |most: f64| {
        let others = all.iter().filter(|event| !event.is_chatter && event.score <= most);
        others.map(|event| event.size).sum::<usize>() as f64
    };
    let kept = MAX.map(|most| {
        let kept = all.iter().filter(|event| event.score <= most);
        let (chatter, others): (Vec<_>, Vec<_>) = kept.partition(|event| event.is_chatter);
        let (chatter, others) = (chatter.len(), others.len());
        ChatterKept { most, chatter, others, texts: texts(most) / texts(f64::INFINITY) }
    });
    Some(ChatterReport {
        of: of.to_owned(),
        least: MIN,
        events: all.len(),
        chatter: chatter(&all, usize::MAX),
        auc,
        among: among.collect(),
        kept: kept.into(),
    })
}

impl std::fmt::Display for ChatterReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { of, least, events, chatter, auc, among, kept } = self;
        write!(
            f,
            "{of}: of {events} found events of {least} texts or more {chatter} are chatter, most of their \
             texts being of no labelled event; their score of chatter is higher with a probability of \
             {auc:.3}."
        )?;
        for ChatterAmong { first, by_size, by_chatter } in among {
            write!(f, " Of the first {first} by size {by_size}, by that score {by_chatter}.")?;
        }
        for ChatterKept { most, chatter, others, texts } in kept {
            let texts = 100.0 * texts;
            write!(
                f,
                " Up to {most:.2} it keeps {chatter} of them, and {others} others with {texts:.1} % of \
                 their texts."
            )?;
        }
        Ok(())
    }
}
