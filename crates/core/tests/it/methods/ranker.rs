//! Trained rankers: scores against numbers that `tests/data/ranker/make.py` computes window by
//! window in double precision, what holds for every ranker, and sections that are not as they must
//! be.

use std::sync::LazyLock;

use cognate::engine::{Engine, Query, QueryError};
use cognate::methods::ranker::{Encoder, SECTION, Settings};
use cognate::methods::{Fitted, Method};
use cognate::model::format::Dtype;
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Table};
use cognate::model::{Model, ModelError};
use cognate_kernels::simd;
use cognate_kernels::simd::Width;
use cognate_testing as support;
use serde::Deserialize;
use serde_json::{Value, json};

/// How close every score must be.
const TOLERANCE: f64 = 1e-5;

#[derive(Deserialize)]
struct Golden {
    words: Vec<String>,
    dims: usize,
    vectors: Vec<f32>,
    queries: Vec<String>,
    posts: Vec<String>,
    rankers: Vec<Ranker>,
}

#[derive(Deserialize)]
struct Ranker {
    settings: Settings,
    tensors: std::collections::BTreeMap<String, Vec<f32>>,
    scores: Vec<Vec<f64>>,
}

static GOLDEN: LazyLock<Golden> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../data/ranker/golden.json"))
        .expect("the golden file is one of ours")
});

impl Golden {
    /// The model without a ranker. Words that it does not list have vectors made from their hash.
    fn model(&self) -> Model {
        let tables = VocabularyTables::build(self.words.iter().map(String::as_str));
        let mut draft = Draft { metadata: support::metadata(), ..Draft::default() };
        draft.metadata.insert("dim".to_owned(), self.dims.to_string());
        let shape = [self.words.len(), self.dims];
        draft.tables.push(Table::new("vectors", Dtype::F32, &shape, &self.vectors));
        draft.push_vocabulary(&tables);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("golden.safetensors");
        draft.write(&path).unwrap();
        Model::from_bytes(&std::fs::read(path).unwrap(), &support::full()).unwrap()
    }

    fn engine(&self, ranker: &Ranker) -> Engine {
        let model = support::with_sections(&self.model(), &[ranker.section(self.dims)]);
        Engine::new(model).unwrap()
    }
}

impl Ranker {
    fn section(&self, dims: usize) -> Fitted {
        let shapes = self.settings.shape(dims).tensors();
        let tensor =
            |(name, shape): (&'static str, Vec<usize>)| (name, shape, self.tensors[name].clone());
        Fitted {
            section: SECTION,
            settings: serde_json::to_string(&self.settings).unwrap(),
            tensors: shapes.into_iter().map(tensor).collect(),
            bytes: Vec::new(),
        }
    }

    fn method(&self) -> Method {
        Method::named(self.settings.encoder.name()).unwrap()
    }

    fn first(encoder: Encoder) -> &'static Self {
        GOLDEN.rankers.iter().find(|ranker| ranker.settings.encoder == encoder).unwrap()
    }
}

/// The score of every candidate in the order of the candidates.
fn scores<T: AsRef<str>>(engine: &Engine, method: Method, text: &str, posts: &[T]) -> Vec<f32> {
    let mut results = engine.rank(text, posts, &Query::new(method)).unwrap().results;
    assert_eq!(results.len(), posts.len());
    results.sort_by_key(|ranked| ranked.index);
    results.iter().map(|ranked| ranked.score).collect()
}

#[test]
fn every_score_is_that_of_the_published_steps() {
    for ranker in &GOLDEN.rankers {
        let engine = GOLDEN.engine(ranker);
        let name = format!("{:?}", ranker.settings);
        let mut worst = 0.0_f64;
        for (query, expected) in GOLDEN.queries.iter().zip(&ranker.scores) {
            let found = scores(&engine, ranker.method(), query, &GOLDEN.posts);
            for ((found, expected), post) in found.iter().zip(expected).zip(&GOLDEN.posts) {
                let apart = (f64::from(*found) - expected).abs();
                assert!(apart <= TOLERANCE, "{name}: {found}, not {expected}: {query} | {post}");
                worst = worst.max(apart);
            }
        }
        eprintln!("{name} {worst:.1e} apart at most");
    }
}

