//! Siamese CBOW against CBOW and skip-gram: one text, one vocabulary, 300 dimensions, every set.

use std::path::Path;

use cognate_stats::significance::signed_rank;
use cognate_train::vectors::Objective;
use cognate_train::vectors::siamese::Others;
use serde_json::{Value, json};

use crate::runs;
use crate::runs::Score;

/// Trains all four sets and prints their results in one table.
pub fn measure(data: &Path) -> Value {
    let contestants = [
        ("siamese-cbow", Objective::SiameseCbow, Others::Document),
        ("siamese-cbow, others of the text", Objective::SiameseCbow, Others::Text),
        ("cbow", Objective::Cbow, Others::Document),
        ("skip-gram", Objective::SkipGram, Others::Document),
    ];
    let mut found: Vec<(&str, Vec<Score>)> = Vec::new();
    let mut facts = Vec::new();
    for (name, objective, others) in contestants {
        let output = runs::scratch().join("sets.safetensors");
        let mut options = runs::options(data, &runs::ALL, objective, &output);
        options.others = others;
        options.schedule.threads = 1;
        let (trained, scores) = runs::scored(data, &options);
        let smallest: Vec<&str> = trained.smallest.iter().map(|(word, _)| word.as_str()).collect();
        println!(
            "{name}: {} words, {:.0} s, {:.2} million words/s, mean {:.2}, smallest norms: {}",
            trained.words,
            trained.seconds,
            trained.words_per_second / 1e6,
            runs::mean(&scores),
            smallest.join(" ")
        );
        facts.push(json!({
            "name": name,
            "epochs": options.schedule.epochs,
            "seconds": trained.seconds,
            "words_per_second": trained.words_per_second,
            "mean": runs::mean(&scores),
            "smallest": smallest,
            "losses": trained.losses,
        }));
        found.push((name, scores));
    }
    let sets: Vec<Value> = found[0]
        .1
        .iter()
        .enumerate()
        .map(|(at, first)| {
            let figures: Vec<[f64; 2]> =
                found.iter().map(|(_, of)| [of[at].pearson, of[at].spearman]).collect();
            let shown: Vec<String> =
                figures.iter().map(|[r, rho]| format!("{r:6.2} {rho:6.2}")).collect();
            println!("{:<24} {}", first.set, shown.join("   "));
            json!({"set": first.set, "figures": figures})
        })
        .collect();
    let ours = yearly(&found[0].1);
    let tests: Vec<Value> = found[1..]
        .iter()
        .map(|(name, theirs)| {
            let theirs = yearly(theirs);
            let differences: Vec<f64> = ours.iter().zip(&theirs).map(|(a, b)| a - b).collect();
            let wins = differences.iter().filter(|&&difference| difference > 0.0).count();
            let test = signed_rank(&differences).expect("correlations are finite");
            let of = differences.len();
            println!("above {name} on {wins} of {of} yearly sets, Wilcoxon p = {:.2e}", test.p);
            json!({"against": name, "wins": wins, "of": of, "p": test.p})
        })
        .collect();
    json!({"contestants": facts, "sets": sets, "wilcoxon": tests})
}

fn yearly(scores: &[Score]) -> Vec<f64> {
    scores.iter().filter(|of| of.set.starts_with("20")).map(|of| of.pearson).collect()
}
