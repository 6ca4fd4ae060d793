//! The answer of `POST /rank`, as it is written.

use cognate::engine::{
    Counts, Duplicate, ExplainedWord, Explanation, KeptFor, KeptText, Place, RankOptions, Ranking,
    Rankings, Reason, UnknownToken, UnscoredLikes,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::api::pipeline::Plan;
use crate::http::api::rank::plan::Candidates;
use crate::http::api::rank::request::Asked;
use crate::http::api::rank::{ItemRanking, RankRequest};
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::request::fields::{CallersData, Candidate, CandidateId, Text};
use crate::http::request::query::Resolved;
use crate::http::request::threshold::Cutoff;
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
    /// With `coverage`, the share of the query's tokens that the model lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
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
    /// With `coverage`, the share of the query's tokens that the model lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    query_known: Option<f32>,
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
    words: Option<&'r [SharedWord]>,
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

/// A word that speaks for a result.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SharedWord {
    /// The token, as it was looked up.
    token: String,
    /// Which text it stands in.
    of: Side,
    /// What it adds to the score.
    share: f32,
}

/// One of two texts that were compared.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Side {
    /// The query, or the liked text.
    Query,
    /// The candidate.
    Candidate,
}

impl std::fmt::Display for SharedWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({:.2})", self.token, self.share)
    }
}

impl SharedWord {
    /// The words with the largest shares, most first; of equals those of the query, in the order of the
    /// text.
    pub(super) fn largest(explained: &Explanation, most: usize) -> Vec<Self> {
        let words = |words: &[ExplainedWord], unknown: &[UnknownToken], of: Side| {
            let words = words.iter().map(|word| (word.token.clone(), word.share));
            let unknown = unknown.iter().map(|token| (token.token.clone(), token.share));
            let shared = words.chain(unknown);
            let shared =
                shared.filter_map(|(token, share)| Some(Self { token, of, share: share? }));
            shared.collect::<Vec<_>>()
        };
        let mut all = words(&explained.one, &explained.one_unknown, Side::Query);
        all.extend(words(&explained.other, &explained.other_unknown, Side::Candidate));
        all.retain(|word| word.share > 0.0);
        all.sort_by(|a, b| b.share.total_cmp(&a.share));
        all.truncate(most);
        all
    }
}

impl<'r> DuplicateCandidate<'r> {
    /// A duplicate and its name.
    pub(super) fn of(duplicate: &Duplicate, id: Option<&'r CandidateId<'r>>) -> Self {
        let Duplicate { ranked, similarity } = *duplicate;
        Self { index: ranked.index, id, score: ranked.score, similarity }
    }
}

impl<'r> RankResponse<'r> {
    /// What the engine ranked of a question, with these of its results.
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
            like_unscored: &[],
            unlike_unscored: &[],
        }
    }

    /// The same answer with the liked and disliked texts that are part of no score.
    pub(crate) fn passing(self, passed: &'r UnscoredLikes) -> Self {
        Self { like_unscored: &passed.liked, unlike_unscored: &passed.disliked, ..self }
    }
}

impl<'r> RankingsResponse<'r> {
    /// Rankings, with these of their results.
    pub(super) fn of(
        rankings: impl Iterator<Item = (&'r Ranking, Vec<RankedCandidate<'r>>)>,
        resolved: &'r Resolved,
    ) -> Self {
        let one = |(ranking, results): (&'r Ranking, _)| OneRanking {
            results,
            unscored: &ranking.unscored,
            reasons: &ranking.reasons,
            truncated: &ranking.truncated,
            query_truncated: ranking.query_truncated,
            query_known: ranking.query_known,
        };
        Self {
            model: &resolved.model.name,
            method: resolved.method_name(),
            measure: resolved.measure().name(),
            fingerprint: resolved.model.engine.model().fingerprint(),
            rankings: rankings.map(one).collect(),
        }
    }
}

impl<'r> RankedCandidate<'r> {
    /// A candidate without a name; one that cannot be scored has score 0.
    pub(crate) fn of(index: usize, score: Option<f32>, text: Option<&'r str>) -> Self {
        Self {
            index,
            id: None,
            score: score.unwrap_or(0.0),
            known: None,
            text,
            data: None,
            duplicates: Vec::new(),
            like: None,
            words: None,
        }
    }

    /// Its place among the candidates.
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// Notes which liked text and which words speak for it.
    pub(super) fn explained_by(&mut self, like: Option<usize>, words: &'r [SharedWord]) {
        self.like = like;
        self.words = Some(words);
    }

    /// Notes which candidates it stands for.
    pub(super) fn stand_for(&mut self, duplicates: Vec<DuplicateCandidate<'r>>) {
        self.duplicates = duplicates;
    }

    /// The same candidate with what came with it, and the share of its tokens that the model lists.
    pub(super) fn with(self, candidate: &'r Candidate<'_>, known: Option<f32>) -> Self {
        Self { id: candidate.id(), data: candidate.data(), known, ..self }
    }
}

/// Fewest candidates that are compared with several texts at once.
const LEAST_PART: usize = 64;
/// Kept candidates of a part: some hundred microseconds for each text that they are compared with.
const KEPT_PART: usize = 4096;
/// Parts that a list is cut into for each thread.
const PARTS_PER_THREAD: usize = 2;

impl<'b> RankRequest<'b> {
    /// The candidates that are ranked.
    pub(super) fn contenders(&self) -> Candidates<'_, 'b> {
        let exclude = self.exclude.as_ref().map_or(&[][..], |list| &list.items);
        let by = self.boost_by.unwrap_or_default().into();
        Candidates::of(self.candidates(), exclude, by)
    }

    /// The texts that are read, with their places.
    pub(super) fn places<'r>(
        &'r self,
        contenders: &Candidates<'r, 'b>,
    ) -> impl Iterator<Item = (Place, &'r str)> + Clone {
        self.asked_places().chain(contenders.places())
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
        resolved.check_total(places.clone(), self.most_tokens(app))?;
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
        let mut ranking =
            ranked.map_err(|error| resolved.explain(contenders.restored(error), places))?;
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
        resolved.check_total(places.clone(), self.most_tokens(app))?;
        let options = self.options(resolved)?;
        let in_parts = engine.ranks_in_parts(resolved.query.method);
        let length = contenders.len();
        let per_part = if in_parts { self.per_part(length, app) } else { length };
        let go_on = || work.check().is_ok();
        let ranked = work.in_parts(length, per_part, |part| {
            contenders.rank_each(part, engine, queries, &options, go_on)
        });
        let Rankings(mut rankings) =
            ranked.map_err(|error| resolved.explain(contenders.restored(error), places))?;
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
        let mut ranking = ranked.map_err(|error| resolved.explain(error, self.asked_places()))?;
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
