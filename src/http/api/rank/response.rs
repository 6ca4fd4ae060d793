//! The answer of `POST /rank`, as it is written.

use std::collections::HashSet;

use cognate::engine::{
    BoostBy, Candidates, Counts, Duplicate, KeptText, Oppositions, Page, PageResult, Place,
    RankOptions, RankedFor, Ranking, Rankings, Reason, UnscoredLikes, WordShare,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::api::pipeline::Plan;
use crate::http::api::rank::read_as::{query_known, query_read_as};
use crate::http::api::rank::request::Asked;
use crate::http::api::rank::{ItemRanking, RankRequest};
use crate::http::app::App;
use crate::http::error::{ApiError, Pointer, Segment};
use crate::http::request::fields::{CallersData, Candidate, CandidateId, OppositionName, Text};
use crate::http::request::query::Resolved;
use crate::http::work::pool::JobContext;

/// Candidates by how alike they are to the query.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RankResponse<'r> {
    /// The model's name.
    model: &'r str,
    /// The method, `auto` resolved.
    method: &'r str,
    /// The measure.
    measure: &'static str,
    /// Sixteen hexadecimal digits that change with the model.
    fingerprint: &'r str,
    /// Best first, equal scores by index; candidates that cannot be scored come last with score 0.
    results: Vec<RankedCandidate<'r>>,
    /// Indexes of the candidates that cannot be scored; all of them where the query has no known word.
    unscored: &'r [usize],
    /// Why, one of `empty`, `unknown`, `too_long` for each of them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false, value_type = Vec<String>)]
    reasons: &'r [Reason],
    /// Indexes of the candidates that were cut.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    truncated: &'r [usize],
    /// Whether the query was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    query_truncated: bool,
    /// The share of the query's tokens that the model lists, where it does not list all of them; with
    /// `coverage` in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
    /// What the query is read as, where the model lists none of its words and misspelt ones are likely.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_read_as: Option<&'r str>,
    /// Places of liked texts that are part of no score, as they have no known word.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    like_unscored: &'r [usize],
    /// The same of disliked texts.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    unlike_unscored: &'r [usize],
}

/// A ranking for each of several queries.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RankingsResponse<'r> {
    /// The model's name.
    model: &'r str,
    /// The method, `auto` resolved.
    method: &'r str,
    /// The measure.
    measure: &'static str,
    /// Sixteen hexadecimal digits that change with the model.
    fingerprint: &'r str,
    /// One a query, in order.
    rankings: Vec<OneRanking<'r>>,
}

/// What the answer to one query alone has beside its model and method.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OneRanking<'r> {
    /// Best first, equal scores by index; candidates that cannot be scored come last with score 0.
    results: Vec<RankedCandidate<'r>>,
    /// Indexes of the candidates that cannot be scored; all of them where the query has no known word.
    unscored: &'r [usize],
    /// Why, one of `empty`, `unknown`, `too_long` for each of them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false, value_type = Vec<String>)]
    reasons: &'r [Reason],
    /// Indexes of the candidates that were cut.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    truncated: &'r [usize],
    /// Whether the query was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    query_truncated: bool,
    /// The share of the query's tokens that the model lists, where it does not list all of them; with
    /// `coverage` in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
    /// What the query is read as, where the model lists none of its words and misspelt ones are likely.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_read_as: Option<&'r str>,
}

/// A ranking, or one for each of several queries.
#[derive(ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
pub(super) enum EitherRanking<'r> {
    /// For one query, or for liked texts.
    One(RankResponse<'r>),
    /// For several queries.
    Several(RankingsResponse<'r>),
    /// Of a collection.
    Items(ItemRanking<'r>),
}

/// A candidate and its score.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RankedCandidate<'r> {
    /// Its place among the candidates.
    index: usize,
    /// Its own name, if it came with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'r CandidateId<'r>>,
    /// Its score, boost included.
    score: f32,
    /// With `coverage`, the share of its tokens that the model lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<f32>,
    /// The text, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
    /// The candidate's `data`, as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<&'r CallersData<'r>>,
    /// Candidates that are nearly the same as this one, best first.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    duplicates: Vec<DuplicateCandidate<'r>>,
    /// With `explain` and `like`, the place of the liked text that it is most like, weights included.
    #[serde(skip_serializing_if = "Option::is_none")]
    like: Option<usize>,
    /// With `explain`, the words with the largest shares of its score, boost aside, with the query, or
    /// with that liked text.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<SharedWord>>)]
    words: Option<&'r [WordShare]>,
    /// With `return_opposes`, how it is opposed to the query; an empty list where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<OppositionName>>)]
    opposes: Option<Oppositions>,
    /// With `threshold`, whether its score is at or above it and it is not opposed to the query.
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<bool>,
}

/// A candidate that is nearly the same as a better one.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DuplicateCandidate<'r> {
    /// Its place among the candidates.
    index: usize,
    /// Its own name, if it came with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'r CandidateId<'r>>,
    /// Its score, boost included.
    score: f32,
    /// How alike the two are.
    similarity: f32,
}

