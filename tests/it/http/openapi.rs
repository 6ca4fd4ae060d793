//! The committed document is the one that the code makes.

use std::collections::BTreeSet;
use std::path::Path;
use std::slice;

use axum::body::Body;
use axum::http::Request;
use cognate_server::http::auth::keys::{Scope, line};
use cognate_server::http::error::Code;
use cognate_server::http::{Settings, openapi_document};
use serde_json::{Value, json};

use crate::support::app::TestApp;

#[test]
fn the_committed_document_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("openapi/cognate.json");
    let made = format!("{:#}\n", cognate_server::http::openapi_document());
    if std::env::var_os("TEST_COGNATE_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        made == committed,
        "openapi/cognate.json is not current: run with TEST_COGNATE_BLESS=1"
    );
}

/// What is served names the models, and no more than they can do; else it is the committed one.
#[tokio::test]
async fn the_served_document_names_the_models() {
    let mut served = TestApp::new().get("/openapi.json").await.json();
    let model = served["components"]["schemas"]["ModelName"].as_object_mut().unwrap();
    assert_eq!(model.remove("enum"), Some(json!(["tiny"])));
    let whole = cognate_server::http::openapi_document();
    let threshold = "/components/schemas/Threshold/oneOf";
    assert_eq!(served.pointer(threshold).unwrap().as_array().unwrap().len(), 1, "no calibration");
    *served.pointer_mut(threshold).unwrap() = whole.pointer(threshold).unwrap().clone();
    // A model holds one ranker, this one `patt`.
    for names in ["ExplainMethod", "RankMethod"] {
        let pointer = format!("/components/schemas/{names}/enum");
        let mut offered = whole.pointer(&pointer).unwrap().clone();
        let all = offered.clone();
        // What looks at the whole list has nothing to say about one pair.
        let mut others = vec!["bicnn", "qatt"];
        others.extend(["rm3", "prf-cos"].iter().filter(|_| names == "ExplainMethod"));
        offered.as_array_mut().unwrap().retain(|name| !others.iter().any(|other| name == other));
        assert_eq!(served.pointer(&pointer), Some(&offered));
        *served.pointer_mut(&pointer).unwrap() = all;
    }
    assert_eq!(served, whole);
}

/// Everything that names a model leads to the schema in which a server lists its own.
#[test]
fn models_are_named_in_one_place() {
    let document = cognate_server::http::openapi_document();
    let name = "#/components/schemas/ModelName";
    let mut asked = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        let operations = item.as_object().unwrap().values();
        let parameters = operations.filter_map(|operation| operation["parameters"].as_array());
        for parameter in parameters.flatten() {
            if parameter["name"] == "model" && parameter["in"] == "query" {
                assert_eq!(parameter["schema"]["$ref"], name, "{path}: {parameter}");
                asked += 1;
            }
        }
    }
    assert!(asked > 8, "{asked}");
    for body in [
        "PairsRequest",
        "PairRequest",
        "EmbedRequest",
        "RankRequest",
        "ExplainRequest",
        "MatchRequest",
    ] {
        let model = &document["components"]["schemas"][body]["properties"]["model"];
        assert_eq!(model["oneOf"][0]["$ref"], name, "{body}: {model}");
    }
}

/// Limits that the document states are those that are in force unless others are set.
#[test]
fn the_document_states_the_usual_limits() {
    let (document, settings) = (cognate_server::http::openapi_document(), Settings::default());
    let schema = |pointer: &str| document.pointer(&format!("/components/schemas/{pointer}"));
    for (pointer, limit) in [
        ("NonEmptyText/maxLength", settings.text_chars),
        ("PairsRequest/properties/pairs/maxItems", settings.max_pairs),
        ("Texts/oneOf/1/maxItems", settings.max_texts),
        ("ItemsRequest/properties/items/maxItems", settings.max_texts),
        ("MatchRequest/properties/items/maxItems", settings.max_texts),
        ("RankRequest/properties/candidates/maxItems", settings.max_candidates),
        ("RankRequest/properties/exclude/maxItems", settings.max_candidates),
        ("RankRequest/properties/queries/maxItems", settings.max_queries),
        ("RankRequest/properties/like/maxItems", settings.max_queries),
        ("RankRequest/properties/unlike/maxItems", settings.max_queries),
    ] {
        assert_eq!(schema(pointer), Some(&json!(limit)), "{pointer}");
    }
    let text = schema("Text/description").unwrap().as_str().unwrap();
    for limit in [settings.text_chars, settings.tokens_per_text] {
        assert!(text.contains(&limit.to_string()), "{text}");
    }
}

