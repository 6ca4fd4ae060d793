//! Ranking: candidates by their similarity to one text, to each of several, or to liked and not to
//! disliked ones; and what follows a ranking: merged duplicates and more varied results.

mod best;
mod candidates;
mod collapse;
mod diversify;
mod kept;
mod liked;
mod many;
mod matrix;
mod page;
mod panel;
mod parts;
mod prepared;
mod question;
mod session;

pub use candidates::Candidates;
pub use collapse::Duplicate;
pub use diversify::Diversify;
pub use kept::KeptText;
pub(super) use liked::Boosts;
pub use liked::{BoostBy, Liked, Likes, Strategy, UnscoredLikes, Weight};
pub use matrix::Matrix;
pub use page::{Page, PageOptions, PageResult, ResultReason, Side, WordShare};
pub use parts::{Pages, Partial, Session};
pub use prepared::PreparedText;
pub use question::{Asked, Question};
pub(super) use session::RankSession;

use crate::engine::rank::session::Reader;
use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Place, Query, QueryError, RankOptions, Ranking};
use crate::methods::{Info, Scorer};

/// Number of candidates looked up and scored at once: enough to keep a kernel busy, few enough to stay
/// in the cache.
const BLOCK: usize = 32;

/// # Rank
impl Engine {
    /// Candidates by how alike they are to a text, best first, equal scores by index; candidates
    /// that cannot be scored come last.
    ///
    /// ```
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
    /// # let engine = cognate::Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    /// let query = cognate::Query::new(engine.method("auto")?);
    /// let ranking = engine.rank("earthquake", &["football results", "quake hits city"], &query)?;
    /// assert_eq!(ranking.results[0].index, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rank<T: AsRef<str>>(
        &self,
        text: &str,
        candidates: &[T],
        query: &Query,
    ) -> Result<Ranking, QueryError> {
        self.rank_best(text, candidates, &RankOptions::all(*query))
    }

    /// The first results of [`Engine::rank`], down to the least score and up to the number wanted.
    ///
    /// ```
    /// use cognate::engine::RankOptions;
    ///
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
    /// # let engine = cognate::Engine::open("models/default.safetensors".as_ref(), &Default::default())?;
    /// let query = cognate::Query::new(engine.method("auto")?);
    /// let options = RankOptions { query, top_k: Some(1), min_score: Some(0.4) };
    /// let texts = ["football results", "quake hits city", "a tremor was felt"];
    /// let ranking = engine.rank_best("earthquake", &texts, &options)?;
    /// assert_eq!(ranking.results.len(), 1);
    /// assert_eq!(texts[ranking.results[0].index], "quake hits city");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rank_best<T: AsRef<str>>(
        &self,
        text: &str,
        candidates: &[T],
        options: &RankOptions,
    ) -> Result<Ranking, QueryError> {
        self.with_text_session(text, options, |session| session.rank(candidates))?
    }

    /// Prepares a text for ranking any number of lists of candidates. Memory and lookups of one
    /// list serve the next, and change no bit of a score.
    pub(crate) fn with_text_session<R>(
        &self,
        text: &str,
        options: &RankOptions,
        run: impl FnOnce(&mut RankSession<'_, '_, '_>) -> R,
    ) -> Result<R, QueryError> {
        let query = &options.query;
        self.rank_by((self.scorer_of(query)?, query.method.info()), text, options, run)
    }

    /// [`Engine::with_text_session`] by a scorer that need not be one of the methods.
    pub(super) fn rank_by<R>(
        &self,
        (scorer, info): (&Scorer, &Info),
        text: &str,
        options: &RankOptions,
        run: impl FnOnce(&mut RankSession<'_, '_, '_>) -> R,
    ) -> Result<R, QueryError> {
        let query = &options.query;
        let measure = self.measure(scorer, info, query)?;
        let mut workspace = Workspace::with_memory(&self.model);
        let mut one = workspace.phrase();
        let query_truncated = self.read(&mut one, text, query, Place::Query)?;
        let query_known = query.ranks_for(&one, info);
        if !query_known {
            query.accepts_unknown(Place::Query)?;
        }
        let query_share = query.told_share(&one);
        let against = query_known.then(|| scorer.against(measure, &one, workspace.scratch()));
        let mut session = RankSession {
            options,
            info,
            measure,
            query_truncated,
            query_share,
            scores_lists: matches!(scorer, Scorer::RankList(_)),
            against,
            reader: Reader::new(self, query, info),
            workspace: &mut workspace,
        };
        let ran = run(&mut session);
        session.end();
        workspace.take_back([one]);
        Ok(ran)
    }
}
