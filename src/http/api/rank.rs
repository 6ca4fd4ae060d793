//! `POST /rank`: candidates by how alike they are to a query.

use std::sync::Arc;

use axum::extract::Request;
use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::Counts;
use crate::engine::Place;
use crate::engine::RankOptions;
use crate::engine::Ranking;
use crate::engine::Reason;
use crate::http::api::pipeline;
use crate::http::api::pipeline::ANSWER_HEAD;
use crate::http::api::pipeline::INDEX_BYTES;
use crate::http::api::pipeline::NUMBER_BYTES;
use crate::http::api::pipeline::Plan;
use crate::http::api::pipeline::Question;
use crate::http::api::stream;
use crate::http::app::App;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::openapi::refusals::LIST;
use crate::http::openapi::refusals::QUESTION;
use crate::http::openapi::refusals::refusals;
use crate::http::registry::models::Models;
use crate::http::request::body;
use crate::http::request::fields;
use crate::http::request::fields::Candidate;
use crate::http::request::fields::CandidateId;
use crate::http::request::fields::Count;
use crate::http::request::fields::List;
use crate::http::request::fields::MeasureName;
use crate::http::request::fields::ModelName;
use crate::http::request::fields::RankMethod;
use crate::http::request::fields::Text;
use crate::http::request::json;
use crate::http::request::query::OovPolicy;
use crate::http::request::query::Resolved;
use crate::http::request::query::Selection;
use crate::http::request::threshold::Cutoff;
use crate::http::request::threshold::Threshold;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// Bytes of a result beside its numbers: `{"index":,"score":},`.
const RESULT_BYTES: usize = 20;
/// Bytes of an id beside itself: `"id":"",`.
const ID_BYTES: usize = 8;
/// Bytes of `"known":,` and a share.
const SHARE_BYTES: usize = 9 + NUMBER_BYTES;
/// Bytes of a text beside itself: `,"text":""`.
const TEXT_BYTES: usize = 10;

/// The body of `POST /rank`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RankRequest<'b> {
    /// What the candidates are compared with.
    #[serde(borrow)]
    #[schema(value_type = fields::NonEmptyText)]
    pub(crate) query: Text<'b>,
    /// The candidates.
    #[serde(borrow)]
    #[schema(value_type = Vec<Candidate<'b>>, min_items = 1, max_items = 10000)]
    pub(crate) candidates: List<Candidate<'b>>,
    #[serde(borrow)]
    pub(crate) model: Option<ModelName<'b>>,
    #[serde(borrow)]
    pub(crate) method: Option<RankMethod<'b>>,
    pub(crate) measure: Option<MeasureName>,
    /// Most results wanted.
    pub(crate) top_k: Option<Count>,
    /// The least score wanted.
    pub(crate) min_score: Option<Threshold>,
    /// Repeat each result's text.
    pub(crate) return_text: Option<bool>,
    pub(crate) oov: Option<OovPolicy>,
    /// Cut a text with too many tokens rather than refuse it.
    pub(crate) truncate: Option<bool>,
    /// Also tell which share of each text's tokens the model lists, by their stem or a part at least.
    pub(crate) coverage: Option<bool>,
}

/// Candidates by how alike they are to the query.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RankResponse<'r> {
    /// The model's name.
    model: &'r str,
    /// The method, `auto` resolved.
    method: &'static str,
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
}

/// A candidate and its score.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RankedCandidate<'r> {
    /// Its place among the candidates.
    index: usize,
    /// Its own name, if it came with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'r CandidateId<'r>>,
    /// Its score.
    score: f32,
    /// With `coverage`, the share of its tokens that the model lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<f32>,
    /// The text, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
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
            method: resolved.query.method.name(),
            measure: ranking.measure.name(),
            fingerprint: resolved.model.engine.model().fingerprint(),
            results,
            unscored: &ranking.unscored,
            reasons: &ranking.reasons,
            truncated: &ranking.truncated,
            query_truncated: ranking.query_truncated,
            query_known: ranking.query_known,
        }
    }
}

impl<'r> RankedCandidate<'r> {
    /// A candidate without a name; one that cannot be scored has score 0.
    pub(crate) fn of(index: usize, score: Option<f32>, text: Option<&'r str>) -> Self {
        Self { index, id: None, score: score.unwrap_or(0.0), known: None, text }
    }
}

impl<'b> RankRequest<'b> {
    /// All candidates in order, as the default model and method have it.
    pub(crate) fn of(query: Text<'b>, candidates: List<Candidate<'b>>) -> Self {
        Self {
            query,
            candidates,
            model: None,
            method: None,
            measure: None,
            top_k: None,
            min_score: None,
            return_text: None,
            oov: None,
            truncate: None,
            coverage: None,
        }
    }
}

