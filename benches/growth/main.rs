//! How cost grows: with pairs a request, words a text, candidates, bytes of a request of `/rank`, words
//! of the vocabulary, cores.
//!
//! `cargo bench --bench growth` measures all of it and records it; a word after `--` measures the panels
//! whose names hold it and keeps the others as they were recorded. `--draw` measures nothing and draws
//! what was recorded to `benches/growth.svg`.

mod bodies;
mod chart;
mod cores;
#[allow(dead_code)]
#[path = "../speed/ground.rs"]
mod ground;
mod grown;
mod panels;
mod requests;
#[path = "../support/mod.rs"]
mod support;
mod vocabulary;

use std::path::Path;

use cognate::methods::Method;
use cognate::model::format::Dtype;
use panels::{Chart, Panel};

/// Rounds of every contest.
const ROUNDS: usize = 9;
/// A vector method, whose cost grows with the words, and a set method, whose cost grows with their product.
const METHODS: [Method; 2] = [Method::AvgCos, Method::DynamaxJaccard];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let only = words.iter().find(|word| !word.starts_with('-'));
    let mut chart = recorded();
    if words.iter().any(|word| word == "--draw") {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/growth.svg");
        std::fs::write(path, chart::svg(&chart)).expect("the folder of the benches is writable");
        println!("drawn to benches/growth.svg");
        return;
    }
    measure(&mut chart, only.map(String::as_str));
    let record = serde_json::to_value(&chart).expect("numbers and words have a JSON form");
    support::record("growth", &record);
}

fn recorded() -> Chart {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench/growth.json");
    let text = std::fs::read_to_string(path).ok();
    text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default()
}

fn measure(chart: &mut Chart, only: Option<&str>) {
    let wanted = |name: &str| only.is_none_or(|only| name.contains(only));
    let before = std::mem::take(&mut chart.panels);
    let folder = tempfile::tempdir().expect("room for models");
    let vectors = ground::vectors();
    let pairs = ground::pairs();
    let engine = vectors.engine(folder.path(), Dtype::F32);
    let contests: [(&str, &dyn Fn() -> Vec<Panel>); 6] = [
        ("pairs", &|| requests::by_pairs(&engine, &pairs)),
        ("words", &|| vec![requests::by_words(&engine, &pairs)]),
        ("candidates", &|| vec![requests::by_candidates(&engine, &pairs)]),
        ("bytes", &|| vec![bodies::panel(vectors.engine(folder.path(), Dtype::F32), &pairs)]),
        ("vocabulary", &|| vec![vocabulary::panel(&vectors, folder.path())]),
        ("cores", &|| vec![cores::panel(&engine, &pairs)]),
    ];
    for (_, contest) in contests.iter().filter(|(name, _)| wanted(name)) {
        for panel in contest() {
            panel.print();
            chart.panels.push(panel);
        }
    }
    let kept = |panel: &Panel| {
        let of = contests.iter().find(|(name, _)| panel.name.starts_with(name));
        of.is_some_and(|(name, _)| !wanted(name))
    };
    chart.panels.extend(before.into_iter().filter(kept));
    chart
        .panels
        .sort_by_key(|panel| contests.iter().position(|(name, _)| panel.name.starts_with(name)));
}
