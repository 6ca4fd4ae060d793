//! Vectors so long that their products overflow: refused where a file is packed or opened, and
//! where only the structure was looked at, no number of theirs is told as another or as `null`.

use cognate::engine::{Engine, Query, QueryError};
use cognate::methods::{Kind, Method, Reads};
use cognate::model::format::Dtype;
use cognate::model::writer::{Draft, Table};
use cognate::model::{FormatError, LONGEST, Model, ModelError, OpenOptions};
use serde_json::json;

use crate::support;
use crate::support::app::TestApp;

/// Its row, in the place of the word.
const QUAKE: usize = 1;

/// The model of all sections with the vector of `quake` stretched to a length.
fn stretched(length: f32, options: &OpenOptions) -> Result<Model, ModelError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stretched.safetensors");
    let model = support::served();
    let mut rows: Vec<f32> = support::WORDS.iter().flat_map(|word| support::row_of(word)).collect();
    let row = &mut rows[QUAKE * support::DIMS..][..support::DIMS];
    let norm = row.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    row.iter_mut().for_each(|value| *value = (f64::from(*value) * f64::from(length) / norm) as f32);
    let mut draft = Draft::from_model(&model);
    let shape = [support::WORDS.len(), support::DIMS];
    let vectors = draft.tables.iter_mut().find(|table| table.name == "vectors").unwrap();
    *vectors = Table::new("vectors", Dtype::F32, &shape, &rows);
    draft.write(&path).unwrap();
    Model::open(&path, options)
}

#[test]
fn a_vector_that_cannot_be_calculated_with_is_refused_by_its_row() {
    stretched(0.99 * LONGEST, &support::full()).unwrap();
    for length in [1.01 * LONGEST, 1e19, 1e25, 1e38] {
        let error = stretched(length, &support::full()).unwrap_err();
        let ModelError::Format { source: FormatError::Length { ref name, row }, .. } = error else {
            panic!("{error}");
        };
        assert_eq!((name.as_str(), row), ("vectors", QUAKE as u64));
        assert!(error.to_string().contains("scale the vectors down"), "{error}");
        stretched(length, &support::structure()).unwrap();
    }
}

/// Vectors of the largest length allowed overflow nowhere.
#[test]
fn the_longest_vectors_have_scores() {
    let engine = Engine::new(stretched(0.99 * LONGEST, &support::full()).unwrap()).unwrap();
    let unavailable = |method: &Method| engine.unavailable(*method).is_some();
    for &method in Method::ALL.iter().filter(|method| !unavailable(method)) {
        let (name, query) = (method.name(), Query::new(method));
        let ranking = engine.rank("the quake", &["quake hits", "new york"], &query);
        ranking.unwrap_or_else(|error| panic!("{name}: {error}"));
        if engine.check_explain(&query).is_ok() {
            let explained = engine.explain("the quake", "quake hits the city", &query);
            explained.unwrap_or_else(|error| panic!("{name}: {error}"));
        }
    }
}

#[test]
fn unverified_vectors_are_looked_at_when_they_are_used() {
    for length in [1e16, 1e19, 1e25, 1e38] {
        let engine = Engine::new(stretched(length, &support::structure()).unwrap()).unwrap();
        let words = |method: &Method| {
            method.info().reads == Reads::Words && engine.unavailable(*method).is_none()
        };
        for &method in Method::ALL.iter().filter(|method| words(method)) {
            let query = Query::new(method);
            let refused = Some(QueryError::NonFinite { method: method.name() });
            assert_eq!(engine.rank("the quake", &["town"], &query).err(), refused);
            assert_eq!(engine.rank("town", &["the quake"], &query).err(), refused);
            engine.rank("the city", &["town"], &query).unwrap();
            if method.info().kind == Kind::Similarity {
                let pairs = [("the quake", "quake hits")];
                assert_eq!(engine.similarity(&pairs, &query).err(), refused);
            }
            if engine.embeds(method) {
                assert_eq!(engine.embed(&["the quake"], &query).err(), refused);
            }
        }
    }
}

/// A method that reads tokens has a score for them; their vectors' lengths and products are no numbers
/// that could be told.
#[tokio::test]
async fn an_explanation_never_tells_null_for_a_number() {
    let app = TestApp::with_model(stretched(1e25, &support::structure()).unwrap(), |_| ());
    let pair = json!({"a": "the quake", "b": "quake hits", "method": "jaccard"});
    assert_eq!(app.ask("/similarity", pair.clone()).await["scores"][0], 1.0 / 3.0_f32);
    app.post("/explain", pair.to_string()).await.refusal(500, "non_finite_score");
    let page = app.get("/metrics").await.text();
    assert!(page.contains("cognate_non_finite_total 1\n"), "{page}");
    for (path, body) in [
        ("/similarity", json!({"a": "the quake", "b": "city", "method": "max-jaccard"})),
        ("/rank", json!({"query": "the quake", "candidates": ["city"], "method": "wmd"})),
        ("/embed", json!({"texts": "the quake", "method": "avg-cos", "normalize": true})),
        ("/explain", json!({"a": "quake", "b": "quake", "method": "dynamax-jaccard"})),
    ] {
        app.post(path, body.to_string()).await.refusal(500, "non_finite_score");
    }
}