impl RankRequest<'_> {
    fn places(&self) -> impl Iterator<Item = (Place, &str)> + Clone {
        let candidates = self.candidates.items.iter().enumerate();
        let places =
            candidates.map(|(index, candidate)| (Place::Candidate(index), candidate.as_ref()));
        std::iter::once((Place::Query, self.query.as_ref())).chain(places)
    }

    /// Faults of a candidate that is an object stand at its text.
    fn locate(&self, mut error: ApiError) -> ApiError {
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

    /// Bytes of the answer, roughly: texts and ids as they stand, escapes aside. Which candidates are
    /// the best is not known yet, so of fewer than all the longest count.
    fn answer_bytes(&self) -> usize {
        let with_text = self.return_text.unwrap_or(false);
        let bytes_of = |candidate: &Candidate<'_>| {
            let id = match candidate.id() {
                Some(CandidateId::Text(id)) => ID_BYTES + id.len(),
                Some(CandidateId::Number(_)) => ID_BYTES + NUMBER_BYTES,
                None => 0,
            };
            id + if with_text { TEXT_BYTES + candidate.as_ref().len() } else { 0 }
        };
        let length = self.candidates.items.len();
        let wanted = self.top_k.map_or(length, |Count(most)| most.min(length));
        let (all, longest) = self
            .candidates
            .items
            .iter()
            .map(bytes_of)
            .fold((0, 0), |(all, longest), bytes| (all + bytes, bytes.max(longest)));
        let share = if self.coverage == Some(true) { SHARE_BYTES } else { 0 };
        let each = RESULT_BYTES + NUMBER_BYTES + INDEX_BYTES + share;
        ANSWER_HEAD
            .saturating_add(wanted.saturating_mul(each))
            .saturating_add(longest.saturating_mul(wanted).min(all))
    }

    /// The least score wanted.
    fn least(&self, resolved: &Resolved) -> Result<Option<f32>, ApiError> {
        let cutoff = self.min_score.map(|threshold| threshold.resolve(resolved, "/min_score"));
        Ok(cutoff.transpose()?.map(Cutoff::least))
    }

    /// What is wanted of the ranking.
    fn options(&self, resolved: &Resolved) -> Result<RankOptions, ApiError> {
        let top_k = self.top_k.map(|Count(most)| most);
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
        let (engine, candidates) = (&resolved.model.engine, &self.candidates.items);
        let total = resolved.check_total(self.places(), &app.settings);
        total.map_err(|error| self.locate(error))?;
        let options = self.options(resolved)?;
        let in_parts = engine.ranks_in_parts(resolved.query.method);
        let per_part = if in_parts { plan.per_part() } else { candidates.len() };
        let ranked = work.in_parts_by(candidates.len(), per_part, |parts| {
            engine.rank_session(self.query.as_ref(), &options, |session| {
                parts.each(|part| session.rank(candidates.get(part).unwrap_or_default()));
            })
        });
        let mut ranking =
            ranked.map_err(|error| self.locate(resolved.explain(error, self.places())))?;
        Resolved::check_read(ranking.counts.tokens as usize, &app.settings)?;
        ranking.order(&options);
        let mut counts = ranking.counts;
        counts.add(Counts { texts: 1, ..Counts::default() });
        Ok((ranking, options, counts))
    }

    /// The results, the unscored last where everything is wanted.
    fn results<'r>(&'r self, ranking: &Ranking, options: &RankOptions) -> Vec<RankedCandidate<'r>> {
        let candidate = |(index, score): (usize, _)| {
            let candidate = self.candidates.items.get(index)?;
            let text = self.return_text.unwrap_or(false).then_some(candidate.as_ref());
            let known = ranking.known.get(index).copied();
            let ranked = RankedCandidate::of(index, score, text);
            Some(RankedCandidate { id: candidate.id(), known, ..ranked })
        };
        ranking.listed(options).filter_map(candidate).collect()
    }
}

impl Question for RankRequest<'_> {
    type In<'b> = RankRequest<'b>;
    type Address = ();

    fn read<'b>(body: &'b [u8], (): &()) -> Result<RankRequest<'b>, ApiError> {
        json::read_object(body)
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        let (length, limit) = (self.candidates.length, app.settings.max_candidates);
        pipeline::check_length("/candidates", "candidates", length, ("max_candidates", limit))?;
        let selection = Selection {
            measure: self.measure.map(|MeasureName(measure)| measure),
            oov: self.oov,
            truncate: self.truncate,
            coverage: self.coverage,
            ..Selection::named(self.model.as_ref(), self.method.as_ref())
        };
        let resolved = selection.resolve(models)?;
        resolved.model.engine.check(&resolved.query)?;
        self.least(&resolved)?;
        let query = self.query.as_ref();
        let texts = self.candidates.items.iter().map(AsRef::as_ref);
        let bytes = query.len() + texts.clone().map(str::len).sum::<usize>();
        let only_best = self.top_k.is_some() || self.min_score.is_some();
        let multiplications = resolved.multiplications_of_ranking(query, texts, only_best);
        let answer = self.answer_bytes();
        let plan = Plan::at_least(resolved, length, bytes, multiplications, app)?;
        plan.answering(answer, "/candidates", app)
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let (ranking, options, counts) = self.ranking(plan, app, work)?;
        let results = self.results(&ranking, &options);
        answer.write_json(&RankResponse::of(&ranking, results, &plan.resolved))?;
        Ok(counts)
    }
}

refusals!(RankRefusals: QUESTION, LIST, &[Code::MeasureNotSupported, Code::NotCalibrated]);

/// Candidates by how alike they are to a query, best first.
///
/// A body of `application/x-ndjson` ranks any number of candidates in constant memory: the first line is
/// the question without candidates, then one candidate a line (a string or `{"id"?,"text"}`). The
/// answer has one `{"index","id"?,"score","text"?}` a line, best first, at most `top_k` (without it the
/// server's `max_candidates`), and then a line with model, method and counts. Methods that score a
/// candidate by all others, such as `rm3`, are refused.
#[utoipa::path(
    post,
    path = "/rank",
    tag = "compare",
    request_body(content(
        (RankRequest<'_> = "application/json"),
        (String = "application/x-ndjson"),
    )),
    responses(
        (status = 200, description = "Candidates, best first", content(
            (RankResponse<'_> = "application/json"),
            (String = "application/x-ndjson"),
        )),
        RankRefusals,
    ),
)]
pub async fn rank(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    if body::is_lines(request.headers()) {
        return stream::rank::answer(app, request).await;
    }
    pipeline::answer::<RankRequest<'_>>(app, (), request).await
}
