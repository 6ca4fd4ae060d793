//! Word look-up over real text: the mapped index against `hashbrown` with `foldhash`.
//!
//! Both answer the same ten million look-ups of the same tokens in the order of the text. The
//! mapped index needs no build; the hash map's build is timed beside it.

mod support;

use std::time::Instant;

use cognate::model::vocabulary::VocabularyTables;
use cognate::text::{Normalisation, Tokens, tokenise};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

const LOOKUPS: usize = 10_000_000;

fn words() -> Vec<String> {
    match support::shared_data() {
        Some(folder) => {
            let text = std::fs::read_to_string(folder.join("vectors/vocab.txt"));
            text.expect("the shared vocabulary is readable").lines().map(str::to_owned).collect()
        }
        None => (0..340_000).map(|n| format!("w{n:x}")).collect(),
    }
}

fn main() {
    let words = words();
    let rules = Normalisation::preset("plain").expect("a preset");
    let (mut text, mut ends) = (String::new(), Vec::new());
    let mut tokens = Tokens::new();
    'lines: for line in support::running_text().iter().cycle() {
        tokenise(&rules, line, &mut tokens);
        for (token, _) in tokens.iter() {
            text.push_str(token);
            ends.push(text.len());
            if ends.len() == LOOKUPS {
                break 'lines;
            }
        }
    }
    let each = |look: &mut dyn FnMut(&str)| {
        let mut start = 0;
        for &end in &ends {
            look(&text[start..end]);
            start = end;
        }
    };
    let started = Instant::now();
    let tables = VocabularyTables::build(words.iter().map(String::as_str));
    let packed = started.elapsed().as_secs_f64();
    let vocabulary = tables.view();
    let started = Instant::now();
    let mut map: HashMap<Box<str>, u32, FixedState> = HashMap::default();
    for (id, word) in words.iter().enumerate() {
        map.insert(word.as_str().into(), id as u32);
    }
    let built = started.elapsed().as_secs_f64();
    let mut contestants: Vec<support::Contestant<'_>> = vec![
        (
            "mapped index",
            Box::new(|| {
                let mut sum = 0;
                each(&mut |word| sum += vocabulary.lookup(word).map_or(1, u64::from));
                sum
            }),
        ),
        (
            "hashbrown + foldhash",
            Box::new(|| {
                let mut sum = 0;
                each(&mut |word| sum += map.get(word).map_or(1, |&id| u64::from(id)));
                sum
            }),
        ),
    ];
    let sums: Vec<u64> = contestants.iter_mut().map(|(_, work)| work()).collect();
    assert_eq!(sums[0], sums[1], "both find the same words");
    let medians = support::interleaved(&mut contestants, 7);
    let nanoseconds: Vec<f64> = medians.iter().map(|s| s * 1e9 / LOOKUPS as f64).collect();
    let bytes: usize = tables.bytes.len() + tables.offsets.len() * 8 + tables.index.len() * 8;
    println!("{} words, {LOOKUPS} tokens of text", words.len());
    println!(
        "  mapped index          {:6.1} ns a token, {:.1} MB, no build at start",
        nanoseconds[0],
        bytes as f64 / 1e6
    );
    println!(
        "  hashbrown + foldhash  {:6.1} ns a token, {:.0} ms to build",
        nanoseconds[1],
        built * 1e3
    );
    println!("  ratio hashbrown / mapped  {:.2}", nanoseconds[1] / nanoseconds[0]);
    support::record(
        "lookup",
        &serde_json::json!({
            "words": words.len(), "tokens": LOOKUPS,
            "mapped_ns": nanoseconds[0], "hashbrown_ns": nanoseconds[1],
            "ratio": nanoseconds[1] / nanoseconds[0],
            "hashbrown_build_ms": built * 1e3, "pack_index_ms": packed * 1e3,
        }),
    );
}
