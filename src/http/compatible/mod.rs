//! The dialects of other servers, so that their clients work unchanged except for a base URL.
//!
//! Each is an adapter: its body becomes a question of [`api`](crate::http::api), which is weighed,
//! admitted and answered as native ones are, and the answer is written in the dialect's form.
//! Unknown fields are ignored, because clients add them. Every path exists a second time under
//! `/m/{model}/{method}`, for clients that cannot name a model.

/// Declares the handler of a dialect's question: `NAME: TAG PATH asks QUESTION`, and the document's
/// description of the body, the answer and the errors.
macro_rules! question {
    ($(#[$doc:meta])* $name:ident: $tag:literal $path:literal $(with $params:tt)? asks $question:ty;
        $body:ty => $answer:ty: $description:literal, $refusals:ident) => {
        $(#[$doc])*
        #[utoipa::path(
            post,
            path = $path,
            tag = $tag,
            $(params $params,)?
            request_body(content = $body, content_type = "application/json"),
            responses(
                (status = 200, description = $description, body = $answer),
                $refusals,
            ),
        )]
        async fn $name(
            axum::extract::State(app): axum::extract::State<std::sync::Arc<crate::http::app::App>>,
            address: crate::http::compatible::address::Address,
            request: axum::extract::Request,
        ) -> Result<axum::response::Response, crate::http::error::ApiError> {
            crate::http::api::pipeline::answer::<$question>(app, address, request).await
        }
    };
}

mod address;
mod hub;
mod input;
mod ollama;
mod openai;
mod pairs;
mod rerank;
mod spans;
mod tei;
mod vectors;
mod vllm;
mod weaviate;

use std::sync::Arc;

use axum::routing::MethodRouter;
pub(crate) use tei::shared;
use utoipa_axum::router::UtoipaMethodRouter;

use crate::http::api::pipeline::Endpoint;
use crate::http::app::App;
use crate::http::compatible::address::Address;
use crate::http::compatible::hub::HubDialect;
use crate::http::compatible::ollama::{Embed, Prompt};
use crate::http::compatible::openai::OpenAi;
use crate::http::compatible::pairs::PairQuestion;
use crate::http::compatible::rerank::RerankQuestion;
use crate::http::compatible::tei::{PairsOrNative, VectorsOrNative};
use crate::http::compatible::vectors::VectorQuestion;
use crate::http::compatible::vllm::Vllm;
use crate::http::compatible::weaviate::Weaviate;
use crate::http::dialect::Dialect;
use crate::http::error::ApiError;
use crate::http::routes::Routes;

pub(crate) fn life(routes: Routes, dialects: &[Dialect]) -> Routes {
    if dialects.contains(&Dialect::Weaviate) { weaviate::life(routes) } else { routes }
}

/// The routes of these dialects, without those that text-embeddings-inference shares with the
/// native dialect.
pub(crate) fn routes(dialects: &[Dialect]) -> Vec<Routes> {
    let in_dialect = |dialect: &Dialect| dialects.contains(dialect);
    let routes_of = |dialect| {
        let routes = match dialect {
            Dialect::Native => Routes::default(),
            Dialect::OpenAi => openai::routes(),
            Dialect::Rerank => rerank::routes(),
            Dialect::Tei => tei::routes(),
            Dialect::Hub => hub::routes(),
            Dialect::Ollama => ollama::routes(),
            Dialect::Vllm => vllm::routes(),
            Dialect::Weaviate => weaviate::routes(),
        };
        routes.in_dialect(Some(dialect))
    };
    let mut groups: Vec<Routes> = Dialect::others().filter(in_dialect).map(routes_of).collect();
    if in_dialect(&Dialect::Hub) {
        groups.push(hub::shared().in_dialect(None));
    }
    // Two dialects have this path, and each of them can be switched off.
    match [Dialect::Rerank, Dialect::Tei].map(|dialect| in_dialect(&dialect)) {
        [false, false] => {}
        [true, true] => groups.push(rerank::shared().in_dialect(None)),
        [true, false] => groups.push(rerank::shared().in_dialect(Some(Dialect::Rerank))),
        [false, true] => groups.push(rerank::shared().in_dialect(Some(Dialect::Tei))),
    }
    groups
}

/// The error of a body in each dialect that refuses it, for fuzzing.
pub fn refusals(body: &[u8]) -> Vec<ApiError> {
    fn refused<Q: Endpoint<Address = Address>>(body: &[u8]) -> Option<ApiError> {
        Q::read(body, &Address::default()).err()
    }
    let questions = [
        refused::<VectorQuestion<'_, OpenAi>>,
        refused::<RerankQuestion<'_>>,
        refused::<VectorsOrNative<'_>>,
        refused::<PairsOrNative<'_>>,
        refused::<HubDialect>,
        refused::<VectorQuestion<'_, Embed>>,
        refused::<VectorQuestion<'_, Prompt>>,
        refused::<PairQuestion<'_, Vllm>>,
        refused::<VectorQuestion<'_, Weaviate>>,
    ];
    questions.iter().filter_map(|refused| refused(body)).collect()
}

/// Adds a documented route and its other paths, and each of them under a model's and a method's
/// name.
fn with_names(
    routes: Routes,
    route: UtoipaMethodRouter<Arc<App>>,
    path: &str,
    others: &[&str],
) -> Routes {
    let handler: MethodRouter<Arc<App>> = route.2.clone();
    let routes = others.iter().fold(routes.with(route), |routes, other| {
        routes.also(other, handler.clone()).also(&named(other), handler.clone())
    });
    routes.also(&named(path), handler)
}

fn named(path: &str) -> String {
    format!("/m/{{model}}/{{method}}{}", path.trim_end_matches('/'))
}
