//! `POST /similarity`: how alike the two texts of each pair are.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use cognate::engine::{Counts, Oppositions, Place, Reason, Scores};
use serde::{Deserialize, Serialize};
use utoipa::openapi::{OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::http::api::pipeline::{
    ANSWER_HEAD, AnyQuestion, Endpoint, NUMBER_BYTES, Plan, Question,
};
use crate::http::api::stream::similarity::SimilarityParameters;
use crate::http::api::{pipeline, stream};
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Pointer};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::registry::models::Models;
use crate::http::request::fields::{
    List, MeasureName, ModelName, OppositesRule, OppositionName, Pair, PairMethod, Text,
};
use crate::http::request::query::{OovPolicy, Resolved, Selection, estimate};
use crate::http::request::threshold::{Cutoff, Threshold};
use crate::http::request::{body, json};
use crate::http::work::pool::{INLINE_NANOS, JobContext};
use crate::http::work::unsent::Answer;

/// Bytes of `false` and its comma.
const FLAG_BYTES: usize = 6;
/// Bytes of `[,],` and two shares.
const SHARES_BYTES: usize = 4 + 2 * NUMBER_BYTES;
/// Bytes of `[],` and the names of two kinds: hardly a pair has more.
const OPPOSES_BYTES: usize = 3 + 22;

/// The body of `POST /similarity`: `pairs`, or one pair as `a` and `b`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SimilarityRequest<'b> {
    /// Pairs of texts.
    #[serde(borrow)]
    #[schema(value_type = Vec<Pair<'b>>, min_items = 1, max_items = 10000)]
    pairs: Option<List<Pair<'b>>>,
    /// The first text.
    #[serde(borrow)]
    #[schema(nullable = false)]
    a: Option<Text<'b>>,
    /// The second text.
    #[serde(borrow)]
    #[schema(nullable = false)]
    b: Option<Text<'b>>,
    #[serde(borrow)]
    model: Option<ModelName<'b>>,
    #[serde(borrow)]
    method: Option<PairMethod<'b>>,
    measure: Option<MeasureName>,
    opposites: Option<OppositesRule>,
    oov: Option<OovPolicy>,
    /// Cut a text with too many tokens rather than refuse it.
    truncate: Option<bool>,
    /// Also tell which share of each text's tokens the model lists, by their stem or a part at least.
    coverage: Option<bool>,
    /// Also tell how the texts of each pair are opposed.
    return_opposes: Option<bool>,
    threshold: Option<Threshold>,
}

/// The schema of the body: [`SimilarityRequest`] with `pairs`, or with `a` and `b`.
struct PairsOrPair;

impl PairsOrPair {
    const PAIRS: &str = "PairsRequest";
    const PAIR: &str = "PairRequest";

    /// The request with these of its fields for texts, which it then must have.
    fn request(description: &str, texts: &[&str]) -> RefOr<Schema> {
        let mut schema = SimilarityRequest::schema();
        if let RefOr::T(Schema::Object(object)) = &mut schema {
            let of_texts = |name: &str| ["pairs", "a", "b"].contains(&name);
            object.properties.retain(|name, _| !of_texts(name) || texts.contains(&name.as_str()));
            object.required = texts.iter().map(|&name| name.to_owned()).collect();
            object.description = Some(description.to_owned());
        }
        schema
    }
}

impl PartialSchema for PairsOrPair {
    fn schema() -> RefOr<Schema> {
        OneOfBuilder::new()
            .item(Ref::from_schema_name(Self::PAIRS))
            .item(Ref::from_schema_name(Self::PAIR))
            .description(Some("The body of `POST /similarity`: many pairs, or one."))
            .into()
    }
}

impl ToSchema for PairsOrPair {
    fn name() -> Cow<'static, str> {
        SimilarityRequest::name()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        SimilarityRequest::schemas(schemas);
        schemas.push((Self::PAIRS.to_owned(), Self::request("Many pairs.", &["pairs"])));
        schemas.push((Self::PAIR.to_owned(), Self::request("One pair.", &["a", "b"])));
    }
}

