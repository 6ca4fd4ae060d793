//! The two parts that every method begins with: cutting texts and looking words up.

use std::collections::HashMap;

use cognate::engine::Engine;
use cognate::model::Phrase;
use cognate::text::{Tokens, tokenise};

use crate::ground::Vectors;
use crate::{Contests, port};

pub fn all(
    contests: &mut Contests,
    engine: &Engine,
    vectors: &Vectors,
    pairs: &[(String, String)],
) {
    let texts: Vec<&str> = pairs.iter().flat_map(|(a, b)| [a.as_str(), b.as_str()]).collect();
    if contests.wants("tokenise") {
        cut(contests, engine, "tokenise, a pair", &texts);
        let ascii: Vec<&str> = texts.iter().copied().filter(|text| text.is_ascii()).collect();
        cut(contests, engine, "tokenise, a pair of ASCII texts", &ascii);
    }
    if contests.wants("look-up") {
        look_up(contests, engine, vectors, &texts);
    }
}

fn cut(contests: &mut Contests, engine: &Engine, name: &str, texts: &[&str]) {
    let rules = engine.model().normalisation();
    let mut tokens = Tokens::new();
    let ours = || {
        let mut count = 0;
        for text in texts {
            tokenise(rules, text, &mut tokens);
            count += tokens.len() as u64;
        }
        count
    };
    let port = || texts.iter().map(|text| port::tokens(text).len() as u64).sum();
    let both: Vec<crate::support::Contestant<'_>> =
        vec![("ours", Box::new(ours)), ("to_lowercase, Vec<String>", Box::new(port))];
    contests.hold(name, texts.len() / 2, both);
}

fn look_up(contests: &mut Contests, engine: &Engine, vectors: &Vectors, texts: &[&str]) {
    let vocabulary = engine.model().vocabulary();
    let rules = engine.model().normalisation();
    let mut tokens = Tokens::new();
    let cut: Vec<Vec<String>> = texts
        .iter()
        .map(|text| {
            tokenise(rules, text, &mut tokens);
            tokens.texts().map(str::to_owned).collect()
        })
        .collect();
    let count = cut.iter().map(Vec::len).sum();
    let ours = || {
        let ids = cut.iter().flatten().filter_map(|word| vocabulary.lookup(word));
        ids.map(u64::from).sum()
    };
    let map: HashMap<String, u32> = vectors.words.iter().cloned().zip(0..).collect();
    let mapped =
        || cut.iter().flatten().filter_map(|word| map.get(word)).map(|&id| u64::from(id)).sum();
    let fast: hashbrown::HashMap<String, u32, foldhash::fast::FixedState> =
        vectors.words.iter().cloned().zip(0..).collect();
    let fast =
        || cut.iter().flatten().filter_map(|word| fast.get(word)).map(|&id| u64::from(id)).sum();
    contests.hold(
        "look-up, a token",
        count,
        vec![
            ("ours", Box::new(ours)),
            ("std HashMap<String, u32>", Box::new(mapped)),
            ("hashbrown with foldhash", Box::new(fast)),
        ],
    );
    let mut phrase = Phrase::new(engine.model());
    let read = || {
        let mut words = 0;
        for text in texts {
            phrase.read(text);
            words += phrase.words().len() as u64;
        }
        words
    };
    contests.hold(
        "look-up, a pair of raw texts",
        texts.len() / 2,
        vec![("Phrase::read", Box::new(read))],
    );
}
