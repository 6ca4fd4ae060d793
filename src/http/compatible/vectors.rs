//! Questions for vectors in other dialects: computed as `/embed`, written in the dialect's form.

use std::marker::PhantomData;

use cognate::engine::Embeddings;
use serde::Deserialize;

use crate::http::api::embed::{EmbedRequest, Embedding, Foreign, UnknownVector};
use crate::http::api::pipeline::Endpoint;
use crate::http::api::question::{AnyAsk, AnyPlanned, Ask, Form, PlanContext};
use crate::http::compatible::address::{Address, Target};
use crate::http::dialect::{Dialect, StandIn};
use crate::http::error::{Pointer, Result, Segment};
use crate::http::request::fields::{ModelName, Text, Texts, VectorMethod};
use crate::http::request::{body, json};
use crate::http::work::unsent::Answer;

/// A dialect's request for vectors, and the form of its answer.
pub(super) trait VectorDialect: Send + 'static {
    const DIALECT: Dialect;
    /// JSON pointer to the field that has the texts.
    const TEXTS: &'static str;
    /// Whether the field `model` may name a model and a method.
    const NAMES_MODEL: bool = false;
    /// Bytes of an item of the answer besides its vector.
    const ITEM_BYTES: usize = 0;
    type Body<'b>: Deserialize<'b>;

    fn ask<'b>(body: Self::Body<'b>, address: &Address) -> Result<EmbedRequest<'b>>;

    /// Writes the answer: a bare list of vectors, unless the dialect has more.
    fn write(vectors: Vectors<'_>, answer: &mut Answer<'_>) -> Result<()> {
        // Every text has a vector: `unknown` is always set.
        answer.write_json(&vectors.each().collect::<Vec<_>>())
    }
}

pub(super) struct Vectors<'q> {
    pub asked: &'q Embedding,
    /// The only text, if the body has a text instead of a list.
    pub one: Option<&'q Text<'q>>,
    pub embedded: &'q Embeddings,
}

impl<'q> Vectors<'q> {
    pub(super) fn tokens(&self) -> usize {
        self.embedded.tokens.iter().sum()
    }

    pub(super) fn model(&self) -> &str {
        &self.asked.resolved.model.name
    }

    pub(super) fn each(&self) -> impl Iterator<Item = &'q [f32]> {
        self.embedded.iter().map(Option::unwrap_or_default)
    }

    pub(super) fn first(&self) -> &'q [f32] {
        self.each().next().unwrap_or_default()
    }
}

pub(super) struct VectorQuestion<'b, D: VectorDialect> {
    request: EmbedRequest<'b>,
    dialect: PhantomData<fn() -> D>,
}

/// A dialect's body: a list of texts, or one text.
struct Worded<D> {
    is_one: bool,
    dialect: PhantomData<fn() -> D>,
}

impl<D: VectorDialect> Worded<D> {
    fn named(is_one: bool, pointer: Pointer) -> Pointer {
        let pointer = match pointer.segments() {
            [Segment::Field("texts"), Segment::Index(_)] if is_one => D::TEXTS.into(),
            _ => pointer.renamed("texts", D::TEXTS),
        };
        // The path may name a method too, but the field can be at fault.
        if D::NAMES_MODEL { pointer.renamed("method", "/model") } else { pointer }
    }
}

impl<D: VectorDialect> Form<Embedding, Text<'_>> for Worded<D> {
    fn place(&self, pointer: Pointer, _: &[Text<'_>]) -> Pointer {
        Self::named(self.is_one, pointer)
    }

    fn write(
        &self,
        asked: &Embedding,
        texts: &[Text<'_>],
        embedded: &Embeddings,
        answer: &mut Answer<'_>,
    ) -> Result<()> {
        let one = texts.first().filter(|_| self.is_one);
        D::write(Vectors { asked, one, embedded }, answer)
    }
}

impl<D: VectorDialect> Endpoint for VectorQuestion<'_, D> {
    type Address = Address;

    fn check_head(request: &axum::extract::Request) -> Result<()> {
        body::check_encoding(request.headers())
    }

    fn read<'b>(body: &'b [u8], address: &Address) -> Result<AnyAsk<'b>> {
        let asked = json::read_object(body).and_then(|body| D::ask(body, address));
        let mut request = asked.map_err(|error| error.in_dialect(D::DIALECT))?;
        // Some clients always send a number, and 0 for all dimensions.
        let dimensions = request.foreign.dimensions.filter(|&dimensions| dimensions > 0);
        request.foreign = Foreign { dimensions, refuse_long: true };
        Ok(Box::new(VectorQuestion::<'b, D> { request, dialect: PhantomData }))
    }
}

impl<D: VectorDialect> Ask for VectorQuestion<'_, D> {
    fn dialect(&self) -> Dialect {
        D::DIALECT
    }

    fn plan<'q>(self: Box<Self>, context: &PlanContext<'_>) -> Result<AnyPlanned<'q>>
    where
        Self: 'q,
    {
        let is_one = matches!(self.request.texts, Texts::One(_));
        let form = Worded { is_one, dialect: PhantomData::<fn() -> D> };
        let planned = self.request.plan_in(form, D::ITEM_BYTES, context);
        planned.map_err(|error| error.renamed(|pointer| Worded::<D>::named(is_one, pointer)))
    }
}

/// The native request for the vectors of these texts. Vectors have length 1 and overlong texts are
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
        foreign: Foreign::default(),
    }
}
