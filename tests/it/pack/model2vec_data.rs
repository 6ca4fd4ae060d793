//! model2vec folders that others distilled, against the embeddings that model2vec computes from
//! them and the segmentation of the `tokenizers` library.

use std::collections::HashMap;
use std::path::Path;

use cognate::model::subword::wordpieces;
use cognate_pack::readers::model2vec::Model2VecReader;
use cognate_pack::readers::{Budget, Subword, VectorReader};
use tokenizers::{Model, Tokenizer};

use crate::support;
use crate::support::command::{cognate, stderr};
use crate::support::data::shared_data;

struct Loaded {
    rows: HashMap<String, Vec<f32>>,
    order: Vec<String>,
    subword: Option<Subword>,
    normalised: bool,
}

fn load(folder: &Path) -> Loaded {
    let mut reader = Model2VecReader::open(folder, Budget::DEFAULT).unwrap();
    let (subword, normalised) = (reader.subword(), reader.settings().normalize);
    let (mut rows, mut order) = (HashMap::new(), Vec::new());
    let (mut word, mut row) = (Vec::new(), vec![0.0; reader.dims()]);
    while reader.next_row(&mut word, &mut row).unwrap() {
        let word = String::from_utf8(word.clone()).unwrap();
        rows.insert(word.clone(), row.clone());
        order.push(word);
    }
    Loaded { rows, order, subword, normalised }
}

impl Loaded {
    /// The mean of the rows of listed words, scaled to unit length where the model says so.
    fn embed(&self, words: &[&str]) -> Vec<f32> {
        let mut sum = vec![0.0f32; self.rows[words[0]].len()];
        for &word in words {
            sum.iter_mut().zip(&self.rows[word]).for_each(|(sum, value)| *sum += value);
        }
        let norm = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
        let by = if self.normalised { norm } else { words.len() as f32 };
        sum.iter().map(|value| value / by).collect()
    }
}

