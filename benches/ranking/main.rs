//! Rankers served beside the same network in candle: all posts of a batch at once, as training does,
//! and one pair at a time, as the paper's authors do.
//!
//! `cargo bench --features train-ranker --bench ranking [-- --model MODEL]`: MODEL is one that
//! `cognate train ranker` wrote; without it, a network of the paper's size with numbers of chance
//! stands on the default model, for what a post takes depends on sizes alone. Posts and queries are
//! those of TREC Microblog 2013. Everything runs on one thread, taking turns.

#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};

use candle_core::Device;
use cognate::engine::{Engine, Query};
use cognate::methods::ranker::{Encoder, Settings, Shape};
use cognate::methods::{Fitted, Method, ranker};
use cognate::model::writer::Draft;
use cognate::model::{Model, OpenOptions};
use cognate_files::rows::Rows;
use cognate_files::topics;
use cognate_kernels::random::Random;
use cognate_train::ranker::data::{Batch, Reader, Texts};
use cognate_train::ranker::trainer::State;
use support::Contestant;

/// What says how many threads candle takes.
const THREADS: &str = "RAYON_NUM_THREADS";
/// Queries of which the posts are ranked.
const QUERIES: usize = 3;
/// Posts of each.
const POSTS: usize = 500;
/// Posts that go through candle at once: a step of training.
const BATCH: usize = 256;
/// Rounds that are timed.
const ROUNDS: usize = 5;

fn main() {
    if std::env::args().any(|arg| arg == "--list") {
        return;
    }
    let Some(data) = support::shared_data() else {
        println!("the shared data is not there");
        return;
    };
    // Candle gets one thread, as this program has; it reads the variable only once.
    if std::env::var_os(THREADS).is_none() {
        let mut again = std::process::Command::new(std::env::current_exe().expect("this program"));
        let done = again.args(std::env::args_os().skip(1)).env(THREADS, "1").status();
        std::process::exit(i32::from(!done.is_ok_and(|status| status.success())));
    }
    let folder = tempfile::tempdir().expect("a folder");
    let rows = Rows::open(&data.join("ranking/microblog-2013.tsv.gz"));
    let topics = topics::read(&mut rows.expect("posts"), &[], |text, _| Ok(text)).expect("posts");
    for (name, encoder) in
        [("bicnn", Encoder::Bicnn), ("qatt", Encoder::Qatt), ("patt", Encoder::Patt)]
    {
        let path = match given() {
            Some(path) => path,
            None => of_chance(encoder, folder.path()),
        };
        let open = || Model::open(&path, &OpenOptions::default()).expect("a model");
        let engine = Engine::new(open()).expect("an engine");
        let method = Method::named(name).expect("a method");
        if engine.unavailable(method).is_some() {
            continue;
        }
        contest(name, &engine, &open(), &topics[..QUERIES], method);
    }
}

fn given() -> Option<PathBuf> {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--model");
    arguments.nth(1).map(PathBuf::from)
}

/// The sizes of the paper, and numbers of chance.
fn state(shape: Shape, rows: Vec<f32>) -> State {
    State::new(shape, rows, Device::Cpu, &mut Random::seeded(1)).expect("a network")
}

fn shape(encoder: Encoder, dims: usize) -> Shape {
    Shape { encoder, dims, kernel: 2, filters: 250, hidden: 200, joint: 100 }
}

fn of_chance(encoder: Encoder, folder: &Path) -> PathBuf {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/models/default.safetensors");
    let model = Model::open(Path::new(default), &OpenOptions::default()).expect("the default");
    let shape = shape(encoder, model.dims());
    let network = state(shape, vec![0.0; shape.dims]).network.stored().expect("numbers");
    let Shape { kernel, filters, hidden, joint, .. } = shape;
    let settings = Settings { encoder, kernel, filters, hidden, joint, alpha: 0.0, trained: None };
    let settings = serde_json::to_string(&settings).expect("settings");
    let section =
        Fitted { section: ranker::SECTION, settings, tensors: network, bytes: Vec::new() };
    let mut draft = Draft::from_model(&model);
    section.put_into(&mut draft);
    let path = folder.join("ranker.safetensors");
    draft.write(&path).expect("a file");
    path
}

fn contest(name: &str, engine: &Engine, model: &Model, topics: &[topics::Topic], method: Method) {
    let mut texts = Texts::default();
    let mut reader = Reader::new(model, &[], 1);
    let examples: Vec<_> = topics
        .iter()
        .map(|topic| {
            let mut examples = reader.topic(topic, &mut texts);
            examples.truncate(POSTS);
            examples
        })
        .collect();
    let dims = model.dims();
    let mut rows = vec![0.0; dims];
    for &id in &reader.words.ids {
        let mut row = vec![0.0; dims];
        if let Some(stored) = model.vectors().row(id) {
            stored.copy_to(&mut row);
        }
        rows.extend(row);
    }
    let settings = ranker::settings(model).expect("settings").expect("a ranker");
    let mut state = state(settings.shape(dims), rows);
    let posts: u64 = examples.iter().map(|of| of.len() as u64).sum();
    let query = Query::new(method);
    let served = || {
        let ranked = topics.iter().map(|topic| {
            let most = POSTS.min(topic.texts.len());
            engine.rank(&topic.query, &topic.texts[..most], &query).expect("they rank")
        });
        ranked.map(|ranking| ranking.results.len() as u64).sum()
    };
    let state = std::cell::RefCell::new(&mut state);
    let by_candle = |size: usize| {
        let mut scores = 0;
        for chunk in examples.iter().flat_map(|of| of.chunks(size)) {
            let batch = Batch::new(&texts, chunk);
            scores += state.borrow_mut().scores(&batch).expect("scores").len() as u64;
        }
        scores
    };
    let mut contestants: Vec<Contestant<'_>> = vec![
        ("served", Box::new(served)),
        ("candle, batches", Box::new(|| by_candle(BATCH))),
        ("candle, one pair at a time", Box::new(|| by_candle(1))),
    ];
    // On the wall, because candle works on a thread of its own.
    let seconds = support::interleaved(&mut contestants, ROUNDS);
    println!("{name}, {dims} dimensions, {posts} posts of {QUERIES} queries, one thread");
    for ((contestant, _), taken) in contestants.iter().zip(&seconds) {
        let micros = taken * 1e6 / posts as f64;
        let times = taken / seconds[0];
        println!(
            "  {contestant:28} {micros:9.2} us a post {:10.0} posts/s {times:8.1} x",
            1e6 / micros
        );
    }
}