// The schema of `WordShare`.
/// A word that speaks for a result.
#[derive(ToSchema)]
#[allow(dead_code)]
pub(crate) struct SharedWord {
    /// The token, as it was looked up; of several forms the one that adds most.
    token: String,
    /// Which text it stands in.
    of: Side,
    /// What it adds to the score, in all forms and in both texts together.
    share: f32,
}

/// One of two texts that were compared.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
#[allow(dead_code)]
enum Side {
    /// The query, or the liked text.
    Query,
    /// The candidate.
    Candidate,
    /// Both, in whatever form.
    Both,
}

impl<'r> DuplicateCandidate<'r> {
    /// A duplicate and its name.
    pub(super) fn of(duplicate: &Duplicate, id: Option<&'r CandidateId<'r>>) -> Self {
        let Duplicate { ranked, similarity } = *duplicate;
        Self { index: ranked.index, id, score: ranked.score, similarity }
    }
}

impl<'r> RankResponse<'r> {
    /// The answer for a ranking and these results.
    pub(crate) fn of(
        ranking: &'r Ranking,
        results: Vec<RankedCandidate<'r>>,
        resolved: &'r Resolved,
    ) -> Self {
        Self {
            model: &resolved.model.name,
            method: resolved.method_name(),
            measure: ranking.measure.name(),
            fingerprint: resolved.model.engine.model().fingerprint(),
            results,
            unscored: &ranking.unscored,
            reasons: &ranking.reasons,
            truncated: &ranking.truncated,
            query_truncated: ranking.query_truncated,
            query_known: ranking.query_known,
            query_read_as: None,
            like_unscored: &[],
            unlike_unscored: &[],
        }
    }

    /// The same answer with the liked and disliked texts that have no known word.
    pub(crate) fn passing(self, passed: &'r UnscoredLikes) -> Self {
        Self { like_unscored: &passed.liked, unlike_unscored: &passed.disliked, ..self }
    }

    /// The same answer to a query that was read as another one, of whose own words none is known.
    pub(crate) fn reading(self, query_read_as: Option<&'r str>) -> Self {
        let query_known = query_read_as.map_or(self.query_known, |_| Some(0.0));
        Self { query_known, query_read_as, ..self }
    }
}

impl<'r> RankingsResponse<'r> {
    /// Rankings, with these of their results.
    pub(super) fn of(
        rankings: impl Iterator<Item = (&'r Page, Vec<RankedCandidate<'r>>)>,
        read_as: &'r [Option<String>],
        resolved: &'r Resolved,
    ) -> Self {
        let one = |(place, (page, results)): (usize, (&'r Page, _))| OneRanking {
            results,
            unscored: &page.ranking.unscored,
            reasons: &page.ranking.reasons,
            truncated: &page.ranking.truncated,
            query_truncated: page.ranking.query_truncated,
            query_known: query_known(page, read_as, place),
            query_read_as: query_read_as(read_as, place),
        };
        Self {
            model: &resolved.model.name,
            method: resolved.method_name(),
            measure: resolved.measure().name(),
            fingerprint: resolved.model.engine.model().fingerprint(),
            rankings: rankings.enumerate().map(one).collect(),
        }
    }
}

impl<'r> RankedCandidate<'r> {
    /// The results of a page of candidates that are texts alone.
    pub(crate) fn all<T: AsRef<str>>(page: &'r Page, texts: &'r [T]) -> Vec<Self> {
        let result = |result: PageResult<'r>| {
            let duplicates = result.duplicates.iter();
            let duplicates = duplicates.map(|duplicate| DuplicateCandidate::of(duplicate, None));
            let text = texts.get(result.index).map(AsRef::as_ref);
            Self::of(&result, text).stands_for(duplicates.collect())
        };
        page.results().map(result).collect()
    }

