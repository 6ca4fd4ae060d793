//! Questions for the scores of pairs in other dialects: one text against many, or many against as
//! many, asked as `/similarity` is.

use serde::Deserialize;

use crate::engine::Counts;
use crate::engine::Scores;
use crate::http::api::pipeline;
use crate::http::api::pipeline::Plan;
use crate::http::api::pipeline::Question;
use crate::http::api::similarity::plan_pairs;
use crate::http::api::similarity::score_pairs;
use crate::http::app::App;
use crate::http::compatible::address::Address;
use crate::http::compatible::address::Target;
use crate::http::dialect::Dialect;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::registry::models::Models;
use crate::http::request::body;
use crate::http::request::fields::Texts;
use crate::http::request::json;
use crate::http::request::query::Resolved;
use crate::http::request::query::Selection;
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// How a dialect asks for scores of pairs, and writes them.
pub(super) trait PairDialect: 'static {
    /// Which dialect.
    const DIALECT: Dialect;
    /// Bytes that a score takes in the answer, roughly.
    const SCORE_BYTES: usize;
    /// The body.
    type Body<'b>: Deserialize<'b>;

    /// The pairs that are meant.
    fn ask<'b>(body: Self::Body<'b>, address: &Address) -> Result<Sides<'b>, ApiError>;

    /// Writes the answer.
    fn write(scored: &Scores, resolved: &Resolved, answer: &mut Answer<'_>)
    -> Result<(), ApiError>;
}

/// The texts of the pairs, and what they are scored by.
#[derive(Debug)]
pub(super) struct Sides<'b> {
    /// The first texts: one for all pairs, or one a pair.
    pub left: Texts<'b>,
    /// The field that holds them, as a JSON pointer.
    pub left_field: &'static str,
    /// The second texts, one a pair.
    pub right: Texts<'b>,
    /// The field that holds them, as a JSON pointer.
    pub right_field: &'static str,
    /// Model and method.
    pub target: Target<'b>,
    /// Whether a text with too many tokens is cut.
    pub truncate: bool,
}

impl Sides<'_> {
    /// The pairs.
    fn pairs(&self) -> Vec<(&str, &str)> {
        let (left, right) = (self.left.items(), self.right.items());
        let pair = |(index, right): (usize, _)| {
            let left = if left.len() == 1 { left.first() } else { left.get(index) };
            Some((left?.as_ref(), AsRef::as_ref(right)))
        };
        right.iter().enumerate().filter_map(pair).collect()
    }

    /// Refuses texts that do not make pairs.
    fn check_length(&self, app: &App) -> Result<(), ApiError> {
        let most = ("max_pairs", app.settings.max_pairs);
        let (left, right) = (self.left.length(), self.right.length());
        pipeline::check_length(self.left_field, "texts", left, most)?;
        pipeline::check_length(self.right_field, "texts", right, most)?;
        if left == 1 || left == right {
            return Ok(());
        }
        let detail = format!(
            "{left} first texts and {right} second ones make no pairs: give one first text, or as many as second ones"
        );
        Err(ApiError::at(Code::InvalidField, self.left_field, detail))
    }

    /// Faults stand where the texts do.
    fn locate(&self, mut error: ApiError) -> ApiError {
        for fault in &mut error.faults {
            let mut parts = fault.pointer.split('/').skip(1);
            let (Some("pairs"), Some(index), Some(side)) =
                (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let (texts, field) = match side {
                "0" => (&self.left, self.left_field),
                _ => (&self.right, self.right_field),
            };
            fault.pointer = match texts {
                Texts::One(_) => field.to_owned(),
                Texts::Many(_) if texts.length() == 1 => format!("{field}/0"),
                Texts::Many(_) => format!("{field}/{index}"),
            };
        }
        error
    }
}

/// A question for the scores of pairs.
pub(super) struct PairQuestion<'b, D: PairDialect> {
    sides: Sides<'b>,
    dialect: std::marker::PhantomData<D>,
}

impl<D: PairDialect> Question for PairQuestion<'_, D> {
    type In<'b> = PairQuestion<'b, D>;
    type Address = Address;

    fn check_head(request: &axum::extract::Request) -> Result<(), ApiError> {
        body::check_encoding(request.headers())
    }

    fn read<'b>(body: &'b [u8], address: &Address) -> Result<Self::In<'b>, ApiError> {
        let asked = json::read_object(body).and_then(|body| D::ask(body, address));
        let sides = asked.map_err(|error| error.spoken(D::DIALECT))?;
        Ok(PairQuestion { sides, dialect: std::marker::PhantomData })
    }

    fn dialect(&self) -> Dialect {
        D::DIALECT
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        self.sides.check_length(app)?;
        let Target { model, method } = &self.sides.target;
        let selection = Selection {
            truncate: Some(self.sides.truncate),
            ..Selection::named(model.as_ref(), method.as_ref())
        };
        plan_pairs(&self.sides.pairs(), selection.resolve(models)?, D::SCORE_BYTES, app)
            .map_err(|error| self.sides.locate(error))
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let scored = score_pairs(&self.sides.pairs(), plan, app, work);
        let scored = scored.map_err(|error| self.sides.locate(error))?;
        D::write(&scored, &plan.resolved, answer)?;
        Ok(scored.counts)
    }
}
