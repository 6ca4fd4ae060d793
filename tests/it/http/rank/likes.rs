//! Liked and disliked texts in the place of a query.

use cognate::engine::{Engine, Query};
use cognate::methods::{Kind, Method};
use serde_json::{Value, json};

use super::{each, posts, with};
use crate::support;
use crate::support::app::TestApp;

fn similar(engine: &Engine) -> impl Iterator<Item = Method> + '_ {
    let methods = Method::ALL.iter().copied();
    methods.filter(|&method| {
        engine.unavailable(method).is_none() && method.info().kind == Kind::Similarity
    })
}

#[tokio::test]
async fn one_liked_text_is_a_query() {
    let app = TestApp::strict();
    let models = app.app.models();
    let posts = posts(150, 7);
    for method in similar(&models.all()[0].engine) {
        for (text, settings) in [
            ("the quake in new york", json!({})),
            ("shakes the town", json!({"top_k": 9, "min_score": 0.2, "return_text": true})),
            ("zzz", json!({})),
        ] {
            let body = json!({"candidates": posts, "method": method.name()});
            let body = with(&body, settings);
            let mut liked = app.ask("/rank", with(&body, json!({"like": [text]}))).await;
            let mut asked = app.ask("/rank", with(&body, json!({"query": text}))).await;
            asked.as_object_mut().unwrap().remove("query_known");
            let passed = liked.as_object_mut().unwrap().remove("like_unscored");
            assert_eq!(
                passed,
                (text == "zzz").then(|| json!([0])).filter(|_| asked["unscored"]
                    .as_array()
                    .unwrap()
                    .len()
                    == posts.len()),
                "{}",
                method.name()
            );
            assert_eq!(liked, asked, "{} {text}", method.name());
            for strategy in ["best", "mean", "sum"] {
                let same = json!({"like": [{"text": text}], "strategy": strategy, "unlike": []});
                let same = app.ask("/rank", with(&body, same)).await;
                assert_eq!(same["results"], asked["results"], "{} {strategy}", method.name());
            }
            let mean = json!({"like": [{"text": text, "weight": 0.3}], "strategy": "mean"});
            let mean = app.ask("/rank", with(&body, mean)).await;
            assert_eq!(mean["results"], asked["results"], "{}", method.name());
        }
    }
}

#[tokio::test]
async fn the_order_of_liked_texts_does_not_matter() {
    let app = TestApp::strict();
    let models = app.app.models();
    let liked = [
        json!("the quake"),
        json!({"text": "new york city", "weight": 0.3}),
        json!("über town"),
        json!({"text": "the quake", "weight": 1.7}),
        json!("zzz"),
        json!("o'neill shakes 0"),
    ];
    let disliked = ["earthquake", "the", "new"];
    let candidates = posts(120, 9);
    for method in similar(&models.all()[0].engine) {
        for strategy in ["best", "mean", "sum"] {
            let ask = |turn: usize| {
                let (mut like, mut unlike) = (liked.to_vec(), disliked.to_vec());
                like.rotate_left(turn);
                unlike.rotate_left(turn % 3);
                if turn % 2 == 1 {
                    like.reverse();
                }
                json!({"like": like, "unlike": unlike, "strategy": strategy,
                    "candidates": candidates, "method": method.name()})
            };
            let first = app.ask("/rank", ask(0)).await;
            for turn in 1..4 {
                let other = app.ask("/rank", ask(turn)).await;
                assert_eq!(other["results"], first["results"], "{} {strategy}", method.name());
            }
        }
    }
}

/// The formula, from the scores that the library gives for each text alone.
#[tokio::test]
async fn scores_with_several_texts_come_together_as_they_should() {
    let (app, engine) = (TestApp::strict(), Engine::new(support::strict()).unwrap());
    let candidates = posts(200, 13);
    let liked = [("the quake", 1.0), ("zzz qqq", 1.0), ("new york city", 0.25), ("town", 2.0)];
    let disliked = ["shakes", "earthquake hits"];
    for method in [Method::AvgCos, Method::DynamaxJaccard, Method::Jaccard, Method::Wmd] {
        let scores = |text: &str| {
            let ranking = engine.rank(text, &candidates, &Query::new(method)).unwrap();
            let mut scores = vec![None; candidates.len()];
            ranking.results.iter().for_each(|one| scores[one.index] = Some(f64::from(one.score)));
            scores
        };
        let of_liked: Vec<_> = liked.iter().map(|(text, weight)| (scores(text), *weight)).collect();
        let of_disliked: Vec<_> = disliked.map(scores).into();
        for (strategy, unlike_weight) in [("best", None), ("mean", Some(0.5)), ("sum", Some(1.5))] {
            let mut body = json!({
                "like": liked.map(|(text, weight)| json!({"text": text, "weight": weight})),
                "strategy": strategy, "candidates": candidates, "method": method.name(),
            });
            if let Some(weight) = unlike_weight {
                body["unlike"] = json!(disliked);
                body["unlike_weight"] = json!(weight);
            }
            let answer = app.ask("/rank", body).await;
            let unscored = answer["unscored"].as_array().unwrap().len();
            let results = answer["results"].as_array().unwrap();
            let mut last = f64::INFINITY;
            for result in &results[..results.len() - unscored] {
                let index = result["index"].as_u64().unwrap() as usize;
                let each =
                    of_liked.iter().filter_map(|(scores, weight)| Some((scores[index]?, *weight)));
                let each: Vec<(f64, f64)> = each.collect();
                let sum: f64 = each.iter().map(|(score, weight)| score * weight).sum();
                let expected = match strategy {
                    "best" => {
                        each.iter().map(|(score, weight)| score * weight).fold(f64::MIN, f64::max)
                    }
                    "mean" => sum / each.iter().map(|(_, weight)| weight).sum::<f64>(),
                    _ => sum,
                };
                let worst =
                    of_disliked.iter().filter_map(|scores| scores[index]).fold(f64::MIN, f64::max);
                let expected = expected - unlike_weight.map_or(0.0, |weight| weight * worst);
                let score = result["score"].as_f64().unwrap();
                assert!(
                    (score - expected).abs() < 1e-6,
                    "{} {strategy} {score} {expected}",
                    method.name()
                );
                assert!(score <= last, "best first");
                last = score;
            }
            assert_eq!(results.len(), candidates.len());
        }
    }
}

#[tokio::test]
async fn texts_without_a_known_word_are_part_of_no_score() {
    let app = TestApp::strict();
    let body = json!({"candidates": ["the quake", "new york", "zzz"], "method": "avg-cos"});
    let with_them =
        json!({"like": ["zzz", "the quake", "!!"], "unlike": ["york", "qqq"], "strategy": "mean"});
    let answer = app.ask("/rank", with(&body, with_them)).await;
    assert_eq!(
        (&answer["like_unscored"], &answer["unlike_unscored"]),
        (&json!([0, 2]), &json!([1]))
    );
    let without = json!({"like": ["the quake"], "unlike": ["york"], "strategy": "mean"});
    let without = app.ask("/rank", with(&body, without)).await;
    assert_eq!(answer["results"], without["results"]);
    let none = app.ask("/rank", with(&body, json!({"like": ["zzz"], "unlike": ["york"]}))).await;
    assert_eq!(
        (&none["unscored"], &none["reasons"]),
        (&json!([0, 1, 2]), &json!(["unknown", "unknown", "unknown"]))
    );
    assert_eq!(each(&none, "score"), vec![Value::from(0.0); 3]);
}
