//! Where an answer should be computed: on the thread that read the request, or on the pool. Below the
//! crossing the hand-over costs more than it gives; above it, a second core pays.
//!
//! `cargo bench --bench handover` prints both for questions of growing length, on the default model,
//! and where `cognate::http::compute::INLINE_NANOS` lies between them.

mod support;

use std::path::Path;
use std::time::{Duration, Instant};

use cognate::engine::{Engine, Query};
use cognate::http::compute::{Compute, INLINE_NANOS, Work};
use cognate::http::metrics::Metrics;
use cognate::http::openapi::routes;
use cognate::methods::Method;
use support::Contestant;

/// A part of a long question, as the service cuts it.
const PART: usize = 128;

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    let engine: &'static Engine =
        Box::leak(Box::new(Engine::open(&path, &Default::default()).expect("the model opens")));
    let lines = support::running_text();
    let short = |line: &String| line.split_whitespace().take(12).collect::<Vec<_>>().join(" ");
    let texts: Vec<String> = lines.iter().take(8192).map(short).collect();
    let pairs: Vec<(&str, &str)> =
        texts.chunks_exact(2).map(|two| (two[0].as_str(), two[1].as_str())).collect();
    let pairs: &'static [(&str, &str)] = Box::leak(
        pairs.iter().map(|&(a, b)| (&*a.to_owned().leak(), &*b.to_owned().leak())).collect(),
    );
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let compute = Compute::new(threads, 64).expect("threads start");
    let metrics = Metrics::new(&routes()).expect("the series are well named");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("it starts");
    let mut rows = Vec::new();
    println!("{threads} threads; inline up to an estimate of {} us", INLINE_NANOS / 1000);
    println!(
        "{:>16} {:>6} {:>11} {:>11} {:>7}",
        "method", "pairs", "inline us", "pool us", "ratio"
    );
    for method in [Method::AvgCos, Method::DynamaxJaccard, Method::Blend] {
        for length in [1, 4, 16, 64, 256, 1024, 4000] {
            let (query, repeats) = (Query::new(method), 4096 / length);
            let deadline = || Instant::now() + Duration::from_secs(60);
            let score = move |work: &Work| {
                let part = |range: std::ops::Range<usize>| engine.similarity(&pairs[range], &query);
                work.in_parts(length, PART, part).map(|scores| scores.scores.len() as u64)
            };
            let inline =
                || (0..repeats).map(|_| score(&Work::inline(deadline())).expect("scored")).sum();
            let pooled = || {
                runtime.block_on(async {
                    let mut sum = 0;
                    for _ in 0..repeats {
                        let done = compute.run(deadline(), &metrics, score).await;
                        sum += done.expect("there is room").expect("scored");
                    }
                    sum
                })
            };
            let mut contestants: [Contestant<'_>; 2] =
                [("inline", Box::new(inline)), ("pool", Box::new(pooled))];
            let times = support::interleaved(&mut contestants, 9);
            let [inline, pool] = [0, 1].map(|place| times[place] / repeats as f64 * 1e6);
            let ratio = pool / inline;
            println!("{:>16} {length:>6} {inline:>11.1} {pool:>11.1} {ratio:>7.2}", method.name());
            rows.push(serde_json::json!({
                "method": method.name(), "pairs": length, "inline_us": inline, "pool_us": pool,
            }));
        }
    }
    support::record("handover", &serde_json::json!({"threads": threads, "rows": rows}));
}
