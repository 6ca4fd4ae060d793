//! Scores against numbers that `tests/data/methods/make.py` computes from the papers' equations in
//! double precision: every method of one text and of tokens, its components fitted here.

use std::collections::BTreeMap;

use cognate::engine::{Engine, Query};
use cognate::methods::means::{learned_idf, sif, usif};
use cognate::methods::{Fitted, Method};
use cognate::model::Model;
use cognate::model::format::Dtype;
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Table};
use cognate_testing as support;
use serde::Deserialize;

/// How close every score must be.
const TOLERANCE: f64 = 1e-5;

#[derive(Deserialize)]
struct Golden {
    words: Vec<String>,
    vectors: Vec<f32>,
    counts: Vec<u64>,
    total: u64,
    idf: Vec<f32>,
    idf_unseen: f32,
    sentences: Vec<String>,
    learned: BTreeMap<String, Learned>,
    usif: usif::Settings,
    pairs: Vec<(usize, usize)>,
    scores: BTreeMap<String, Vec<Option<f64>>>,
}

#[derive(Deserialize)]
struct Learned {
    measure: String,
    weights: Vec<f32>,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../../data/methods/golden.json"))
        .expect("the golden file is one of ours")
}

impl Golden {
    fn model(&self) -> Model {
        let words = self.words.len();
        let tables = VocabularyTables::build(self.words.iter().map(String::as_str));
        let dims = self.vectors.len() / words;
        let mut draft = Draft { metadata: support::metadata(), ..Draft::default() };
        let entries = [
            ("dim", dims.to_string()),
            ("tokens", self.total.to_string()),
            ("idf_unknown", self.idf_unseen.to_string()),
            ("unknown", r#"{"policy":"skip"}"#.to_owned()),
        ];
        draft.metadata.extend(entries.map(|(key, value)| (key.to_owned(), value)));
        draft.tables.push(Table::new("vectors", Dtype::F32, &[words, dims], &self.vectors));
        draft.push_vocabulary(&tables);
        draft.tables.push(Table::new("counts", Dtype::U64, &[words], &self.counts));
        draft.tables.push(Table::new("idf", Dtype::F32, &[words], &self.idf));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("golden.safetensors");
        draft.write(&path).unwrap();
        Model::from_bytes(&std::fs::read(path).unwrap(), &support::full()).unwrap()
    }

    /// Components fitted to the sentences, and one set of learned weights.
    fn sections(&self, model: &Model, learned: &str) -> [Fitted; 3] {
        let Learned { measure, weights } = &self.learned[learned];
        [
            sif::fit(model, support::shown(&self.sentences)).unwrap(),
            usif::fit(model, support::shown(&self.sentences)).unwrap(),
            support::learned(measure, weights.clone()),
        ]
    }
}

#[test]
fn every_score_is_that_of_the_equations() {
    let golden = golden();
    let texts = golden.pairs.iter().map(|&(a, b)| (&golden.sentences[a], &golden.sentences[b]));
    let texts: Vec<_> = texts.collect();
    let bare = golden.model();
    for set in golden.learned.keys() {
        let model = support::with_sections(&bare, &golden.sections(&bare, set));
        let engine = Engine::new(model).unwrap();
        for (name, expected) in &golden.scores {
            let (method, only) = name.split_once(' ').unwrap_or((name, set));
            if only != set {
                continue;
            }
            let query = Query::new(Method::named(method).unwrap());
            let answer = engine.similarity(&texts, &query).unwrap();
            let mut worst = 0.0_f64;
            for (at, (&found, expected)) in answer.scores.iter().zip(expected).enumerate() {
                assert_eq!(answer.unscored.contains(&at), expected.is_none(), "{name}");
                let Some(expected) = expected else { continue };
                let apart = (f64::from(found) - expected).abs();
                assert!(apart <= TOLERANCE, "{name}: {found}, not {expected}: {:?}", texts[at]);
                worst = worst.max(apart);
            }
            eprintln!("{name:18} {worst:.1e} apart at most");
        }
    }
}

#[test]
fn fitting_keeps_what_it_measured() {
    let golden = golden();
    let model = golden.model();
    let [sif, usif, learned] = golden.sections(&model, "few");
    let settings: usif::Settings = serde_json::from_str(&usif.settings).unwrap();
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * b.abs(), "{a}, not {b}");
    close(settings.a, golden.usif.a);
    close(settings.alpha, golden.usif.alpha);
    close(settings.mean_length, golden.usif.mean_length);
    assert_eq!(settings.sentences, golden.usif.sentences);
    let factors: f32 = usif.tensors[1].2.iter().sum();
    assert!((factors - 1.0).abs() < 1e-6, "{factors}");
    let settings: serde_json::Value = serde_json::from_str(&sif.settings).unwrap();
    assert_eq!(settings["sentences"], golden.usif.sentences);
    let settings: learned_idf::Settings = serde_json::from_str(&learned.settings).unwrap();
    assert_eq!(settings.default, "own");
}

#[test]
fn fitting_says_what_it_lacks() {
    let model = golden().model();
    for unusable in [&[] as &[&str], &["vlorp qwzx", "!!!"]] {
        let error = sif::fit(&model, support::shown(unusable)).unwrap_err();
        assert!(error.to_string().contains("sif-pca cannot be fitted: no sentence"), "{error}");
        let error = usif::fit(&model, support::shown(unusable)).unwrap_err();
        assert!(error.to_string().contains("usif cannot be fitted: no sentence"), "{error}");
    }
}

#[test]
fn a_few_sentences_of_one_word_give_components_that_can_be_served() {
    let golden = golden();
    let bare = golden.model();
    let one = ["storm"];
    let sections = [
        sif::fit(&bare, support::shown(&one)).unwrap(),
        usif::fit(&bare, support::shown(&one)).unwrap(),
    ];
    let engine = Engine::new(support::with_sections(&bare, &sections)).unwrap();
    for method in [Method::SifPca, Method::Usif] {
        let pairs = [("storm", "storm storm"), ("storm", "the storm"), ("night", "storm")];
        let answer = engine.similarity(&pairs, &Query::new(method)).unwrap();
        assert!(answer.scores.iter().all(|score| (-1.0..=1.0).contains(score)), "{answer:?}");
    }
}
