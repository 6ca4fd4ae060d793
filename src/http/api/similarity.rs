//! `POST /similarity`: how alike the two texts of each pair are.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use cognate::engine::{
    Counts, Opposites, OppositionKind, Oppositions, Place, QueryError, Reason, Scores, TextPair,
};
use serde::Deserialize;
use utoipa::openapi::{OneOfBuilder, Ref, RefOr, Schema};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use crate::http::api::envelope::{Envelope, enveloped};
use crate::http::api::pipeline::{Endpoint, NUMBER_BYTES};
use crate::http::api::question::{AnyAsk, AnyPlanned, Ask, Asked, Batch, Form, PlanContext};
use crate::http::api::{pipeline, stream};
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Pointer, Result};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::registry::models::Models;
use crate::http::request::fields::{List, MeasureName, ModelName, Pair, PairMethod, Text};
use crate::http::request::query::{OovPolicy, Resolved, Selection, estimate};
use crate::http::request::threshold::Threshold;
use crate::http::request::{body, json};
use crate::http::work::pool::INLINE_NANOS;
use crate::http::work::unsent::Answer;

/// Bytes of `false` and its comma.
const FLAG_BYTES: usize = 6;
/// Bytes of `[,],` and two shares.
const SHARES_BYTES: usize = 4 + 2 * NUMBER_BYTES;
/// Bytes of `[],` and the names of two kinds: hardly any pair has more.
const OPPOSES_BYTES: usize = 3 + 22;

/// The body of `POST /similarity`: `pairs`, or one pair as `a` and `b`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
pub struct SimilarityRequest<'b> {
    /// Pairs of texts.
    #[schema(value_type = Vec<Pair<'b>>, min_items = 1, max_items = 10000)]
    pairs: Option<List<Pair<'b>>>,
    /// The first text.
    #[schema(nullable = false)]
    a: Option<Text<'b>>,
    /// The second text.
    #[schema(nullable = false)]
    b: Option<Text<'b>>,
    model: Option<ModelName<'b>>,
    method: Option<PairMethod<'b>>,
    measure: Option<MeasureName>,
    opposites: Option<Opposites>,
    oov: Option<OovPolicy>,
    /// Whether to cut a text that is too long instead of refusing it.
    truncate: Option<bool>,
    /// Whether to return, for each text, the share of tokens that the model lists, or whose stem or part it
    /// lists.
    coverage: Option<bool>,
    /// Also return how the texts of each pair are opposed.
    return_opposes: Option<bool>,
    threshold: Option<Threshold>,
}

/// Query parameters of a request whose body is lines: such a body has no place for settings.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SimilarityParameters {
    /// `application/x-ndjson` only: the model.
    #[param(value_type = Option<ModelName<'_>>)]
    pub(crate) model: Option<String>,
    /// `application/x-ndjson` only: the method.
    #[param(value_type = Option<PairMethod<'_>>)]
    pub(crate) method: Option<String>,
    /// `application/x-ndjson` only: the measure.
    #[param(value_type = Option<MeasureName>)]
    pub(crate) measure: Option<MeasureName>,
    /// `application/x-ndjson` only: whether opposites count.
    pub(crate) opposites: Option<Opposites>,
    /// `application/x-ndjson` only: a pair with a text that cannot be scored is answered by score 0
    /// and a reason, or by an error.
    pub(crate) oov: Option<OovPolicy>,
    /// `application/x-ndjson` only: cut a text that is too long rather than refuse it.
    pub(crate) truncate: Option<bool>,
    /// `application/x-ndjson` only: adds `opposes` to each line, how its texts are opposed.
    pub(crate) return_opposes: Option<bool>,
    /// `application/x-ndjson` only: a number or `calibrated`; adds `related` to each line.
    pub(crate) threshold: Option<String>,
}

struct PairsOrPair;

impl PairsOrPair {
    const PAIRS: &str = "PairsRequest";
    const PAIR: &str = "PairRequest";

    /// The request with only these of its fields for texts, all required.
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

enveloped! {
    /// How alike the texts of each pair are.
    pub(crate) struct SimilarityResponse<'r> {
        /// A score a pair, in order; 0 for a pair that is unscored.
        scores: &'r [f32],
        /// Indexes of the pairs that cannot be scored.
        unscored: &'r [usize],
        /// The reason for each of them: `empty`, `unknown` or `too_long`.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        #[schema(value_type = Vec<String>)]
        reasons: &'r [Reason],
        /// Indexes of the pairs with a text that was cut.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        truncated: &'r [usize],
        /// With `coverage`, the share of the tokens of `a` and of `b` that the model lists, for each pair.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        known: &'r [[f32; 2]],
        /// With `return_opposes`, how the texts of each pair are opposed; an empty list where they are not.
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        #[schema(value_type = Vec<Vec<OppositionKind>>)]
        opposes: &'r [Oppositions],
        /// The threshold that was used, if one was asked for.
        #[serde(skip_serializing_if = "Option::is_none")]
        threshold: Option<f64>,
        /// Whether each pair is related: at or above the threshold, and not opposed unless `opposites` is
        /// `ignore`.
        #[serde(skip_serializing_if = "Option::is_none")]
        related: Option<&'r [bool]>,
    }
}

impl<'r> SimilarityResponse<'r> {
    /// The answer for these scores, and for the threshold in force, if one was requested.
    pub(crate) fn new(scored: &'r Scores, resolved: &'r Resolved, threshold: Option<f64>) -> Self {
        Self {
            scores: &scored.scores,
            unscored: &scored.unscored,
            reasons: &scored.reasons,
            truncated: &scored.truncated,
            known: &scored.known,
            opposes: &scored.opposes,
            threshold,
            related: threshold.map(|_| scored.related.as_slice()),
            ..Envelope::new(resolved, scored.measure).into()
        }
    }
}