    /// A result without its name and its duplicates; one that cannot be scored has score 0.
    pub(super) fn of(result: &PageResult<'r>, text: Option<&'r str>) -> Self {
        Self {
            index: result.index,
            id: None,
            score: result.score.unwrap_or(0.0),
            known: None,
            text,
            data: None,
            duplicates: Vec::new(),
            like: result.reason.and_then(|reason| reason.like),
            words: result.reason.map(|reason| reason.words.as_slice()),
            opposes: result.opposes,
            related: result.related,
        }
    }

    /// The same result with the candidates that were merged into it.
    pub(super) fn stands_for(self, duplicates: Vec<DuplicateCandidate<'r>>) -> Self {
        Self { duplicates, ..self }
    }

    /// The same result with the candidate's id and data, and its share of known tokens.
    pub(super) fn with(self, candidate: &'r Candidate<'_>, known: Option<f32>) -> Self {
        Self { id: candidate.id(), data: candidate.data(), known, ..self }
    }
}

/// Gives a fault of a candidate the place that it has in the request.
pub(super) fn restored<T>(candidates: &Candidates<'_, T>, error: ApiError) -> ApiError {
    error.renamed(|pointer| match *pointer.segments() {
        [Segment::Field("candidates"), Segment::Index(index)] => {
            Pointer::from("/candidates").index(candidates.place(index))
        }
        _ => pointer,
    })
}

/// Fewest candidates that are compared with several texts at once.
const LEAST_PART: usize = 64;
/// Stored vectors in a part: some hundred microseconds for each text of the query.
const KEPT_PART: usize = 4096;
/// Parts that a list is cut into for each thread.
const PARTS_PER_THREAD: usize = 2;

impl<'b> RankRequest<'b> {
    /// The candidates that are ranked.
    pub(super) fn ranked_candidates(&self) -> Candidates<'_, Candidate<'b>> {
        let exclude = self.exclude.as_ref().map_or(&[][..], |list| &list.items);
        let names: HashSet<&CandidateId<'_>> = exclude.iter().collect();
        let excludes = |one: &Candidate<'_>| one.id().is_some_and(|id| names.contains(id));
        let excludes = Some(excludes).filter(|_| !names.is_empty());
        let by = self.boost_by.unwrap_or_default().into();
        let by = self.similarity_share.map_or(by, BoostBy::Share);
        Candidates::of(self.candidates(), excludes, Candidate::boost, by)
    }

