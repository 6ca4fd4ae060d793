//! Lexical rankers: against an independent implementation, by hand, over HTTP, and on odd files, with models
//! that the program packs.

use std::collections::BTreeMap;
use std::path::Path;

use cognate::engine::{Engine, Query, RankOptions};
use cognate::methods::{Kind, Method, Scorer, Scratch};
use cognate::model::format::Dtype;
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Draft, Table};
use cognate::model::{Model, OpenOptions};
use serde::Deserialize;
use serde_json::json;

use crate::eval::figures::cognate;
use crate::support;
use crate::support::app::TestApp;

const RANKERS: [Method; 4] = [Method::Bm25, Method::Ql, Method::Rm3, Method::PrfCos];

#[derive(Deserialize)]
struct Golden {
    vectors: BTreeMap<String, [i8; 3]>,
    collection: Vec<String>,
    table: BTreeMap<String, u64>,
    candidates: Vec<String>,
    questions: Vec<Question>,
}

#[derive(Deserialize)]
struct Question {
    query: String,
    by_collection: BTreeMap<String, Vec<f64>>,
    by_table: BTreeMap<String, Vec<f64>>,
}

/// The scores of all candidates, in their order.
fn scores<T: AsRef<str>>(engine: &Engine, method: Method, query: &str, list: &[T]) -> Vec<f32> {
    let mut results = engine.rank(query, list, &Query::new(method)).unwrap().results;
    assert_eq!(results.len(), list.len(), "every candidate is scored");
    results.sort_by_key(|ranked| ranked.index);
    results.iter().map(|ranked| ranked.score).collect()
}

/// The model that `cognate pack` makes of these words with a file of counts.
fn packed(folder: &Path, words: &BTreeMap<String, [i8; 3]>, counts: [&str; 2]) -> Engine {
    let row = |(word, [x, y, z]): (&String, &[i8; 3])| format!("{word} {x} {y} {z}\n");
    let rows: String = words.iter().map(row).collect();
    std::fs::write(folder.join("v.txt"), rows).unwrap();
    let pack = ["pack", "v.txt", "-o", "m.safetensors", "--unknown", "skip"];
    let output = cognate(folder, &[pack.as_slice(), &counts].concat());
    assert!(output.status.success(), "{output:?}");
    Engine::open(&folder.join("m.safetensors"), &OpenOptions::default()).unwrap()
}

#[test]
fn every_score_is_that_of_the_equations() {
    let golden: Golden =
        serde_json::from_str(include_str!("../../data/lexical/golden.json")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("posts.txt"), golden.collection.join("\n")).unwrap();
    let lines: String = golden.table.iter().map(|(word, n)| format!("{word}\t{n}\n")).collect();
    std::fs::write(folder.path().join("counts.tsv"), lines).unwrap();
    let by_collection = packed(folder.path(), &golden.vectors, ["--corpus", "posts.txt"]);
    let by_table = packed(folder.path(), &golden.vectors, ["--counts", "counts.tsv"]);
    assert!(golden.questions.len() > 10);
    for question in &golden.questions {
        for (engine, by) in
            [(&by_collection, &question.by_collection), (&by_table, &question.by_table)]
        {
            for method in RANKERS {
                let found = scores(engine, method, &question.query, &golden.candidates);
                let expected = &by[method.name()];
                assert_eq!(found.len(), expected.len());
                for (at, (&found, expected)) in found.iter().zip(expected).enumerate() {
                    let apart = (f64::from(found) - expected).abs();
                    let (name, query) = (method.name(), &question.query);
                    let text = &golden.candidates[at];
                    // What single precision holds of the largest.
                    assert!(apart < 5e-6, "{name}: {found}, not {expected}: {query} / {text}");
                }
            }
        }
    }
}

#[test]
fn what_is_rare_repeated_and_short_scores_as_it_should() {
    let engine = support::engine();
    let by = |method, query, list: &[&str]| scores(engine, method, query, list);
    for method in [Method::Bm25, Method::Ql] {
        let name = method.name();
        // "york" has a twelfth of the occurrences of "the".
        let one = by(method, "the york", &["the", "york"]);
        assert!(one[1] > one[0], "{name}: the rarer token counts more: {one:?}");
        let more = by(method, "quake", &["quake city", "quake quake", "city town"]);
        assert!(more[1] > more[0] && more[0] > more[2], "{name}: {more:?}");
        let [once, twice] =
            ["zebra", "zebra zebra"].map(|query| by(method, query, &["a zebra"])[0]);
        assert_eq!(twice, 2.0 * once, "{name}: a token that is asked for twice counts twice");
    }
    assert_eq!(by(Method::Bm25, "quake", &["city"]), [0.0]);
    // The tiny model tells nothing of lengths to bm25; ql knows the post's own.
    assert_eq!(by(Method::Bm25, "quake", &["quake"]), by(Method::Bm25, "quake", &["quake the a"]));
    let [short, long] = ["quake", "quake the a"].map(|post| by(Method::Ql, "quake", &[post])[0]);
    assert!(short > long, "{short} {long}");
}

