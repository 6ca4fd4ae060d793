//! The document of the surface: made from the handlers themselves, completed with what holds for
//! every route, and committed under `openapi/`.

use std::collections::BTreeSet;

use cognate::engine::Query;
use cognate::methods::Method;
use serde_json::{Value, json};
use utoipa::OpenApi as _;
use utoipa::openapi::path::Operation;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{HeaderBuilder, Object, OpenApi, RefOr, Server, Type};

use crate::http::error::{MessageError, OpenAiError, Problem, TeiError, TextError};
use crate::http::openapi::{examples, operations};
use crate::http::registry::models::Models;

/// Sections of the document that belong to no single route.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "cognate",
        description = "Scores how similar very short texts are, in microseconds, from word vectors.\n\n\
            Every refusal is a problem document (RFC 9457) with a stable `code`. Faults of HTTP \
            itself (a bad request line, a head that is too long or has too many fields) are the one \
            exception: they are answered without a body, and the connection is closed.\n\n\
            Routes of other dialects (`openai`, `rerank`, `tei`, `hub`, `ollama`, `vllm`, `weaviate`) \
            let clients of those servers work with another base URL. Each is there a second time \
            behind `/m/{model}/{method}`; the setting `dialects` switches them off.",
    ),
    components(schemas(
        Problem<'_>,
        TeiError<'_>,
        OpenAiError<'_>,
        MessageError<'_>,
        TextError<'_>,
    )),
    tags(
        (name = "compare", description = "Compare, rank, embed and explain texts"),
        (name = "describe", description = "Models and methods of this server"),
        (name = "collections", description = "Texts that the server remembers: written, listed, matched"),
        (name = "operate", description = "Health, metrics, reload"),
        (name = "openai", description = "Embeddings for clients of OpenAI"),
        (name = "rerank", description = "Reranking for clients of Cohere, Jina, Voyage and others"),
        (name = "tei", description = "For clients of text-embeddings-inference"),
        (name = "hub", description = "For the client of the Hugging Face Hub"),
        (name = "ollama", description = "Embeddings for clients of Ollama"),
        (name = "vllm", description = "Scores of pairs for clients of vLLM"),
        (name = "weaviate", description = "For Weaviate's module text2vec-model2vec"),
    ),
)]
struct Header;

/// The document of the given routes, as JSON with its keys in a fixed order.
pub fn document(routes: impl Iterator<Item = OpenApi>) -> Value {
    let mut document = Header::openapi();
    routes.for_each(|routes| document.merge(routes));
    document.servers = Some(vec![Server::new("/")]);
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
    let key = SecurityScheme::Http(bearer.description(Some("Where keys are set")).build());
    document.components.get_or_insert_default().add_security_scheme("key", key);
    document.paths.paths.values_mut().flat_map(operations).for_each(|(_, each)| complete(each));
    // The document has string keys and finite numbers.
    let mut document = serde_json::to_value(&document).unwrap_or_default();
    examples::put(&mut document);
    document
}

fn complete(operation: &mut Operation) {
    for response in operation.responses.responses.values_mut() {
        if let RefOr::T(response) = response {
            let id = HeaderBuilder::new()
                .schema(Some(Object::with_type(Type::String)))
                .description(Some("The request's name in the log: the one sent, or a new one"));
            response.headers.insert("x-request-id".to_owned(), id.build().into());
        }
    }
}

/// The document of a server with these models: it names them, leaves out what they cannot serve,
/// and states `limits`, each by its position among the schemas.
pub fn of_server(
    routes: impl Iterator<Item = OpenApi>,
    models: &Models,
    limits: &[(&str, usize)],
) -> Value {
    let mut document = document(routes);
    narrow(&mut document, models);
    for (pointer, limit) in limits {
        let pointer = format!("/components/schemas/{pointer}");
        if let Some(stated) = document.pointer_mut(&pointer) {
            *stated = json!(limit);
        }
    }
    document
}

fn narrow(document: &mut Value, models: &Models) {
    let engines = || models.all().iter().map(|model| &model.engine);
    let cannot = |name: &str| {
        let method = Method::named(name).filter(|_| name != "auto");
        method.is_some_and(|method| engines().any(|engine| engine.unavailable(method).is_some()))
    };
    let calibrated = engines().all(|engine| !engine.calibrations().is_empty());
    let names: Vec<&str> = models.all().iter().map(|model| &*model.name).collect();
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    let unexplained = |name: &str| {
        let query = Method::named(name).filter(|_| name != "auto").map(Query::new);
        query.is_some_and(|query| engines().any(|engine| engine.check_explain(&query).is_err()))
    };
    let explained = schemas.get_mut("ExplainMethod").and_then(|names| names.pointer_mut("/enum"));
    if let Some(methods) = explained.and_then(Value::as_array_mut) {
        methods.retain(|name| !name.as_str().is_some_and(unexplained));
    }
    let ranks = schemas.get_mut("RankMethod").and_then(|names| names.pointer_mut("/enum"));
    if let Some(methods) = ranks.and_then(Value::as_array_mut) {
        // With several models, a request may choose any.
        let fused = engines().flat_map(|engine| engine.fusions().iter());
        let names: BTreeSet<&str> = fused.map(|fused| &**fused.name()).collect();
        methods.extend(names.into_iter().map(Value::from));
    }
    for schema in schemas.values_mut() {
        if let Some(methods) = schema.pointer_mut("/enum").and_then(Value::as_array_mut) {
            methods.retain(|name| !name.as_str().is_some_and(cannot));
        }
    }
    if let Some(name) = schemas.get_mut("ModelName") {
        name["enum"] = json!(names);
    }
    if !calibrated && let Some(threshold) = schemas.get_mut("Threshold") {
        let numbers = threshold["oneOf"][0].clone();
        threshold["oneOf"] = json!([numbers]);
    }
}