/// How alike the texts of each pair are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SimilarityResponse<'r> {
    /// The model's name.
    model: &'r str,
    /// The method, `auto` resolved.
    method: &'static str,
    /// The measure.
    measure: &'static str,
    /// Sixteen hexadecimal digits that change with the model.
    fingerprint: &'r str,
    /// A score a pair, in order; 0 for a pair that is unscored.
    scores: &'r [f32],
    /// Indexes of the pairs that cannot be scored.
    unscored: &'r [usize],
    /// Why, one of `empty`, `unknown`, `too_long` for each of them.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false, value_type = Vec<String>)]
    reasons: &'r [Reason],
    /// Indexes of the pairs of which a text was cut.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    truncated: &'r [usize],
    /// With `coverage`, the share of the tokens of `a` and of `b` that the model lists, for each pair.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false)]
    known: &'r [[f32; 2]],
    /// With `return_opposes`, how the texts of each pair are opposed; an empty list where they are not.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(required = false, value_type = Vec<Vec<OppositionName>>)]
    opposes: &'r [Oppositions],
    /// The threshold that was used, if one was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    /// Whether each pair is related: at or above the threshold, and not opposed unless `opposites` is
    /// `ignore`.
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<&'r [bool]>,
}

impl<'r> SimilarityResponse<'r> {
    /// The answer for these scores, and for what the threshold came to, if one was asked for.
    pub(crate) fn of(scored: &'r Scores, resolved: &'r Resolved, cutoff: Option<Cutoff>) -> Self {
        Self {
            model: &resolved.model.name,
            method: resolved.query.method.name(),
            measure: scored.measure.name(),
            fingerprint: resolved.model.engine.model().fingerprint(),
            scores: &scored.scores,
            unscored: &scored.unscored,
            reasons: &scored.reasons,
            truncated: &scored.truncated,
            known: &scored.known,
            opposes: &scored.opposes,
            threshold: cutoff.map(|cutoff| cutoff.number),
            related: cutoff.map(|_| scored.related.as_slice()),
        }
    }
}

impl SimilarityRequest<'_> {
    /// The pairs, wherever they stand.
    fn pairs(&self) -> Result<Vec<(&str, &str)>, ApiError> {
        match (&self.pairs, &self.a, &self.b) {
            (Some(pairs), None, None) => {
                Ok(pairs.items.iter().map(|Pair { a, b, .. }| (a.as_ref(), b.as_ref())).collect())
            }
            (None, Some(a), Some(b)) => Ok(vec![(a.as_ref(), b.as_ref())]),
            (None, None, None) => {
                Err(ApiError::at(Code::InvalidField, "/pairs", "the field `pairs` is missing"))
            }
            (None, _, _) => {
                let detail = "one pair needs both `a` and `b`";
                let missing = if self.a.is_none() { "/a" } else { "/b" };
                Err(ApiError::at(Code::InvalidField, missing, detail))
            }
            (Some(_), _, _) => {
                let detail = "give either `pairs`, or `a` and `b`";
                Err(ApiError::at(Code::InvalidField, "/pairs", detail))
            }
        }
    }
}

pub(crate) fn places<'t>(
    pairs: &'t [(&'t str, &'t str)],
) -> impl Iterator<Item = (Place, &'t str)> + Clone {
    let sides = |(index, &(a, b)): (usize, &(&'t str, &'t str))| {
        [(Place::Pair(index, 0), a), (Place::Pair(index, 1), b)]
    };
    pairs.iter().enumerate().flat_map(sides)
}

/// Weighs the scoring of pairs; each takes `each` bytes in the answer.
pub(crate) fn plan_pairs(
    pairs: &[(&str, &str)],
    resolved: Resolved,
    each: usize,
    app: &App,
) -> Result<Plan, ApiError> {
    resolved.check_scores()?;
    let sum = |of_pair: fn(&Resolved, &str, &str) -> u64| {
        pairs.iter().fold(0_u64, |sum, (a, b)| sum.saturating_add(of_pair(&resolved, a, b)))
    };
    let bytes = pairs.iter().map(|(a, b)| a.len() + b.len()).sum();
    let most = sum(Resolved::most_multiplications);
    // Words are not counted where the pairs are scored at once even if they have the most.
    let multiplications = match estimate(bytes, most) <= INLINE_NANOS {
        true => most,
        false => sum(Resolved::multiplications),
    };
    let answer = ANSWER_HEAD + pairs.len().saturating_mul(each);
    Plan::new(resolved, pairs.len(), bytes, multiplications, app)?.answering(answer, "/pairs", app)
}

