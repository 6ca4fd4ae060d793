//! What the service holds in memory, and how soon it is ready: the built binary on the default model
//! and on models of hundreds of megabytes, mapped and checked by structure.
//!
//! `cargo bench --bench memory`. Promises are printed beside the figures as held or missed; none
//! ends the bench, because figures say as much of the machine as of the program.

#[allow(dead_code)]
#[path = "../speed/ground.rs"]
mod ground;
#[path = "../growth/grown.rs"]
mod grown;
mod server;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use cognate::Engine;
use cognate::model::format::Dtype;
use grown::grown;
use serde_json::{Value, json};
use server::{Resident, Server};

/// Starts a figure of readiness is the median of.
const STARTS: usize = 15;
/// Number of servers that run at the same time.
const SERVERS: usize = 20;
/// Requests before memory is read again.
const REQUESTS: usize = 1_000;
/// Dimensions of the large models.
const DIMS: usize = 300;
/// Words whose rows are 480 MB, and 1 GB.
const MAPPED_WORDS: usize = 400_000;
const LARGE_WORDS: usize = 830_000;

const STRUCTURE: &[&str] = &["--verify", "structure"];

fn main() {
    let folder = tempfile::tempdir().expect("room for models");
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    let real = ground::vectors();
    let pairs = ground::pairs();
    let mut figures = Vec::new();
    figures.push(default_model(&default, &pairs));
    figures.push(many_servers(&default, &pairs));
    figures.push(starts(&default, &pairs));
    let (mapped, words) = model(&real, MAPPED_WORDS, folder.path());
    figures.extend(mapped_model(&mapped, &words));
    let (large, words) = model(&real, LARGE_WORDS, folder.path());
    drop((real, words));
    figures.extend(readiness(&default, &large));
    support::record("memory", &json!({ "figures": figures }));
}

/// A model file of so many words, and the words.
fn model(real: &ground::Vectors, words: usize, folder: &Path) -> (PathBuf, Vec<String>) {
    let folder = folder.join(words.to_string());
    std::fs::create_dir_all(&folder).expect("room for models");
    let vectors = grown(real, words, DIMS);
    drop(vectors.engine(&folder, Dtype::F32));
    (folder.join(format!("{DIMS}-{}.safetensors", Dtype::F32.name())), vectors.words)
}

fn megabytes(path: &Path) -> f64 {
    std::fs::metadata(path).map_or(0.0, |found| found.len() as f64 / 1e6)
}

fn show(what: &str, resident: Resident) -> Value {
    let Resident { all, anonymous, file, .. } = resident;
    println!("  {what:<58} {all:7.1} MB, {anonymous:6.1} anonymous, {file:7.1} of files");
    json!({ "what": what, "resident_mb": all, "anonymous_mb": anonymous, "file_mb": file })
}

fn verdict(held: bool) -> &'static str {
    if held { "held" } else { "missed" }
}

fn question(pairs: &[(&str, &str)], method: &str) -> String {
    let pairs: Vec<[&str; 2]> = pairs.iter().map(|&(a, b)| [a, b]).collect();
    json!({ "method": method, "pairs": pairs }).to_string()
}

fn default_model(path: &Path, pairs: &[(String, String)]) -> Value {
    println!("\nthe default model, {:.1} MB, no settings", megabytes(path));
    let server = Server::start(path, &[]);
    let mut steps = vec![show("ready", server.resident())];
    for (turn, (a, b)) in pairs.iter().cycle().take(REQUESTS).enumerate() {
        let method = ["auto", "avg-cos", "dynamax-jaccard"][turn % 3];
        server.ask(&question(&[(a, b)], method));
    }
    let after = server.resident();
    steps.push(show(&format!("after {REQUESTS} requests of one pair"), after));
    println!("  at most 6 MB anonymous: {}", verdict(after.anonymous <= 6.0));
    json!({ "model": "default", "file_mb": megabytes(path), "steps": steps })
}

/// Measures the memory that each further server on a machine adds: servers share the model and the program.
fn many_servers(path: &Path, pairs: &[(String, String)]) -> Value {
    let question = question(&[(&pairs[0].0, &pairs[0].1)], "auto");
    let servers: Vec<Server> = (0..SERVERS).map(|_| Server::start(path, &[])).collect();
    servers.iter().for_each(|server| server.ask(&question));
    let private = servers.iter().map(|server| server.resident().private).sum::<f64>();
    println!("\n{SERVERS} servers, each asked once: {private:.1} MB private in all");
    println!("  at most 120 MB: {}", verdict(private <= 120.0));
    json!({ "servers": SERVERS, "private_mb": private })
}

