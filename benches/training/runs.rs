//! Training runs of a few lines: which text, which objective, what is different from the defaults.

use std::path::{Path, PathBuf};
use std::time::Duration;

use cognate::engine::Engine;
use cognate::model::OpenOptions;
use cognate::text::Normalisation;
use cognate_eval::{Choice, StsOptions, View, eval_sts};
use cognate_stats::bootstrap::Bootstrap;
use cognate_train::run::RunFiles;
use cognate_train::vectors::siamese::Others;
use cognate_train::vectors::trainer::Schedule;
use cognate_train::vectors::{Objective, Trained, VectorsOptions};
use cognate_train::{checkpoint, vectors};
use serde_json::Value;

/// Everything in the shared folder that is running text, about ten million words.
pub const ALL: [&str; 7] = [
    "wiki-train-1",
    "wiki-train-2",
    "brown",
    "speeches",
    "fiction",
    "wiki-valid",
    "wikitext2-valid",
];

/// A figure of one STS set.
pub struct Score {
    /// The set.
    pub set: String,
    /// Pearson's correlation × 100.
    pub pearson: f64,
    /// Spearman's correlation × 100.
    pub spearman: f64,
}

/// Returns the options of a run over the named texts; all others have the command line's defaults.
pub fn options(data: &Path, texts: &[&str], objective: Objective, output: &Path) -> VectorsOptions {
    let adagrad = objective == Objective::SiameseCbow;
    VectorsOptions {
        files: texts.iter().map(|name| data.join(format!("text/{name}.txt.gz"))).collect(),
        run: RunFiles {
            output: output.to_owned(),
            report: None,
            checkpoint: checkpoint::beside(output),
            restart: true,
        },
        text: None,
        objective,
        from: None,
        normalisation: Normalisation::preset("plain").expect("it is a preset"),
        dims: 300,
        least: 5,
        batch: 100,
        negatives: objective.negatives(),
        others: Others::Document,
        window: 5,
        sample: 1e-5,
        seed: 1,
        schedule: Schedule {
            epochs: 5,
            rate: objective.rate(),
            adagrad,
            threads: 2,
            hogwild: false,
            every: Duration::from_secs(3600),
        },
        licence: None,
    }
}

/// Returns the path of models that are deleted after they are measured.
pub fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench/training");
    std::fs::create_dir_all(&folder).expect("target is writable");
    folder
}

/// Trains, and scores what was trained.
pub fn scored(data: &Path, options: &VectorsOptions) -> (Trained, Vec<Score>) {
    let trained = vectors::train(options).expect("the shared text can be learned from");
    (trained, scores(data, &options.run.output))
}

/// `avg-cos` on every shared STS set.
pub fn scores(data: &Path, model: &Path) -> Vec<Score> {
    let engine = Engine::open(model, &OpenOptions::default()).expect("it was just written");
    let options = StsOptions {
        files: vec![data.join("sts")],
        view: View::Files,
        choice: Choice {
            methods: vec!["avg-cos".to_owned()],
            measures: Vec::new(),
            opposites: None,
            baseline: "avg-cos".to_owned(),
            ablations: false,
        },
        bootstrap: Bootstrap { resamples: 2, ..Bootstrap::default() },
    };
    let report = eval_sts(&engine, &options).expect("the shared sets can be read");
    let report: Value = serde_json::from_str(&report.json()).expect("a report is JSON");
    let subtasks = report["subtasks"].as_array().expect("one a set");
    let number = |of: &Value, key: &str| 100.0 * of["results"][0][key].as_f64().unwrap_or(0.0);
    subtasks
        .iter()
        .map(|of| Score {
            set: of["name"].as_str().unwrap_or_default().trim_end_matches(".tsv").to_owned(),
            pearson: number(of, "pearson"),
            spearman: number(of, "spearman"),
        })
        .collect()
}

/// Returns the mean of Pearson's correlations over the yearly sets. The other sets are drawn from the
/// yearly sets, or serve training.
pub fn mean(scores: &[Score]) -> f64 {
    let yearly: Vec<f64> =
        scores.iter().filter(|of| of.set.starts_with("20")).map(|of| of.pearson).collect();
    yearly.iter().sum::<f64>() / yearly.len() as f64
}
