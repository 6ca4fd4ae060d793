//! How fast a stream of a million tweets is followed, in how much memory: real tweets again and again,
//! their times shifted and two of their words exchanged for words of others, so that no text comes
//! twice.
//!
//! `cargo bench --bench events` (`-- --texts 200000 --last 100000` for other sizes). Time is what the
//! one thread was given of a core, so that others on the machine change little.

#[path = "support/mod.rs"]
mod support;

use std::collections::HashMap;
use std::path::Path;

use cognate::Engine;
use cognate::window::options::{Least, MAX_LAST, NO_SECOND, Options};
use cognate::window::stream::{Item, Settings, Stream};
use cognate::window::usual::Preset;
use cognate_files::records::Records;
use cognate_kernels::random::Random;
use serde_json::json;

/// Texts between two figures of memory.
const PART: usize = 10_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |flag: &str, usual: usize| {
        let at = arguments.iter().position(|argument| argument == flag);
        let given = at.and_then(|at| arguments.get(at + 1)).map(|given| given.parse());
        given.map_or(usual, |given| given.expect("a number"))
    };
    let (texts, last) = (number("--texts", 1_000_000), number("--last", 100_000));
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    let engine = Engine::open(&model, &Default::default()).expect("the default model opens");
    let tweets = tweets();
    let mut figures = Vec::new();
    let few = texts.min(200_000);
    let alone = |nearest| Options {
        second: Some(NO_SECOND),
        last: Some(last),
        threshold: Some(Least::Number(0.48)),
        nearest: Some(nearest),
        ..Options::default()
    };
    let stories = Options { preset: Some(Preset::Stories), ..Options::default() };
    for (name, options, texts) in [
        ("vectors alone", alone(1), texts),
        ("vectors alone, 8 nearest", alone(8), few),
        ("as usual, 16 looked at again", Options::default(), few),
        ("stories, 16 looked at again", stories, few),
    ] {
        let settings = options.resolve(&engine, MAX_LAST).expect("usual options");
        // Without a second look only what is near enough is asked for.
        let floor = if settings.second.is_some() { settings.floor } else { 0.5 };
        let settings = Settings { floor, ..settings };
        let stream = Stream::new(&engine, settings).expect("the default model has both methods");
        figures.push(measure(name, stream, &tweets, texts));
    }
    support::record("events", &json!({ "figures": figures }));
}

/// Real tweets where the data are, else made-up sentences.
fn tweets() -> Vec<Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut tweets = Vec::new();
    for name in ["crisislex-train.tsv.gz", "crisislex-validation.tsv"] {
        let path = root.join("../shared/data/tweets").join(name);
        let Ok(mut records) = Records::open(&path, Default::default()) else { continue };
        let column = records.column("text").expect("a column of texts");
        while let Some(record) = records.read().expect("whole rows") {
            let text = record.needed(&column).expect("a text");
            tweets.push(text.split_whitespace().map(str::to_owned).collect());
        }
    }
    if tweets.is_empty() {
        println!("without the data set: made-up pairs stand in");
        let path = root.join("benches/data/pairs.tsv");
        let rows = std::fs::read_to_string(path).expect("the pairs of the repository");
        let texts = rows.lines().flat_map(|row| row.split('\t'));
        tweets.extend(texts.map(|text| text.split_whitespace().map(str::to_owned).collect()));
    }
    tweets
}

fn measure(
    name: &str,
    mut stream: Stream<&Engine>,
    tweets: &[Vec<String>],
    texts: usize,
) -> serde_json::Value {
    let mut random = Random::seeded(1);
    let mut joined = 0_usize;
    let mut seconds = 0.0;
    let mut memory = Vec::new();
    let mut full = (0, 0.0);
    let full_at = stream.settings().limits.last.min(texts / 2);
    for start in (0..texts).step_by(PART) {
        let batch: Vec<String> = (start..texts.min(start + PART))
            .map(|number| {
                let mut words = tweets[number % tweets.len()].clone();
                for _ in 0..2 {
                    let other = &tweets[random.below(tweets.len())];
                    if !words.is_empty() && !other.is_empty() {
                        let at = random.below(words.len());
                        words[at].clone_from(&other[random.below(other.len())]);
                    }
                }
                words.join(" ")
            })
            .collect();
        let items: Vec<Item<'_>> = (start..)
            .zip(&batch)
            .map(|(number, text)| Item { time: 100 * number as i64, text })
            .collect();
        let before = support::Clock::Thread.now();
        let decisions = stream.follow(&items).expect("every text can be read");
        let taken = support::Clock::Thread.now() - before;
        seconds += taken;
        joined += decisions.iter().filter(|decision| !decision.new).count();
        memory.push(resident());
        if start >= full_at {
            full = (full.0 + batch.len(), full.1 + taken);
        }
    }
    let (all, rate) = (texts as f64 / seconds, full.0 as f64 / full.1);
    let (first, last) = (memory.get(memory.len() / 2), memory.last());
    println!(
        "{name}: {texts} texts, window {}: {all:.0} texts a second, {rate:.0} once the window was \
         full; {joined} joined an event; resident {:.0} MB half way, {:.0} MB at the end",
        stream.settings().limits.last,
        first.copied().unwrap_or(0.0),
        last.copied().unwrap_or(0.0),
    );
    json!({
        "name": name,
        "texts": texts,
        "window": stream.settings().limits.last,
        "texts_a_second": all,
        "texts_a_second_full_window": rate,
        "joined": joined,
        "resident_mb": memory,
    })
}

/// Megabytes of memory that this process holds.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let fields: HashMap<&str, &str> = status.lines().filter_map(|l| l.split_once(':')).collect();
    let size = fields.get("VmRSS").and_then(|size| size.split_whitespace().next());
    size.and_then(|size| size.parse::<f64>().ok()).unwrap_or(0.0) / 1e3
}