#[test]
fn the_order_of_words_is_heard_and_query_and_post_are_not_alike() {
    let ranker = Ranker::first(Encoder::Patt);
    let engine = GOLDEN.engine(ranker);
    let score = |query: &str, post: &str| scores(&engine, ranker.method(), query, &[post])[0];
    assert_ne!(score("storm", "quake hits city"), score("storm", "city hits quake"));
    assert_ne!(score("quake hits", "storm city"), score("storm city", "quake hits"));
}

#[test]
fn a_list_is_scored_as_its_posts_are_one_by_one_and_sorted() {
    // Enough posts for blocks to follow one another and for words to be met again.
    let posts: Vec<String> = (0..100)
        .map(|n| format!("{} {}", GOLDEN.posts[n % 10], GOLDEN.posts[(n * 3 + n / 10) % 10]))
        .collect();
    for encoder in [Encoder::Bicnn, Encoder::Qatt, Encoder::Patt] {
        let ranker = Ranker::first(encoder);
        let (engine, fresh) = (GOLDEN.engine(ranker), GOLDEN.engine(ranker));
        for query in &GOLDEN.queries {
            let question = Query::new(ranker.method());
            let ranking = engine.rank(query, &posts, &question).unwrap();
            let expected =
                |a: (f32, usize), b: (f32, usize)| a.0 > b.0 || (a.0 == b.0 && a.1 < b.1);
            for pair in ranking.results.windows(2) {
                let [a, b] = [&pair[0], &pair[1]].map(|ranked| (ranked.score, ranked.index));
                assert!(expected(a, b), "{a:?} before {b:?}");
            }
            for ranked in &ranking.results {
                assert!(ranked.score.is_finite() && ranked.score <= 0.0);
                let alone = scores(&fresh, ranker.method(), query, &posts[ranked.index..][..1])[0];
                assert_eq!(alone.to_bits(), ranked.score.to_bits(), "{}", posts[ranked.index]);
            }
        }
    }
}

#[test]
fn every_width_gives_the_same_bits() {
    for ranker in &GOLDEN.rankers {
        let bits = |width| {
            // Tests beside this one may meet any width meanwhile, which is what they bear.
            simd::limit(width);
            let engine = GOLDEN.engine(ranker);
            let found = GOLDEN.queries.iter().flat_map(|query| {
                scores(&engine, ranker.method(), query, &GOLDEN.posts).into_iter().map(f32::to_bits)
            });
            let found: Vec<u32> = found.collect();
            simd::limit(simd::widest());
            found
        };
        let plain = bits(Width::Least);
        for width in [Width::Avx2, Width::Avx512] {
            assert_eq!(bits(width), plain, "{width:?}: {:?}", ranker.settings);
        }
    }
}

#[test]
fn a_model_serves_the_ranker_that_it_holds_and_names_it() {
    let bare = Engine::new(GOLDEN.model()).unwrap();
    for method in [Method::Bicnn, Method::Qatt, Method::Patt] {
        let error = bare.rank("storm", &["quake"], &Query::new(method)).unwrap_err();
        let expected = "cannot be used with this model: the model has no trained ranker; train one \
                        with `cognate train ranker`";
        assert_eq!(error.to_string(), format!("{} {expected}", method.name()));
    }
    let engine = GOLDEN.engine(Ranker::first(Encoder::Qatt));
    assert_eq!(engine.unavailable(Method::Qatt), None);
    let reason = engine.unavailable(Method::Patt).unwrap().to_string();
    let expected = "the model's ranker was trained for `qatt`, not for `patt`; train one with \
                    `cognate train ranker`";
    assert_eq!(reason, expected);
    let query = Query::new(Method::Qatt);
    let error = engine.similarity(&[("storm", "quake")], &query).unwrap_err();
    assert_eq!(error, QueryError::OnlyRanks { method: "qatt" });
    assert_eq!(engine.embed(&["storm"], &query), Err(QueryError::CannotEmbed { method: "qatt" }));
    assert_eq!(Method::named("samCNN"), Some(Method::Patt));
}

