//! Files that others wrote, packed and opened again: what stood in them is what a text meets.

use std::path::Path;

use cognate::model::format::Dtype;
use cognate::model::phrase::Found;
use cognate::model::{Frequency, Model, Unknown};
use cognate::text::Normalisation;
use cognate_pack as pack;
use cognate_pack::counts::Documents;
use cognate_pack::intake::{BadUtf8, FlawedRows, Policy};
use cognate_pack::readers::{Format, Source};
use cognate_pack::transform::Changes;
use cognate_pack::{PackError, PackOptions, Packed, UnknownChoice};
use cognate_testing as support;
use cognate_testing::data::shared_data;

fn options(source: Source, folder: &Path, normalisation: &str) -> PackOptions {
    PackOptions {
        source,
        output: folder.join("m.safetensors"),
        dtype: Dtype::F32,
        policy: Policy {
            duplicates: FlawedRows::Refuse,
            non_finite: FlawedRows::Refuse,
            utf8: BadUtf8::Strict,
            lower: false,
            words: u64::MAX,
        },
        changes: Changes::default(),
        normalisation: Normalisation::preset(normalisation).unwrap(),
        unknown: UnknownChoice::Format,
        pieces: None,
        frequency: Frequency::None,
        counts: None,
        corpus: None,
        polarity: None,
        documents: Documents::Line,
        licence: None,
        auto_method: None,
    }
}

/// Packs with what the format says of itself and opens what came of it.
fn packed(path: &Path, normalisation: &str) -> (Packed, Model) {
    let folder = tempfile::tempdir().unwrap();
    let options = options(Source::at(path), folder.path(), normalisation);
    let packed = pack::pack(&options).unwrap_or_else(|error| panic!("{error}"));
    let model = Model::open(&packed.written.path, &support::full()).unwrap();
    assert_eq!(packed.written.fingerprint, model.fingerprint());
    (packed, model)
}

fn row(model: &Model, id: u32) -> Vec<f32> {
    let mut row = vec![0.0; model.dims()];
    model.vectors().row(id).unwrap().copy_to(&mut row);
    row
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn one_slice_of_glove_in_four_formats_becomes_one_model() {
    let mut models = Vec::new();
    for ending in ["glove.txt", "word2vec.txt", "word2vec.bin", "npy"] {
        let path = shared_data(&format!("vectors/slice/glove.6B.100d.top2000.{ending}"));
        let (packed, model) = packed(&path, "glove-6b");
        assert_eq!((packed.words, packed.dims), (2000, 100), "{ending}");
        models.push((ending, model));
    }
    let (_, first) = &models[0];
    let the = first.vocabulary().lookup("the").unwrap();
    assert_eq!(row(first, the)[..3], [-0.038194, -0.24487, 0.72812]);
    for (ending, model) in &models[1..] {
        assert!(model.vocabulary().words().eq(first.vocabulary().words()), "{ending}: words");
        for id in 0..2000 {
            assert_eq!(row(model, id), row(first, id), "{ending}: row {id}");
        }
    }
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn a_text_gets_the_vectors_that_fasttext_gives_its_words() {
    let path = shared_data("fixtures/gensim/crime-and-punishment.bin");
    let (packed, model) = packed(&path, "fasttext");
    assert_eq!((packed.words, packed.dims, packed.counted_words), (291, 5, 291));
    assert_eq!(*model.unknown(), Unknown::Subword);
    // What gensim says of the same file.
    let expected = [
        ("unseenword", [0.005082801, 0.086694494, 0.039430857]),
        ("раскольниковщина", [0.016301032, 0.032101784, 0.02813589]),
        ("ab", [-0.06750396, 0.10926392, 0.044481035]),
    ];
    let phrase = model.phrase("unseenword раскольниковщина: ab!");
    assert_eq!(phrase.words().len(), expected.len());
    assert!(phrase.origins().all(|origin| origin.found == Found::NGrams));
    for (&word, (name, vector)) in phrase.words().iter().zip(expected) {
        assert_eq!(phrase.id(word), None, "{name}");
        let mut row = [0.0; 5];
        phrase.row(word).copy_to(&mut row);
        let furthest = row.iter().zip(vector).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(furthest <= 1e-6, "{name}: {row:?}, expected {vector:?}");
    }
}

#[cfg(feature = "model2vec")]
#[test]
#[ignore = "needs the data in ../shared/data"]
fn a_text_gets_the_embedding_that_model2vec_gives_it() {
    let folder = shared_data("fixtures/model2vec-float32");
    let (packed, model) = packed(&folder, "bert");
    assert_eq!((packed.words, packed.dims), (29_523, 2));
    let phrase = model.phrase("hello world");
    assert!(phrase.origins().all(|origin| origin.found == Found::Listed));
    assert_eq!((phrase.words().len(), phrase.unknown().len()), (2, 0));
    let mut sum = [0.0_f32; 2];
    for &word in phrase.words() {
        cognate_kernels::vector::add_scaled(&mut sum, 1.0, phrase.row(word));
    }
    let norm = sum.iter().map(|value| value * value).sum::<f32>().sqrt();
    let text = std::fs::read_to_string(folder.join("expected_short.json")).unwrap();
    let expected: Vec<Vec<f32>> = serde_json::from_str(&text).unwrap();
    for (value, expected) in sum.iter().zip(&expected[0]) {
        assert!((value / norm - expected).abs() <= 1e-5, "{sum:?}, expected {expected:?}");
    }
    // A word that is not listed falls into pieces that are.
    let pieces = model.phrase("unaffable");
    assert!(pieces.words().len() > 1, "{:?}", pieces.words());
    assert!(pieces.origins().all(|origin| (origin.token, origin.found) == (0, Found::Part)));
}

#[test]
#[ignore = "needs the data in ../shared/data"]
fn what_is_refused_leaves_nothing_behind() {
    let refused = |name: &str, format: Option<Format>, expected: &str| {
        let path = shared_data(&format!("fixtures/gensim/{name}"));
        let folder = tempfile::tempdir().unwrap();
        let source = Source { format, ..Source::at(path) };
        let error = pack::pack(&options(source, folder.path(), "plain")).unwrap_err();
        assert!(matches!(error, PackError::Read(_)), "{name}: {error}");
        assert!(error.to_string().contains(expected), "{name}: {error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{name}");
    };
    for old in ["lee_fasttext.bin", "non_ascii_fasttext.bin", "cp852_fasttext.bin"] {
        refused(old, None, "no known format");
        refused(old, Some(Format::FastText), "793712314");
    }
    refused("simlex999.txt", None, "line");
    refused("toy-model.bin", Some(Format::Npy), "magic");
    refused("toy-model.bin", Some(Format::Word2VecBin), "header");
    refused("euclidean_vectors.bin", Some(Format::Safetensors), "header");
    refused("euclidean_vectors.bin", Some(Format::Finalfusion), "FiFu");
    refused("test_glove.txt", Some(Format::FastText), "793712314");
    refused("", Some(Format::Glove), "not a regular file");
}
