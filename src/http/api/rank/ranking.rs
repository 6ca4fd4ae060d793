//! A request's candidates put in the order of their scores.

use cognate::engine::{Counts, KeptFor, KeptText, Place, RankOptions, Ranking, Rankings};

use crate::http::api::pipeline::Plan;
use crate::http::api::rank::RankRequest;
use crate::http::api::rank::asked::Asked;
use crate::http::api::rank::contenders::Contenders;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::request::fields::{Candidate, Text};
use crate::http::request::query::Resolved;
use crate::http::request::threshold::Cutoff;
use crate::http::work::pool::JobContext;

/// Fewest candidates that are compared with several texts at once.
const LEAST_PART: usize = 64;
/// Kept candidates of a part: some hundred microseconds for each text that they are compared with.
const KEPT_PART: usize = 4096;
/// Parts that a list is cut into for each thread.
const PARTS_PER_THREAD: usize = 2;

impl<'b> RankRequest<'b> {
    /// The candidates that are ranked.
    pub(super) fn contenders(&self) -> Contenders<'_, 'b> {
        let exclude = self.exclude.as_ref().map_or(&[][..], |list| &list.items);
        let by = self.boost_by.unwrap_or_default().into();
        Contenders::of(self.candidates(), exclude, by)
    }

    /// The texts that are read, with their places.
    pub(super) fn places<'r>(
        &'r self,
        contenders: &Contenders<'r, 'b>,
    ) -> impl Iterator<Item = (Place, &'r str)> + Clone {
        self.asked_places().chain(contenders.places())
    }

    /// Faults of a candidate that is an object stand at its text.
    pub(super) fn locate(&self, mut error: ApiError) -> ApiError {
        for fault in &mut error.faults {
            let index = fault.pointer.strip_prefix("/candidates/");
            let index = index.and_then(|index| index.parse::<usize>().ok());
            let candidate = index.and_then(|index| self.candidates().get(index));
            if matches!(candidate, Some(Candidate::Named(_))) {
                fault.pointer.push_str("/text");
            }
            let index = fault.pointer.strip_prefix("/like/");
            let index = index.and_then(|index| index.parse::<usize>().ok());
            let liked = self.like.as_ref().and_then(|like| like.items.get(index?));
            if liked.is_some_and(|liked| liked.named) {
                fault.pointer.push_str("/text");
            }
        }
        error
    }

    pub(crate) fn least(&self, resolved: &Resolved) -> Result<Option<f32>, ApiError> {
        let cutoff = self.min_score.map(|threshold| threshold.resolve(resolved, "/min_score"));
        Ok(cutoff.transpose()?.map(Cutoff::least))
    }

    /// What is wanted of the ranking.
    pub(super) fn options(&self, resolved: &Resolved) -> Result<RankOptions, ApiError> {
        let min_score = self.least(resolved)?;
        Ok(RankOptions { query: resolved.query, top_k: self.needed(), min_score })
    }

    /// The candidates in the order of their scores, what was wanted of them, and what was read. Not of
    /// several queries.
    pub(crate) fn ranking(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
    ) -> Result<(Ranking, RankOptions, Counts), ApiError> {
        let resolved = &plan.resolved;
        if let Some(fused) = &resolved.fused {
            return self.fused_ranking(&fused.fusion, plan, app, work);
        }
        let (engine, contenders) = (&resolved.model.engine, self.contenders());
        let places = self.places(&contenders);
        let total = resolved.check_total(places.clone(), self.most_tokens(app));
        total.map_err(|error| self.locate(error))?;
        let options = self.options(resolved)?;
        let in_parts = engine.ranks_in_parts(resolved.query.method);
        let go_on = || work.check().is_ok();
        let ranked = match self.asked()? {
            Asked::Likes(likes) => {
                let per_part = self.per_part(contenders.len(), app);
                work.in_parts(contenders.len(), per_part, |part| {
                    contenders.rank_liked(part, engine, &likes, &options, go_on)
                })
            }
            Asked::Query(_) | Asked::Queries(_) => {
                let per_part = if in_parts { plan.per_part() } else { contenders.len() };
                work.in_parts_by(contenders.len(), per_part, |parts| {
                    engine.rank_session(self.query_text(), &options, |session| {
                        parts.each(|part| contenders.rank(part, session, go_on));
                    })
                })
            }
        };
        let mut ranking = ranked
            .map_err(|error| self.locate(resolved.explain(contenders.locate(error), places)))?;
        if self.like.is_some() || !in_parts {
            // A part that was given up is not whole, and by then the job is late.
            work.check()?;
        }
        Resolved::check_read(ranking.counts.tokens as usize, self.most_tokens(app))?;
        ranking.order(&options);
        contenders.restore(&mut ranking);
        let mut counts = ranking.counts;
        counts.add(Counts { texts: self.asked_length() as u64, ..Counts::default() });
        Ok((ranking, options, counts))
    }

    /// The same for each of several queries.
    pub(super) fn rankings(
        &self,
        queries: &[Text<'_>],
        plan: &Plan,
        app: &App,
        work: &JobContext,
    ) -> Result<(Vec<Ranking>, RankOptions, Counts), ApiError> {
        let resolved = &plan.resolved;
        let (engine, contenders) = (&resolved.model.engine, self.contenders());
        let places = self.places(&contenders);
        let total = resolved.check_total(places.clone(), self.most_tokens(app));
        total.map_err(|error| self.locate(error))?;
        let options = self.options(resolved)?;
        let in_parts = engine.ranks_in_parts(resolved.query.method);
        let length = contenders.len();
        let per_part = if in_parts { self.per_part(length, app) } else { length };
        let go_on = || work.check().is_ok();
        let ranked = work.in_parts(length, per_part, |part| {
            contenders.rank_each(part, engine, queries, &options, go_on)
        });
        let Rankings(mut rankings) = ranked
            .map_err(|error| self.locate(resolved.explain(contenders.locate(error), places)))?;
        // A part that was given up is not whole, and by then the job is late.
        work.check()?;
        let mut counts = rankings.first().map_or(Counts::default(), |ranking| ranking.counts);
        Resolved::check_read(counts.tokens as usize, self.most_tokens(app))?;
        for ranking in &mut rankings {
            ranking.order(&options);
            contenders.restore(ranking);
        }
        counts.add(Counts { texts: queries.len() as u64, ..Counts::default() });
        Ok((rankings, options, counts))
    }

    /// The candidates in the order of their scores, by vectors of them that were kept.
    pub(super) fn ranking_of_kept(
        &self,
        asked: KeptFor<'_>,
        kept: &[KeptText<'_>],
        plan: &Plan,
        work: &JobContext,
    ) -> Result<(Ranking, RankOptions, Counts), ApiError> {
        let resolved = &plan.resolved;
        let (engine, candidates) = (&resolved.model.engine, self.candidates());
        let options = self.options(resolved)?;
        let go_on = || work.check().is_ok();
        let ranked = work.in_parts(kept.len(), KEPT_PART, |part| {
            let first = part.start;
            let kept = kept.get(part).unwrap_or_default();
            let text_of = |index: usize| candidates.get(first + index).map_or("", AsRef::as_ref);
            engine.rank_kept(asked, kept, text_of, &options, go_on)
        });
        let mut ranking =
            ranked.map_err(|error| self.locate(resolved.explain(error, self.asked_places())))?;
        // A part that was given up is not whole, and by then the job is late.
        work.check()?;
        ranking.order(&options);
        let counts = Counts { texts: self.asked_length() as u64, ..Counts::default() };
        Ok((ranking, options, counts))
    }

    /// The same for each of several queries.
    pub(super) fn rankings_of_kept(
        &self,
        queries: &[Text<'_>],
        kept: &[KeptText<'_>],
        plan: &Plan,
        work: &JobContext,
    ) -> Result<(Vec<Ranking>, RankOptions, Counts), ApiError> {
        let mut rankings = Vec::with_capacity(queries.len());
        let (mut options, mut counts) = (self.options(&plan.resolved)?, Counts::default());
        for (place, text) in queries.iter().enumerate() {
            let asked = KeptFor::QueryOf(place, text.as_ref());
            let (ranking, of_one, read) = self.ranking_of_kept(asked, kept, plan, work)?;
            (options, counts) = (of_one, read);
            rankings.push(ranking);
        }
        Ok((rankings, options, counts))
    }

    /// Candidates that are compared with all texts at once: enough that preparing the texts again for
    /// each part takes little, few enough that every thread gets some.
    fn per_part(&self, candidates: usize, app: &App) -> usize {
        candidates.div_ceil(PARTS_PER_THREAD * app.compute.threads()).max(LEAST_PART)
    }
}
