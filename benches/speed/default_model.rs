//! The model that comes with the program: every step from word ids to score and from raw texts to score,
//! on one thread.

use std::path::Path;

use cognate::engine::Engine;
use cognate::methods::{Measure, Method, Scratch};
use cognate::model::Phrase;

use crate::support::Contestant;
use crate::{Contests, at, texts, widths};

/// What all names of this part hold.
pub const NAME: &str = "default model";

/// The methods that are measured; the last is the one that `auto` stands for.
fn methods(engine: &Engine) -> Vec<(&'static str, Method)> {
    let named = [
        Method::AvgCos,
        Method::DynamaxJaccard,
        Method::DynamaxWeighted,
        Method::Coverage,
        Method::Blend,
    ];
    let mut methods: Vec<_> =
        named.into_iter().map(|method| (method.info().name, method)).collect();
    methods.push(("auto", engine.method("auto").expect("auto is always some method")));
    methods
}

pub fn all(contests: &mut Contests, pairs: &[(String, String)]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors");
    let engine = Engine::open(&path, &Default::default()).expect("the model opens");
    let read = |text: &str| {
        let mut phrase = Phrase::new(engine.model());
        phrase.read(text);
        phrase
    };
    let phrases: Vec<(Phrase<'_>, Phrase<'_>)> =
        pairs.iter().map(|(a, b)| (read(a), read(b))).collect();
    let both = || phrases.iter().flat_map(|(a, b)| [a, b]);
    let words: usize = both().map(|phrase| phrase.words().len()).sum();
    let made = |phrase: &Phrase<'_>| {
        phrase.words().iter().filter(|word| phrase.id(**word).is_none()).count()
    };
    let made: usize = both().map(made).sum();
    println!(
        "{NAME}: {} words of {} dimensions, {:?}; {:.1} words a text, {:.1} % of them not listed",
        engine.model().vectors().len(),
        engine.model().dims(),
        engine.model().dtype(),
        words as f64 / (2 * pairs.len()) as f64,
        100.0 * made as f64 / words as f64,
    );
    let (engine, phrases) = (&engine, &phrases);
    let ids =
        methods(engine).into_iter().map(|(name, method)| (name, from_ids(engine, phrases, method)));
    contests.hold(&format!("{NAME}, a pair from ids"), pairs.len(), ids.collect());
    let raw = methods(engine).into_iter().map(|(name, method)| -> Contestant<'_> {
        (name, Box::new(move || texts::scores(engine, method, pairs)))
    });
    contests.hold(&format!("{NAME}, a pair of raw texts"), pairs.len(), raw.collect());
    let mut phrase = Phrase::new(engine.model());
    let look_up = || {
        let mut words = 0;
        for (a, b) in pairs {
            for text in [a, b] {
                phrase.read(text);
                words += phrase.words().len() as u64;
            }
        }
        words
    };
    let look_up: Vec<Contestant<'_>> = vec![("Phrase::read", Box::new(look_up))];
    contests.hold(&format!("{NAME}, a pair of raw texts to ids"), pairs.len(), look_up);
    for method in [Method::AvgCos, Method::DynamaxJaccard] {
        let at_widths = widths().map(|(width, label)| -> Contestant<'_> {
            let mut run = from_ids(engine, phrases, method);
            (label, Box::new(move || at(width, &mut run)))
        });
        let name = format!("{NAME}, {} from ids by width", method.info().name);
        contests.hold(&name, pairs.len(), at_widths.collect());
    }
}

/// Scores pairs of texts that were looked up before.
fn from_ids<'a>(
    engine: &'a Engine,
    phrases: &'a [(Phrase<'a>, Phrase<'a>)],
    method: Method,
) -> Box<dyn FnMut() -> u64 + 'a> {
    let scorer = engine.scorer(method).expect("the model serves it");
    let mut scratch = Scratch::default();
    Box::new(move || {
        let score = |(one, other): &(Phrase<'_>, Phrase<'_>)| {
            scorer.pair(Measure::Cosine, one, other, &mut scratch)
        };
        phrases.iter().map(score).sum::<f32>() as u64
    })
}
