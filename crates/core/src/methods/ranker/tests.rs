//! What must not change a score: which words a network keeps, which others it met before, and how
//! many posts are asked for at once.

use cognate_kernels::simd::LANES;

use super::section::{Encoding, Weights};
use super::*;
use crate::model::OpenOptions;
use crate::model::draft::{Draft, Table};
use crate::model::format::Dtype;
use crate::model::vocabulary::VocabularyTables;

const DIMS: usize = 12;
const WORDS: usize = 40;

/// Numbers between -1 and 1, the same for every seed.
fn numbers(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let step = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (state >> 40) as f32 / 8_388_608.0 - 1.0
    };
    (0..count).map(step).collect()
}

fn model() -> Model {
    let words: Vec<String> = (0..WORDS).map(|word| format!("w{word}")).collect();
    let tables = VocabularyTables::build(words.iter().map(String::as_str));
    let rows = numbers(1, WORDS * DIMS);
    let mut draft = Draft::default();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/model/cognate-1.safetensors");
    let example = Model::open(example.as_ref(), &OpenOptions::default()).unwrap();
    let entries = [
        ("dim", DIMS.to_string()),
        ("normalisation", example.metadata()["normalisation"].clone()),
        ("unknown", r#"{"policy":"skip"}"#.to_owned()),
        ("frequency", "none".to_owned()),
    ];
    draft.metadata.extend(entries.map(|(key, value)| (key.to_owned(), value)));
    draft.tables.push(Table::new("vectors", Dtype::F32, &[WORDS, DIMS], &rows));
    draft.push_vocabulary(&tables);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("words.safetensors");
    draft.write(&path).unwrap();
    Model::from_bytes(&std::fs::read(path).unwrap(), &OpenOptions::default()).unwrap()
}

fn weights(encoder: Encoder) -> Weights {
    let shape = Shape { encoder, dims: DIMS, kernel: 2, filters: LANES, hidden: 9, joint: 8 };
    let encoding = |seed: u64| Encoding {
        kernels: numbers(seed, 2 * LANES * DIMS),
        bias: numbers(seed + 1, LANES),
        weight: numbers(seed + 2, 9 * LANES),
        offset: numbers(seed + 3, 9),
    };
    let attention = if encoder == Encoder::Bicnn { Encoding::default() } else { encoding(20) };
    Weights {
        shape,
        width: LANES,
        general: encoding(10),
        attention,
        joint_query: numbers(30, 8 * 9),
        joint_post: numbers(31, 8 * 9 * (shape.encodings() - 1)),
        joint_offset: numbers(32, 8),
        scale: numbers(33, 8),
        shift: numbers(34, 8),
        output: numbers(35, 8).into_iter().map(f64::from).collect(),
        output_offset: 0.1,
    }
}

fn texts(count: usize) -> Vec<String> {
    let word = |text: usize, place: usize| format!("w{}", (text * 7 + place * place * 3) % WORDS);
    let text = |text: usize| (0..=text % 9).map(|place| word(text, place)).collect::<Vec<_>>();
    (0..count).map(|number| text(number).join(" ")).collect()
}

fn bits(scores: &[f32]) -> Vec<u32> {
    scores.iter().map(|score| score.to_bits()).collect()
}

#[test]
fn neither_memory_nor_company_changes_a_score() {
    let model = model();
    let query = model.phrase("w3 w17 w3 w39");
    let posts: Vec<Phrase<'_>> = texts(70).iter().map(|text| model.phrase(text)).collect();
    for encoder in [Encoder::Bicnn, Encoder::Qatt, Encoder::Patt] {
        let mut expected = Vec::new();
        for kept in [0, 11, WORDS] {
            let network = network::Network::new(weights(encoder), WORDS).keeping(kept);
            let mut memory = RankerBuffers::default();
            for block in [1, 7, posts.len()] {
                let mut scores = vec![9.0; posts.len()];
                network.prepare(&query, &mut memory);
                for (posts, scores) in posts.chunks(block).zip(scores.chunks_mut(block)) {
                    if block == 1 {
                        network.prepare(&query, &mut memory);
                    }
                    network.score(posts, scores, &mut memory);
                }
                assert!(scores.iter().all(|score| score.is_finite() && *score <= 0.0));
                if expected.is_empty() {
                    expected = scores.clone();
                }
                assert_eq!(bits(&scores), bits(&expected), "{encoder:?}, {kept} kept, by {block}");
            }
        }
        let different: std::collections::BTreeSet<u32> = bits(&expected).into_iter().collect();
        assert!(different.len() > 30, "{} scores of {}", different.len(), expected.len());
    }
}

/// A query of so many words that `qatt` remembers none of a post scores as if it did.
#[test]
fn a_long_query_is_read_word_by_word() {
    let model = model();
    let words = (1 << 16) / (2 * LANES);
    // Both even, so that the windows are the same.
    let [short, long] = [words, words + 2].map(|count| model.phrase(&"w1 w5 ".repeat(count / 2)));
    let network = network::Network::new(weights(Encoder::Qatt), WORDS);
    let posts: Vec<Phrase<'_>> = texts(9).iter().map(|text| model.phrase(text)).collect();
    let score = |query: &Phrase<'_>| {
        let mut scores = vec![0.0; posts.len()];
        let mut memory = RankerBuffers::default();
        network.prepare(query, &mut memory);
        network.score(&posts, &mut scores, &mut memory);
        scores
    };
    for (one, other) in score(&short).iter().zip(score(&long)) {
        assert!((one - other).abs() < 1e-4, "{one} {other}");
    }
}

/// What one network left in memory changes nothing for the next, nor does another query.
#[test]
fn a_query_is_prepared_for_each_network() {
    let model = model();
    let (query, posts) = (model.phrase("w1 w2"), [model.phrase("w2 w3"), model.phrase("w9")]);
    let mut memory = RankerBuffers::default();
    let mut score = |network: &network::Network, query: &Phrase<'_>| {
        let mut scores = [0.0; 2];
        network.prepare(query, &mut memory);
        network.score(&posts, &mut scores, &mut memory);
        bits(&scores)
    };
    let networks = [Encoder::Patt, Encoder::Qatt]
        .map(|encoder| network::Network::new(weights(encoder), WORDS));
    let first = [score(&networks[0], &query), score(&networks[1], &query)];
    assert_ne!(first[0], first[1]);
    assert_ne!(score(&networks[0], &model.phrase("w2 w1")), first[0]);
    assert_eq!([score(&networks[0], &query), score(&networks[1], &query)], first);
}
