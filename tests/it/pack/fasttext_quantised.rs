//! Quantised fastText models, whole and pruned, against the vectors that fastText gives words.

use std::collections::BTreeMap;

use cognate::Model;
use cognate_pack::readers::fasttext_bin::FastTextReader;
use cognate_pack::readers::positioned::Source;
use cognate_pack::readers::{Budget, ReadError, VectorReader};
use proptest::prelude::*;

use crate::support;
use crate::support::command::{cognate, stderr};

const PRUNED: &[u8] = include_bytes!("../../../crates/pack/tests/data/fasttext/pruned.ftz");
const WHOLE: &[u8] = include_bytes!("../../../crates/pack/tests/data/fasttext/whole.ftz");

/// What fastText says of a model.
#[derive(serde::Deserialize)]
struct Computed {
    listed: usize,
    vectors: BTreeMap<String, Vec<f32>>,
}

fn computed() -> BTreeMap<String, Computed> {
    serde_json::from_str(include_str!("../../../crates/pack/tests/data/fasttext/golden.json"))
        .unwrap()
}

fn open(bytes: &[u8]) -> Result<FastTextReader, ReadError> {
    FastTextReader::over(Source::memory("tiny.ftz", bytes.to_vec()), Budget::DEFAULT)
}

/// How many rows of words and n-grams there are, or the first error.
fn count_rows(bytes: &[u8]) -> Result<usize, ReadError> {
    let mut reader = open(bytes)?;
    let (mut word, mut row, mut rows) = (Vec::new(), vec![0.0; reader.dims()], 0);
    while reader.next_row(&mut word, &mut row)? {
        rows += 1;
    }
    while reader.next_bucket(&mut row)? {
        rows += 1;
    }
    Ok(rows)
}

fn assert_close(found: &[f32], expected: &[f32], word: &str) {
    let close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-6);
    assert!(found.len() == expected.len() && close, "{word}: {found:?}, expected {expected:?}");
}

#[test]
fn words_have_the_vectors_that_fasttext_gives_them() {
    for (name, bytes) in [("pruned", PRUNED), ("whole", WHOLE)] {
        let Computed { listed, vectors } = &computed()[name];
        let mut reader = open(bytes).unwrap();
        assert_eq!(reader.rows_hint(), Some(*listed as u64));
        let (mut word, mut row, mut compared) = (Vec::new(), vec![0.0; reader.dims()], 0);
        while reader.next_row(&mut word, &mut row).unwrap() {
            let word = std::str::from_utf8(&word).unwrap();
            if let Some(expected) = vectors.get(word) {
                assert_close(&row, expected, word);
                compared += 1;
            }
        }
        assert!(compared >= 20, "{name}: {compared} words compared");
        let buckets = std::iter::from_fn(|| reader.next_bucket(&mut row).unwrap().then_some(()));
        let buckets = buckets.count();
        let kept = reader.kept_buckets().map(<[u32]>::len);
        assert_eq!(kept.unwrap_or(300), buckets, "{name}: a row for each n-gram that there is");
        assert_eq!(kept.is_some(), name == "pruned");
    }
}

#[test]
fn a_packed_model_makes_words_that_are_not_listed_from_the_n_grams_that_are_left() {
    for (name, bytes) in [("pruned", PRUNED), ("whole", WHOLE)] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("v.ftz"), bytes).unwrap();
        let arguments = ["pack", "v.ftz", "-o", "m.safetensors", "--normalisation", "fasttext"];
        let output = cognate(folder.path(), &[], &arguments);
        assert!(output.status.success(), "{}", stderr(&output));
        let path = folder.path().join("m.safetensors");
        let model = Model::open(&path, &support::full()).unwrap();
        let (mut made, mut none) = (0, 0);
        let vectors = &computed()[name].vectors;
        // The end of a sentence is no token of any text.
        for (word, expected) in vectors.iter().filter(|(word, _)| *word != "</s>") {
            let phrase = model.phrase(word);
            let &[found] = phrase.words() else {
                assert!(expected.iter().all(|&value| value == 0.0), "{word} has no n-gram");
                none += 1;
                continue;
            };
            let mut row = vec![0.0; model.dims()];
            phrase.row(found).copy_to(&mut row);
            assert_close(&row, expected, word);
            made += usize::from(phrase.id(found).is_none());
        }
        assert!(made >= 20, "{name}: {made} made");
        assert_eq!(none > 0, name == "pruned", "{none} words without an n-gram that was kept");
    }
}

#[test]
fn every_truncation_is_an_error() {
    let rows = count_rows(PRUNED).unwrap();
    assert!(rows > 200, "{rows} rows");
    for length in (0..PRUNED.len()).step_by(7) {
        assert!(count_rows(&PRUNED[..length]).is_err(), "cut to {length} bytes");
    }
}

proptest! {
    #[test]
    fn a_changed_byte_gives_rows_or_an_error(
        at in any::<prop::sample::Index>(), byte: u8, pruned: bool,
    ) {
        let mut bytes = if pruned { PRUNED } else { WHOLE }.to_vec();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(rows) = count_rows(&bytes) {
            prop_assert!(rows <= 2 * 300 + 200);
        }
    }
}
