//! Growth of the model: a pair's cost by the words of the vocabulary, with texts of one length.

use std::cell::Cell;
use std::path::Path;

use cognate::engine::Engine;
use cognate::model::format::Dtype;

use crate::ground::Vectors;
use crate::grown::grown;
use crate::panels::Panel;
use crate::requests::scores;
use crate::support::{Clock, Contestant};
use crate::{METHODS, ROUNDS, support};

const SIZES: [usize; 7] = [10_000, 31_623, 100_000, 316_228, 500_000, 1_000_000, 2_000_000];
/// Words a text: about those of a tweet, and every one of them known whatever the vocabulary.
const WORDS: usize = 10;
/// Pairs of one turn, and turns before the texts come round again: the rows of all of them together
/// are 320 MB, more than a cache holds.
const PAIRS: usize = 4_000;
const TURNS: usize = 10;

/// How the words of texts are drawn.
#[derive(Clone, Copy)]
enum Drawn {
    /// A few often, most seldom, as in text: the n-th word in proportion to 1/n.
    AsInText,
    /// Every word as likely as another, so that nearly each is far away in memory.
    Evenly,
}

/// One model of one size, and texts for it.
struct Grown {
    words: usize,
    engine: Engine,
    as_in_text: Vec<(String, String)>,
    evenly: Vec<(String, String)>,
    turn: Cell<usize>,
}

/// Cost of a pair by the size of the vocabulary.
pub fn panel(real: &Vectors, folder: &Path) -> Panel {
    let models: Vec<Grown> = SIZES.iter().map(|&words| model(real, words, folder)).collect();
    let mut panel =
        Panel::new("vocabulary", "Words of the vocabulary", "words of the vocabulary", "ns a pair");
    for method in METHODS {
        for (drawn, how) in [(Drawn::AsInText, "Zipf"), (Drawn::Evenly, "evenly")] {
            let contestant = |model: &'_ Grown| -> u64 {
                let pairs = match drawn {
                    Drawn::AsInText => &model.as_in_text,
                    Drawn::Evenly => &model.evenly,
                };
                let turn = model.turn.replace(model.turn.get() + 1) % TURNS;
                scores(&model.engine, method, &pairs[turn * PAIRS..][..PAIRS], 100)
            };
            let mut contestants: Vec<Contestant<'_>> = models
                .iter()
                .map(|model| ("", Box::new(move || contestant(model)) as Box<_>))
                .collect();
            let taken = support::interleaved_by(Clock::Thread, &mut contestants, ROUNDS);
            let nanos = |seconds: f64| seconds * 1e9 / PAIRS as f64;
            let point = |(model, taken): (&Grown, f64)| (model.words as f64, nanos(taken));
            let points = models.iter().zip(taken).map(point).collect();
            panel = panel.line(&format!("{}, {how}", method.name()), points);
        }
    }
    panel
}

fn model(real: &Vectors, words: usize, folder: &Path) -> Grown {
    let folder = folder.join(words.to_string());
    std::fs::create_dir_all(&folder).expect("room for models");
    let vectors = grown(real, words, real.dims);
    let engine = vectors.engine(&folder, Dtype::F32);
    Grown {
        words,
        engine,
        as_in_text: texts(&vectors.words, Drawn::AsInText),
        evenly: texts(&vectors.words, Drawn::Evenly),
        turn: Cell::new(0),
    }
}

fn texts(words: &[String], drawn: Drawn) -> Vec<(String, String)> {
    let plain = |word: &&String| word.bytes().all(|byte| byte.is_ascii_lowercase());
    let mut state = 1_u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let unit = (state >> 11) as f64 / (1_u64 << 53) as f64;
        let place = match drawn {
            Drawn::AsInText => (words.len() as f64).powf(unit) - 1.0,
            Drawn::Evenly => words.len() as f64 * unit,
        };
        let from = (place as usize).min(words.len() - 1);
        words[from..].iter().chain(words).find(plain).map_or("", String::as_str)
    };
    let mut text = || (0..WORDS).map(|_| word()).collect::<Vec<_>>().join(" ");
    (0..PAIRS * TURNS).map(|_| (text(), text())).collect()
}
