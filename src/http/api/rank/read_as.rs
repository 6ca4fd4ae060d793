//! Queries that are read as other words than they are written in, where none of these is known.

use std::borrow::Cow;

use cognate::engine::Page;

use crate::http::api::rank::RankRequest;
use crate::http::app::App;
use crate::http::request::fields::Text;
use crate::http::request::query::{MULTIPLICATIONS_PER_NANO, Resolved, reading};

/// Nanoseconds that a look at a listed word takes for each word of a query.
const NANOS_PER_LISTED: u64 = 100;
/// The share of the time for an answer that looking for other words may take.
const SHARE: u64 = 4;
/// How each query of a question is read, where none of its words is known; empty where all are read as
/// they are written.
pub(super) type ReadAs = Vec<Option<String>>;

impl RankRequest<'_> {
    fn each_query(&self) -> impl Iterator<Item = &str> {
        let queries = self.queries.iter().flat_map(|list| &list.items);
        queries.chain(&self.query).map(AsRef::as_ref)
    }

    /// Multiplications that it takes to find how queries are meant, by a look at each listed word and at
    /// texts of so many bytes; nothing where that is not looked for, because a query has a known word, a
    /// least share of known words is asked for, or any at all, or it takes too long.
    pub(super) fn guessing(
        &self,
        resolved: &Resolved,
        bytes: impl FnOnce() -> usize,
        app: &App,
    ) -> Option<u64> {
        let (engine, query) = (&resolved.model.engine, &resolved.query);
        let guesses = !query.refuse_unscored && query.min_known <= 0.0;
        let unknown = self.each_query().filter(|query| guesses && engine.is_unknown(query));
        let unknown = unknown.count() as u64;
        if unknown == 0 {
            return None;
        }
        let listed = engine.model().vocabulary().len() as u64;
        let each = listed.saturating_mul(NANOS_PER_LISTED * MULTIPLICATIONS_PER_NANO);
        let all = each.saturating_add(reading(bytes())).saturating_mul(unknown);
        let most = app.settings.compute_deadline_ms.saturating_mul(1_000_000) / SHARE;
        Some(all).filter(|all| all / MULTIPLICATIONS_PER_NANO <= most)
    }

    /// How the queries are read to rank these texts.
    pub(super) fn read_as<'t>(
        &self,
        resolved: &Resolved,
        texts: impl Iterator<Item = &'t str> + Clone,
    ) -> ReadAs {
        let engine = &resolved.model.engine;
        let all: ReadAs =
            self.each_query().map(|query| engine.read_as(query, texts.clone())).collect();
        if all.iter().any(Option::is_some) { all } else { ReadAs::new() }
    }

    /// The same question with its queries as they are read.
    pub(super) fn reading<'s>(&'s self, read_as: &'s [Option<String>]) -> RankRequest<'s> {
        let mut asked: RankRequest<'s> = self.clone();
        let queries = asked.queries.iter_mut().flat_map(|list| &mut list.items);
        for (query, read_as) in queries.chain(&mut asked.query).zip(read_as) {
            if let Some(read_as) = read_as {
                *query = Text(Cow::Borrowed(read_as));
            }
        }
        asked
    }
}

/// How the query of this place is read.
pub(super) fn query_read_as(all: &[Option<String>], place: usize) -> Option<&str> {
    all.get(place).and_then(Option::as_deref)
}

/// The share of its words that are known: none of one that is read as another.
pub(super) fn query_known(page: &Page, all: &[Option<String>], place: usize) -> Option<f32> {
    query_read_as(all, place).map_or(page.ranking.query_known, |_| Some(0.0))
}