/// A server with other limits states them.
#[tokio::test]
async fn the_served_document_states_the_limits_in_force() {
    let app = TestApp::with(|settings| {
        (settings.max_pairs, settings.max_candidates) = (7, 8);
        (settings.max_texts, settings.text_chars, settings.max_queries) = (9, 100, 6);
    });
    let served = app.get("/openapi.json").await.json();
    for (pointer, limit) in [
        ("NonEmptyText/maxLength", 100),
        ("PairsRequest/properties/pairs/maxItems", 7),
        ("Texts/oneOf/1/maxItems", 9),
        ("ItemsRequest/properties/items/maxItems", 9),
        ("MatchRequest/properties/items/maxItems", 9),
        ("RankRequest/properties/candidates/maxItems", 8),
        ("RankRequest/properties/exclude/maxItems", 8),
        ("RankRequest/properties/queries/maxItems", 6),
        ("RankRequest/properties/like/maxItems", 6),
        ("RankRequest/properties/unlike/maxItems", 6),
    ] {
        let pointer = format!("/components/schemas/{pointer}");
        assert_eq!(served.pointer(&pointer), Some(&json!(limit)), "{pointer}");
    }
}

/// A path that takes bodies of two dialects refuses them in the form of either.
#[test]
fn a_path_of_two_dialects_states_the_refusals_of_both() {
    let document = openapi_document();
    let [message, tei] = ["MessageError", "TeiError"]
        .map(|name| json!({"$ref": format!("#/components/schemas/{name}")}));
    let either = json!({"anyOf": [message, tei]});
    for (path, status, schema) in [
        ("~1rerank", 400, &either),
        ("~1rerank", 404, &either),
        ("~1rerank", 422, &tei),
        ("~1v2~1rerank", 404, &message),
    ] {
        let pointer = format!("/paths/{path}/post/responses/{status}/content/application~1json");
        assert_eq!(document.pointer(&pointer).unwrap()["schema"], *schema, "{path} {status}");
    }
}

/// Numbers of query strings have bounds: one that the document allows is read.
#[test]
fn numbers_of_query_strings_have_bounds() {
    let document = openapi_document();
    let mut numbers = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for operation in item.as_object().unwrap().values() {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let schema = &parameter["schema"];
                if schema["type"] == "integer" {
                    let bounds = ["minimum", "maximum"].map(|bound| schema[bound].as_u64());
                    assert!(bounds.iter().all(Option::is_some), "{path}: {parameter}");
                    numbers += 1;
                }
            }
        }
    }
    assert!(numbers > 10, "{numbers}");
}

/// Whoever sends an example is answered, and each refusal shows its own code.
#[tokio::test]
async fn examples_are_what_the_service_takes_and_gives() {
    let (app, document) = (TestApp::new(), openapi_document());
    let (mut sent, mut refusals) = (0, 0);
    let made = Request::put("/collections/news").header("content-type", "application/json");
    assert_eq!(app.send(made.body(Body::from("{}")).unwrap()).await.status, 200);
    let events = ["a", "b"].map(|id| json!({"id": id, "text": "quake", "event": id}));
    app.ask("/collections/news/items", json!({"items": events})).await;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let bodies = operation["requestBody"]["content"].as_object();
            for (media_type, content) in bodies.into_iter().flatten() {
                for example in content["examples"].as_object().unwrap().values() {
                    let value = &example["value"];
                    let body = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    let body = body.replace("\"default\"", "\"tiny\"");
                    let path = path.replace("{model}", "tiny").replace("{method}", "auto");
                    let path = path.replace("{name}", "news").replace("{id}", "a");
                    if verb == "patch" {
                        // Its item of another example is of long ago, and gone.
                        let item = json!({"items": [{"id": "a", "text": "quake"}]});
                        app.ask("/collections/news/items", item).await;
                    }
                    let request = Request::builder().method(verb.to_uppercase().as_str());
                    let request = request.uri(&path).header("content-type", media_type);
                    let answer = app.send(request.body(Body::from(body)).unwrap()).await;
                    assert_eq!(answer.status, 200, "{path} {value}");
                    sent += 1;
                }
            }
            for (status, response) in operation["responses"].as_object().unwrap() {
                let content = &response["content"]["application/problem+json"];
                for (code, example) in content["examples"].as_object().into_iter().flatten() {
                    assert_eq!(example["value"]["code"], **code, "{path} {status}");
                    assert_eq!(example["value"]["status"].to_string(), *status);
                    refusals += 1;
                }
            }
        }
    }
    assert!(sent == 32 && refusals > 100, "{sent} {refusals}");
}

