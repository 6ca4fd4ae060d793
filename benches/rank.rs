//! What a candidate of `/rank` takes beside the same list ranked in one call of the library: parsing,
//! planning and writing, and whatever is lost where a long list is cut into parts.
//!
//! `cargo bench --bench rank [-- METHOD…]` ranks a thousand short texts for each of three queries on
//! the default model, on one thread. Trained rankers stand on it with numbers of chance, for what a
//! post takes depends on sizes alone. Requests go to the router itself, without sockets; figures are
//! processor time of the whole process.

mod support;

use std::path::Path;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use cognate::engine::{Engine, Query};
use cognate::methods::ranker::{self, Encoder, Shape};
use cognate::methods::{Fitted, Method};
use cognate::model::writer::Draft;
use cognate::model::{Model, OpenOptions};
use cognate_kernels::random::SplitMix64;
use cognate_server::http::{App, Models, Settings};
use http_body_util::BodyExt;
use support::{Clock, Contestant};
use tower::ServiceExt;

/// Methods that prepare much for a query, and one that prepares nothing.
const METHODS: [&str; 13] = [
    "jaccard",
    "avg-cos",
    "dynamax-jaccard",
    "dynamax-weighted",
    "blend",
    "coverage",
    "coverage-blend",
    "wmd",
    "bm25",
    "ql",
    "bicnn",
    "qatt",
    "patt",
];
const QUERIES: usize = 3;
const CANDIDATES: usize = 1000;
/// Words of a text.
const WORDS: usize = 10;
const ROUNDS: usize = 7;

fn main() {
    if std::env::args().any(|arg| arg == "--list") {
        return;
    }
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let lines = support::running_text();
    let short = |line: &String| line.split_whitespace().take(WORDS).collect::<Vec<_>>().join(" ");
    let texts: Vec<String> = lines.iter().step_by(7).map(short).collect();
    let (queries, candidates) = texts.split_at(QUERIES);
    let candidates = &candidates[..CANDIDATES];
    println!("{QUERIES} queries, {CANDIDATES} candidates of {WORDS} words, us a candidate");
    println!("{:>16} {:>10} {:>10} {:>8}", "method", "one call", "/rank", "ratio");
    let folder = tempfile::tempdir().expect("a folder");
    let mut rows = Vec::new();
    for name in METHODS.iter().filter(|name| wanted.is_empty() || wanted.iter().any(|w| w == *name))
    {
        let (direct, served) = measure(name, folder.path(), queries, candidates);
        println!("{name:>16} {direct:>10.3} {served:>10.3} {:>8.2}", served / direct);
        rows.push(serde_json::json!({"method": name, "one_call_us": direct, "rank_us": served}));
    }
    support::record("rank", &serde_json::json!({"rows": rows}));
}

/// Microseconds a candidate in one call of the library, and over `/rank`.
fn measure(name: &str, folder: &Path, queries: &[String], candidates: &[String]) -> (f64, f64) {
    let open = || Engine::new(model(name, folder)).expect("an engine");
    let engine = open();
    let query = Query::new(Method::named(name).expect("a method"));
    let settings =
        Settings { compute_threads: Some(1), compute_deadline_ms: 60_000, ..Settings::default() };
    let app =
        App::with_models(settings, Models::with_engine("default", open())).expect("a service");
    // A server builds it once; it takes a millisecond.
    let router = app.router();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let bodies: Vec<String> = queries
        .iter()
        .map(|text| {
            serde_json::json!({"query": text, "candidates": candidates, "method": name}).to_string()
        })
        .collect();
    let direct = || {
        let ranked = queries.iter().map(|text| engine.rank(text, candidates, &query));
        ranked.map(|ranking| ranking.expect("they rank").results.len() as u64).sum()
    };
    let served = || bodies.iter().map(|body| runtime.block_on(ask(&router, body))).sum();
    let mut contestants: Vec<Contestant<'_>> =
        vec![("one call", Box::new(direct)), ("/rank", Box::new(served))];
    let seconds = support::interleaved_by(Clock::Process, &mut contestants, ROUNDS);
    let each = |seconds: f64| seconds * 1e6 / (queries.len() * candidates.len()) as f64;
    (each(seconds[0]), each(seconds[1]))
}

/// Asks the router and gives back the bytes of the answer.
async fn ask(router: &Router, body: &str) -> u64 {
    let request = Request::post("/rank").header("content-type", "application/json");
    let request = request.body(Body::from(body.to_owned())).expect("a request");
    let response = router.clone().oneshot(request).await.expect("an answer");
    assert_eq!(response.status(), StatusCode::OK);
    response.into_body().collect().await.expect("a body").to_bytes().len() as u64
}

/// The default model, with a network where the method needs one.
fn model(name: &str, folder: &Path) -> Model {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors");
    let model = Model::open(Path::new(default), &OpenOptions::default()).expect("the default");
    let encoder = match name {
        "bicnn" => Encoder::Bicnn,
        "qatt" => Encoder::Qatt,
        "patt" => Encoder::Patt,
        _ => return model,
    };
    let dims = model.dims();
    let settings = ranker::Settings {
        encoder,
        kernel: 2,
        filters: 250,
        hidden: 200,
        joint: 100,
        alpha: 0.0,
        trained: None,
    };
    let shape: Shape = settings.shape(dims);
    let mut random = SplitMix64::seeded(1);
    let tensors = shape.tensors().into_iter().map(|(name, sides)| {
        let length = sides.iter().product();
        let numbers = (0..length).map(|_| (random.unit() * 0.1 - 0.05) as f32).collect();
        (name, sides, numbers)
    });
    let section = Fitted {
        section: ranker::SECTION,
        settings: serde_json::to_string(&settings).expect("settings"),
        tensors: tensors.collect(),
        bytes: Vec::new(),
    };
    let mut draft = Draft::from_model(&model);
    section.put_into(&mut draft);
    let path = folder.join(format!("{name}.safetensors"));
    draft.write(&path).expect("a file");
    Model::open(&path, &OpenOptions::default()).expect("a model")
}