#[test]
fn feedback_finds_what_the_query_does_not_say() {
    let engine = support::engine();
    // The best answers to the query speak of a town; the last two do not hold its words at all.
    let mut posts = vec!["quake hits town"; 10];
    posts.extend(["new town york", "new city york"]);
    let [ql, rm3] = [Method::Ql, Method::Rm3].map(|by| scores(engine, by, "quake hits", &posts));
    assert_eq!(ql[10], ql[11], "the query knows no difference");
    assert!(rm3[10] > rm3[11], "{rm3:?}");
    // A part of the list has other feedback.
    let part = scores(engine, Method::Rm3, "quake hits", &posts[9..]);
    assert_ne!(part[1], rm3[10]);
}

#[test]
fn the_order_of_a_list_changes_none_of_its_scores() {
    let engine = support::engine();
    let mut chance = support::Chance(11);
    for _ in 0..support::rounds(40, 1000) {
        // Few words and short posts: many are as likely as others, at the tenth place too.
        let mut post = || {
            let words: Vec<_> =
                (0..1 + chance.below(3)).map(|_| support::WORDS[chance.below(5)]).collect();
            words.join(" ")
        };
        let posts: Vec<String> = (0..25).map(|_| post()).collect();
        let backwards: Vec<&String> = posts.iter().rev().collect();
        for method in [Method::Rm3, Method::PrfCos] {
            let found = scores(engine, method, "quake city", &posts);
            let mut reversed = scores(engine, method, "quake city", &backwards);
            reversed.reverse();
            assert_eq!(found, reversed);
        }
    }
}

#[test]
fn shares_of_the_querys_tokens_add_up() {
    let model = support::served();
    let [query, post] =
        ["the quake quake zebra", "the zebra meets a zebra"].map(|text| model.phrase(text));
    for method in [Method::Bm25, Method::Ql] {
        let Ok(Ok(Scorer::Compare(scorer))) = method.load(&model) else { panic!() };
        let (mut score, mut scratch) = ([0.0], Scratch::default());
        let mut against = scorer.against(&query, &mut scratch);
        against.score(std::slice::from_ref(&post), &mut score, &mut scratch);
        let shares = against.shares(&post, &mut scratch).unwrap();
        assert_eq!((shares.one.len(), shares.other.as_slice()), (4, [0.0; 5].as_slice()));
        assert_eq!(shares.one[1], shares.one[2], "each time it is asked for adds the same");
        let sum: f32 = shares.one.iter().sum();
        assert!((sum - score[0]).abs() < 1e-5, "{}: {sum} for {}", method.name(), score[0]);
    }
    let Ok(Ok(Scorer::RankList(_))) = Method::Rm3.load(&model) else { panic!("rm3 needs a list") };
}

/// The tiny vocabulary with tables and sizes that no packing writes.
fn odd(counts: u64, tokens: &str, documents: &[(&str, u32)], idf: f32) -> Model {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("odd.safetensors");
    let n = support::WORDS.len();
    let words = VocabularyTables::build(support::WORDS.iter().copied());
    let (rows, counts, idf) = (vec![1.0_f32; 2 * n], vec![counts; n], vec![idf; n]);
    let frequencies: Vec<u32> = vec![documents.first().map_or(0, |(_, df)| *df); n];
    let mut draft = Draft { metadata: support::metadata(), ..Draft::default() };
    draft.metadata.extend([("dim", "2"), ("tokens", tokens)].map(|(k, v)| (k.into(), v.into())));
    draft.tables.push(Table::new("vectors", Dtype::F32, &[n, 2], &rows));
    draft.push_vocabulary(&words);
    draft.tables.push(Table::new("counts", Dtype::U64, &[n], &counts));
    if let Some((total, _)) = documents.first() {
        draft.metadata.insert("documents".to_owned(), (*total).to_owned());
        draft.tables.push(Table::new("df", Dtype::U32, &[n], &frequencies));
    }
    draft.tables.push(Table::new("idf", Dtype::F32, &[n], &idf));
    draft.write(&path).unwrap();
    Model::from_bytes(&std::fs::read(path).unwrap(), &support::full()).unwrap()
}

#[test]
fn odd_collections_give_finite_scores_within_the_range() {
    let most = u64::MAX.to_string();
    let models = [
        odd(0, "0", &[], -3.0),
        odd(u64::MAX, "1", &[("1", u32::MAX)], 1.0),
        odd(0, &most, &[(&most, 0)], f32::MAX),
        odd(7, "0", &[("0", 5)], -1.0),
        odd(1, "1", &[(&most, 1)], 0.0),
    ];
    let posts: Vec<String> = (0..14)
        .map(|n| format!("{} zebra {}", support::WORDS[n % 12], "quake ".repeat(n)))
        .collect();
    let long = "quake zebra ".repeat(200);
    for (at, model) in models.into_iter().enumerate() {
        let engine = Engine::new(model).unwrap();
        for method in RANKERS {
            let (least, most) = method.info().range;
            for query in ["quake", "zebra quake", long.as_str()] {
                for score in scores(&engine, method, query, &posts) {
                    let fine = score.is_finite() && (least..=most).contains(&score);
                    assert!(fine, "model {at}, {}: {score}", method.name());
                }
            }
        }
    }
}

