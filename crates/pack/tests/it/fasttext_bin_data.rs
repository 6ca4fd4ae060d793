//! Binary fastText models that others trained, against their text export and against gensim 4.4.

use std::collections::HashMap;

use cognate::model::subword::NGrams;
use cognate_pack::readers::fasttext_bin::FastTextReader;
use cognate_pack::readers::{Budget, ReadError, Subword, VectorReader};
use cognate_testing::data::shared_data;

struct Loaded {
    words: HashMap<Vec<u8>, Vec<f32>>,
    order: Vec<Vec<u8>>,
    counts: Vec<u64>,
    rule: Option<NGrams>,
    buckets: Vec<Vec<f32>>,
}

fn load(name: &str) -> Loaded {
    let path = shared_data(&format!("fixtures/gensim/{name}"));
    let mut reader = FastTextReader::open(&path, Budget::DEFAULT).unwrap();
    let rule = reader.subword().map(|subword| match subword {
        Subword::NGrams { min, max, buckets } => NGrams { min, max, buckets },
        other => panic!("fastText has n-grams, not {other:?}"),
    });
    let (words, order, counts) = Default::default();
    let mut loaded = Loaded { words, order, counts, rule, buckets: Vec::new() };
    let (mut word, mut row) = (Vec::new(), vec![0.0; reader.dims()]);
    while reader.next_row(&mut word, &mut row).unwrap() {
        loaded.words.insert(word.clone(), row.clone());
        loaded.order.push(word.clone());
        loaded.counts.push(reader.count().unwrap());
    }
    while reader.next_bucket(&mut row).unwrap() {
        loaded.buckets.push(row.clone());
    }
    assert_eq!(reader.rows_hint(), Some(loaded.order.len() as u64));
    loaded
}

impl Loaded {
    /// The vector of any word: listed, or the mean of its n-grams.
    fn vector(&self, word: &str) -> Vec<f32> {
        if let Some(row) = self.words.get(word.as_bytes()) {
            return row.clone();
        }
        let ids: Vec<u64> = self.rule.unwrap().ids(word.as_bytes()).collect();
        let mut sum = vec![0.0; self.buckets[0].len()];
        for &id in &ids {
            sum.iter_mut().zip(&self.buckets[id as usize]).for_each(|(sum, value)| *sum += value);
        }
        sum.iter_mut().for_each(|sum| *sum /= ids.len() as f32);
        sum
    }
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    let furthest = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(furthest <= tolerance, "found {found:?}, expected {expected:?}");
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn every_word_has_the_vector_of_the_text_export() {
    let model = load("crime-and-punishment.bin");
    let export = shared_data("fixtures/gensim/crime-and-punishment.vec");
    let export = std::fs::read_to_string(export).unwrap();
    let mut lines = export.lines();
    assert_eq!(lines.next(), Some("291 5"));
    let mut compared = 0;
    for (line, word) in lines.zip(&model.order) {
        let mut parts = line.trim_end().split(' ');
        assert_eq!(parts.next().unwrap().as_bytes(), word);
        let expected: Vec<f32> = parts.map(|part| part.parse().unwrap()).collect();
        assert_eq!(expected.len(), 5);
        assert_close(&model.words[word], &expected, 5e-6);
        compared += 1;
    }
    assert_eq!((compared, model.order.len()), (291, 291));
    assert!(model.counts.is_sorted_by(|one, next| one >= next));
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn words_seen_and_unseen_have_the_vectors_that_gensim_gives_them() {
    // File, words, buckets; then words and the first three numbers of their vectors.
    type Expected = (&'static str, [f32; 3]);
    #[rustfmt::skip]
    let files: [(&str, usize, usize, [Expected; 4]); 4] = [
        ("crime-and-punishment.bin", 291, 100, [
            ("напротив;", [-0.04549492, 0.0038485355, 0.057892088]),
            ("unseenword", [0.005082801, 0.086694494, 0.039430857]),
            ("раскольниковщина", [0.016301032, 0.032101784, 0.02813589]),
            ("ab", [-0.06750396, 0.10926392, 0.044481035]),
        ]),
        ("lee_fasttext_new.bin", 1763, 1000, [
            ("advance", [-0.35486653, -0.13718249, 0.08306501]),
            ("unseenword", [-0.29870263, 0.039294537, 0.06502532]),
            ("раскольниковщина", [-0.33698684, -0.095465094, 0.05585889]),
            ("ab", [-0.40120828, -0.36965048, 0.34353045]),
        ]),
        ("toy-model.bin", 22, 100, [
            ("by", [0.13272184, 0.12396861, 0.084777206]),
            ("unseenword", [0.037043616, 0.08143855, 0.024568455]),
            ("раскольниковщина", [0.054708414, 0.09012263, 0.06961349]),
            ("ab", [0.08693812, 0.08408172, 0.057791438]),
        ]),
        ("toy-model-pretrained.bin", 24, 100, [
            ("dummy", [0.46649376, 0.59585375, 0.44658735]),
            ("unseenword", [0.5144654, 0.65688276, 0.46153364]),
            ("раскольниковщина", [0.50684154, 0.70929134, 0.46728575]),
            ("ab", [0.538879, 0.8120184, 0.54069966]),
        ]),
    ];
    for (name, words, buckets, expected) in files {
        let model = load(name);
        assert_eq!((model.order.len(), model.buckets.len()), (words, buckets), "{name}");
        for (word, vector) in expected {
            assert_close(&model.vector(word)[..3], &vector, 1e-6);
        }
    }
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn a_supervised_model_gives_its_words_without_its_labels_and_has_no_n_grams() {
    let model = load("pang_lee_polarity_fasttext.bin");
    assert_eq!((model.order.len(), model.rule), (1694, None));
    assert!(model.buckets.is_empty());
    assert!(!model.order.iter().any(|word| word.starts_with(b"__label__")));
    assert!(model.words.values().flatten().all(|value| value.is_finite()));
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn files_from_before_the_magic_number_are_refused_with_advice() {
    for name in ["lee_fasttext.bin", "non_ascii_fasttext.bin", "cp852_fasttext.bin"] {
        let path = shared_data(&format!("fixtures/gensim/{name}"));
        let error = FastTextReader::open(&path, Budget::DEFAULT).unwrap_err();
        assert!(matches!(error, ReadError::Unsupported { .. }), "{error}");
        assert!(error.to_string().contains("793712314"), "{error}");
    }
}
