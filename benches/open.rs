//! From a file to the first look-up: opening a model against parsing GloVe text into a `HashMap`.
//!
//! Every opening runs in a process of its own, so that time and resident memory are those of a
//! start; the files are warm in the page cache for all alike.

mod support;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use cognate::model::{Model, OpenOptions, Storage, Verify};

const ROUNDS: usize = 9;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, mode, path] = arguments.as_slice()
        && mode != "--bench"
    {
        return child(mode, Path::new(path));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let large = folder.path().join("glove.safetensors");
    let text = folder.path().join("glove.txt");
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    let default = repository.join("models/default.safetensors");
    make(&large, &text);
    let runs: Vec<(&str, &str, PathBuf)> = vec![
        ("open, structure", "structure", large.clone()),
        ("open, full", "full", large.clone()),
        ("open, full, copied", "copy", large),
        ("parse into a HashMap", "parse", text),
        ("open, structure", "structure", default.clone()),
        ("open, full, copied", "copy", default),
    ];
    let mut figures = vec![(Vec::new(), Vec::new()); runs.len()];
    for _ in 0..ROUNDS {
        for (place, (_, mode, path)) in runs.iter().enumerate() {
            let program = std::env::current_exe().expect("this program has a path");
            let output = Command::new(program).arg(mode).arg(path).output().expect("it starts");
            let said = String::from_utf8(output.stdout).expect("numbers");
            let mut numbers = said.split_whitespace().map(|n| n.parse::<f64>().expect("numbers"));
            figures[place].0.push(numbers.next().expect("seconds"));
            figures[place].1.push(numbers.next().expect("resident memory"));
        }
    }
    let mut rows = Vec::new();
    for ((what, _, path), (seconds, resident)) in runs.iter().zip(figures) {
        let megabytes = std::fs::metadata(path).map_or(0.0, |m| m.len() as f64 / 1e6);
        let (milliseconds, resident) = (support::median(seconds) * 1e3, support::median(resident));
        println!(
            "  {megabytes:6.1} MB  {what:<22} {milliseconds:9.2} ms  {resident:7.1} MB resident"
        );
        rows.push(serde_json::json!({
            "file_mb": megabytes, "what": what, "ms": milliseconds, "resident_mb": resident,
        }));
    }
    let ratio = rows[3]["ms"].as_f64().unwrap_or(0.0) / rows[0]["ms"].as_f64().unwrap_or(1.0);
    println!("  parsing takes {ratio:.0} times as long as opening by structure");
    support::record("open", &serde_json::json!({ "rows": rows, "parse_over_open": ratio }));
}

/// Does one thing and prints its seconds and the megabytes resident afterwards.
fn child(mode: &str, path: &Path) {
    let started = Instant::now();
    let found = match mode {
        "parse" => {
            let text = std::fs::read_to_string(path).expect("GloVe text");
            let mut map: HashMap<String, Vec<f32>> = HashMap::new();
            for line in text.lines() {
                let mut fields = line.split(' ');
                let word = fields.next().unwrap_or_default().to_owned();
                map.insert(word, fields.map(|field| field.parse().expect("a number")).collect());
            }
            let found = map.contains_key("earthquake");
            report(started);
            std::mem::forget(map);
            found
        }
        _ => {
            let (verify, storage) = match mode {
                "structure" => (Verify::Structure, Storage::Map),
                "copy" => (Verify::Full, Storage::Copy),
                _ => (Verify::Full, Storage::Map),
            };
            let options = OpenOptions { verify, storage, ..OpenOptions::default() };
            let model = Model::open(path, &options).expect("a model");
            let found = model.vocabulary().lookup("earthquake").is_some();
            report(started);
            found
        }
    };
    std::hint::black_box(found);
}

fn report(started: Instant) {
    let seconds = started.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or(0.0);
    println!("{seconds} {}", kilobytes / 1e3);
}

/// The same 340,000 words × 100 dimensions as a model file and as GloVe text.
fn make(model: &Path, text: &Path) {
    let rows = rows();
    let mut lines = String::new();
    for (word, row) in &rows {
        lines.push_str(word);
        for value in row {
            let _ = write!(lines, " {value:.5}");
        }
        lines.push('\n');
    }
    std::fs::write(text, lines).expect("room for the text");
    let program = env!("CARGO_BIN_EXE_cognate");
    let status = Command::new(program).arg("pack").arg(text).arg("-o").arg(model).output();
    let output = status.expect("cognate starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn rows() -> Vec<(String, Vec<f32>)> {
    let Some(folder) = support::shared_data() else {
        return (0..340_000_u32)
            .map(|n| (format!("w{n:x}"), (0..100).map(|d| ((n + d) % 97) as f32 / 97.0).collect()))
            .collect();
    };
    let bytes = std::fs::read(folder.join("vectors/glove.6B.100d.safetensors")).expect("vectors");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("safetensors");
    let tensor = file.tensor("vectors").expect("the tensor");
    let values =
        tensor.data().as_chunks::<2>().0.iter().map(|b| half::f16::from_le_bytes(*b).to_f32());
    let values: Vec<f32> = values.collect();
    let words = std::fs::read_to_string(folder.join("vectors/vocab.txt")).expect("its words");
    words.lines().map(str::to_owned).zip(values.chunks(100).map(<[f32]>::to_vec)).collect()
}