/// What stands between a process, or a program that takes the library, and its first score.
fn starts(path: &Path, pairs: &[(String, String)]) -> Value {
    let question = question(&[(&pairs[0].0, &pairs[0].1)], "auto");
    let cold = || {
        let file = std::fs::File::open(path).expect("the model is there");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
            .expect("the page cache can be told to let go");
        Server::start(path, &[]).ready_after
    };
    let open = || {
        let begun = Instant::now();
        Engine::open(path, &Default::default()).expect("the model is sound");
        begun.elapsed()
    };
    let rows: [(&str, f64, &dyn Fn() -> Duration); 3] = [
        ("first answer", 25.0, &|| Server::first_answer_after(path, &question)),
        ("ready, the model not in the page cache", 30.0, &cold),
        ("Engine::open", 3.0, &open),
    ];
    println!("\nfrom the start, medians of {STARTS}");
    let figures = rows.map(|(what, aim, take)| {
        let taken = (0..STARTS).map(|_| take().as_secs_f64() * 1e3);
        let median = support::median(taken.collect());
        println!("  {what:<40} {median:6.1} ms, at most {aim} ms: {}", verdict(median <= aim));
        json!({ "what": what, "ms": median })
    });
    json!({ "starts": figures })
}

/// What is resident of a mapped model, step by step as more of it is touched: once read afresh from
/// the disk, once while all of it lies in the page cache.
fn mapped_model(path: &Path, words: &[String]) -> Vec<Value> {
    let size = megabytes(path);
    println!("\n{MAPPED_WORDS} words of {DIMS} dimensions, {size:.0} MB, mapped, by structure");
    let mut figures = Vec::new();
    for (what, cached) in [("read afresh from the disk", false), ("in the page cache", true)] {
        println!("  {what}");
        let file = std::fs::File::open(path).expect("the model was just written");
        if cached {
            std::io::copy(&mut &file, &mut std::io::sink()).expect("the model can be read");
        } else {
            rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
                .expect("the page cache can be told to let go");
        }
        let steps = touched(path, words);
        figures.push(json!({ "model": "mapped", "how": what, "file_mb": size, "steps": steps }));
    }
    figures
}

/// Words are asked for that lie evenly over the file: the most that so many words can touch.
fn touched(path: &Path, words: &[String]) -> Vec<Value> {
    let server = Server::start(path, STRUCTURE);
    let ready = server.resident();
    let mut steps = vec![show("ready", ready)];
    let repeated: Vec<(&str, &str)> = vec![(words[0].as_str(), words[1].as_str()); 10];
    for _ in 0..REQUESTS {
        server.ask(&question(&repeated, "avg-cos"));
    }
    steps.push(show(&format!("after {REQUESTS} requests of two words"), server.resident()));
    let plain = |word: &&String| word.bytes().all(|byte| byte.is_ascii_lowercase());
    for touched in [10, 100, 1_000, 10_000] {
        let before = server.resident();
        let spread = |n: usize| {
            // Beside those of the step before.
            let from = (2 * n + 1) * words.len() / touched / 2;
            words[from..].iter().find(plain).map_or("", String::as_str)
        };
        let chosen: Vec<&str> = (0..touched).map(spread).collect();
        let texts: Vec<String> = chosen.chunks(5).map(|words| words.join(" ")).collect();
        let pairs: Vec<(&str, &str)> =
            texts.as_chunks::<2>().0.iter().map(|[a, b]| (a.as_str(), b.as_str())).collect();
        for asked in pairs.chunks(100) {
            server.ask(&question(asked, "avg-cos"));
        }
        let now = server.resident();
        steps.push(show(&format!("after {touched} more words from all over the file"), now));
        println!("    {:.0} kB a word", (now.file - before.file) / touched as f64 * 1e3);
    }
    steps
}

/// Milliseconds from the start of the process to the first 200 of `/ready`.
fn readiness(default: &Path, large: &Path) -> Vec<Value> {
    let contestants: [(&str, &Path, &[&str], Option<f64>); 4] = [
        ("default model, every byte verified", default, &[], Some(30.0)),
        ("default model, by structure", default, STRUCTURE, None),
        ("large model, by structure", large, STRUCTURE, Some(50.0)),
        ("no model at all: refused", Path::new("/nonexistent"), &[], None),
    ];
    println!("\nfrom the start of the process to 200 from /ready, medians of {STARTS} starts");
    let mut taken = vec![Vec::new(); contestants.len()];
    for round in 0..=STARTS {
        for (place, (_, path, flags, _)) in contestants.iter().enumerate() {
            let seconds = if path.exists() {
                Server::start(path, flags).ready_after
            } else {
                server::refused_after(path)
            };
            // The first round fills the page cache.
            if round > 0 {
                taken[place].push(seconds.as_secs_f64() * 1e3);
            }
        }
    }
    let mut rows = Vec::new();
    for ((what, path, _, aim), taken) in contestants.iter().zip(taken) {
        let (least, most) = taken
            .iter()
            .fold((f64::INFINITY, 0.0_f64), |(least, most), &ms| (least.min(ms), most.max(ms)));
        let median = support::median(taken);
        let aim = aim.map(|aim| format!(", at most {aim} ms: {}", verdict(median <= aim)));
        let size = megabytes(path);
        println!(
            "  {what:<44} {size:7.1} MB {median:7.1} ms ({least:.1} to {most:.1}){}",
            aim.unwrap_or_default()
        );
        rows.push(json!({
            "what": what, "file_mb": size, "ms": median, "least_ms": least, "most_ms": most,
        }));
    }
    vec![json!({ "ready": rows })]
}
