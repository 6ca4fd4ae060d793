//! What it costs to cut one short text: real sentences and tweets where `../shared/data` is
//! present, made-up ones otherwise. The time of a benchmark is that of one pass over all its
//! texts; the throughput line gives texts a second.

use std::fs;
use std::hint::black_box;
use std::path::Path;

use cognate::text::{Normalisation, Tokens, tokenise};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Texts of one kind.
struct Sample {
    name: &'static str,
    texts: Vec<String>,
}

/// The columns from `first` on of every row of a shared table.
fn shared(path: &str, first: usize) -> Option<Vec<String>> {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data"));
    let table = fs::read_to_string(folder.join(path)).ok()?;
    let cells = table.lines().flat_map(|line| line.split('\t').skip(first));
    Some(cells.map(str::to_owned).collect())
}

fn made_up(words: &[&str]) -> Vec<String> {
    let text = |at: usize| -> String {
        let chosen: Vec<_> =
            (0..11).map(|word| words[(at * 7 + word * word) % words.len()]).collect();
        chosen.join(" ")
    };
    (0..1000).map(text).collect()
}

fn samples() -> Vec<Sample> {
    let sentences = shared("sts/stsb-dev.tsv", 1).unwrap_or_else(|| {
        made_up(&[
            "The",
            "president",
            "said,",
            "it's",
            "a",
            "man",
            "is",
            "playing",
            "guitar.",
            "of",
        ])
    });
    let tweets = shared("tweets/crisislex-validation.tsv", 6).unwrap_or_else(|| {
        made_up(&[
            "RT",
            "@user:",
            "#LAQuake",
            "http://t.co/x",
            "OMG!!",
            "don’t",
            "😀",
            "café",
            "so",
        ])
    });
    let wide = tweets.iter().filter(|text| !text.is_ascii()).cloned().collect();
    vec![
        Sample { name: "sentences", texts: sentences },
        Sample { name: "tweets", texts: tweets },
        Sample { name: "tweets-not-ascii", texts: wide },
    ]
}

fn tokenising(criterion: &mut Criterion) {
    for Sample { name, texts } in samples() {
        let bytes: usize = texts.iter().map(String::len).sum();
        eprintln!("{name}: {} texts of {} bytes on average", texts.len(), bytes / texts.len());
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(texts.len() as u64));
        for preset in Normalisation::PRESETS {
            let rules = Normalisation::preset(preset).expect("it is in the list of presets");
            let mut tokens = Tokens::new();
            group.bench_function(*preset, |bencher| {
                bencher.iter(|| {
                    let mut found = 0;
                    for text in &texts {
                        tokenise(&rules, black_box(text), &mut tokens);
                        found += tokens.len();
                    }
                    found
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, tokenising);
criterion_main!(benches);