/// What generators of clients cannot read is not in it.
#[test]
fn the_document_is_plain_enough_for_generators_of_clients() {
    fn look(value: &Value) {
        match value {
            Value::Object(fields) => {
                assert_ne!(fields.get("items"), Some(&Value::Bool(false)), "{value}");
                assert_ne!(fields.get("default"), Some(&Value::Null), "{value}");
                let null_in_enum =
                    |values: &Value| values.as_array().is_some_and(|v| v.contains(&Value::Null));
                assert!(!fields.get("enum").is_some_and(null_in_enum), "{value}");
                // No value is of two types at once.
                let joined = fields.get("allOf").and_then(Value::as_array);
                let types = joined.into_iter().flatten().filter_map(|part| part["type"].as_str());
                assert!(types.collect::<BTreeSet<_>>().len() < 2, "{value}");
                fields.values().for_each(look);
            }
            Value::Array(items) => items.iter().for_each(look),
            _ => {}
        }
    }
    let document = openapi_document();
    look(&document);
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|item| item.as_object().unwrap().values());
    let mut ids = BTreeSet::new();
    for operation in operations {
        let id = operation["operationId"].as_str().unwrap();
        assert!(ids.insert(id), "two operations are called {id}");
    }
}

/// The schema, what it refers to, or one of its kinds says what it is.
fn is_described(schema: &Value, whole: &Value) -> bool {
    let target = schema["$ref"].as_str().and_then(|target| whole.pointer(&target[1..]));
    let kinds = ["oneOf", "anyOf", "allOf"].map(|kind| schema[kind].as_array());
    schema["description"].is_string()
        || target.is_some_and(|target| is_described(target, whole))
        || kinds.into_iter().flatten().flatten().any(|kind| is_described(kind, whole))
}

