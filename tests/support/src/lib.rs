//! What tests of several crates share: a tiny model built in code, chance that can be repeated, the data
//! beside the repository, and an allocator that counts.

#![allow(clippy::unwrap_used)]

pub mod allocation;
pub mod breaches;
pub mod data;
pub mod word_table;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::LazyLock;
use std::time::Duration;

use cognate::engine::Engine;
use cognate::methods::means::{learned_idf, sif, usif};
use cognate::methods::polarity;
use cognate::methods::ranker::Encoder;
use cognate::methods::sets::fbow_jaccard::Universe;
use cognate::methods::sets::{fbow_jaccard, same_event};
use cognate::methods::{Fitted, Unfittable, ranker};
use cognate::model::format::Dtype;
use cognate::model::unknown::Fallback;
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Table};
use cognate::model::{Model, OpenOptions, Unknown, Verify};
use cognate::text::Normalisation;

/// Words of the tiny model.
pub const WORDS: [&str; 12] = [
    "the",
    "quake",
    "hits",
    "city",
    "earthquake",
    "shakes",
    "town",
    "o'neill",
    "über",
    "0",
    "new",
    "york",
];
/// Dimensions of the tiny model.
pub const DIMS: usize = 20;

/// A row that depends on the word alone.
pub fn row_of(word: &str) -> Vec<f32> {
    let mut row = vec![0.0; DIMS];
    cognate::model::unknown::hash_vector(word, 1.0, &mut row);
    for (place, value) in row.iter_mut().enumerate() {
        *value *= 1.0 + (place + word.len()) as f32 / 16.0;
    }
    row
}

/// Bytes of the tiny model, with the given element type.
pub fn tiny(dtype: Dtype) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.safetensors");
    let rows: Vec<f32> = WORDS.iter().flat_map(|word| row_of(word)).collect();
    let tables = VocabularyTables::build(WORDS.iter().copied());
    let counts: Vec<u64> = (0..WORDS.len() as u64).map(|id| 1000 / (id + 1)).collect();
    let idf: Vec<f32> = counts.iter().map(|&count| (3000.0 / count as f32).ln()).collect();
    let weights: Vec<f32> = vec![0.9, 0.5, 0.2];
    let half: Vec<half::f16> = rows.iter().map(|&value| half::f16::from_f32(value)).collect();
    let bytes: Vec<i8> = rows.iter().map(|&value| (value * 40.0) as i8).collect();
    let scales = vec![1.0_f32 / 40.0; WORDS.len()];
    let shape = [WORDS.len(), DIMS];
    let mut draft = Draft { metadata: metadata(), ..Draft::default() };
    draft.tables.push(match dtype {
        Dtype::F16 => Table::new("vectors", dtype, &shape, &half),
        Dtype::I8 => Table::new("vectors", dtype, &shape, &bytes),
        _ => Table::new("vectors", Dtype::F32, &shape, &rows),
    });
    if dtype == Dtype::I8 {
        draft.tables.push(Table::new("scales", Dtype::F32, &[WORDS.len()], &scales));
    }
    draft.push_vocabulary(&tables);
    draft.tables.push(Table::new("counts", Dtype::U64, &[WORDS.len()], &counts));
    draft.tables.push(Table::new("idf", Dtype::F32, &[WORDS.len()], &idf));
    let weights = vec![Table::new("weights", Dtype::F32, &[3], &weights)];
    draft.set_section("example", "{\"kind\":\"test\"}".to_owned(), weights);
    draft.write(&path).unwrap();
    std::fs::read(path).unwrap()
}

/// The tiny model's own metadata; sizes are added by the draft.
pub fn metadata() -> BTreeMap<String, String> {
    let plain = Normalisation::preset("plain").unwrap();
    let unknown = Unknown::Fallback(Fallback::english(0.9));
    let entries = [
        ("dim", DIMS.to_string()),
        ("normalisation", serde_json::to_string(&plain).unwrap()),
        ("unknown", serde_json::to_string(&unknown).unwrap()),
        ("frequency", "none".to_owned()),
        ("tokens", "3000".to_owned()),
        ("idf_unknown", "8.5".to_owned()),
        ("licence", "none needed".to_owned()),
    ];
    entries.map(|(key, value)| (key.to_owned(), value)).into()
}

/// Options that read every byte.
pub fn full() -> OpenOptions {
    OpenOptions::default()
}

/// Options that read the structure alone.
pub fn structure() -> OpenOptions {
    OpenOptions { verify: Verify::Structure, ..OpenOptions::default() }
}

/// The tiny model, opened.
pub fn tiny_model() -> Model {
    Model::from_bytes(&tiny(Dtype::F32), &full()).unwrap()
}

/// Sentences that the tiny model's components are fitted on.
pub const SENTENCES: [&str; 9] = [
    "the quake hits the city",
    "the earthquake shakes the town",
    "new york shakes",
    "o'neill hits 0",
    "über the new city",
    "the town",
    "the new earthquake hits the new town",
    "quake quake quake",
    "york, the city of 0 quakes",
];

/// What sees each of the sentences that something is fitted on.
pub type See<'s> = dyn FnMut(&str) + 's;

