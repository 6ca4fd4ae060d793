//! The paper's own analyses (section 5): the score against the number of random others, of
//! dimensions and of epochs.

use std::path::Path;

use cognate_train::vectors::Objective;
use serde_json::{Value, json};

use crate::runs;

/// Changes one setting at a time.
pub fn measure(data: &Path) -> Value {
    let panels: [(&str, &[usize]); 3] = [
        ("random others", &[1, 2, 5, 10]),
        ("dimensions", &[50, 100, 200, 300]),
        ("epochs", &[1, 2, 5, 10, 20]),
    ];
    let mut found = Vec::new();
    for (panel, values) in panels {
        let mut points = Vec::new();
        for &value in values {
            let output = runs::scratch().join("analyses.safetensors");
            let mut options = runs::options(data, &runs::ALL, Objective::SiameseCbow, &output);
            match panel {
                "random others" => options.negatives = value,
                "dimensions" => options.dims = value,
                _ => options.schedule.epochs = value as u32,
            }
            let (_, scores) = runs::scored(data, &options);
            points.push((value, runs::mean(&scores)));
        }
        let shown: Vec<String> =
            points.iter().map(|(value, mean)| format!("{value}: {mean:.2}")).collect();
        println!("{panel}: {}", shown.join(", "));
        found.push(json!({"panel": panel, "points": points}));
    }
    Value::Array(found)
}
