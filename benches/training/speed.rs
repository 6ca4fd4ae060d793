//! Words a second on one thread: Siamese CBOW as it is and as one would write it first; skip-gram
//! and CBOW. `benches/peers/training.sh` times gensim on the same text.

use std::path::Path;
use std::time::Instant;

use cognate::text::Normalisation;
use cognate_train::vectors;
use cognate_train::vectors::Objective;
use cognate_train::vectors::corpus::Corpus;
use cognate_train::vectors::siamese::Others;
use serde_json::{Value, json};

use crate::{naive, runs, support};

const DIMS: usize = 300;
const TEXT: [&str; 1] = ["wiki-train-1"];
const ROUNDS: usize = 3;

/// Takes turns, so that a slow moment of the machine falls on all alike.
pub fn measure(data: &Path) -> Value {
    let files: Vec<_> = TEXT.iter().map(|name| data.join(format!("text/{name}.txt.gz"))).collect();
    let rules = Normalisation::preset("plain").expect("it is a preset");
    let corpus = Corpus::read(&files, &rules, 5).expect("the shared text can be read");
    let names = ["naive", "siamese-cbow", "siamese-cbow, adagrad", "cbow", "skip-gram"];
    let mut rates = vec![Vec::new(); names.len()];
    for _ in 0..ROUNDS {
        rates[0].push(naively(&corpus));
        for (at, (objective, adagrad)) in [
            (Objective::SiameseCbow, false),
            (Objective::SiameseCbow, true),
            (Objective::Cbow, false),
            (Objective::SkipGram, false),
        ]
        .into_iter()
        .enumerate()
        {
            let output = runs::scratch().join("speed.safetensors");
            let mut options = runs::options(data, &TEXT, objective, &output);
            // As the naive one has them.
            options.others = Others::Text;
            (options.schedule.epochs, options.schedule.threads) = (1, 1);
            options.schedule.adagrad = adagrad;
            let trained = vectors::train(&options).expect("the text can be learned from");
            rates[at + 1].push(trained.words_per_second);
        }
    }
    let medians: Vec<f64> = rates.into_iter().map(support::median).collect();
    for (name, rate) in names.iter().zip(&medians) {
        let ratio = rate / medians[0];
        println!("{name:<24} {:6.2} million words/s, {ratio:.1} × the naive one", rate / 1e6);
    }
    json!({"dims": DIMS, "words_per_second": names.iter().zip(medians).collect::<Vec<_>>()})
}

fn naively(corpus: &Corpus) -> f64 {
    let mut rows: Vec<f32> = (0..corpus.words.len() * DIMS)
        .map(|at| ((at * 7919 % 2003) as f32 - 1001.0) / 60_000.0)
        .collect();
    let begun = Instant::now();
    std::hint::black_box(naive::epoch(corpus, &mut rows, DIMS, 0.01));
    corpus.len() as f64 / begun.elapsed().as_secs_f64()
}
