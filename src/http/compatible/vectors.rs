//! Questions for vectors in other dialects: asked as `/embed` is, written in the dialect's form.

use std::marker::PhantomData;

use cognate::engine::{Counts, Embeddings, Query, Reason};
use serde::Deserialize;

use crate::http::api::embed::{EmbedRequest, UnknownVector};
use crate::http::api::pipeline::{AnyQuestion, Endpoint, Plan, Question};
use crate::http::app::App;
use crate::http::compatible::address::{Address, Target};
use crate::http::dialect::{Dialect, StandIn};
use crate::http::error::{ApiError, Pointer};
use crate::http::registry::models::Models;
use crate::http::request::fields::{ModelName, Texts, VectorMethod};
use crate::http::request::query::Resolved;
use crate::http::request::{body, json};
use crate::http::work::pool::JobContext;
use crate::http::work::unsent::Answer;

/// How a dialect asks for vectors, and how it writes them.
pub(super) trait VectorDialect: Send + 'static {
    const DIALECT: Dialect;
    /// The field that holds the texts, as a JSON pointer.
    const TEXTS: &'static str;
    /// Whether the body names a model, and a method behind it.
    const NAMES_MODEL: bool = false;
    /// Bytes of an item of the answer beside its vector.
    const ITEM_BYTES: usize = 0;
    type Body<'b>: Deserialize<'b>;

    fn ask<'b>(body: Self::Body<'b>, address: &Address) -> Result<EmbedRequest<'b>, ApiError>;

    /// Writes the answer: a bare list of vectors, unless the dialect has more to say.
    fn write(vectors: Vectors<'_>, answer: &mut Answer<'_>) -> Result<(), ApiError> {
        answer.write_json(&vectors.vectors)
    }
}

pub(super) struct Vectors<'q> {
    pub resolved: &'q Resolved,
    pub request: &'q EmbedRequest<'q>,
    pub embedded: Embeddings,
    pub vectors: Vec<Vec<f32>>,
}

impl Vectors<'_> {
    pub(super) fn tokens(&self) -> usize {
        self.embedded.tokens.iter().sum()
    }

    pub(super) fn model(&self) -> &str {
        &self.resolved.model.name
    }
}

pub(super) struct VectorQuestion<'b, D: VectorDialect> {
    request: EmbedRequest<'b>,
    dialect: PhantomData<D>,
}

impl<D: VectorDialect> VectorQuestion<'_, D> {
    /// Refuses texts that are longer than any may be: cut or not, no vector is theirs.
    fn check_long(&self, embedded: &Embeddings, resolved: &Resolved) -> Result<(), ApiError> {
        let long = embedded.reasons.iter().zip(&embedded.unscored);
        let mut long = long.filter(|(reason, _)| **reason == Reason::TooLong);
        let Some((_, &index)) = long.next() else { return Ok(()) };
        let query = Query { refuse_unscored: true, ..resolved.query };
        let texts = self.request.places().skip(index).take(1);
        texts.into_iter().try_for_each(|(place, text)| {
            resolved.model.engine.check_text(text, &query, place)?;
            Ok(())
        })
    }
}

impl<D: VectorDialect> Endpoint for VectorQuestion<'_, D> {
    type Address = Address;

    fn check_head(request: &axum::extract::Request) -> Result<(), ApiError> {
        body::check_encoding(request.headers())
    }

    fn read<'b>(body: &'b [u8], address: &Address) -> Result<AnyQuestion<'b>, ApiError> {
        let asked = json::read_object(body).and_then(|body| D::ask(body, address));
        let mut request = asked.map_err(|error| error.in_dialect(D::DIALECT))?;
        // Some clients always send a number, and 0 for all dimensions.
        request.dimensions = request.dimensions.filter(|&dimensions| dimensions > 0);
        Ok(Box::new(VectorQuestion::<'b, D> { request, dialect: PhantomData }))
    }
}

impl<D: VectorDialect> Question for VectorQuestion<'_, D> {
    fn dialect(&self) -> Dialect {
        D::DIALECT
    }

    fn pointer_in_body(&self, pointer: Pointer) -> Pointer {
        let pointer = self.request.pointer_in_body(pointer).renamed("texts", D::TEXTS);
        // The path may name a method, too, but the field can.
        if D::NAMES_MODEL { pointer.renamed("method", "/model") } else { pointer }
    }

    fn plan(&self, app: &App, models: &Models) -> Result<Plan, ApiError> {
        let plan = self.request.plan(app, models);
        let more = self.request.texts.length().saturating_mul(D::ITEM_BYTES);
        plan.and_then(|plan| plan.longer(more, "/texts", app))
    }

    fn answer(
        &self,
        plan: &Plan,
        app: &App,
        work: &JobContext,
        answer: &mut Answer<'_>,
    ) -> Result<Counts, ApiError> {
        let (embedded, vectors) = self.request.vectors(plan, app, work)?;
        self.check_long(&embedded, &plan.resolved)?;
        let counts = embedded.counts;
        // Every text has a vector: `unknown` is always set.
        let vectors = vectors.into_iter().map(Option::unwrap_or_default).collect();
        let (resolved, request) = (&plan.resolved, &self.request);
        work.check()?;
        D::write(Vectors { resolved, request, embedded, vectors }, answer)?;
        Ok(counts)
    }
}

/// The native request for the vectors of these texts. Vectors are of length 1 and texts that are too long are
/// truncated, as in most dialects.
pub(super) fn ask<'b>(texts: Texts<'b>, target: Target<'b>, stand_in: StandIn) -> EmbedRequest<'b> {
    EmbedRequest {
        texts,
        model: target.model.map(ModelName),
        method: target.method.map(VectorMethod),
        normalize: Some(true),
        encoding: None,
        oov: None,
        unknown: Some(match stand_in {
            StandIn::Auto => UnknownVector::Auto,
            StandIn::Zero => UnknownVector::Zero,
            StandIn::Hash => UnknownVector::Hash,
            StandIn::Error => UnknownVector::Error,
        }),
        truncate: Some(true),
        dimensions: None,
    }
}
