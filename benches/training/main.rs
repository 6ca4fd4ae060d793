//! What training is worth: Siamese CBOW beside word2vec's two models on one text, its own analyses,
//! and its speed beside the method done naively.
//!
//! `cargo bench --bench training` runs every part on the shared text and draws
//! `target/bench/training.html`; words after `--` name the parts to run (`sets`, `subjects`,
//! `analyses`, `speed`), the others keep what was recorded. Scores are Pearson and Spearman × 100 of
//! `avg-cos` on the shared STS sets.

mod analyses;
mod naive;
mod report;
mod runs;
mod sets;
mod speed;
mod subjects;
#[path = "../support/mod.rs"]
mod support;

use std::path::Path;

use serde_json::{Map, Value};

/// A part: its name, and what measures it on the shared data.
type Part = (&'static str, fn(&Path) -> Value);

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let Some(data) = support::shared_data() else {
        println!("the shared data is not here: nothing to train on");
        return;
    };
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench/training.json");
    let mut parts: Map<String, Value> = std::fs::read_to_string(record)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let all: [Part; 4] = [
        ("sets", sets::measure),
        ("subjects", subjects::measure),
        ("analyses", analyses::measure),
        ("speed", speed::measure),
    ];
    for (name, measure) in all {
        if wanted.is_empty() || wanted.iter().any(|word| word == name) {
            println!("== {name}");
            parts.insert(name.to_owned(), measure(&data));
            // What was measured stays measured, whatever becomes of the next part.
            support::record("training", &Value::Object(parts.clone()));
        }
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench/training.html");
    std::fs::write(page, report::html(&parts)).expect("target is writable");
    println!("drawn to target/bench/training.html");
}
