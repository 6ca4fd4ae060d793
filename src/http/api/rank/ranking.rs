//! A request's candidates put in order, and what is told of them.

use crate::engine::Counts;
use crate::engine::Place;
use crate::engine::RankOptions;
use crate::engine::Ranking;
use crate::http::api::pipeline::Plan;
use crate::http::api::rank::RankRequest;
use crate::http::api::rank::RankedCandidate;
use crate::http::api::rank::contenders::Contenders;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::request::fields::Candidate;
use crate::http::request::fields::Count;
use crate::http::request::fields::Offset;
use crate::http::request::query::Resolved;
use crate::http::request::threshold::Cutoff;
use crate::http::work::pool::JobContext;

impl<'b> RankRequest<'b> {
    /// The candidates that are ranked.
    pub(super) fn contenders(&self) -> Contenders<'_, 'b> {
        let exclude = self.exclude.as_ref().map_or(&[][..], |list| &list.items);
        let by = self.boost_by.unwrap_or_default().into();
        Contenders::of(&self.candidates.items, exclude, by)
    }

    /// The texts that are read, with their places.
    pub(super) fn places<'r>(
        &'r self,
        contenders: &Contenders<'r, 'b>,
    ) -> impl Iterator<Item = (Place, &'r str)> + Clone {
        std::iter::once((Place::Query, self.query.as_ref())).chain(contenders.places())
    }

    /// Faults of a candidate that is an object stand at its text.
    pub(super) fn locate(&self, mut error: ApiError) -> ApiError {
        for fault in &mut error.faults {
            let index = fault.pointer.strip_prefix("/candidates/");
            let index = index.and_then(|index| index.parse::<usize>().ok());
            let candidate = index.and_then(|index| self.candidates.items.get(index));
            if matches!(candidate, Some(Candidate::Named(_))) {
                fault.pointer.push_str("/text");
            }
        }
        error
    }

    /// The least score wanted.
    pub(super) fn least(&self, resolved: &Resolved) -> Result<Option<f32>, ApiError> {
        let cutoff = self.min_score.map(|threshold| threshold.resolve(resolved, "/min_score"));
        Ok(cutoff.transpose()?.map(Cutoff::least))
    }

    /// What is wanted of the ranking.
    pub(super) fn options(&self, resolved: &Resolved) -> Result<RankOptions, ApiError> {
        let offset = self.offset.map_or(0, |Offset(passed)| passed);
        let top_k = self.top_k.map(|Count(most)| most.saturating_add(offset));
        Ok(RankOptions { query: resolved.query, top_k, min_score: self.least(resolved)? })
    }

    /// The candidates in the order of their scores, what was wanted of them, and what was read.
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
        let total = resolved.check_total(places.clone(), &app.settings);
        total.map_err(|error| self.locate(error))?;
        let options = self.options(resolved)?;
        let in_parts = engine.ranks_in_parts(resolved.query.method);
        let per_part = if in_parts { plan.per_part() } else { contenders.len() };
        let ranked = work.in_parts_by(contenders.len(), per_part, |parts| {
            engine.rank_session(self.query.as_ref(), &options, |session| {
                parts.each(|part| contenders.rank(part, session));
            })
        });
        let mut ranking = ranked
            .map_err(|error| self.locate(resolved.explain(contenders.locate(error), places)))?;
        Resolved::check_read(ranking.counts.tokens as usize, &app.settings)?;
        ranking.order(&options);
        contenders.restore(&mut ranking);
        let mut counts = ranking.counts;
        counts.add(Counts { texts: 1, ..Counts::default() });
        Ok((ranking, options, counts))
    }

    /// The results, the unscored last where everything is wanted.
    pub(super) fn results<'r>(
        &'r self,
        ranking: &Ranking,
        options: &RankOptions,
    ) -> Vec<RankedCandidate<'r>> {
        let offset = self.offset.map_or(0, |Offset(passed)| passed);
        let candidate = |(index, score): (usize, _)| {
            let candidate = self.candidates.items.get(index)?;
            let text = self.return_text.unwrap_or(false).then_some(candidate.as_ref());
            let known = ranking.known.get(index).copied();
            Some(RankedCandidate::of(index, score, text).with(candidate, known))
        };
        ranking.listed(options).skip(offset).filter_map(candidate).collect()
    }
}
