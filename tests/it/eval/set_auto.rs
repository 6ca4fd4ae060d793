//! `cognate eval … --set-auto`: the best method becomes what `auto` stands for, by the built binary.

use std::path::Path;

use cognate::engine::Engine;

use crate::eval::figures::{cognate, compass};
use crate::support;

/// Cosines follow these scores more closely than common words do.
const STS: &str = "0\teast\tnorth\n5\teast\teast\n1\tnorth\teast\n3\teast\tnortheast\n";
/// Related pairs share a word without a vector; the others only point the same way.
const PAIRS: &str = "1\tzz\tzz\n1\tyy\tyy\n1\txx\txx\n1\tww\tww\n\
                     0\teast\tnortheast\n0\tnorth\tnortheast\n0\teast\tnorth\n0\tnortheast\teast\n";
const TOPICS: &str =
    "1\teast\t1\teast\n1\teast\t0\tnorth\n2\tnorth\t1\tnortheast\n2\tnorth\t0\teast\n";

fn auto(folder: &Path, model: &str) -> &'static str {
    Engine::open(&folder.join(model), &support::full()).unwrap().auto().name()
}

/// Exit code, standard output and standard error.
fn eval(folder: &Path, arguments: &str) -> (i32, String, String) {
    let arguments: Vec<&str> = ["eval"].into_iter().chain(arguments.split(' ')).collect();
    let output = cognate(folder, &[&arguments[..], &["--model", "m.safetensors"]].concat());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn auto_becomes_the_best_of_what_was_measured() {
    let folder = compass(&[("sts.tsv", STS), ("pairs.tsv", PAIRS), ("topics.tsv", TOPICS)]);
    let folder = folder.path();
    assert_eq!(auto(folder, "m.safetensors"), "dynamax-jaccard");

    let (code, said, _) = eval(folder, "sts sts.tsv --methods avg-cos,jaccard --set-auto");
    assert_eq!(code, 0, "{said}");
    let line = "auto was dynamax-jaccard, is avg-cos: mean Pearson correlation × 100: ";
    assert!(said.contains(line) && said.contains("(dynamax-jaccard not measured)"), "{said}");
    assert_eq!(auto(folder, "m.safetensors"), "avg-cos");
    let after = std::fs::read(folder.join("m.safetensors")).unwrap();

    // To another file; the model that was measured stays as it is.
    let to = "pairs pairs.tsv --methods jaccard --set-auto -o new.safetensors";
    let (code, said, error) = eval(folder, to);
    assert_eq!(code, 0, "{error}");
    let line = "auto was avg-cos, is jaccard: split error in %, the lowest: 0.00 (avg-cos ";
    assert!(said.contains(line), "{said}");
    assert_eq!(auto(folder, "new.safetensors"), "jaccard");
    assert_eq!(std::fs::read(folder.join("m.safetensors")).unwrap(), after);

    // A tie stays with the first in the list; what the file says already is not written again.
    let (_, said, _) = eval(folder, "ranking topics.tsv --methods all --json - --set-auto");
    serde_json::from_str::<serde_json::Value>(&said).unwrap();
    let (code, _, error) = eval(folder, "ranking topics.tsv --json - --set-auto");
    assert_eq!(code, 0, "{error}");
    let line = "auto stays avg-cos: mean average precision: 1.0000";
    assert!(error.contains(line) && error.contains("nothing was written"), "{error}");
    assert_eq!(std::fs::read(folder.join("m.safetensors")).unwrap(), after);
}

#[test]
fn auto_is_set_for_no_other_measure_and_over_no_other_file() {
    let folder = compass(&[("sts.tsv", STS), ("pairs.tsv", PAIRS)]);
    let folder = folder.path();
    let before = std::fs::read(folder.join("m.safetensors")).unwrap();
    let euclidean = "sts sts.tsv --methods avg-cos --measure euclidean --set-auto";
    let (code, _, error) = eval(folder, euclidean);
    assert_eq!(code, 2, "{error}");
    assert!(error.contains("at least one similarity method by its own measure"), "{error}");
    for output in ["-o sts.tsv", "-o x --html x", "-o x --json x"] {
        let (code, _, error) = eval(folder, &format!("sts sts.tsv --set-auto {output}"));
        assert_eq!(code, 2, "{output}: {error}");
    }
    assert_eq!(eval(folder, "sts sts.tsv -o x").0, 2, "-o needs --set-auto");
    assert_eq!(std::fs::read(folder.join("m.safetensors")).unwrap(), before);
    assert_eq!(std::fs::read_to_string(folder.join("sts.tsv")).unwrap(), STS);
}

#[test]
fn a_stored_threshold_of_another_method_is_told() {
    let folder = compass(&[("sts.tsv", STS), ("pairs.tsv", PAIRS)]);
    let folder = folder.path();
    let jaccard = "calibrate pairs.tsv --methods jaccard -o m.safetensors";
    assert_eq!(eval(folder, jaccard).0, 0);
    let (_, said, _) = eval(folder, "sts sts.tsv --methods avg-cos,jaccard --set-auto");
    assert!(said.contains("no threshold is stored for avg-cos"), "{said}");
    let (_, said, _) = eval(folder, "pairs pairs.tsv --methods avg-cos,jaccard --set-auto");
    assert!(said.contains("is jaccard") && !said.contains("no threshold is stored"), "{said}");
    let engine = Engine::open(&folder.join("m.safetensors"), &support::full()).unwrap();
    assert_eq!(engine.calibrations().len(), 1, "thresholds stay");
}
