//! What is made of a ranking: duplicates folded, results made to differ, words that speak for them.

use std::collections::BTreeSet;

use cognate::engine::{Engine, Query};
use cognate::methods::Method;
use serde_json::{Value, json};

use super::{each, posts, with};
use crate::support;
use crate::support::app::TestApp;

const METHODS: [Method; 4] = [Method::AvgCos, Method::DynamaxJaccard, Method::Jaccard, Method::Wmd];

fn index(result: &Value) -> usize {
    result["index"].as_u64().unwrap() as usize
}

/// How much alike two texts are, by the library.
fn alike(engine: &Engine, method: Method, a: &str, b: &str) -> f32 {
    engine.similarity(&[(a, b)], &Query::new(method)).unwrap().scores[0]
}

#[tokio::test]
async fn a_lambda_of_one_leaves_the_order_as_it_is() {
    let app = TestApp::strict();
    for method in METHODS {
        for more in
            [json!({}), json!({"top_k": 5, "offset": 2}), json!({"top_k": 10, "min_score": 0.1})]
        {
            let body = json!({"query": "the quake in new york", "candidates": posts(90, 17),
                "method": method.name()});
            let plain = app.ask("/rank", with(&body, more.clone())).await;
            let diverse = with(&with(&body, more), json!({"diversify": {"lambda": 1}}));
            assert_eq!(app.ask("/rank", diverse).await, plain, "{}", method.name());
        }
    }
}

/// The order by the formula itself, again and again over all that are left.
#[tokio::test]
async fn results_are_in_the_order_of_maximal_marginal_relevance() {
    let (app, engine) = (TestApp::strict(), Engine::new(support::strict()).unwrap());
    let texts = posts(60, 19);
    for method in METHODS {
        for (lambda, pool, top_k) in [(0.7, 40, 10), (0.3, 12, 12), (0.0, 25, 8), (0.5, 5, 9)] {
            let body = json!({"query": "the quake in new york", "candidates": texts, "method": method.name()});
            let plain = app.ask("/rank", body.clone()).await;
            let scored = plain["results"].as_array().unwrap().len()
                - plain["unscored"].as_array().unwrap().len();
            let mut left: Vec<(usize, f64)> = plain["results"].as_array().unwrap()
                [..scored.min(pool)]
                .iter()
                .map(|one| (index(one), one["score"].as_f64().unwrap()))
                .collect();
            let mut expected: Vec<usize> = Vec::new();
            while !left.is_empty() && expected.len() < top_k {
                let value = |&(candidate, score): &(usize, f64)| {
                    let near = expected.iter().map(|&other| {
                        f64::from(alike(&engine, method, &texts[other], &texts[candidate]))
                    });
                    lambda * score - (1.0 - lambda) * near.reduce(f64::max).unwrap_or(0.0)
                };
                let mut best = 0;
                for place in 1..left.len() {
                    if value(&left[place]) > value(&left[best]) {
                        best = place;
                    }
                }
                expected.push(left.remove(best).0);
            }
            let rest = plain["results"].as_array().unwrap()[pool.min(scored)..].iter().map(index);
            expected.extend(left.iter().map(|one| one.0).chain(rest));
            expected.truncate(top_k);
            let diverse = json!({"diversify": {"lambda": lambda, "pool": pool}, "top_k": top_k});
            let answer = app.ask("/rank", with(&body, diverse)).await;
            let got: Vec<usize> = answer["results"].as_array().unwrap().iter().map(index).collect();
            assert_eq!(got, expected, "{} {lambda} {pool}", method.name());
            // Pages are pages of one order.
            let mut pages = Vec::new();
            for offset in (0..top_k).step_by(4) {
                let page = json!({"diversify": {"lambda": lambda, "pool": pool}, "top_k": 4, "offset": offset});
                pages.extend(each(&app.ask("/rank", with(&body, page)).await, "index"));
            }
            assert_eq!(json!(pages[..top_k]), json!(expected), "{} {lambda} {pool}", method.name());
        }
    }
}

