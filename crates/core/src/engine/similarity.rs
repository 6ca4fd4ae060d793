//! The scores of pairs of texts.

use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Oppositions, Place, Query, QueryError, Scores, finite, scorable};
use crate::methods::{Info, Kind, Scorer};

impl Engine {
    /// The scores of pairs of texts.
    pub fn similarity<A: AsRef<str>, B: AsRef<str>>(
        &self,
        pairs: &[(A, B)],
        query: &Query,
    ) -> Result<Scores, QueryError> {
        let info = query.method.info();
        if info.kind == Kind::Ranker {
            return Err(QueryError::OnlyRanks { method: info.name });
        }
        let scorer = self.scorer_of(query)?;
        self.similarity_by(scorer, info, pairs, query)
    }

    /// [`Engine::similarity`] by a scorer that need not be one of the methods, for ablations.
    pub fn similarity_by<A: AsRef<str>, B: AsRef<str>>(
        &self,
        scorer: &Scorer,
        info: &Info,
        pairs: &[(A, B)],
        query: &Query,
    ) -> Result<Scores, QueryError> {
        let measure = self.measure(scorer, info, query)?;
        let mut workspace = Workspace::of(&self.model);
        let mut one = workspace.phrase();
        let mut other = workspace.phrase();
        let polarity = query.opposes.then(|| self.polarity()).transpose()?;
        let mut answer = Scores { measure, ..Scores::default() };
        answer.scores.reserve(pairs.len());
        for (index, (a, b)) in pairs.iter().enumerate() {
            let a = self.read_item(&mut one, a.as_ref(), query, Place::Pair(index, 0))?;
            let b = self.read_item(&mut other, b.as_ref(), query, Place::Pair(index, 1))?;
            if a.is_cut() || b.is_cut() {
                answer.truncated.push(index);
            }
            answer.counts.saw(&one);
            answer.counts.saw(&other);
            if query.coverage {
                answer.known.push([one.known_share(), other.known_share()]);
            }
            let reasons = [a.reason(scorable(&one, info)), b.reason(scorable(&other, info))];
            if let Some(side) = reasons.iter().position(Option::is_some) {
                query.accepts_unknown(Place::Pair(index, side))?;
                answer.unscored.push(index);
                answer.reasons.extend(reasons[side]);
                answer.scores.push(0.0);
                answer.opposes.extend(polarity.map(|_| Oppositions::default()));
                continue;
            }
            let score = scorer.pair(measure, &one, &other, workspace.scratch());
            answer.scores.push(finite(score, info)?);
            answer.opposes.extend(polarity.map(|polarity| polarity.prepare(&one).kinds(&other)));
        }
        workspace.take_back([one, other]);
        Ok(answer)
    }
}
