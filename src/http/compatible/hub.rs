//! The requests that the Hugging Face Hub's client posts to the address of a server itself: texts
//! to embed, or a sentence to compare with others. The body's form distinguishes them.

use axum::extract::Request;
use axum::routing::post;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::http::api::embed::EmbedRequest;
use crate::http::api::pipeline::Endpoint;
use crate::http::api::question::AnyAsk;
use crate::http::compatible::address::Address;
use crate::http::compatible::input::OnlyObject;
use crate::http::compatible::named;
use crate::http::compatible::pairs::{PairDialect, PairQuestion, Sides};
use crate::http::compatible::tei::{SentencesRequest, TeiEmbedRequest};
use crate::http::compatible::vectors::{VectorDialect, VectorQuestion};
use crate::http::dialect::Dialect;
use crate::http::error::{Code, Result};
use crate::http::openapi::refusals::{LIST, QUESTION, refusals};
use crate::http::request::{body, json};
use crate::http::routes::Routes;

pub(super) fn routes() -> Routes {
    let named = named("/");
    Routes::default().also(&named, post(infer)).also(&format!("{named}/"), post(infer))
}

pub(super) fn shared() -> Routes {
    Routes::default().with(routes!(infer))
}

pub(super) struct Hub;

impl VectorDialect for Hub {
    const DIALECT: Dialect = Dialect::Hub;
    const TEXTS: &'static str = "/inputs";
    type Body<'b> = TeiEmbedRequest<'b>;

    /// Vectors have their full length, unless the client requests another.
    fn ask<'b>(
        body: <Self as VectorDialect>::Body<'b>,
        address: &Address,
    ) -> Result<EmbedRequest<'b>> {
        let normalize = Some(body.normalize.unwrap_or(false));
        Ok(EmbedRequest { normalize, ..body.ask(address)? })
    }
}

impl PairDialect for Hub {
    const DIALECT: Dialect = Dialect::Hub;
    type Body<'b> = SentencesRequest<'b>;

    fn ask<'b>(body: <Self as PairDialect>::Body<'b>, address: &Address) -> Result<Sides<'b>> {
        Ok(body.sides(address))
    }
}

pub(super) struct HubDialect;

/// A body that compares sentences of any kind.
#[derive(Deserialize)]
struct Sentences {
    #[serde(rename = "inputs")]
    _inputs: OnlyObject<IgnoredAny>,
}

/// What the document says of the body.
#[derive(Deserialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum HubRequest<'b> {
    /// A sentence and those that it is compared with.
    #[serde(borrow)]
    Sentences(SentencesRequest<'b>),
    /// Texts to embed.
    #[serde(borrow)]
    Texts(TeiEmbedRequest<'b>),
}

/// What is answered.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code)]
enum HubResponse {
    /// Scores in the order of the sentences.
    Scores(Vec<f32>),
    /// Vectors in the order of the texts.
    Vectors(Vec<Vec<f32>>),
}

impl Endpoint for HubDialect {
    type Address = Address;

    fn check_head(request: &Request) -> Result<()> {
        body::check_encoding(request.headers())
    }

    /// Mostly texts are sent; an object in their place ends the attempt there.
    fn read<'b>(body: &'b [u8], address: &Address) -> Result<AnyAsk<'b>> {
        match VectorQuestion::<Hub>::read(body, address) {
            Err(_) if json::read::<Sentences>(body).is_ok() => {
                PairQuestion::<Hub>::read(body, address)
            }
            read => read,
        }
    }
}

refusals!(
    HubRefusals in Dialect::Hub;
    QUESTION, LIST, &[Code::MethodCannotEmbed, Code::MethodOnlyRanks, Code::MeasureNotSupported]
);

question! {
    /// Returns vectors of texts, or scores of a sentence against others, in the Hub's format.
    ///
    /// The form of `inputs` decides: texts give vectors, `source_sentence` with `sentences` gives
    /// scores.
    infer: "hub" "/" asks HubDialect;
    HubRequest<'_> => HubResponse: "Vectors or scores", HubRefusals
}
