//! Where an answer should be computed: on the thread that read the request, or on the pool. Below the
//! crossing the hand-over costs more than it gives; above it, a second core pays.
//!
//! `cargo bench --bench handover` prints both for questions of growing length, on the default model,
//! beside what `cognate_server::http::request::query::estimate` takes them for: where its constants and
//! `cognate_server::http::work::pool::INLINE_NANOS` come from. Wall time includes waiting for the pool's
//! threads; processor time does not, and is the figure to go by on a shared machine.
//!
//! `cargo bench --bench handover -- costs [METHOD…]` weighs every method over texts of every length
//! instead, where the numbers in their `INFO.cost` come from.

mod costs;
#[path = "../support/mod.rs"]
mod support;

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};

use cognate::engine::{Engine, Query};
use cognate::methods::Method;
use cognate_server::http::Models;
use cognate_server::http::auth::client::Client;
use cognate_server::http::observe::metrics::Metrics;
use cognate_server::http::request::query::{Resolved, estimate};
use cognate_server::http::work::pool::{INLINE_NANOS, JobContext, Pool};
use rustix::time::{ClockId, clock_gettime};

/// A part of a long question, as the service cuts it.
const PART: usize = 128;
/// Rounds after the first, which warms up.
const ROUNDS: usize = 9;

fn main() {
    let words: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    if words.first().is_some_and(|word| word == "costs") {
        let rows = costs::table(&path, &words[1..]);
        return support::record("costs", &serde_json::json!({"rows": rows}));
    }
    let engine = Engine::open(&path, &Default::default()).expect("the model opens");
    let shelf: &'static Models = Box::leak(Box::new(Models::with_engine("default", engine)));
    let served = shelf.choose(None).expect("there is a model");
    let lines = support::running_text();
    let short = |line: &String| line.split_whitespace().take(12).collect::<Vec<_>>().join(" ");
    let texts: Vec<String> = lines.iter().take(8192).map(short).collect();
    let pairs: Vec<(&str, &str)> =
        texts.chunks_exact(2).map(|two| (two[0].as_str(), two[1].as_str())).collect();
    let pairs: &'static [(&str, &str)] = Box::leak(
        pairs.iter().map(|&(a, b)| (&*a.to_owned().leak(), &*b.to_owned().leak())).collect(),
    );
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let client = Client::default();
    let compute = Pool::new(threads, 64, 100).expect("threads start");
    let metrics = Metrics::new(&[], 0);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("it starts");
    let mut rows = Vec::new();
    println!("{threads} threads; inline up to an estimate of {} us", INLINE_NANOS / 1000);
    println!(
        "{:>16} {:>6} {:>9} {:>9} | {:>9} {:>9} | {:>9} {:>9}  us",
        "method", "pairs", "bytes", "estimate", "CPU here", "on pool", "wall here", "on pool"
    );
    for method in [Method::AvgCos, Method::DynamaxJaccard, Method::Blend] {
        let query = Query::new(method);
        let resolved = Resolved { model: served.clone(), query, fused: None };
        for length in [1, 4, 16, 64, 256, 1024, 4000] {
            let bytes: usize = pairs[..length].iter().map(|(a, b)| a.len() + b.len()).sum();
            let multiplications: u64 =
                pairs[..length].iter().map(|(a, b)| resolved.multiplications(a, b)).sum();
            let estimate = estimate(bytes, multiplications) as f64 / 1e3;
            let repeats = (4096 / length).min(512);
            let deadline = || Instant::now() + Duration::from_secs(60);
            let score = move |work: &JobContext| {
                let part = |range: Range<usize>| served.engine.similarity(&pairs[range], &query);
                work.in_parts(length, PART, part).map(|scores| scores.scores.len())
            };
            let here = || {
                (0..repeats)
                    .map(|_| {
                        score(&JobContext::inline(Instant::now(), deadline())).expect("scored")
                    })
                    .sum()
            };
            let on_pool = || {
                runtime.block_on(async {
                    let mut sum = 0;
                    for _ in 0..repeats {
                        let done = compute.run(&client, deadline(), &metrics, score).await;
                        sum += done.expect("there is room").expect("scored");
                    }
                    sum
                })
            };
            let mut times: [Vec<f64>; 4] = Default::default();
            for round in 0..=ROUNDS {
                let turns = [taken(&here), taken(&on_pool)];
                if round > 0 {
                    for (place, seconds) in turns.into_iter().flatten().enumerate() {
                        times[place].push(seconds / repeats as f64 * 1e6);
                    }
                }
            }
            let [cpu_here, wall_here, cpu_pool, wall_pool] = times.map(support::median);
            println!(
                "{:>16} {length:>6} {bytes:>9} {estimate:>9.1} | {cpu_here:>9.1} {cpu_pool:>9.1} \
                 | {wall_here:>9.1} {wall_pool:>9.1}",
                method.name()
            );
            rows.push(serde_json::json!({
                "method": method.name(), "pairs": length, "bytes": bytes,
                "multiplications": multiplications, "estimate_us": estimate,
                "cpu_us": {"here": cpu_here, "pool": cpu_pool},
                "wall_us": {"here": wall_here, "pool": wall_pool},
            }));
        }
    }
    support::record("handover", &serde_json::json!({"threads": threads, "rows": rows}));
}

/// Returns how many seconds of processor time (of all threads) and of wall time the work takes.
fn taken(work: &dyn Fn() -> usize) -> [f64; 2] {
    let cpu = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let (start, before) = (Instant::now(), cpu());
    std::hint::black_box(work());
    [cpu() - before, start.elapsed().as_secs_f64()]
}
