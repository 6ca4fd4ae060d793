//! A text that is ranked for repeatedly, with the engine that prepared it.

use std::fmt;
use std::sync::Arc;

use self_cell::self_cell;

use crate::engine::rank::RankSession;
use crate::engine::rank::session::Reader;
use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Place, QueryError, RankOptions, Ranking};
use crate::methods::{Against, Measure, Scorer};
use crate::model::Phrase;

type Prepared<'t> = Option<Box<dyn Against + 't>>;

self_cell! {
    struct ReadText {
        owner: Arc<Engine>,
        #[covariant]
        dependent: Phrase,
    }
}

self_cell! {
    struct PreparedCell {
        owner: ReadText,
        #[not_covariant]
        dependent: Prepared,
    }
}

/// A text for which any number of lists is ranked, kept with its engine: what was learnt of it is learnt
/// once, and serves the next.
///
/// ```
/// use std::sync::Arc;
///
/// use cognate::engine::{PreparedText, RankOptions};
/// use cognate::{Engine, Query};
///
/// struct Feed {
///     topic: PreparedText,
/// }
///
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
/// let engine = Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
/// let options = RankOptions::all(Query::new(engine.method("auto")?));
/// let mut feed = Feed { topic: PreparedText::new(Arc::new(engine), "earthquake", options)? };
/// for posts in [["quake hits city", "football results"], ["a tremor was felt", "cat naps"]] {
///     assert_eq!(feed.topic.rank(&posts)?.results[0].index, 0);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PreparedText {
    cell: PreparedCell,
    options: RankOptions,
    measure: Measure,
    truncated: bool,
    known_share: Option<f32>,
}

impl PreparedText {
    /// Reads and prepares a text.
    pub fn new(engine: Arc<Engine>, text: &str, options: RankOptions) -> Result<Self, QueryError> {
        let query = &options.query;
        let info = query.method.info();
        let measure = engine.measure(engine.scorer_of(query)?, info, query)?;
        let mut truncated = false;
        let read = ReadText::try_new(engine, |engine| {
            let mut one = Phrase::new(&engine.model);
            truncated = engine.read(&mut one, text, query, Place::Query)?;
            Ok::<_, QueryError>(one)
        })?;
        let known_share = query.told_share(read.borrow_dependent());
        let cell = PreparedCell::try_new(read, |read| {
            let (engine, one) = (read.borrow_owner(), read.borrow_dependent());
            if !query.ranks_for(one, info) {
                query.accepts_unknown(Place::Query)?;
                return Ok(None);
            }
            let mut workspace = Workspace::with_memory(&engine.model);
            let scorer = engine.scorer_of(query)?;
            Ok::<_, QueryError>(Some(scorer.against(measure, one, workspace.scratch())))
        })?;
        Ok(Self { cell, options, measure, truncated, known_share })
    }

    /// The best of a list of candidates, as [`Engine::rank_best`] answers, bit for bit.
    pub fn rank<T: AsRef<str>>(&mut self, candidates: &[T]) -> Result<Ranking, QueryError> {
        let Self { cell, options, measure, truncated, known_share } = self;
        let (options, info) = (&*options, options.query.method.info());
        cell.with_dependent_mut(|read, prepared| {
            let engine = read.borrow_owner();
            let scorer = engine.scorer_of(&options.query)?;
            let mut workspace = Workspace::with_memory(&engine.model);
            let mut session = RankSession {
                options,
                info,
                measure: *measure,
                query_truncated: *truncated,
                query_share: *known_share,
                scores_lists: matches!(scorer, Scorer::RankList(_)),
                against: prepared.take(),
                reader: Reader::new(engine, &options.query, info),
                workspace: &mut workspace,
            };
            let ranking = session.rank(candidates);
            *prepared = session.rest();
            ranking
        })
    }
}

impl fmt::Debug for PreparedText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedText").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Query;
    use crate::methods::Method;

    /// A prepared text can be sent to other threads.
    fn moves<T: Send>(kept: T) -> T {
        kept
    }

    #[test]
    fn a_kept_text_ranks_as_the_engine_does() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");
        let engine = Arc::new(Engine::open(path.as_ref(), &Default::default()).unwrap());
        let lists = [
            vec!["quake hits city", "football", "", "???"],
            vec!["a tremor was felt in the city", "earthquake"],
        ];
        let methods = Method::ALL.iter().filter(|method| engine.scorer(**method).is_ok());
        let mut compared = 0;
        for &method in methods {
            let options = RankOptions { top_k: Some(2), ..RankOptions::all(Query::new(method)) };
            for text in ["earthquake in the city", "???"] {
                let kept = PreparedText::new(Arc::clone(&engine), text, options).unwrap();
                let mut kept = moves(kept);
                for list in lists.iter().chain(&lists) {
                    let expected = engine.rank_best(text, list, &options).unwrap();
                    assert_eq!(kept.rank(list).unwrap(), expected, "{} {text}", method.name());
                    compared += 1;
                }
            }
        }
        assert!(compared > 100, "{compared}");
        let empty = PreparedText::new(engine, "", RankOptions::all(Query::new(Method::AvgCos)));
        assert!(matches!(empty, Err(QueryError::EmptyText { .. })), "{empty:?}");
    }
}