/// A post that answers a query word lends it its kernels; a word that does not is left out.
#[test]
fn query_likelihood_counts_beside_the_network_as_the_model_says() {
    let texts = ["quake hits town", "the new city", "earthquake shakes über town", "zzz york"];
    for encoder in [Encoder::Bicnn, Encoder::Patt] {
        let ranker = Ranker::first(encoder);
        let section = [ranker.section(support::DIMS)];
        let engine = Engine::new(support::with_sections(&support::served(), &section)).unwrap();
        let by = |method| scores(&engine, method, "quake city zzz", &texts);
        let (network, likelihood) = (by(ranker.method()), by(Method::Ql));
        for (at, both) in by(Method::RankerQl).into_iter().enumerate() {
            let expected =
                f64::from(network[at]) + ranker.settings.alpha * f64::from(likelihood[at]);
            assert!((f64::from(both) - expected).abs() < 1e-5, "{both}, not {expected}");
        }
    }
    // Without counts there is no likelihood.
    let engine = GOLDEN.engine(Ranker::first(Encoder::Patt));
    let reason = engine.unavailable(Method::RankerQl).unwrap().to_string();
    assert!(reason.contains("no word counts") && reason.contains("--counts"), "{reason}");
}

#[test]
fn attention_tells_which_words_a_reading_came_from() {
    for encoder in [Encoder::Bicnn, Encoder::Qatt, Encoder::Patt] {
        let ranker = Ranker::first(encoder);
        let engine = GOLDEN.engine(ranker);
        let query = Query::new(ranker.method());
        let post = "the null storm zzqx city storm";
        let told = engine.explain("quake vlorpq storm", post, &query).unwrap();
        let score = scores(&engine, ranker.method(), "quake vlorpq storm", &[post])[0];
        assert_eq!(told.score.to_bits(), score.to_bits());
        assert_eq!(told.shares, None);
        if encoder == Encoder::Bicnn {
            assert_eq!(told.attention, None);
            continue;
        }
        let attention = told.attention.unwrap();
        let words: Vec<usize> = attention.iter().map(|read| read.word).collect();
        assert_eq!(words, [0, 2], "vectors made for the text are not read");
        for read in &attention {
            let mut places: Vec<usize> = read.to.iter().map(|to| to.word).collect();
            assert!(read.to.windows(2).all(|pair| pair[0].weight >= pair[1].weight));
            places.sort_unstable();
            assert_eq!(places, [0, 1, 2, 4, 5]);
            for to in &read.to {
                assert!((0.0..=1.0).contains(&to.weight));
                let cosine = (encoder == Encoder::Patt).then(|| told.cosines[read.word][to.word]);
                assert_eq!(to.cosine.is_some(), cosine.is_some());
                let apart = to.cosine.unwrap_or_default() - cosine.unwrap_or_default();
                assert!(apart.abs() < 1e-6, "{apart}");
            }
        }
        let all: f32 = attention.iter().flat_map(|read| &read.to).map(|to| to.weight).sum();
        assert!(all > 0.0);
    }
}

/// With kernels that hear one dimension each, it is known which word every answer comes from.
#[test]
fn attention_follows_the_kernels() {
    let settings = json!({"encoder": "patt", "kernel": 1, "filters": 2, "hidden": 1, "joint": 1});
    let mut kernels = vec![0.0; 2 * GOLDEN.dims];
    (kernels[0], kernels[GOLDEN.dims + 1]) = (1.0, 1.0);
    let shape = serde_json::from_value::<Settings>(settings.clone()).unwrap().shape(GOLDEN.dims);
    let tensors = shape.tensors().into_iter().map(|(name, shape)| {
        let numbers = match name {
            "attention.kernels" => kernels.clone(),
            _ => vec![0.0; shape.iter().product()],
        };
        (name, shape, numbers)
    });
    let fitted = Fitted {
        section: SECTION,
        settings: settings.to_string(),
        tensors: tensors.collect(),
        bytes: Vec::new(),
    };
    let engine = Engine::new(support::with_sections(&GOLDEN.model(), &[fitted])).unwrap();
    let query = Query::new(Method::Patt);
    let words = ["quake", "storm", "hits", "city", "town"];
    let told = engine.explain("quake", &words.join(" "), &query).unwrap();
    let answer = |place: usize, dimension: usize| {
        let id = GOLDEN.words.iter().position(|word| word == words[place]).unwrap();
        told.cosines[0][place] * GOLDEN.vectors[id * GOLDEN.dims + dimension]
    };
    let mut expected = [0.0; 5];
    for dimension in 0..2 {
        let best = (0..5).max_by(|&a, &b| answer(a, dimension).total_cmp(&answer(b, dimension)));
        if answer(best.unwrap(), dimension) > 0.0 {
            expected[best.unwrap()] += 0.5;
        }
    }
    assert!(expected.iter().sum::<f32>() > 0.0);
    for to in &told.attention.unwrap()[0].to {
        assert_eq!(to.weight, expected[to.word], "{}", words[to.word]);
    }
}