/// Shows sentences to what is fitted on them.
pub fn shown<'a>(
    sentences: &'a [impl AsRef<str>],
) -> impl FnMut(&mut See<'_>) -> Result<(), Unfittable> + 'a {
    |see| {
        sentences.iter().for_each(|sentence| see(sentence.as_ref()));
        Ok(())
    }
}

/// The tiny model with every section that a method reads: fitted where there is something to fit.
pub fn served() -> Model {
    let model = tiny_model();
    with_sections(
        &model,
        &[
            sif::fit(&model, shown(&SENTENCES)).unwrap(),
            usif::fit(&model, shown(&SENTENCES)).unwrap(),
            learned("euclidean", vec![0.9, 0.5, 0.2, 0.1]),
            fbow_jaccard::fit(&model, Universe::Axes, 7, 0),
            ranker(Encoder::Patt, 1),
            polarity::fit(&model.vocabulary(), POLARITY.lines()).unwrap(),
            same_event::Weights { coverage: 9.0, rare: 0.2, constant: -5.0 }.fitted(),
        ],
    )
}

/// What words of the tiny model do to the sense of a text.
pub const POLARITY: &str = "the\tnegates\nhits\tjoins\nquake\topposite\tcity\nnew\tcounts\t5\n\
                            york\tlifts\nun-\treverses\n-n't\tnegates\n";

/// A ranker for the tiny model with weights of chance. A model holds one.
pub fn ranker(encoder: Encoder, seed: u64) -> Fitted {
    let (kernel, filters, hidden, joint) = (2, 7, 5, 6);
    let settings =
        ranker::Settings { encoder, kernel, filters, hidden, joint, alpha: 0.0, trained: None };
    let mut chance = Chance(seed);
    let mut number = |_| chance.below(2001) as f32 / 1000.0 - 1.0;
    let mut tensor = |(name, shape): (&'static str, Vec<usize>)| {
        let numbers = (0..shape.iter().product()).map(&mut number).collect();
        (name, shape, numbers)
    };
    let shapes = settings.shape(DIMS).tensors();
    Fitted {
        section: ranker::SECTION,
        settings: serde_json::to_string(&settings).unwrap(),
        tensors: shapes.into_iter().map(&mut tensor).collect(),
        bytes: Vec::new(),
    }
}

/// The tiny model with a ranker alone.
pub fn ranking(encoder: Encoder, seed: u64) -> Model {
    with_sections(&tiny_model(), &[ranker(encoder, seed)])
}

/// The file of the repository's model.
pub fn default_path() -> PathBuf {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors").into()
}

/// The model of the repository.
pub fn default_model() -> Model {
    Model::open(&default_path(), &full()).unwrap()
}

/// The model of [`served`] without vectors for words it does not list.
pub fn strict() -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("strict.safetensors");
    let model = served();
    let mut draft = Draft::from_model(&model);
    let unknown = serde_json::to_string(&Unknown::Skip).unwrap();
    draft.metadata.insert("unknown".to_owned(), unknown);
    draft.write(&path).unwrap();
    Model::from_bytes(&std::fs::read(path).unwrap(), &full()).unwrap()
}

/// Weights as training leaves them, with a field that only training reads.
pub fn learned(measure: &str, weights: Vec<f32>) -> Fitted {
    let set = serde_json::json!({"measure": measure, "loss": "median"});
    Fitted {
        section: learned_idf::SECTION,
        settings: serde_json::json!({"default": "own", "sets": {"own": set}}).to_string(),
        tensors: vec![("weights.own", vec![weights.len()], weights)],
        bytes: Vec::new(),
    }
}

/// A model with more sections.
pub fn with_sections(model: &Model, sections: &[Fitted]) -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("more.safetensors");
    let mut draft = Draft::from_model(model);
    sections.iter().for_each(|fitted| fitted.put_into(&mut draft));
    draft.write(&path).unwrap();
    Model::from_bytes(&std::fs::read(path).unwrap(), &full()).unwrap()
}

/// An engine over [`served`], made once.
pub fn engine() -> &'static Engine {
    static ENGINE: LazyLock<Engine> = LazyLock::new(|| Engine::new(served()).unwrap());
    &ENGINE
}

/// A small generator with a seed, for tests that need chance they can repeat.
pub struct Chance(pub u64);

impl Chance {
    /// The next number.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// The one seed that a failed test of chance asked to be run again with.
pub fn seed() -> Option<u64> {
    let seed = std::env::var_os("TEST_COGNATE_SEED")?;
    Some(seed.to_str()?.parse().expect("TEST_COGNATE_SEED is a number"))
}

/// How often a test of chance is repeated: `ordinary`, or `long` in the long lane.
pub fn rounds(ordinary: usize, long: usize) -> usize {
    if std::env::var_os("TEST_COGNATE_LONG").is_some() { long } else { ordinary }
}

/// Kills a training at a moment of chance and says whether it left a state to go on from.
///
/// Every other time (`soon`) the moment comes soon after a state was first kept, in as many runs as
/// it takes: how long a run lasts says little on a machine that others use as well.
pub fn kill(mut start: impl FnMut() -> Child, state: &Path, within: Duration, soon: bool) -> bool {
    for _ in 0..if soon { 100 } else { 1 } {
        let mut run = start();
        while soon && !state.exists() && run.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(if soon { within / 16 } else { within });
        run.kill().unwrap();
        run.wait().unwrap();
        if state.exists() {
            return true;
        }
    }
    false
}
