//! Questions for the scores of pairs in other dialects: one text against many, or many against as
//! many, asked as `/similarity` is.

use std::marker::PhantomData;

use cognate::engine::{Counts, Scores};
use serde::Deserialize;

use crate::http::api::pipeline;
use crate::http::api::pipeline::{AnyQuestion, Endpoint, NUMBER_BYTES, Plan, Question};
use crate::http::api::rank::RankRequest;
use crate::http::api::similarity::{plan_pairs, score_pairs};
use crate::http::app::App;
use crate::http::compatible::address::{Address, Target};
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code, Pointer};
use crate::http::registry::models::Models;
use crate::http::request::fields::{Candidate, List, ModelName, RankMethod, Text, Texts};
use crate::http::request::query::{Resolved, Selection};
use crate::http::request::{body, json};
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// How a dialect asks for scores of pairs, and how it writes them.
pub(super) trait PairDialect: Send + 'static {
    const DIALECT: Dialect;
    /// Whether the body names a model, and a method behind it.
    const NAMES_MODEL: bool = false;
    /// Bytes that a score takes in the answer, roughly.
    const SCORE_BYTES: usize = NUMBER_BYTES;
    type Body<'b>: Deserialize<'b>;

    fn ask<'b>(body: Self::Body<'b>, address: &Address) -> Result<Sides<'b>, ApiError>;

    /// Writes the answer: a bare list of scores, unless the dialect has more to say.
    fn write(scored: &PairScores, _: &Resolved, answer: &mut Answer<'_>) -> Result<(), ApiError> {
        answer.write_json(&scored.scores)
    }
}

/// The scores of pairs, in order, and the counts of what was read.
pub(super) struct PairScores {
    /// The scores; 0 for a pair that cannot be scored.
    pub scores: Vec<f32>,
    pub counts: Counts,
}

/// The texts of the pairs.
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
    pub target: Target<'b>,
    /// Whether a text with too many tokens is cut.
    pub truncate: bool,
}

pub(super) struct PairQuestion<'b, D: PairDialect> {
    pairs: Pairs<'b>,
    fields: [&'static str; 2],
    lengths: [usize; 2],
    dialect: PhantomData<D>,
}

enum Pairs<'b> {
    /// One text against others; it is read once, like the query of a ranking.
    Against(Box<RankRequest<'b>>),
    /// Texts of two lists, paired by place.
    Zipped { left: Vec<Text<'b>>, right: Vec<Text<'b>>, target: Target<'b>, truncate: bool },
}

impl<'b, D: PairDialect> PairQuestion<'b, D> {
    fn of(sides: Sides<'b>) -> Self {
        let fields = [sides.left_field, sides.right_field];
        let lengths = [sides.left.length(), sides.right.length()];
        let Sides { left, right, target, truncate, .. } = sides;
        let mut left = texts(left);
        let right = texts(right);
        let pairs = match (lengths, left.pop()) {
            ([1, length], Some(query)) => {
                let items = right.into_iter().map(Candidate::Text).collect();
                Pairs::Against(Box::new(RankRequest {
                    model: target.model.map(ModelName),
                    method: target.method.map(RankMethod),
                    truncate: Some(truncate),
                    ..RankRequest::of(query, List { items, length })
                }))
            }
            (_, last) => {
                left.extend(last);
                Pairs::Zipped { left, right, target, truncate }
            }
        };
        PairQuestion { pairs, fields, lengths, dialect: PhantomData }
    }

    /// Refuses texts that do not make pairs.
    fn check_length(&self, app: &App) -> Result<(), ApiError> {
        let most = ("max_pairs", app.settings.max_pairs);
        for (field, length) in self.fields.into_iter().zip(self.lengths) {
            pipeline::check_length(field, "texts", length, most)?;
        }
        let [left, right] = self.lengths;
        if left == 1 || left == right {
            return Ok(());
        }
        let detail = format!(
            "{left} first texts and {right} second ones make no pairs: give one first text, or as \
             many as second ones"
        );
        Err(ApiError::at(Code::InvalidField, self.fields[0], detail))
    }
}

fn texts(texts: Texts<'_>) -> Vec<Text<'_>> {
    match texts {
        Texts::One(text) => vec![text],
        Texts::Many(list) => list.items,
    }
}

fn zipped<'t>(left: &'t [Text<'_>], right: &'t [Text<'_>]) -> Vec<(&'t str, &'t str)> {
    left.iter().map(AsRef::as_ref).zip(right.iter().map(AsRef::as_ref)).collect()
}

impl<D: PairDialect> Endpoint for PairQuestion<'_, D> {
    type Address = Address;

    fn check_head(request: &axum::extract::Request) -> Result<(), ApiError> {
        body::check_encoding(request.headers())
    }

    fn read<'b>(body: &'b [u8], address: &Address) -> Result<AnyQuestion<'b>, ApiError> {
        let asked = json::read_object(body).and_then(|body| D::ask(body, address));
        let sides = asked.map_err(|error| error.in_dialect(D::DIALECT))?;
        Ok(Box::new(PairQuestion::<'b, D>::of(sides)))
    }
}

impl<D: PairDialect> Question for PairQuestion<'_, D> {
    fn dialect(&self) -> Dialect {
        D::DIALECT
    }

    fn pointer_in_body(&self, pointer: Pointer) -> Pointer {
        let [left, right] = self.fields;
        let pointer = match (&self.pairs, pointer.of_pair()) {
            (Pairs::Against(_), _) => pointer.renamed("query", left).renamed("candidates", right),
            (Pairs::Zipped { .. }, Some((index, side))) => {
                Pointer::from(if side == "/a" { left } else { right }).index(index)
            }
            (Pairs::Zipped { .. }, None) => pointer.renamed("pairs", right),
        };
        if D::NAMES_MODEL { pointer.renamed("method", "/model") } else { pointer }
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        self.check_length(app)?;
        match &self.pairs {
            Pairs::Against(request) => request.plan(app, models).and_then(|plan| {
                plan.resolved.check_scores()?;
                plan.longer(self.lengths[1].saturating_mul(D::SCORE_BYTES), "/candidates", app)
            }),
            Pairs::Zipped { left, right, target, truncate } => {
                let selection = Selection {
                    truncate: Some(*truncate),
                    ..Selection::named(target.model.as_ref(), target.method.as_ref())
                };
                let resolved = selection.resolve(models)?;
                plan_pairs(&zipped(left, right), resolved, D::SCORE_BYTES, app)
            }
        }
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let scored = match &self.pairs {
            Pairs::Against(request) => {
                request.ranking(plan, app, work).map(|(ranking, _, counts)| {
                    let mut scores = vec![0.0; request.candidates().len()];
                    for result in &ranking.results {
                        if let Some(score) = scores.get_mut(result.index) {
                            *score = result.score;
                        }
                    }
                    PairScores { scores, counts }
                })
            }
            Pairs::Zipped { left, right, .. } => {
                let scored = score_pairs(&zipped(left, right), plan, app, work);
                scored.map(|Scores { scores, counts, .. }| PairScores { scores, counts })
            }
        };
        let scored = scored?;
        D::write(&scored, &plan.resolved, answer)?;
        Ok(scored.counts)
    }
}
