//! Vectors that model2vec computed from the default model, exported, are those of `avg-cos`.

use cognate::{Engine, Query};

/// What model2vec made of one text.
#[derive(serde::Deserialize)]
struct Computed {
    text: String,
    tokens: Vec<String>,
    /// The first numbers of its vector.
    first: Vec<f32>,
    length: f32,
}

#[test]
fn vectors_of_model2vec_are_those_of_the_mean() {
    let computed: Vec<Computed> =
        serde_json::from_str(include_str!("../data/export/golden.json")).unwrap();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");
    let engine = Engine::open(model.as_ref(), &Default::default()).unwrap();
    let query = Query::new(engine.method("avg-cos").unwrap());
    assert!(computed.len() >= 20);
    for Computed { text, tokens, first, length } in &computed {
        let embedded = engine.embed(&[text.as_str()], &query).unwrap();
        let vector = embedded.get(0).unwrap();
        let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        assert!((norm - length).abs() <= 1e-5, "{text}: {norm}, {length} by {tokens:?}");
        for (ours, theirs) in vector.iter().zip(first) {
            assert!((ours - theirs).abs() <= 1e-5, "{text}: {ours}, {theirs} by {tokens:?}");
        }
    }
}
