//! Growth of a request of `/rank` with the bytes of its body, up to what the default limits take.

use axum::Router;
use axum::body::Body;
use axum::http::{Request, StatusCode};
use cognate::engine::Engine;
use cognate::methods::Method;
use cognate_server::http::{App, Models, Settings};
use http_body_util::BodyExt;
use tower::ServiceExt;

use crate::panels::Panel;
use crate::support::{Clock, Contestant};
use crate::{METHODS, ROUNDS, support};

/// Bytes of a body, roughly: it ends with the candidate that reaches them. Beyond the last there
/// would be more candidates than a server takes that is started without settings.
const BYTES: [usize; 9] =
    [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 5_000_000];
/// Bytes of a candidate, so that the largest body has nearly as many tokens as a server takes.
const CANDIDATE: usize = 520;
/// Bytes of bodies that a turn sends of small ones, so that it is long enough to be timed.
const BYTES_A_TURN: usize = 300_000;

/// Time a request, by the bytes of its body.
pub fn panel(engine: Engine, pairs: &[(String, String)]) -> Panel {
    let settings =
        Settings { compute_threads: Some(1), compute_deadline_ms: 600_000, ..Settings::default() };
    let app =
        App::with_models(settings, Models::with_engine("default", engine)).expect("a service");
    // A server builds it once.
    let router = app.router();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let texts = candidates(pairs);
    let title = "Bytes a request of /rank";
    let mut panel = Panel::new("bytes", title, "bytes of the body", "µs a request");
    for method in METHODS {
        let bodies: Vec<String> =
            BYTES.iter().map(|&bytes| body(&pairs[0].0, &texts, method, bytes)).collect();
        let times = |body: &String| (BYTES_A_TURN / body.len()).max(1);
        let (router, runtime) = (&router, &runtime);
        let mut contestants: Vec<Contestant<'_>> = Vec::new();
        for body in &bodies {
            let turn = move || (0..times(body)).map(|_| runtime.block_on(ask(router, body))).sum();
            contestants.push(("", Box::new(turn)));
        }
        let taken = support::interleaved_by(Clock::Process, &mut contestants, ROUNDS);
        drop(contestants);
        let point =
            |(body, taken): (&String, f64)| (body.len() as f64, taken * 1e6 / times(body) as f64);
        panel = panel.line(method.name(), bodies.iter().zip(taken).map(point).collect());
    }
    panel
}

/// Texts of as many bytes, made of sentences.
fn candidates(pairs: &[(String, String)]) -> Vec<String> {
    let mut texts = vec![String::new()];
    for sentence in pairs.iter().flat_map(|(a, b)| [a, b]).cycle() {
        if texts.last().is_some_and(|text| text.len() >= CANDIDATE) {
            if texts.len() * CANDIDATE > BYTES[BYTES.len() - 1] {
                break;
            }
            texts.push(String::new());
        }
        let text = texts.last_mut().expect("there is one");
        text.push_str(sentence);
        text.push(' ');
        while text.len() > CANDIDATE {
            text.pop();
        }
    }
    texts
}

/// A question whose body has so many bytes, or a candidate's more.
fn body(query: &str, texts: &[String], method: Method, bytes: usize) -> String {
    let mut length = 0;
    let wanted: Vec<&String> = texts
        .iter()
        .take_while(|text| {
            let wanted = length < bytes;
            length += text.len() + 3;
            wanted
        })
        .collect();
    let body = serde_json::json!({
        "query": query, "candidates": wanted, "method": method.name(), "top_k": 10,
    });
    body.to_string()
}

/// Asks the router and gives back the bytes of the answer.
async fn ask(router: &Router, body: &str) -> u64 {
    let request = Request::post("/rank").header("content-type", "application/json");
    let request = request.body(Body::from(body.to_owned())).expect("a request");
    let response = router.clone().oneshot(request).await.expect("an answer");
    let status = response.status();
    let answer = response.into_body().collect().await.expect("a body").to_bytes();
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&answer));
    answer.len() as u64
}
