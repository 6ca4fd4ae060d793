//! Why others of the same document: learning curves over epochs and over texts of one kind each.
//! Articles of an encyclopaedia each have their subject; chapters of novels and speeches hardly do.

use std::path::Path;

use cognate_train::vectors::Objective;
use cognate_train::vectors::siamese::Others;
use serde_json::{Value, json};

use crate::runs;

const EPOCHS: [u32; 4] = [1, 2, 5, 10];
const DIMS: usize = 100;

/// Trains everything several times.
pub fn measure(data: &Path) -> Value {
    let texts: [(&str, &[&str]); 3] = [
        ("novels and speeches", &["fiction", "speeches", "brown"]),
        ("half of the encyclopaedia", &["wiki-train-1"]),
        ("all", &runs::ALL),
    ];
    let learners = [
        ("siamese-cbow", Objective::SiameseCbow, Others::Document),
        ("siamese-cbow, others of the text", Objective::SiameseCbow, Others::Text),
        ("cbow", Objective::Cbow, Others::Document),
        ("skip-gram", Objective::SkipGram, Others::Document),
    ];
    let mut curves = Vec::new();
    for (text, files) in texts {
        for (name, objective, others) in learners {
            let mut points = Vec::new();
            for epochs in EPOCHS {
                let output = runs::scratch().join("subjects.safetensors");
                let mut options = runs::options(data, files, objective, &output);
                (options.others, options.dims, options.schedule.epochs) = (others, DIMS, epochs);
                let (trained, scores) = runs::scored(data, &options);
                points.push((epochs, runs::mean(&scores), trained.seconds));
            }
            let shown: Vec<String> = points
                .iter()
                .map(|(epochs, mean, seconds)| format!("{epochs}: {mean:.1} in {seconds:.0} s"))
                .collect();
            println!("{text}, {name}: {}", shown.join(", "));
            curves.push(json!({"text": text, "learner": name, "points": points}));
        }
    }
    json!({"dims": DIMS, "curves": curves})
}