fn assert_embedding(found: &[f32], expected: &Path, tolerance: f32) {
    let expected = std::fs::read_to_string(expected).unwrap();
    let expected: Vec<Vec<f32>> = serde_json::from_str(&expected).unwrap();
    assert_eq!(found.len(), expected[0].len());
    for (a, b) in found.iter().zip(&expected[0]) {
        assert!((a - b).abs() <= tolerance, "found {found:?}, expected {expected:?}");
    }
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn means_of_rows_are_the_embeddings_that_model2vec_computes() {
    let folder = shared_data("fixtures/model2vec-float32");
    let float = load(&folder);
    // 29,528 entries, five of them special.
    assert_eq!(float.order.len(), 29_523);
    assert_embedding(&float.embed(&["hello", "world"]), &folder.join("expected_short.json"), 1e-5);
    assert_embedding(&float.embed(&["hello"; 1000]), &folder.join("expected_long.json"), 1e-5);

    let small = shared_data("fixtures/model2vec-int8");
    let small = load(&small);
    assert_eq!(small.order, float.order);
    assert_embedding(&small.embed(&["hello", "world"]), &folder.join("expected_short.json"), 2e-2);
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn a_quantised_vocabulary_with_scores_gives_the_same_embedding() {
    let folder = shared_data("fixtures/model2vec-vocab-quantized");
    let model = load(&folder);
    let expected = folder.join("expected_embeddings.json");
    assert_embedding(&model.embed(&["hello"; 1000]), &expected, 1e-5);
    assert_eq!(model.order.len(), 29_522);
    assert!(matches!(model.subword, Some(Subword::Unigram { .. })), "{:?}", model.subword);
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn words_are_cut_by_scores_as_the_tokenizers_library_cuts_them() {
    let folder = shared_data("fixtures/model2vec-vocab-quantized");
    let out = tempfile::tempdir().unwrap();
    let path = out.path().join("m.safetensors");
    let arguments = ["pack", folder.to_str().unwrap(), "--normalisation", "bert", "-o"];
    let arguments = [&arguments[..], &[path.to_str().unwrap()]].concat();
    let output = cognate(out.path(), &[], &arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    let model = cognate::Model::open(&path, &support::full()).unwrap();
    let reference = Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
    let texts = ["Hello, world!", "It's a (rather) unaffable tokenization; 3.14% of it?"];
    let mut cut = 0;
    // The rules apply NFKC first, which this tokenizer does not.
    let words = WORDS.into_iter().filter(|word| *word != "ﬁ");
    for text in words.chain(texts) {
        let phrase = model.phrase(text);
        let found: Vec<_> = phrase
            .words()
            .iter()
            .map(|&word| {
                let name = model.vocabulary().word(phrase.id(word).unwrap());
                name.strip_prefix("##").or(name.strip_prefix('▁')).unwrap_or(name)
            })
            .collect();
        let expected = reference.encode(text, false).unwrap();
        let tokens = expected.get_tokens().iter().zip(expected.get_ids());
        // What is unknown keeps its text there.
        let known = tokens.filter(|(_, id)| **id != 1).map(|(token, _)| token);
        let expected: Vec<_> = known.map(|token| token.trim_start_matches('▁')).collect();
        assert_eq!(found, expected, "{text}");
        cut += usize::from(found.len() > 1);
    }
    assert!(cut >= 20, "{cut} texts in several pieces");
}

/// Common, rare, inflected, made up, long, foreign, and some that cannot be segmented.
#[rustfmt::skip]
const WORDS: [&str; 50] = [
    "hello", "world", "the", "a", "unaffable", "embedding", "embeddings", "tokenization",
    "tokenizers", "antidisestablishmentarianism", "floccinaucinihilipilification", "covfefe",
    "lol", "looool", "yaaaaaas", "retweeted", "hashtag", "earthquake", "earthquakes",
    "bushfires", "queensland", "typhoon", "yolanda", "reddit", "selfie", "selfies", "brexit",
    "xyzzy", "qwertyuiop", "mmmmhmmmm", "supercalifragilisticexpialidocious", "größe", "naive",
    "naïve", "łódź", "москва", "привет", "日本", "日本語", "東", "🙂", "ok🙂", "x1y2z3", "2013",
    "20131107", "pneumonoultramicroscopicsilicovolcanoconiosis", "##s", "s##", "ﬁ",
    "llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch",
];

#[test]
#[ignore = "needs the data in ../shared/data"]
fn fifty_words_fall_into_the_pieces_that_the_tokenizers_library_finds() {
    let folder = shared_data("fixtures/model2vec-float32");
    let model = load(&folder);
    let Some(Subword::WordPiece { prefix }) = &model.subword else { panic!("{:?}", model.subword) };
    let index: HashMap<&str, u32> =
        model.order.iter().enumerate().map(|(id, word)| (word.as_str(), id as u32)).collect();
    let reference = Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
    let (mut unknown, mut cut) = (0, 0);
    for word in WORDS.into_iter().chain([&*"a".repeat(100), &*"a".repeat(101)]) {
        let mut ids = Vec::new();
        let segmented = wordpieces(word, prefix, |entry| index.get(entry).copied(), &mut ids);
        let found: Vec<&str> = ids.iter().map(|&id| model.order[id as usize].as_str()).collect();
        let expected = reference.get_model().tokenize(word).unwrap();
        let expected: Vec<&str> = expected.iter().map(|token| token.value.as_str()).collect();
        if segmented {
            assert_eq!(found, expected, "{word}");
            cut += usize::from(found.len() > 1);
        } else {
            assert_eq!(expected, ["[UNK]"], "{word}");
            unknown += 1;
        }
    }
    eprintln!("{cut} words in several pieces, {unknown} unknown");
    assert!(cut >= 20 && unknown >= 2, "{cut} words in several pieces, {unknown} unknown");
}
