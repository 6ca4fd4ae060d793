//! Questions for the scores of pairs in other dialects: one text against many, or many against as
//! many, computed as `/similarity`.

use std::marker::PhantomData;

use cognate::engine::rank::Pages;
use cognate::engine::{Counts, Scores};
use serde::Deserialize;

use crate::http::api::cost::Cost;
use crate::http::api::pipeline;
use crate::http::api::pipeline::{Endpoint, NUMBER_BYTES};
use crate::http::api::question::{AnyAsk, AnyPlanned, Ask, Batch, Form, PlanContext};
use crate::http::api::rank::{PlannedTexts, TextForm, TextRanking};
use crate::http::api::similarity::Scoring;
use crate::http::app::App;
use crate::http::compatible::address::{Address, Target};
use crate::http::dialect::Dialect;
use crate::http::error::{ApiError, Code, Pointer, Result};
use crate::http::request::fields::{Text, Texts};
use crate::http::request::query::{Resolved, Selection};
use crate::http::request::{body, json};
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// A dialect's request for scores of pairs, and the form of its answer.
pub(super) trait PairDialect: Send + 'static {
    const DIALECT: Dialect;
    /// Whether the field `model` may name a model and a method.
    const NAMES_MODEL: bool = false;
    /// Approximate bytes of a score in the answer.
    const SCORE_BYTES: usize = NUMBER_BYTES;
    type Body<'b>: Deserialize<'b>;

    fn ask<'b>(body: Self::Body<'b>, address: &Address) -> Result<Sides<'b>>;

    /// Writes the answer: a bare list of scores, unless the dialect has more.
    fn write(scored: &PairScores<'_>, _: &Resolved, answer: &mut Answer<'_>) -> Result<()> {
        answer.write_json(&scored.scores)
    }
}

/// The scores of pairs, in order, and the counts of what was read.
pub(super) struct PairScores<'s> {
    /// The scores; 0 for a pair that cannot be scored.
    pub scores: &'s [f32],
    pub counts: Counts,
}

#[derive(Debug)]
pub(super) struct Sides<'b> {
    /// The first texts: one for all pairs, or one per pair.
    pub left: Texts<'b>,
    /// JSON pointer to the field that has them.
    pub left_field: &'static str,
    /// The second texts, one per pair.
    pub right: Texts<'b>,
    /// JSON pointer to the field that has them.
    pub right_field: &'static str,
    pub target: Target<'b>,
    /// Whether a text that is too long is cut.
    pub truncate: bool,
}

pub(super) struct PairQuestion<'b, D: PairDialect> {
    sides: Sides<'b>,
    dialect: PhantomData<fn() -> D>,
}

/// The fields of a dialect's body that have the texts.
struct Fields<D> {
    left: &'static str,
    right: &'static str,
    dialect: PhantomData<fn() -> D>,
}

impl<D: PairDialect> Fields<D> {
    fn named(pointer: Pointer) -> Pointer {
        if D::NAMES_MODEL { pointer.renamed("method", "/model") } else { pointer }
    }
}

/// One text is compared with others; like the query of a ranking, it is read once.
impl<D: PairDialect> TextForm for Fields<D> {
    fn place(&self, pointer: Pointer) -> Pointer {
        Self::named(pointer.renamed("query", self.left).renamed("candidates", self.right))
    }

    fn cost(&self, ranking: &TextRanking<'_>, app: &App) -> Result<Cost> {
        let scores = ranking.texts.len() * D::SCORE_BYTES;
        ranking.cost(app)?.longer(scores, self.right, app)
    }

    fn write(
        &self,
        (ranking, made): (&TextRanking<'_>, &Pages),
        _: &App,
        _: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let mut scores = vec![0.0; ranking.texts.len()];
        for result in made.pages.iter().flat_map(|page| &page.ranking.results) {
            if let Some(score) = scores.get_mut(result.index) {
                *score = result.score;
            }
        }
        let counts = made.counts;
        D::write(&PairScores { scores: &scores, counts }, &ranking.resolved, answer)
    }
}

impl<D: PairDialect> Form<Scoring, (Text<'_>, Text<'_>)> for Fields<D> {
    fn place(&self, pointer: Pointer, _: &[(Text<'_>, Text<'_>)]) -> Pointer {
        match pointer.of_pair() {
            Some((index, "/a")) => Pointer::from(self.left).index(index),
            Some((index, _)) => Pointer::from(self.right).index(index),
            None => Self::named(pointer),
        }
    }

    fn write(
        &self,
        asked: &Scoring,
        _: &[(Text<'_>, Text<'_>)],
        whole: &Scores,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let scored = PairScores { scores: &whole.scores, counts: whole.counts };
        D::write(&scored, &asked.resolved, answer)
    }
}

/// Refuses texts that do not form pairs.
fn check_lengths(fields: [&'static str; 2], lengths: [usize; 2], app: &App) -> Result<()> {
    let most = ("max_pairs", app.settings.max_pairs);
    for (field, length) in fields.into_iter().zip(lengths) {
        pipeline::check_length(field, "texts", length, most)?;
    }
    let [left, right] = lengths;
    if left == 1 || left == right {
        return Ok(());
    }
    let detail = format!(
        "{left} first texts and {right} second ones make no pairs: give one first text, or as \
         many as second ones"
    );
    Err(ApiError::at(Code::InvalidField, fields[0], detail))
}

impl<D: PairDialect> Endpoint for PairQuestion<'_, D> {
    type Address = Address;

    fn check_head(request: &axum::extract::Request) -> Result<()> {
        body::check_encoding(request.headers())
    }

    fn read<'b>(body: &'b [u8], address: &Address) -> Result<AnyAsk<'b>> {
        let asked = json::read_object(body).and_then(|body| D::ask(body, address));
        let sides = asked.map_err(|error| error.in_dialect(D::DIALECT))?;
        Ok(Box::new(PairQuestion::<'b, D> { sides, dialect: PhantomData }))
    }
}

impl<D: PairDialect> Ask for PairQuestion<'_, D> {
    fn dialect(&self) -> Dialect {
        D::DIALECT
    }

    fn plan<'q>(self: Box<Self>, context: &PlanContext<'_>) -> Result<AnyPlanned<'q>>
    where
        Self: 'q,
    {
        let Sides { left, left_field, right, right_field, target, truncate } = self.sides;
        check_lengths([left_field, right_field], [left.length(), right.length()], context.app)?;
        let selection = Selection {
            truncate: Some(truncate),
            ..Selection::named(target.model.as_ref(), target.method.as_ref())
        };
        let asked = Scoring::new(&selection, None, context.models);
        let asked = asked.map_err(|error| error.renamed(Fields::<D>::named))?;
        let form =
            Fields { left: left_field, right: right_field, dialect: PhantomData::<fn() -> D> };
        let (mut left, right, each) =
            (left.into_vec(), right.into_vec(), (right_field, D::SCORE_BYTES));
        if left.len() > 1 {
            let pairs = left.into_iter().zip(right).collect();
            return Ok(Box::new(Batch::new((asked, pairs, form), each, context.app)?));
        }
        let (query, resolved) = (left.pop().unwrap_or(Text("".into())), asked.resolved);
        let ranking =
            TextRanking { query, texts: right, resolved, top_k: None, return_text: false };
        Ok(Box::new(PlannedTexts::new(ranking, form, context.app)?))
    }
}