pub(crate) fn score_pairs(
    pairs: &[(&str, &str)],
    plan: &Plan,
    app: &App,
    work: &JobContext,
) -> Result<Scores, ApiError> {
    let resolved = &plan.resolved;
    resolved.check_total(places(pairs), app.settings.tokens_total, || work.check())?;
    let scored = work.in_parts(pairs.len(), plan.per_part(), |part| {
        resolved.model.engine.similarity(pairs.get(part).unwrap_or_default(), &resolved.query)
    });
    let scored = scored.map_err(|error| resolved.explain(error, places(pairs)))?;
    Resolved::check_read(scored.counts.tokens as usize, app.settings.tokens_total)?;
    Ok(scored)
}

impl Endpoint for SimilarityRequest<'_> {
    type Address = ();

    fn read<'b>(body: &'b [u8], (): &()) -> Result<AnyQuestion<'b>, ApiError> {
        Ok(Box::new(json::read_object::<SimilarityRequest<'b>>(body)?))
    }
}

impl Question for SimilarityRequest<'_> {
    /// The texts of the only pair, and those of a pair that is an object, stand in fields.
    fn pointer_in_body(&self, pointer: Pointer) -> Pointer {
        let Some((index, field)) = pointer.of_pair() else { return pointer };
        match self.pairs.as_ref().map(|pairs| pairs.items.get(index)) {
            None => field.into(),
            Some(Some(pair)) if pair.named => {
                Pointer::from(field).within(Pointer::from("/pairs").index(index))
            }
            Some(_) => pointer,
        }
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        if let Some(list) = &self.pairs {
            let limit = ("max_pairs", app.settings.max_pairs);
            pipeline::check_length("/pairs", "pairs", list.length, limit)?;
        }
        let selection = Selection {
            measure: self.measure.map(|MeasureName(measure)| measure),
            opposites: self.opposites,
            oov: self.oov,
            truncate: self.truncate,
            coverage: self.coverage,
            return_opposes: self.return_opposes,
            ..Selection::named(self.model.as_ref(), self.method.as_ref())
        };
        let resolved = selection.resolve(models)?;
        let pairs = self.pairs()?;
        let resolved = Cutoff::ask(self.threshold, resolved)?;
        let shares = if self.coverage == Some(true) { SHARES_BYTES } else { 0 };
        let opposes = if self.return_opposes == Some(true) { OPPOSES_BYTES } else { 0 };
        let each = NUMBER_BYTES + shares + opposes + self.threshold.map_or(0, |_| FLAG_BYTES);
        plan_pairs(&pairs, resolved, each, app)
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let resolved = &plan.resolved;
        let scored = score_pairs(&self.pairs()?, plan, app, work)?;
        let cutoff = Cutoff::of(self.threshold, resolved)?;
        answer.write_json(&SimilarityResponse::of(&scored, resolved, cutoff))?;
        Ok(scored.counts)
    }
}

refusals!(
    SimilarityRefusals: QUESTION,
    LIST,
    &[Code::MethodOnlyRanks, Code::MeasureNotSupported, Code::NotCalibrated]
);

/// How alike the two texts of each pair are.
///
/// A body of `application/x-ndjson` is answered line by line while it is still being sent: one
/// pair a line (`["a","b"]` or `{"id"?,"a","b"}`), one `{"id"?,"score":…}` a line back, millions of
/// pairs in constant memory. Answers that are not read yet wait, up to the setting
/// `stream_spool_bytes`. Blank lines have no answer. Settings stand in the query string.
#[utoipa::path(
    post,
    path = "/similarity",
    tag = "compare",
    params(SimilarityParameters),
    request_body(content(
        (PairsOrPair = "application/json"),
        (String = "application/x-ndjson"),
    )),
    responses(
        (status = 200, description = "Scores in the order of the pairs", content(
            (SimilarityResponse<'_> = "application/json"),
            (String = "application/x-ndjson"),
        )),
        SimilarityRefusals,
    ),
)]
pub(crate) async fn similarity(
    State(app): State<Arc<App>>,
    request: Request,
) -> Result<Response, ApiError> {
    if body::is_lines(request.headers()) {
        return stream::similarity::answer(app, request).await;
    }
    pipeline::answer::<SimilarityRequest<'_>>(app, (), request).await
}