    /// The texts that are read, with their places.
    pub(super) fn places<'r>(
        &'r self,
        candidates: &Candidates<'r, Candidate<'b>>,
    ) -> impl Iterator<Item = (Place, &'r str)> + Clone {
        let text = |(index, candidate): (usize, &&'r Candidate<'b>)| {
            (Place::Candidate(candidates.place(index)), (*candidate).as_ref())
        };
        self.asked_places().chain(candidates.ranked().iter().enumerate().map(text))
    }

    pub(crate) fn least(&self, resolved: &Resolved) -> Result<Option<f32>, ApiError> {
        let cutoff = self.min_score.map(|threshold| threshold.resolve(resolved, "/min_score"));
        Ok(cutoff.transpose()?.map(|cutoff| cutoff.least))
    }

    /// The options of the ranking.
    pub(super) fn options(&self, resolved: &Resolved) -> Result<RankOptions, ApiError> {
        let (min_score, page) = (self.least(resolved)?, self.page_options(resolved)?);
        // The best of other groups may stand anywhere.
        let top_k = page.needed().filter(|_| self.collapse_by.is_none());
        Ok(RankOptions { query: resolved.query, top_k, min_score })
    }

    /// Ranks the candidates for one query or for likes; returns the options and the counts of what was
    /// read.
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
        let (engine, candidates) = (&resolved.model.engine, self.ranked_candidates());
        let places = self.places(&candidates);
        resolved.check_total(places.clone(), self.most_tokens(app), || work.check())?;
        let options = self.options(resolved)?;
        let in_parts = engine.ranks_in_parts(resolved.query.method);
        let go_on = || work.check().is_ok();
        let ranked = match self.asked()? {
            Asked::Likes(likes) => {
                let per_part = self.per_part(candidates.ranked().len(), app);
                work.in_parts(candidates.ranked().len(), per_part, |part| {
                    let (part, boosts) = candidates.part(part);
                    engine.rank_liked(&likes, part, &boosts, &options, go_on)
                })
            }
            Asked::Query(_) | Asked::Queries(_) => {
                let per_part = if in_parts { plan.per_part() } else { candidates.ranked().len() };
                work.in_parts_by(candidates.ranked().len(), per_part, |parts| {
                    engine.rank_session(self.query_text(), &options, |session| {
                        parts.each(|part| {
                            let (part, boosts) = candidates.part(part);
                            session.rank_boosted(part, &boosts, go_on)
                        });
                    })
                })
            }
        };
        let mut ranking =
            ranked.map_err(|error| resolved.explain(restored(&candidates, error), places))?;
        if self.like.is_some() || !in_parts {
            // A part that was given up is not whole, and by then the job is late.
            work.check()?;
        }
        Resolved::check_read(ranking.counts.tokens as usize, self.most_tokens(app))?;
        ranking.order(&options);
        candidates.restore(&mut ranking);
        let mut counts = ranking.counts;
        counts.add(Counts { texts: self.asked_length() as u64, ..Counts::default() });
        Ok((ranking, options, counts))
    }

    /// Ranks the candidates for each of several queries.
    pub(super) fn rankings(
        &self,
        queries: &[Text<'_>],
        plan: &Plan,
        app: &App,
        work: &JobContext,
    ) -> Result<(Vec<Ranking>, RankOptions, Counts), ApiError> {
        let resolved = &plan.resolved;
        let (engine, candidates) = (&resolved.model.engine, self.ranked_candidates());
        let places = self.places(&candidates);
        resolved.check_total(places.clone(), self.most_tokens(app), || work.check())?;
        let options = self.options(resolved)?;
        let in_parts = engine.ranks_in_parts(resolved.query.method);
        let length = candidates.ranked().len();
        let per_part = if in_parts { self.per_part(length, app) } else { length };
        let go_on = || work.check().is_ok();
        let ranked = work.in_parts(length, per_part, |part| {
            let (part, boosts) = candidates.part(part);
            engine.rank_each(queries, part, &boosts, &options, go_on)
        });
        let Rankings(mut rankings) =
            ranked.map_err(|error| resolved.explain(restored(&candidates, error), places))?;
        // A part that was given up is not whole, and by then the job is late.
        work.check()?;
        let mut counts = rankings.first().map_or(Counts::default(), |ranking| ranking.counts);
        Resolved::check_read(counts.tokens as usize, self.most_tokens(app))?;
        for ranking in &mut rankings {
            ranking.order(&options);
            candidates.restore(ranking);
        }
        counts.add(Counts { texts: queries.len() as u64, ..Counts::default() });
        Ok((rankings, options, counts))
    }

    /// Ranks candidates by their stored vectors.
    pub(super) fn ranking_of_kept(
        &self,
        asked: RankedFor<'_>,
        kept: &[KeptText<'_>],
        plan: &Plan,
        work: &JobContext,
    ) -> Result<(Ranking, RankOptions, Counts), ApiError> {
        let resolved = &plan.resolved;
        let (engine, candidates) = (&resolved.model.engine, self.ranked_candidates());
        let options = self.options(resolved)?;
        let go_on = || work.check().is_ok();
        let ranked = work.in_parts(kept.len(), KEPT_PART, |part| {
            let kept = kept.get(part.clone()).unwrap_or_default();
            let (part, boosts) = candidates.part(part);
            let text_of = |index: usize| part.get(index).map_or("", |one| (*one).as_ref());
            engine.rank_kept(asked, kept, text_of, (&options, &boosts), go_on)
        });
        let mut ranking = ranked.map_err(|error| resolved.explain(error, self.asked_places()))?;
        // A part that was given up is not whole, and by then the job is late.
        work.check()?;
        ranking.order(&options);
        let counts = Counts { texts: self.asked_length() as u64, ..Counts::default() };
        Ok((ranking, options, counts))
    }

    /// Ranks candidates by their stored vectors for each of several queries.
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
            let asked = RankedFor::QueryOf(place, text.as_ref());
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
