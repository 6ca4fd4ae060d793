//! `POST /explain`: why two texts scored as they did.

mod response;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use cognate::engine::{Counts, ExplainedWord, Place, QueryError, UnknownToken};
pub(crate) use response::ExplainResponse;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::http::api::pipeline;
use crate::http::api::pipeline::{ANSWER_HEAD, NUMBER_BYTES, Plan, Question};
use crate::http::app::App;
use crate::http::error::{ApiError, Code, Pointer};
use crate::http::openapi::refusals::{QUESTION, refusals};
use crate::http::registry::models::Models;
use crate::http::request::fields::{ExplainMethod, MeasureName, ModelName, Text};
use crate::http::request::query::{OovPolicy, Resolved, Selection, WRITING};
use crate::http::request::{fields, json};
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// Bytes of an explained word beside its token.
const WORD_BYTES: usize = 150;

/// The body of `POST /explain`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExplainRequest<'b> {
    /// The first text; for a method that only ranks, the query.
    #[serde(borrow)]
    #[schema(value_type = fields::NonEmptyText)]
    a: Text<'b>,
    /// The second text; for a method that only ranks, the post.
    #[serde(borrow)]
    #[schema(value_type = fields::NonEmptyText)]
    b: Text<'b>,
    #[serde(borrow)]
    model: Option<ModelName<'b>>,
    #[serde(borrow)]
    method: Option<ExplainMethod<'b>>,
    measure: Option<MeasureName>,
    oov: Option<OovPolicy>,
    /// Cut a text with too many tokens rather than refuse it.
    truncate: Option<bool>,
}

impl ExplainRequest<'_> {
    fn places(&self) -> impl Iterator<Item = (Place, &str)> + Clone {
        [(Place::Pair(0, 0), self.a.as_ref()), (Place::Pair(0, 1), self.b.as_ref())].into_iter()
    }
}

/// Multiplications that explaining the score of two texts takes: those of the score, and of the matrix,
/// which is computed whatever the method: a product and two lengths a cell.
pub(crate) fn explaining(a: &str, b: &str, resolved: &Resolved) -> u64 {
    let dims = resolved.model.engine.model().vectors().dims() as u64;
    let cells = resolved.words(a) * resolved.words(b);
    resolved.multiplications(a, b).saturating_add(cells.saturating_mul(3 * dims))
}

impl Question for ExplainRequest<'_> {
    type In<'b> = ExplainRequest<'b>;
    type Address = ();

    fn read<'b>(body: &'b [u8], (): &()) -> Result<ExplainRequest<'b>, ApiError> {
        json::read_object(body)
    }

    fn pointer_in_body(&self, pointer: Pointer) -> Pointer {
        pointer.of_pair().map_or(pointer, |(_, field)| field.into())
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        let selection = Selection {
            measure: self.measure.map(|MeasureName(measure)| measure),
            oov: self.oov,
            truncate: self.truncate,
            ..Selection::named(self.model.as_ref(), self.method.as_ref())
        };
        let resolved = selection.resolve(models)?;
        resolved.check_explains()?;
        let (a, b) = (self.a.as_ref(), self.b.as_ref());
        let (words_of_a, words_of_b) = (resolved.words(a), resolved.words(b));
        let cells = words_of_a * words_of_b;
        let scoring = explaining(a, b, &resolved);
        let bytes = a.len() + b.len();
        let words = (words_of_a + words_of_b) as usize;
        let answer = (cells as usize)
            .saturating_mul(NUMBER_BYTES)
            .saturating_add(words.saturating_mul(WORD_BYTES))
            .saturating_add(bytes + ANSWER_HEAD);
        let plan = Plan::new(resolved, 1, bytes, scoring.saturating_add(cells * WRITING), app)?;
        plan.answering(answer, "", app)
    }

    fn answer(
        &self,
        plan: &Plan,
        _: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let resolved = &plan.resolved;
        work.check()?;
        let engine = &resolved.model.engine;
        let explained = engine.explain(self.a.as_ref(), self.b.as_ref(), &resolved.query);
        let explained =
            explained.map_err(|error: QueryError| resolved.explain(error.into(), self.places()))?;
        let tokens = |words: &[ExplainedWord], unknown: &[UnknownToken]| {
            (words.len() + unknown.len(), unknown.len())
        };
        let (in_a, unknown_in_a) = tokens(&explained.one, &explained.one_unknown);
        let (in_b, unknown_in_b) = tokens(&explained.other, &explained.other_unknown);
        let counts = Counts {
            texts: 2,
            tokens: (in_a + in_b) as u64,
            unknown: (unknown_in_a + unknown_in_b) as u64,
        };
        answer.write_json(&ExplainResponse::of(&explained, resolved))?;
        Ok(counts)
    }
}

refusals!(ExplainRefusals: QUESTION, &[Code::MethodOnlyRanks, Code::MeasureNotSupported]);

/// Why two texts scored as they did: weights, cosines, and what each word adds.
#[utoipa::path(
    post,
    path = "/explain",
    tag = "compare",
    request_body(content = ExplainRequest<'_>, content_type = "application/json"),
    responses(
        (status = 200, description = "The score, word by word", body = ExplainResponse<'_>),
        ExplainRefusals,
    ),
)]
pub async fn explain(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    pipeline::answer::<ExplainRequest<'_>>(app, (), request).await
}