pub(crate) struct Scoring {
    pub(crate) resolved: Resolved,
    threshold: Option<f64>,
}

impl Scoring {
    /// Finds the model, a method that scores pairs, and the threshold.
    pub(crate) fn new(
        selection: &Selection<'_>,
        threshold: Option<Threshold>,
        models: &Models,
    ) -> Result<Self> {
        let mut resolved = selection.resolve(models)?;
        resolved.check_scores()?;
        let cutoff = Threshold::ask(threshold, &mut resolved)?;
        Ok(Self { resolved, threshold: cutoff.map(|cutoff| cutoff.number) })
    }

    /// Bytes of a pair in a native answer.
    fn pair_bytes(&self) -> usize {
        let query = &self.resolved.query;
        let parts = [
            (query.coverage, SHARES_BYTES),
            (query.opposes, OPPOSES_BYTES),
            (self.threshold.is_some(), FLAG_BYTES),
        ];
        let parts = parts.into_iter().filter(|(is_asked, _)| *is_asked);
        NUMBER_BYTES + parts.map(|(_, bytes)| bytes).sum::<usize>()
    }
}

impl<P: TextPair + Sync> Asked<P> for Scoring {
    type Piece = Scores;

    fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    fn work(&self, pairs: &[P], bytes: usize) -> [u64; 2] {
        let sum = |of_pair: fn(&Resolved, &str, &str) -> u64| {
            let each =
                pairs.iter().map(TextPair::texts).map(|(a, b)| of_pair(&self.resolved, a, b));
            each.fold(0, u64::saturating_add)
        };
        let most = sum(Resolved::most_multiplications);
        // Words are not counted if the pairs are scored at once even with the most words.
        match estimate(bytes, most) <= INLINE_NANOS {
            true => [most; 2],
            false => [sum(Resolved::multiplications); 2],
        }
    }

    fn texts<'q>(&'q self, pairs: &'q [P]) -> impl Iterator<Item = (Place, &'q str)> + Clone {
        pairs
            .iter()
            .map(TextPair::texts)
            .enumerate()
            .flat_map(|(index, (a, b))| [(Place::Pair(index, 0), a), (Place::Pair(index, 1), b)])
    }

    fn ask(&self, pairs: &[P]) -> Result<Scores, QueryError> {
        self.resolved.model.engine.similarity(pairs, &self.resolved.query)
    }

    fn counts(scored: &Scores) -> Counts {
        scored.counts
    }
}

enum Native {
    List,
    One,
}

impl Form<Scoring, Pair<'_>> for Native {
    /// The texts of a single pair, and those of a pair that is an object, are in fields.
    fn place(&self, pointer: Pointer, pairs: &[Pair<'_>]) -> Pointer {
        let Some((index, field)) = pointer.of_pair() else { return pointer };
        match self {
            Self::One => field.into(),
            Self::List if pairs.get(index).is_some_and(|pair| pair.named) => {
                Pointer::from(field).within(Pointer::from("/pairs").index(index))
            }
            Self::List => pointer,
        }
    }

    fn write(
        &self,
        asked: &Scoring,
        _: &[Pair<'_>],
        scored: &Scores,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        answer.write_json(&SimilarityResponse::new(scored, &asked.resolved, asked.threshold))
    }
}

impl Ask for SimilarityRequest<'_> {
    fn plan<'q>(self: Box<Self>, context: &PlanContext<'_>) -> Result<AnyPlanned<'q>>
    where
        Self: 'q,
    {
        if let Some(list) = &self.pairs {
            let limit = ("max_pairs", context.app.settings.max_pairs);
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
        let asked = Scoring::new(&selection, self.threshold, context.models)?;
        let each = asked.pair_bytes();
        let (pairs, form) = match (self.pairs, self.a, self.b) {
            (Some(pairs), None, None) => (pairs.items, Native::List),
            (None, Some(a), Some(b)) => (vec![Pair { a, b, named: true }], Native::One),
            (pairs, a, b) => return Err(no_pairs(pairs.is_some(), a.is_some(), b.is_some())),
        };
        Ok(Box::new(Batch::new((asked, pairs, form), ("/pairs", each), context.app)?))
    }
}

fn no_pairs(pairs: bool, a: bool, b: bool) -> ApiError {
    let (field, detail) = match (pairs, a, b) {
        (true, ..) => ("/pairs", "give either `pairs`, or `a` and `b`"),
        (false, false, false) => ("/pairs", "the field `pairs` is missing"),
        (false, false, true) => ("/a", "one pair needs both `a` and `b`"),
        (false, true, _) => ("/b", "one pair needs both `a` and `b`"),
    };
    ApiError::at(Code::InvalidField, field, detail)
}

impl Endpoint for SimilarityRequest<'_> {
    type Address = ();

    fn read<'b>(body: &'b [u8], (): &()) -> Result<AnyAsk<'b>> {
        Ok(Box::new(json::read_object::<SimilarityRequest<'b>>(body)?))
    }
}

refusals!(
    SimilarityRefusals: QUESTION,
    LIST,
    &[Code::MethodOnlyRanks, Code::MeasureNotSupported, Code::NotCalibrated]
);

/// Scores how similar the two texts of each pair are.
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
pub(crate) async fn similarity(State(app): State<Arc<App>>, request: Request) -> Result<Response> {
    if body::is_lines(request.headers()) {
        return stream::similarity::answer(app, request).await;
    }
    pipeline::answer::<SimilarityRequest<'_>>(app, (), request).await
}
