//! The server's side, a process of its own: a bare HTTP server, the service with one more route that
//! computes nothing, and the same scores without HTTP. It tells what it has taken when asked.

use std::io;
use std::io::BufRead;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use axum::routing::post;
use cognate::engine::{Engine, Query};
use cognate::methods::Method;
use cognate::model::OpenOptions;
use cognate_server::http::error::ApiError;
use cognate_server::http::net::shutdown::ShutdownTrigger;
use cognate_server::http::request::body;
use cognate_server::http::{App, ConnectionMetrics, Listener, Models, Settings};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rustix::time::ClockId;
use tokio::net::TcpListener;

use crate::texts::Texts;

/// The argument that makes a process the server.
pub const FLAG: &str = "--be-the-server";
/// The route that reads its body and answers always the same. It stands in the place of one that
/// operators have on an address of their own, so that it is counted as the other routes are.
pub const NULL: &str = "/-/reload";
/// Different questions asked in turn.
pub const QUESTIONS: usize = 128;
/// Where made-up texts come from, where there are no real ones.
pub const SEED: u64 = 1;

/// What is answered where nothing is computed; as long as the answer to one pair.
const ANSWER: &[u8] = br#"{"model":"default","method":"avg-cos","measure":"cosine","fingerprint":"0123456789abcdef","scores":[0.12345678],"unscored":[]}"#;

/// The engine over the default model.
pub fn engine() -> anyhow::Result<Engine> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    Ok(Engine::open(&path, &OpenOptions::default())?)
}

/// Serves until its standard input ends; `allocated` says how often memory was asked for, and how
/// much of it.
pub fn run(allocated: fn() -> (usize, usize)) -> anyhow::Result<()> {
    // Lines are made as in the service; where they go costs another process.
    tracing_subscriber::fmt()
        .json()
        .with_max_level(tracing::Level::INFO)
        .with_writer(io::sink)
        .init();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let bare = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let bare_address = bare.local_addr()?;
    runtime.spawn(serve_bare(bare));
    let (_orders, service_address) = serve_service(&runtime)?;
    println!("{bare_address} {service_address}");
    let engine = engine()?;
    let texts = Texts::load(engine.model(), SEED);
    for order in io::stdin().lock().lines() {
        let order = order?;
        let mut words = order.split(' ');
        let since = match words.next() {
            Some("compute") => {
                let method = words.next().and_then(Method::named).context("a method")?;
                let mut number = || words.next().and_then(|word| word.parse().ok());
                let pairs: usize = number().context("a number of pairs")?;
                let rounds: usize = number().context("a number of rounds")?;
                let questions: Vec<_> = (0..QUESTIONS).map(|turn| texts.run(turn, pairs)).collect();
                let before = (nanos(), allocated());
                let query = Query::new(method);
                for question in questions.iter().cycle().take(rounds) {
                    std::hint::black_box(engine.similarity(question, &query)?);
                }
                before
            }
            _ => (0, (0, 0)),
        };
        let (calls, bytes) = allocated();
        println!("{} {} {}", nanos() - since.0, calls - since.1.0, bytes - since.1.1);
    }
    Ok(())
}

/// Processor time of this process, all its threads together.
fn nanos() -> i64 {
    let taken = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    taken.tv_sec * 1_000_000_000 + taken.tv_nsec
}

async fn serve_bare(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let answer = service_fn(async |request: hyper::Request<Incoming>| {
            request.into_body().collect().await?;
            let mut response = Response::new(Full::new(Bytes::from_static(ANSWER)));
            let media = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, media);
            Ok::<_, hyper::Error>(response)
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

fn serve_service(
    runtime: &tokio::runtime::Runtime,
) -> anyhow::Result<(ShutdownTrigger, SocketAddr)> {
    let listen = ([127, 0, 0, 1], 0).into();
    let settings = Settings { listen, admin_listen: Some(listen), ..Settings::default() };
    // Connections are kept for as long as the bench takes.
    let settings = Settings { requests_per_connection: u64::MAX, ..settings };
    let app = App::with_models(settings, Models::with_engine("default", engine()?))?;
    let metrics = ConnectionMetrics {
        open: app.metrics.connections.clone(),
        refused: app.metrics.connections_refused.clone(),
        ended: app.early_ends.clone(),
    };
    let (orders, stop) = ShutdownTrigger::new();
    let _inside = runtime.enter();
    let listener = Listener::bind(app.settings.listen, &app.settings, metrics)?;
    let address = listener.local_addr();
    let router = app.router_with(Router::new().route(NULL, post(null)));
    runtime.spawn(listener.serve(router, stop));
    Ok((orders, address))
}

/// What every question does before and after it computes.
async fn null(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let _permit = app.admission.admit()?;
    body::check_json(request.headers())?;
    let announced = body::announced(request.headers(), &app.settings)?;
    body::read(request, announced, &app.settings, |_| Ok(())).await?;
    let mut response = Response::new(Body::from(ANSWER));
    let media = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    Ok(response)
}