#[test]
fn a_model_without_a_collection_says_what_is_missing() {
    let model = cognate_testing::word_table::model(&["quake", "city"], &[1.0, 0.0, 0.0, 1.0], &[]);
    let engine = Engine::new(model).unwrap();
    for method in RANKERS {
        let reason = engine.unavailable(method).unwrap().to_string();
        assert!(reason.contains("--corpus FILE") && reason.contains("--counts"), "{reason}");
    }
}

#[test]
fn a_ranker_is_never_what_auto_stands_for() {
    let mut draft_of = support::tiny_model();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("auto.safetensors");
    let mut draft = Draft::from_model(&draft_of);
    draft.metadata.insert("auto_method".to_owned(), "bm25".to_owned());
    draft.write(&path).unwrap();
    draft_of = Model::from_bytes(&std::fs::read(path).unwrap(), &support::full()).unwrap();
    assert_eq!(Engine::new(draft_of).unwrap().auto().info().kind, Kind::Similarity);
}

#[tokio::test]
async fn rankers_rank_over_http_and_do_nothing_else() {
    let app = TestApp::new();
    for method in RANKERS {
        let name = method.name();
        let pair = json!({"a": "quake", "b": "city", "method": name}).to_string();
        let problem = app.post("/similarity", pair).await.refusal(422, "method_only_ranks");
        assert!(problem["detail"].as_str().unwrap().contains(name), "{problem}");
        let lines = axum::http::Request::post(format!("/similarity?method={name}"))
            .header("content-type", "application/x-ndjson")
            .body(axum::body::Body::from("[\"quake\",\"city\"]\n"))
            .unwrap();
        app.send(lines).await.refusal(422, "method_only_ranks");
        let texts = json!({"texts": "quake", "method": name}).to_string();
        app.post("/embed", texts).await.refusal(422, "method_cannot_embed");
        let distance = json!({
            "query": "quake", "candidates": ["city"], "method": name, "measure": "euclidean",
        });
        app.post("/rank", distance.to_string()).await.refusal(422, "measure_not_supported");
    }
    let listing = app.get("/methods").await.json();
    let range = |name: &str| {
        let entries = listing["methods"].as_array().unwrap();
        let entry = entries.iter().find(|entry| entry["name"] == name).unwrap();
        assert_eq!((&entry["kind"], &entry["embeds"]), (&json!("ranker"), &json!(false)));
        entry["range"].clone()
    };
    assert_eq!(range("bm25"), json!([0.0, null]), "no bound is no number");
    assert_eq!(range("ql"), json!([null, 0.0]));
}

/// A list that is long enough to be answered in parts is not, where a candidate's score depends on
/// the others; cut to the best it is the whole list, cut.
#[tokio::test]
async fn a_long_list_is_ranked_as_a_whole() {
    let app = TestApp::with(|settings| {
        settings.compute_threads = Some(3);
        settings.compute_deadline_ms = 60_000;
    });
    let engine = support::engine();
    let mut chance = support::Chance(5);
    let mut post = || {
        let word = |_| match chance.below(4) {
            0 => format!("unlisted{}", chance.below(900)),
            _ => support::WORDS[chance.below(12)].to_owned(),
        };
        (0..30).map(word).collect::<Vec<_>>().join(" ")
    };
    let candidates: Vec<String> = (0..2000).map(|_| post()).collect();
    for method in RANKERS {
        let query = Query::new(method);
        let body = json!({"query": "the quake", "candidates": candidates, "method": method.name()});
        let answer = app.ask("/rank", body.clone()).await;
        let expected = engine.rank("the quake", &candidates, &query).unwrap();
        let bits = |score: f64| (score as f32).to_bits();
        let results = answer["results"].as_array().unwrap();
        assert_eq!(results.len(), expected.results.len());
        for (result, ranked) in results.iter().zip(&expected.results) {
            assert_eq!(result["index"], ranked.index, "{}", method.name());
            assert_eq!(bits(result["score"].as_f64().unwrap()), ranked.score.to_bits());
        }
        let mut few = body;
        few["top_k"] = json!(7);
        let answer = app.ask("/rank", few).await;
        let options = RankOptions { query, top_k: Some(7), min_score: None };
        let best = engine.rank_best("the quake", &candidates, &options).unwrap();
        assert_eq!(best.results, expected.results[..7]);
        let indexes: Vec<u64> = answer["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["index"].as_u64().unwrap())
            .collect();
        assert_eq!(indexes, best.results.iter().map(|one| one.index as u64).collect::<Vec<_>>());
    }
}