/// What linters of documents ask: everything is named, told apart and explained.
#[test]
fn the_document_explains_everything() {
    fn look(value: &Value, whole: &Value, wrong: &mut Vec<String>) {
        for (name, property) in value["properties"].as_object().into_iter().flatten() {
            if property.is_object() && !is_described(property, whole) {
                wrong.push(format!("property {name}: {property}"));
            }
        }
        match value {
            Value::Object(fields) => fields.values().for_each(|field| look(field, whole, wrong)),
            Value::Array(items) => items.iter().for_each(|item| look(item, whole, wrong)),
            _ => {}
        }
    }
    let (document, mut wrong) = (openapi_document(), Vec::new());
    look(&document["components"], &document, &mut wrong);
    let written = document.to_string();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        let is_used = written.contains(&format!("\"#/components/schemas/{name}\""));
        if !is_used || !is_described(schema, &document) {
            wrong.push(format!("schema {name}: used {is_used}, {schema}"));
        }
    }
    let tags = document["tags"].as_array().unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let text = |field: &str| operation[field].as_str().unwrap_or_default();
            let [id, summary, description] = ["operationId", "summary", "description"].map(text);
            let is_word =
                |byte: u8| byte.is_ascii_lowercase() || byte == b'_' || byte.is_ascii_digit();
            let is_listed =
                |tag: &Value| tag["name"] == operation["tags"][0] && tag["description"].is_string();
            let (responses, parameters) =
                (&operation["responses"], operation["parameters"].as_array());
            let is_explained = |parameter: &Value| {
                is_described(parameter, &document) || is_described(&parameter["schema"], &document)
            };
            for (rule, holds) in [
                ("an id in words", !id.is_empty() && id.bytes().all(is_word)),
                ("a summary of one sentence", summary.ends_with('.') && !summary.contains('\n')),
                ("a description", !description.is_empty()),
                (
                    "one tag that is explained",
                    tags.iter().filter(|tag| is_listed(tag)).count() == 1,
                ),
                (
                    "a refusal",
                    responses.as_object().unwrap().keys().any(|status| status.starts_with('4')),
                ),
                ("parameters explained", parameters.into_iter().flatten().all(is_explained)),
            ] {
                if !holds {
                    wrong.push(format!("{verb} {path}: not {rule}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A method that a model cannot serve is not offered.
#[tokio::test]
async fn the_served_document_offers_what_can_be_done() {
    let app = TestApp::with_model(crate::support::tiny_model(), |_| ());
    let served = app.get("/openapi.json").await.json();
    let offered =
        |name: &str| served["components"]["schemas"][name]["enum"].as_array().unwrap().clone();
    let learned = Value::from("learned-idf");
    for name in ["PairMethod", "VectorMethod", "RankMethod"] {
        assert!(!offered(name).contains(&learned) && offered(name).contains(&"avg-cos".into()));
    }
}

/// Every reference leads somewhere.
#[test]
fn no_reference_is_left_hanging() {
    fn look(value: &Value, whole: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(target) = fields.get("$ref").and_then(Value::as_str) {
                    let pointer = target.trim_start_matches('#');
                    assert!(whole.pointer(pointer).is_some(), "{target}");
                }
                fields.values().for_each(|field| look(field, whole));
            }
            Value::Array(items) => items.iter().for_each(|item| look(item, whole)),
            _ => {}
        }
    }
    let document = cognate_server::http::openapi_document();
    look(&document, &document);
}

/// The document lists every status and code, and what a route lists is what tests of it met: each
/// refusal that `TestApp` receives is looked for there.
#[test]
fn the_document_lists_every_route_status_and_code() {
    let document = openapi_document();
    let mut listed = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let responses = operation["responses"].as_object().unwrap();
            assert!(responses.contains_key("200"), "{verb} {path}");
            let native = ["compare", "collections", "describe", "operate"];
            let native = native.iter().any(|tag| operation["tags"][0] == *tag);
            for (status, response) in responses.iter().filter(|(status, _)| *status != "200") {
                let problem = &response["content"]["application/problem+json"]["schema"]["$ref"];
                let schema = &response["content"]["application/json"]["schema"];
                let either = schema["anyOf"].as_array().map_or(slice::from_ref(schema), |all| all);
                let of_another = either.iter().all(|schema| schema["$ref"].is_string());
                let ours = problem == "#/components/schemas/Problem";
                // What is refused before the body on a path that dialects share is a problem.
                assert!(ours || !native && of_another, "{verb} {path} {status}");
                for name in response["description"].as_str().unwrap().split(", ") {
                    let code = Code::ALL.iter().find(|code| format!("`{}`", code.name()) == name);
                    let code = code.unwrap_or_else(|| panic!("{verb} {path}: {name}"));
                    if native {
                        assert_eq!(code.status().as_str(), status, "{verb} {path}: {name}");
                        listed.insert(code.name());
                    }
                }
            }
        }
    }
    // These two belong to no route.
    listed.extend([Code::NotFound, Code::MethodNotAllowed].map(Code::name));
    let missing: Vec<_> = Code::ALL.iter().filter(|code| !listed.contains(code.name())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// A route that asks for a key says so, and no other does.
#[tokio::test]
async fn the_document_says_where_a_key_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    std::fs::write(&keys, line("shop", Scope::Admin, "the-key").unwrap()).unwrap();
    let app = TestApp::with(|settings| settings.keys_file = Some(keys));
    for (path, item) in openapi_document()["paths"].as_object().unwrap() {
        for (verb, operation) in item.as_object().unwrap() {
            let request = Request::builder().method(verb.to_uppercase().as_str()).uri(path);
            let answer = app.send(request.body(Body::empty()).unwrap()).await;
            let asked = answer.status == 401;
            assert_eq!(operation.get("security").is_some(), asked, "{verb} {path}");
        }
    }
}