#[tokio::test]
async fn duplicates_are_folded_into_the_best_and_nobody_is_lost() {
    let (app, engine) = (TestApp::strict(), Engine::new(support::strict()).unwrap());
    let texts = posts(120, 23);
    let candidates: Vec<Value> =
        texts.iter().enumerate().map(|(id, text)| json!({"id": id, "text": text})).collect();
    for method in METHODS {
        for least in [0.6_f32, 0.9, 1.0] {
            let body = json!({"query": "the quake in new york", "candidates": candidates, "method": method.name()});
            let plain = app.ask("/rank", body.clone()).await;
            let scored = texts.len() - plain["unscored"].as_array().unwrap().len();
            let order = &plain["results"].as_array().unwrap()[..scored];
            let mut folds: Vec<(usize, Vec<usize>)> = Vec::new();
            for one in order.iter().map(index) {
                let reached =
                    |head: usize| alike(&engine, method, &texts[head], &texts[one]) >= least;
                match folds.iter_mut().find(|fold| reached(fold.0)) {
                    Some(fold) => fold.1.push(one),
                    None => folds.push((one, Vec::new())),
                }
            }
            let told = |answer: &Value| -> Vec<(usize, Vec<usize>)> {
                let results = answer["results"].as_array().unwrap().iter();
                let duplicates = |one: &Value| {
                    one["duplicates"]
                        .as_array()
                        .map_or(Vec::new(), |list| list.iter().map(index).collect())
                };
                results.map(|one| (index(one), duplicates(one))).collect()
            };
            let answer = app.ask("/rank", with(&body, json!({"collapse": least}))).await;
            let got = told(&answer);
            assert_eq!(got[..folds.len()], folds, "{} {least}", method.name());
            let seen: BTreeSet<usize> = got
                .iter()
                .flat_map(|(head, others)| others.iter().chain([head]))
                .copied()
                .collect();
            assert_eq!(seen.len(), texts.len(), "nobody is lost");
            for one in answer["results"].as_array().unwrap() {
                for duplicate in one["duplicates"].as_array().into_iter().flatten() {
                    assert_eq!(duplicate["id"], duplicate["index"]);
                    let place = order.iter().find(|it| it["index"] == duplicate["index"]).unwrap();
                    assert_eq!(place["score"], duplicate["score"]);
                    let similarity = duplicate["similarity"].as_f64().unwrap() as f32;
                    assert_eq!(
                        similarity,
                        alike(&engine, method, &texts[index(one)], &texts[index(duplicate)])
                    );
                }
            }
            let page = app
                .ask("/rank", with(&body, json!({"collapse": least, "top_k": 6, "offset": 1})))
                .await;
            // Duplicates are told that stand before the last result.
            let place = |one: usize| order.iter().position(|it| index(it) == one).unwrap();
            let last = got.get(6).map_or(usize::MAX, |(head, _)| place(*head));
            let mut expected = got[1..7.min(got.len())].to_vec();
            for (_, duplicates) in &mut expected {
                duplicates.retain(|one| place(*one) < last);
            }
            assert_eq!(told(&page), expected, "{} {least}", method.name());
        }
    }
}

/// Both at once: the pool is one of candidates that stand for themselves.
#[tokio::test]
async fn what_stands_for_others_is_made_to_differ() {
    let app = TestApp::strict();
    let body = json!({"query": "the quake in new york", "candidates": posts(120, 29), "method": "avg-cos"});
    let folded = app.ask("/rank", with(&body, json!({"collapse": 0.9, "top_k": 16}))).await;
    let both = json!({"collapse": 0.9, "diversify": {"lambda": 0.5, "pool": 16}, "top_k": 16});
    let both = app.ask("/rank", with(&body, both)).await;
    let sorted = |answer: &Value| {
        let mut results = answer["results"].as_array().unwrap().clone();
        results.sort_by_key(index);
        results
    };
    assert_eq!(sorted(&both), sorted(&folded));
    assert_ne!(each(&both, "index"), each(&folded, "index"));
}

#[tokio::test]
async fn a_folded_list_may_use_the_threshold_that_the_model_brings() {
    let app = TestApp::with_model(support::default_model(), |_| ());
    let body = json!({"query": "quake", "collapse": "calibrated", "candidates": [
        "Earthquake shakes Los Angeles", "Cat naps on sofa", "Quake shakes Los Angeles",
    ]});
    let answer = app.ask("/rank", body).await;
    assert_eq!(answer["results"].as_array().unwrap().len(), 2, "{answer}");
    let body = json!({"query": "quake", "collapse": "calibrated", "candidates": ["a"]});
    let problem =
        TestApp::new().post("/rank", body.to_string()).await.refusal(422, "not_calibrated");
    assert_eq!(problem["errors"][0]["pointer"], "/collapse");
}

#[tokio::test]
async fn the_words_with_the_largest_shares_speak_for_a_result() {
    let app = TestApp::with_model(support::default_model(), |_| ());
    let candidates: Vec<String> = (0..30).map(|n| format!("an earthquake number {n}")).collect();
    let body =
        json!({"query": "quake hits city", "candidates": candidates, "explain": true, "offset": 2});
    let answer = app.ask("/rank", body).await;
    let results = answer["results"].as_array().unwrap();
    for (place, result) in results.iter().enumerate() {
        let words = result["words"].as_array();
        assert_eq!(words.is_some(), place < 20, "{result}");
        let Some(words) = words else { continue };
        assert!(words.len() <= 5 && !words.is_empty(), "{result}");
        let text = candidates[index(result)].as_str();
        let pair = json!({"a": "quake hits city", "b": text});
        let explained = app.ask("/explain", pair).await;
        let mut shares: Vec<f64> = ["a", "b"]
            .iter()
            .flat_map(|side| explained[side]["words"].as_array().unwrap().clone())
            .map(|word| word["share"].as_f64().unwrap())
            .collect();
        shares.sort_by(|a, b| b.total_cmp(a));
        let told: Vec<f64> = words.iter().map(|word| word["share"].as_f64().unwrap()).collect();
        assert_eq!(told, shares[..told.len()]);
        let side = |word: &Value| if word["of"] == "query" { "a" } else { "b" };
        for word in words {
            let listed = explained[side(word)]["words"].as_array().unwrap();
            assert!(listed.iter().any(|it| it["token"] == word["token"]), "{word}");
        }
    }
    let liked = json!({"like": ["cat on sofa", {"text": "quake hits city", "weight": 2}, "zzz"],
        "candidates": ["an earthquake", "a cat"], "explain": true});
    let answer = app.ask("/rank", liked).await;
    let of_each = |index: usize| {
        let results = answer["results"].as_array().unwrap();
        results.iter().find(|one| one["index"] == index).unwrap()["like"].clone()
    };
    assert_eq!((of_each(0), of_each(1)), (json!(1), json!(0)), "{answer}");
}
