//! Duplicates among texts in memory, or of them in others.

use cognate::engine::Engine;

use crate::dedupe::judge::Judge;
use crate::dedupe::search::Found;
use crate::dedupe::texts::{Source, Texts};
use crate::dedupe::{DedupeError, Match, Report, Search, search};

/// What stands for what.
#[derive(Debug, Clone, PartialEq)]
pub struct Duplicates {
    /// For each text the place of the one that stands for it, among the others where there are others,
    /// and its score with that; nothing for a text that stands for itself.
    pub of: Vec<Option<(u32, f32)>>,
    /// All matches, by the later text; places as in `of`.
    pub matches: Vec<Match>,
    pub report: Report,
}

/// Looks for duplicates among texts, or in others `against` which they are held. A missing text
/// duplicates nothing.
pub fn among(
    engine: &Engine,
    texts: &[Option<&str>],
    against: Option<&[Option<&str>]>,
    search: &Search,
) -> Result<Duplicates, DedupeError> {
    let judge = Judge::new(engine, search)?;
    let sources = against.into_iter().chain([texts]).map(Source::Column);
    let texts = Texts { sources: sources.collect() };
    let mut matches = Vec::new();
    let found = search::search(judge, search, &texts, |found, known| {
        matches.push(Match { later: found.later - known, ..found.clone() });
        Ok(())
    })?;
    let Found { judge, firsts, clusters, report } = found;
    let own = judge.known.unwrap_or_default()..firsts.len() as u32;
    let of_text = |id: u32| {
        let (of, score) = clusters.of_text(id);
        (of != id).then_some((of, score))
    };
    Ok(Duplicates { of: own.map(of_text).collect(), matches, report })
}
