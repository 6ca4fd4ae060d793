//! Seeds for opening models: one a rule for unlisted words, of each type of numbers, and broken.
//!
//! Digests need not be true here: the target opens every file once as it is and once with its
//! digests made true.

use cognate::model::Unknown;
use cognate::model::format::Dtype;
use cognate::model::pieces::put_pieces;
use cognate::model::unknown::Fallback;
use cognate::model::unlisted::{SUBWORD_SECTION, SubwordRule};
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Table};
use cognate::text::Normalisation;
use half::f16;

use super::{Seed, with};

const WORDS: [&str; 8] = ["the", "quake", "hit", "city", "o'neill", "new", "york", "##town"];
const DIMS: usize = 4;
const BUCKETS: usize = 5;
const PIECES: [&str; 4] = ["to", "##wn", "##s", "é"];

/// Numbers that an int8 holds as they are.
fn numbers(rows: usize) -> Vec<i8> {
    (0..rows * DIMS).map(|place| (place * 37 % 201) as i8).collect()
}

fn model(dtype: Dtype, unknown: &Unknown, rule: Option<SubwordRule>) -> Vec<u8> {
    let (rows, buckets) = (numbers(WORDS.len()), numbers(BUCKETS));
    let halves: Vec<f16> = rows.iter().map(|&value| f16::from_f32(value.into())).collect();
    let singles: Vec<f32> = rows.iter().map(|&value| value.into()).collect();
    let (scales, idf) = ([0.5_f32; WORDS.len()], [1.5_f32; WORDS.len()]);
    let scores: Vec<f64> = (0..WORDS.len()).map(|place| -(place as f64)).collect();
    let (counts, documents) = ([9_u64; WORDS.len()], [3_u32; WORDS.len()]);
    let tables = VocabularyTables::build(WORDS.iter().copied());
    let strings = VocabularyTables::build(PIECES.into_iter());
    let shape = [WORDS.len(), DIMS];
    let plain = Normalisation::preset("plain").unwrap();
    let mut draft = Draft::default();
    let entries = [
        ("dim", DIMS.to_string()),
        ("normalisation", serde_json::to_string(&plain).unwrap()),
        ("unknown", serde_json::to_string(unknown).unwrap()),
        ("frequency", "none".to_owned()),
        ("tokens", "100".to_owned()),
        ("documents", "20".to_owned()),
        ("idf_unknown", "8.5".to_owned()),
    ];
    draft.metadata = entries.map(|(key, value)| (key.to_owned(), value)).into();
    draft.tables.push(match dtype {
        Dtype::F16 => Table::new("vectors", dtype, &shape, &halves),
        Dtype::I8 => Table::new("vectors", dtype, &shape, &rows),
        _ => Table::new("vectors", Dtype::F32, &shape, &singles),
    });
    if dtype == Dtype::I8 {
        draft.tables.push(Table::new("scales", Dtype::F32, &[WORDS.len()], &scales));
    }
    draft.push_vocabulary(&tables);
    draft.tables.push(Table::new("counts", Dtype::U64, &[WORDS.len()], &counts));
    draft.tables.push(Table::new("df", Dtype::U32, &[WORDS.len()], &documents));
    draft.tables.push(Table::new("idf", Dtype::F32, &[WORDS.len()], &idf));
    if let Some(rule) = rule {
        let tables = match rule {
            SubwordRule::NGrams { .. } => vec![
                Table::new("buckets", Dtype::I8, &[BUCKETS, DIMS], &buckets),
                Table::new("scales", Dtype::F32, &[BUCKETS], &scales[..BUCKETS]),
            ],
            SubwordRule::WordPiece { .. } => Vec::new(),
            SubwordRule::Unigram { .. } => {
                vec![Table::new("scores", Dtype::U64, &[WORDS.len()], &scores)]
            }
        };
        draft.set_section(SUBWORD_SECTION, serde_json::to_string(&rule).unwrap(), tables);
    }
    if matches!(unknown, Unknown::Fallback(Fallback { piece_norm: Some(_), .. })) {
        let rows = vec![
            Table::new("rows", Dtype::I8, &[PIECES.len(), DIMS], &buckets[..PIECES.len() * DIMS]),
            Table::new("scales", Dtype::F32, &[PIECES.len()], &scales[..PIECES.len()]),
        ];
        put_pieces(&mut draft, &strings, rows, None).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tiny.safetensors");
    draft.write(&path).unwrap();
    std::fs::read(path).unwrap()
}

pub(super) fn seeds() -> Vec<Seed> {
    let fallback = Unknown::Fallback(Fallback::english(0.25));
    let with_pieces = Fallback { piece_norm: Some(0.5), ..Fallback::english(0.25) };
    let ngrams = SubwordRule::NGrams { min: 2, max: 3, buckets: BUCKETS as u64 };
    let longest = SubwordRule::NGrams { min: 0, max: u32::MAX, buckets: BUCKETS as u64 };
    let pieces = SubwordRule::WordPiece { prefix: "##".to_owned() };
    let scored = SubwordRule::Unigram { unknown_score: -17.0, longest: 9 };
    let whole = model(Dtype::F32, &fallback, None);
    let by_ngrams = model(Dtype::I8, &Unknown::Subword, Some(ngrams));
    let data = 8 + u64::from_le_bytes(*whole.first_chunk().unwrap()) as usize;
    let mut endless_length = whole.clone();
    endless_length[..8].fill(0xff);
    let named = [
        ("skip-i8", model(Dtype::I8, &Unknown::Skip, None)),
        ("wordpiece-f16", model(Dtype::F16, &Unknown::Subword, Some(pieces))),
        ("unigram-f16", model(Dtype::F16, &Unknown::Subword, Some(scored))),
        ("pieces-i8", model(Dtype::I8, &Unknown::Fallback(with_pieces), None)),
        ("no-section", model(Dtype::F32, &Unknown::Subword, None)),
        ("cut-header", whole[..data / 2].to_vec()),
        ("cut-data", whole[..data + 70].to_vec()),
        ("header-endless", endless_length),
        ("another-version", with(&whole, b"cognate/1", b"cognate/2")),
        ("dim-0", with(&whole, b"\"dim\":\"4\"", b"\"dim\":\"0\"")),
        ("vocab-9", with(&whole, b"\"vocab\":\"8\"", b"\"vocab\":\"9\"")),
        ("shape-wrong", with(&whole, b"\"shape\":[8,4]", b"\"shape\":[4,8]")),
        ("hash-infinite", with(&whole, b"\\\"hash_norm\\\":0.25", b"\\\"hash_norm\\\":9e39")),
        ("no-tokens", with(&whole, b"\"tokens\":\"100\"", b"\"tokens\":\"000\"")),
        ("rules-changed", with(&whole, b"\\\"urls\\\":\\\"drop\\\"", b"\\\"urls\\\":\\\"text\\\"")),
        ("no-buckets", with(&by_ngrams, b"\\\"buckets\\\":5", b"\\\"buckets\\\":0")),
        ("longest-ngrams", model(Dtype::F16, &Unknown::Subword, Some(longest))),
        ("fallback-f32", whole),
        ("ngrams-i8", by_ngrams),
        ("empty", Vec::new()),
    ];
    named.map(|(name, file)| ("model_open", name, file)).into()
}
