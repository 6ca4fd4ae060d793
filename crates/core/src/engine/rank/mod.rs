//! Ranking: candidates by how alike they are to one text, to each of several, or to liked and not to
//! disliked ones; and what is made of a ranking: one of a kind, and not all of one kind.

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
mod session;

pub use candidates::Candidates;
pub use collapse::{Duplicate, Fold};
pub use diversify::Diversify;
pub use kept::{KeptText, RankedFor};
pub use liked::{BoostBy, Boosts, Liked, Likes, Strategy, UnscoredLikes};
pub use many::Rankings;
pub use matrix::Matrix;
pub use page::{Page, PageOptions, PageResult, RankQuestion, ResultReason, Side, WordShare};
pub use session::RankSession;

use crate::engine::rank::session::Reader;
use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Place, Query, QueryError, RankOptions, Ranking};
use crate::methods::Scorer;

/// Candidates looked up and scored at once: enough to keep a kernel busy, few enough to stay in
/// the cache.
const BLOCK: usize = 32;

impl Engine {
    /// Candidates by how alike they are to a text, best first, equal scores by index; candidates
    /// that cannot be scored come last.
    pub fn rank<T: AsRef<str>>(
        &self,
        text: &str,
        candidates: &[T],
        query: &Query,
    ) -> Result<Ranking, QueryError> {
        self.rank_best(text, candidates, &RankOptions::all(*query))
    }

    /// The first results of [`Engine::rank`], down to the least score and up to the number wanted.
    pub fn rank_best<T: AsRef<str>>(
        &self,
        text: &str,
        candidates: &[T],
        options: &RankOptions,
    ) -> Result<Ranking, QueryError> {
        self.rank_session(text, options, |session| session.rank(candidates))?
    }

    /// Prepares a text for ranking any number of lists of candidates, such as the parts of a long
    /// one where [`Engine::ranks_in_parts`]. What was learnt of the text for one list serves the next,
    /// and changes no bit of a score.
    pub fn rank_session<R>(
        &self,
        text: &str,
        options: &RankOptions,
        run: impl FnOnce(&mut RankSession<'_, '_>) -> R,
    ) -> Result<R, QueryError> {
        let query = &options.query;
        let info = query.method.info();
        let scorer = self.scorer_of(query)?;
        let measure = self.measure(scorer, info, query)?;
        let mut workspace = Workspace::of(&self.model);
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
            reader: Reader::of(self, query),
            workspace: &mut workspace,
        };
        let ran = run(&mut session);
        session.end();
        workspace.take_back([one]);
        Ok(ran)
    }
}
