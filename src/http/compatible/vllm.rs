//! The scores of pairs, as vLLM gives them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::http::api::pipeline::NUMBER_BYTES;
use crate::http::compatible::address::Address;
use crate::http::compatible::input::Input;
use crate::http::compatible::openai::Usage;
use crate::http::compatible::pairs::{PairDialect, PairQuestion, PairScores, Sides};
use crate::http::compatible::with_names;
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code, Result};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::request::fields::{ModelName, Texts};
use crate::http::request::query::Resolved;
use crate::http::routes::Routes;
use crate::http::work::unsent::Answer;

pub(super) fn routes() -> Routes {
    with_names(Routes::default(), routes!(score), "/score", &["/v1/score"])
}

/// The body of `POST /score`: first texts (`queries`, `text_1` or `data_1`) and second texts
/// (`documents`, `items`, `text_2` or `data_2`), one against many or as many against as many. Other
/// fields are ignored.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(bound(deserialize = "'de: 'b"))]
pub(super) struct ScoreRequest<'b> {
    /// One text or many.
    #[schema(value_type = Option<Texts<'b>>)]
    queries: Option<Input<'b>>,
    /// One text or many.
    #[schema(value_type = Option<Texts<'b>>)]
    documents: Option<Input<'b>>,
    /// The same as `documents`.
    #[schema(value_type = Option<Texts<'b>>)]
    items: Option<Input<'b>>,
    /// The same as `queries`.
    #[schema(value_type = Option<Texts<'b>>)]
    text_1: Option<Input<'b>>,
    /// The same as `documents`.
    #[schema(value_type = Option<Texts<'b>>)]
    text_2: Option<Input<'b>>,
    /// The same as `queries`.
    #[schema(value_type = Option<Texts<'b>>)]
    data_1: Option<Input<'b>>,
    /// The same as `documents`.
    #[schema(value_type = Option<Texts<'b>>)]
    data_2: Option<Input<'b>>,
    /// A model of this server, as `NAME` or `NAME:METHOD`; default: the first model.
    #[schema(value_type = Option<String>)]
    model: Option<ModelName<'b>>,
}

/// Scores as vLLM writes them.
#[derive(Serialize, ToSchema)]
struct ScoreResponse<'r> {
    /// `score`.
    id: &'static str,
    /// `list`.
    object: &'static str,
    /// Always 0.
    created: u32,
    /// The model's name.
    model: &'r str,
    /// A score a pair, in order.
    data: Vec<PairScore>,
    usage: Usage,
}

/// The score of a pair.
#[derive(Serialize, ToSchema)]
struct PairScore {
    /// The pair's index.
    index: usize,
    /// `score`.
    object: &'static str,
    /// The method's score, as `/similarity` gives it.
    score: f32,
}

pub(super) struct Vllm;

impl PairDialect for Vllm {
    const DIALECT: Dialect = Dialect::Vllm;
    const NAMES_MODEL: bool = true;
    const SCORE_BYTES: usize = NUMBER_BYTES + 40;
    type Body<'b> = ScoreRequest<'b>;

    fn ask<'b>(body: Self::Body<'b>, address: &Address) -> Result<Sides<'b>> {
        let first =
            [("/queries", body.queries), ("/text_1", body.text_1), ("/data_1", body.data_1)];
        let second = [
            ("/documents", body.documents),
            ("/items", body.items),
            ("/text_2", body.text_2),
            ("/data_2", body.data_2),
        ];
        let (left_field, left) = only(first)?;
        let (right_field, right) = only(second)?;
        let target = address.target(body.model.map(|ModelName(name)| name));
        Ok(Sides { left, left_field, right, right_field, target, truncate: true })
    }

    fn write(scored: &PairScores<'_>, resolved: &Resolved, answer: &mut Answer<'_>) -> Result<()> {
        let score = |(index, &score)| PairScore { index, object: "score", score };
        answer.write_json(&ScoreResponse {
            id: "score",
            object: "list",
            created: 0,
            model: &resolved.model.name,
            data: scored.scores.iter().enumerate().map(score).collect(),
            usage: Usage::new(scored.counts.tokens as usize),
        })
    }
}

/// The only field of these that is present, and its texts.
fn only<'b, const N: usize>(
    fields: [(&'static str, Option<Input<'b>>); N],
) -> Result<(&'static str, Texts<'b>)> {
    let names = fields.each_ref().map(|(name, _)| name.trim_start_matches('/')).join(", ");
    let mut given = fields.into_iter().filter_map(|(name, input)| Some((name, input?)));
    match (given.next(), given.next()) {
        (Some((name, input)), None) => Ok((name, input.texts(name)?)),
        (None, _) => {
            Err(ApiError::at(Code::InvalidField, "", format!("one of {names} is missing")))
        }
        (Some(_), Some((name, _))) => {
            Err(ApiError::at(Code::InvalidField, name, format!("give only one of {names}")))
        }
    }
}

refusals!(
    VllmRefusals in Dialect::Vllm;
    QUESTION, LIST, &[Code::MethodOnlyRanks, Code::MeasureNotSupported]
);

question! {
    /// Returns the scores of pairs in vLLM's format.
    ///
    /// One text against many, or as many against as many, under the names that its versions had.
    score: "vllm" "/score" asks PairQuestion<'_, Vllm>;
    ScoreRequest<'_> => ScoreResponse<'_>: "Scores in the order of the pairs", VllmRefusals
}
