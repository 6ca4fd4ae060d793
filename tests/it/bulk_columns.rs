//! Parquet and Arrow files: read as another program writes them (`tests/data/files/make.py`), written
//! back with the engine's answers behind all that they held.

use std::fs::File;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float32Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::FileReader;
use cognate::model::format::Dtype;
use cognate::{Engine, Query};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::support;
use crate::support::command::{cognate, stderr};

/// The texts of `make.py`.
const WORDS: [Option<&str>; 6] =
    [Some("the quake"), Some("new york"), Some("city"), None, Some("the town shakes"), Some("!!!")];
const ROWS: usize = 50;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("tiny.safetensors"), support::tiny(Dtype::F32)).unwrap();
    for name in ["pairs.parquet", "pairs.arrow", "grouped.arrow"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/files").join(name);
        std::fs::copy(source, folder.path().join(name)).unwrap();
    }
    folder
}

fn run(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = cognate(folder, &[("COGNATE_MODEL", "tiny.safetensors")], arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    stderr(&output).to_owned()
}

fn batches(path: &Path) -> Vec<RecordBatch> {
    let file = File::open(path).unwrap();
    if path.extension().unwrap() == "parquet" {
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
        return reader.map(Result::unwrap).collect();
    }
    FileReader::try_new(file, None).unwrap().map(Result::unwrap).collect()
}

#[test]
fn scores_stand_behind_the_columns_that_came() {
    let folder = folder();
    let folder = folder.path();
    let engine = Engine::new(support::tiny_model()).unwrap();
    let query = Query::new(engine.auto());
    let expected: Vec<Option<f32>> = (0..ROWS)
        .map(|at| {
            let pair = (WORDS[at % 5]?, WORDS[at * 7 % 6]?);
            let scored = engine.similarity(&[pair], &query).unwrap();
            scored.unscored.is_empty().then(|| scored.scores[0])
        })
        .collect();
    assert!(expected.iter().flatten().count() > 20 && expected.contains(&None));
    for (input, output) in [
        ("pairs.parquet", "out.parquet"),
        ("pairs.arrow", "out.arrow"),
        ("pairs.parquet", "other.arrow"),
        ("pairs.arrow", "other.parquet"),
    ] {
        run(folder, &["similarity", "--input", input, "-o", output], 0);
        let (before, after) = (batches(&folder.join(input)), batches(&folder.join(output)));
        let numbers = |batches: &[RecordBatch]| -> Vec<i64> {
            let of = |batch: &RecordBatch| batch["n"].as_primitive::<Int64Type>().values().to_vec();
            batches.iter().flat_map(of).collect()
        };
        assert_eq!(numbers(&after), numbers(&before), "{output}");
        let scores: Vec<Option<f32>> = after
            .iter()
            .flat_map(|batch| {
                batch["score"].as_primitive::<Float32Type>().iter().collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(scores, expected, "{output}");
        let names: Vec<_> =
            after[0].schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["n", "a", "b", "tags", "score"]);
        let tags = |batches: &[RecordBatch]| -> Vec<String> {
            let of = |batch: &RecordBatch| {
                let tags = batch["tags"].as_list::<i32>();
                (0..batch.num_rows()).map(|at| format!("{:?}", tags.value(at))).collect::<Vec<_>>()
            };
            batches.iter().flat_map(of).collect()
        };
        assert_eq!(tags(&after), tags(&before), "{output}");
    }
}

#[test]
fn vectors_and_ranks_are_columns_too() {
    let folder = folder();
    let folder = folder.path();
    let engine = Engine::new(support::tiny_model()).unwrap();
    let embed = ["embed", "--input", "pairs.parquet", "--text", "b", "--method", "avg-cos"];
    run(folder, &[&embed[..], &["-o", "v.arrow"]].concat(), 0);
    let query = Query::new(engine.method("avg-cos").unwrap());
    let mut at = 0;
    for batch in batches(&folder.join("v.arrow")) {
        let vectors = batch["vector"].as_fixed_size_list();
        for row in 0..batch.num_rows() {
            let embedded = WORDS[at * 7 % 6].map(|text| engine.embed(&[text], &query).unwrap());
            let expected = embedded.as_ref().and_then(|embedded| embedded.get(0));
            let found = vectors
                .is_valid(row)
                .then(|| vectors.value(row).as_primitive::<Float32Type>().values().to_vec());
            assert_eq!(found.as_deref(), expected, "row {at}");
            at += 1;
        }
    }
    assert_eq!(at, ROWS);
    // Rows of one query that stand together make a list, whatever batches they come in.
    let rank =
        ["rank", "--input", "grouped.arrow", "--query", "a", "--text", "b", "-o", "r.parquet"];
    run(folder, &rank, 0);
    let ranks: Vec<Option<u64>> = batches(&folder.join("r.parquet"))
        .iter()
        .flat_map(|batch| batch["rank"].as_primitive::<UInt64Type>().iter().collect::<Vec<_>>())
        .collect();
    assert_eq!(ranks.len(), ROWS);
    assert!(ranks.contains(&Some(1)) && ranks.contains(&None), "{ranks:?}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("text.tsv"), "a\tb\nx\ty\n").unwrap();
    std::fs::write(folder.join("broken.parquet"), "PAR1 and nothing else").unwrap();
    let input = |name| ["similarity", "--input", name];
    for (arguments, code, expected) in [
        (&input("pairs.parquet")[..], 2, "name a file with -o"),
        (&[&input("pairs.parquet")[..], &["-o", "out.tsv"]].concat(), 2, ".parquet or .arrow"),
        (&[&input("text.tsv")[..], &["-o", "out.parquet"]].concat(), 2, "rows are not written as"),
        (&[&input("text.tsv")[..], &["pairs.arrow", "-o", "x.arrow"]].concat(), 2, "one file"),
        (&[&input("broken.parquet")[..], &["-o", "x.parquet"]].concat(), 1, "not a Parquet file"),
        (
            &[&input("pairs.parquet")[..], &["-o", "x.parquet", "--a", "n"]].concat(),
            1,
            "column `n`: expected strings, found Int64",
        ),
        (
            &[&input("pairs.parquet")[..], &["-o", "x.parquet", "--a", "c"]].concat(),
            1,
            "expected a column `c`; the columns are n, a, b, tags",
        ),
        (
            &[&input("pairs.arrow")[..], &["-o", "x.arrow", "--on-error", "fail"]].concat(),
            1,
            "pairs.arrow, row 4: expected a field `a`",
        ),
    ] {
        let told = run(folder, arguments, code);
        assert!(told.contains(expected), "{expected} in {told}");
    }
    assert!(!folder.join("x.parquet").exists() && !folder.join("x.arrow").exists());
}

#[test]
fn finished_parts_are_not_made_again() {
    let folder = folder();
    let folder = folder.path();
    std::fs::create_dir(folder.join("in")).unwrap();
    for name in ["pairs.parquet", "pairs.arrow"] {
        std::fs::rename(folder.join(name), folder.join("in").join(name)).unwrap();
    }
    let asked = ["similarity", "--input", "in", "-o", "out/"];
    run(folder, &asked, 0);
    assert_eq!(batches(&folder.join("out/pairs.arrow"))[0].num_columns(), 5);
    let again = cognate(folder, &[("COGNATE_MODEL", "tiny.safetensors")], &asked);
    let told = String::from_utf8(again.stdout).unwrap();
    assert!(told.contains("2 of 2 files were done before"), "{told}");
}

#[test]
fn duplicates_and_events_are_found_among_rows_of_columns() {
    let folder = folder();
    let folder = folder.path();
    for input in ["pairs.parquet", "pairs.arrow"] {
        let asked = ["dedupe", input, "--text", "b", "-o", "out.ndjson", "--method", "avg-cos"];
        run(folder, &asked, 0);
        let written = std::fs::read_to_string(folder.join("out.ndjson")).unwrap();
        let lines: Vec<serde_json::Value> =
            written.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), ROWS, "{input}");
        // Row 7 has the text of row 1 again.
        let seventh = serde_json::json!({
            "n": 6, "a": WORDS[1], "b": WORDS[0], "tags": [6, 7], "cluster": 1, "score": 1,
        });
        assert_eq!(lines[6], seventh, "{input}");
        let asked = ["events", input, "--text", "b", "--threshold", "0.9", "--columns", "n,event"];
        run(folder, &[&asked[..], &["-o", "out.ndjson"]].concat(), 0);
        let written = std::fs::read_to_string(folder.join("out.ndjson")).unwrap();
        assert_eq!(written.lines().nth(6), Some("{\"n\":6,\"event\":1}"), "{input}");
    }
    let told = run(folder, &["dedupe", "pairs.parquet"], 1);
    assert!(told.contains("expected a column `text`; the columns are n, a, b, tags"), "{told}");
    let told = run(folder, &["dedupe", "pairs.parquet", "--text", "b", "-o", "out.parquet"], 2);
    assert!(told.contains(".ndjson"), "{told}");
}

#[test]
fn the_best_rows_and_chosen_columns_are_written_as_columns() {
    let folder = folder();
    let folder = folder.path();
    let asked = ["--query", "a", "--text", "b", "-o"];
    let rank = ["rank", "--input", "grouped.arrow"];
    run(folder, &[&rank[..], &asked[..], &["all.parquet"]].concat(), 0);
    let best = ["best.parquet", "--top-k", "1", "--columns", "rank,n"];
    run(folder, &[&rank[..], &asked[..], &best[..]].concat(), 0);
    let rows = |name: &str| -> Vec<(Option<u64>, i64)> {
        let of = |batch: &RecordBatch| {
            let ranks = batch["rank"].as_primitive::<UInt64Type>().iter();
            let numbers = batch["n"].as_primitive::<Int64Type>().values().to_vec();
            ranks.zip(numbers).collect::<Vec<_>>()
        };
        batches(&folder.join(name)).iter().flat_map(of).collect()
    };
    let expected: Vec<_> =
        rows("all.parquet").into_iter().filter(|(rank, _)| *rank == Some(1)).collect();
    assert!(!expected.is_empty());
    assert_eq!(rows("best.parquet"), expected);
    assert_eq!(batches(&folder.join("best.parquet"))[0].num_columns(), 2);
}
