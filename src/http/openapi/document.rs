//! The document of the surface: made from the handlers themselves, completed with what holds for
//! every route, and committed under `openapi/`.

use serde_json::Value;
use serde_json::json;
use utoipa::OpenApi;
use utoipa::openapi;

use crate::engine::Query;
use crate::http::error::Code;
use crate::http::error::Problem;
use crate::http::registry::models::Models;
use crate::http::routes::ANY;
use crate::http::routes::ROUTES;
use crate::methods::Method;

/// What no single route says.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "cognate",
        description = "Scores how similar very short texts are, in microseconds, from word vectors.\n\n\
            Every refusal is a problem document (RFC 9457) with a stable `code`. Faults of HTTP \
            itself (a bad request line, a head that is too long or has too many fields) are the one \
            exception: they are answered without a body, and the connection is closed.",
    ),
    components(schemas(Problem<'_>)),
    tags(
        (name = "compare", description = "Compare, rank, embed and explain texts"),
        (name = "describe", description = "Models and methods of this server"),
        (name = "operate", description = "Health, metrics, reload"),
    ),
)]
struct Header;

/// The document over the given routes, as JSON with its keys in a fixed order.
pub fn document(routes: openapi::OpenApi) -> Value {
    let mut document = Header::openapi();
    document.merge(routes);
    document.servers = Some(vec![openapi::Server::new("/")]);
    // A document of ours has string keys and finite numbers.
    let mut document = serde_json::to_value(&document).unwrap_or_default();
    complete(&mut document);
    document
}

/// Adds what holds for many routes: refusals, request ids, keys.
fn complete(document: &mut Value) {
    let id = json!({
        "description": "The request's name in the log: the one sent, or a new one",
        "schema": {"type": "string"},
    });
    document["components"]["securitySchemes"] = json!({
        "key": {"type": "http", "scheme": "bearer", "description": "Where keys are set"},
    });
    for route in ROUTES.iter().filter(|route| route.documented) {
        let operation = &mut document["paths"][route.path][route.verb.to_lowercase()];
        operation["responses"]["200"]["headers"]["x-request-id"] = id.clone();
        let codes = || route.codes.iter().chain(ANY);
        let mut statuses: Vec<u16> = codes().map(|code| code.status().as_u16()).collect();
        statuses.sort_unstable();
        statuses.dedup();
        for status in statuses {
            let of_status = |code: &&Code| code.status().as_u16() == status;
            let names: Vec<String> =
                codes().filter(of_status).map(|code| format!("`{}`", code.name())).collect();
            operation["responses"][status.to_string()] = json!({
                "description": names.join(", "),
                "headers": {"x-request-id": id},
                "content": {"application/problem+json": {
                    "schema": {"$ref": "#/components/schemas/Problem"},
                }},
            });
        }
        if route.codes.contains(&Code::Unauthorized) {
            operation["security"] = json!([{}, {"key": []}]);
        }
    }
    require_vectors_for_distance(&mut document["components"]["schemas"]);
}

/// Only vectors have a Euclidean distance: says so in the schemas of questions that have both a
/// method and a measure.
fn require_vectors_for_distance(schemas: &mut Value) {
    let vectors = Method::ALL.iter().filter(|method| method.info().embeds);
    let vectors: Vec<&str> = vectors.map(|method| method.name()).collect();
    let Some(schemas) = schemas.as_object_mut() else { return };
    for schema in schemas.values_mut() {
        // An answer has both as well, but is never asked to have no other field.
        let has = |field: &str| schema["properties"].get(field).is_some();
        if schema["additionalProperties"] == false && has("method") && has("measure") {
            let by_vectors = json!({"method": {"enum": vectors}});
            schema["anyOf"] = json!([
                {"title": "ByCosine", "properties": {"measure": {"enum": ["cosine", null]}}},
                {"title": "ByVectors", "properties": by_vectors, "required": ["method"]},
            ]);
        }
    }
}

/// The document of a server with these models: it names them, and leaves out what they cannot do.
pub fn of_models(routes: openapi::OpenApi, models: &Models) -> Value {
    let mut document = document(routes);
    narrow(&mut document, models);
    document
}

fn narrow(document: &mut Value, models: &Models) {
    let engines = || models.all().iter().map(|served| &served.engine);
    let cannot = |name: &str| {
        let method = Method::named(name).filter(|_| name != "auto");
        method.is_some_and(|method| engines().any(|engine| engine.unavailable(method).is_some()))
    };
    let calibrated = engines().all(|engine| !engine.calibrations().is_empty());
    let names: Vec<&str> = models.all().iter().map(|served| served.name.as_str()).collect();
    let Some(schemas) = document["components"]["schemas"].as_object_mut() else { return };
    let unexplained = |name: &str| {
        let query = Method::named(name).filter(|_| name != "auto").map(Query::new);
        query.is_some_and(|query| engines().any(|engine| engine.check_explain(&query).is_err()))
    };
    let explained = schemas.get_mut("ExplainMethod").and_then(|names| names.pointer_mut("/enum"));
    if let Some(methods) = explained.and_then(Value::as_array_mut) {
        methods.retain(|name| !name.as_str().is_some_and(unexplained));
    }
    for schema in schemas.values_mut() {
        for pointer in ["/enum", "/anyOf/1/properties/method/enum"] {
            if let Some(methods) = schema.pointer_mut(pointer).and_then(Value::as_array_mut) {
                methods.retain(|name| !name.as_str().is_some_and(cannot));
            }
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