/// What the engine says of a section in which one thing was changed.
fn refusal(change: impl FnOnce(&mut Fitted)) -> String {
    let mut section = Ranker::first(Encoder::Patt).section(GOLDEN.dims);
    change(&mut section);
    let model = support::with_sections(&GOLDEN.model(), &[section]);
    let error = Engine::new(model).err().unwrap();
    assert!(matches!(&error, ModelError::Section { section, .. } if section == SECTION));
    error.to_string()
}

#[test]
fn every_tensor_must_be_there_in_its_shape_and_hold_sound_numbers() {
    let names = Ranker::first(Encoder::Patt).settings.shape(GOLDEN.dims).tensors();
    assert_eq!(names.len(), 14);
    for (place, (name, shape)) in names.iter().enumerate() {
        let told = refusal(|section| {
            section.tensors.remove(place);
        });
        assert!(told.contains(&format!("`{name}`: expected F32 {shape:?}, got none")), "{told}");
        let told = refusal(|section| {
            section.tensors[place].1.push(1);
        });
        assert!(told.contains(&format!("`{name}`: expected F32 {shape:?}, got F32 [")), "{told}");
        let told = refusal(|section| {
            let (_, shape, numbers) = &mut section.tensors[place];
            shape[0] += 1;
            numbers.resize(shape.iter().product(), 0.5);
        });
        assert!(told.contains(&format!("`{name}`: expected F32 {shape:?}, got F32 [")), "{told}");
        for (number, problem) in [(2e6, "number 1 is beyond 1e6"), (-2e6, "is beyond 1e6")] {
            let told = refusal(|section| section.tensors[place].2[1] = number);
            assert!(told.contains(&format!("tensor `{name}`: ")), "{told}");
            assert!(told.contains(problem), "{told}");
        }
    }
}

/// A model that is opened by its structure alone was not searched for numbers that are none.
#[test]
fn numbers_that_are_none_are_found_without_reading_the_whole_model() {
    for number in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut section = Ranker::first(Encoder::Patt).section(GOLDEN.dims);
        section.tensors[9].2[0] = number;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("broken.safetensors");
        let model = GOLDEN.model();
        let mut draft = Draft::from_model(&model);
        section.put_into(&mut draft);
        draft.write(&path).unwrap();
        let bytes = std::fs::read(path).unwrap();
        let model = Model::from_bytes(&bytes, &support::structure()).unwrap();
        let error = Engine::new(model).err().unwrap().to_string();
        assert!(error.contains("`joint.offset`: expected F32 [6], got a number that"), "{error}");
    }
}

#[test]
fn settings_must_be_ones_that_are_served() {
    let with = |field: &str, value: Value| {
        refusal(|section| {
            let mut settings: Value = serde_json::from_str(&section.settings).unwrap();
            settings[field] = value;
            section.settings = settings.to_string();
        })
    };
    for (field, value) in [
        ("kernel", json!(0)),
        ("kernel", json!(9)),
        ("filters", json!(u64::MAX)),
        ("hidden", json!(1025)),
        ("joint", json!(1_u64 << 40)),
    ] {
        let told = with(field, value);
        assert!(told.contains(&format!("settings: expected `{field}` from 1 to ")), "{told}");
    }
    for (field, value) in
        [("encoder", json!("cnn")), ("kernel", json!(-2)), ("filters", json!("7"))]
    {
        let told = with(field, value);
        assert!(told.contains("settings: "), "{told}");
    }
    assert!(with("kernel", json!(3)).contains("`general.kernels`: expected F32 [3, 7, 20]"));
    assert!(refusal(|section| section.settings = "{}".to_owned()).contains("missing field"));
    let told = refusal(|section| section.settings = section.settings.replace("0.1", "1e999"));
    assert!(told.contains("settings: "), "{told}");
}
