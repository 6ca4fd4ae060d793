//! Questions whose right answers are known, because the same engine answers them here: a served
//! score must have the same bits.

use std::cell::RefCell;
use std::path::Path;

use anyhow::Context;
use cognate::engine::{Engine, Query, RankOptions};
use cognate::methods::Method;
use cognate::model::OpenOptions;
use serde::Deserialize;

use crate::wire;

/// The engines that may answer; a served answer names its model by fingerprint.
pub struct Oracle {
    engines: Vec<Engine>,
}

/// A request's bytes and, for each model, the answer it must get.
pub struct Question {
    /// The whole request.
    pub request: Vec<u8>,
    answers: Vec<(String, Answer)>,
    /// Bodies already found right: the same bytes need no second look.
    known: RefCell<Vec<(usize, Vec<u8>)>>,
}

#[derive(Debug, PartialEq)]
enum Answer {
    Scores { bits: Vec<u32>, unscored: Vec<usize> },
    Ranking(Vec<(usize, u32)>),
}

#[derive(Deserialize)]
struct Served {
    fingerprint: String,
    #[serde(default)]
    scores: Vec<f32>,
    #[serde(default)]
    unscored: Vec<usize>,
    #[serde(default)]
    results: Vec<ServedResult>,
}

#[derive(Deserialize)]
struct ServedResult {
    index: usize,
    score: f32,
}

impl Oracle {
    /// The engine of each model file.
    pub fn open(paths: &[&Path]) -> anyhow::Result<Self> {
        let open = |path: &&Path| {
            Engine::open(path, &OpenOptions::default())
                .with_context(|| format!("{} is no model", path.display()))
        };
        Ok(Self { engines: paths.iter().map(open).collect::<anyhow::Result<_>>()? })
    }

    /// The first model's engine.
    pub fn engine(&self) -> &Engine {
        self.engines.first().expect("an oracle is opened with at least one model")
    }

    /// A question about pairs.
    pub fn pairs(&self, pairs: &[(&str, &str)]) -> anyhow::Result<Question> {
        let body = serde_json::json!({ "pairs": pairs, "method": Method::AvgCos.name() });
        let answer = |engine: &Engine| {
            let scores = engine.similarity(pairs, &Query::new(Method::AvgCos))?;
            let bits = scores.scores.iter().map(|score| score.to_bits()).collect();
            Ok(Answer::Scores { bits, unscored: scores.unscored })
        };
        self.question("/similarity", &body, answer)
    }

    /// A question about the ten best of some candidates.
    pub fn rank(&self, query: &str, candidates: &[&str]) -> anyhow::Result<Question> {
        let body = serde_json::json!({
            "query": query, "candidates": candidates, "top_k": 10, "method": Method::AvgCos.name(),
        });
        let answer = |engine: &Engine| {
            let query_settings = Query::new(Method::AvgCos);
            let options = RankOptions { top_k: Some(10), ..RankOptions::all(query_settings) };
            let ranking = engine.rank_best(query, candidates, &options)?;
            let results = ranking.results.iter();
            Ok(Answer::Ranking(results.map(|r| (r.index, r.score.to_bits())).collect()))
        };
        self.question("/rank", &body, answer)
    }

    fn question(
        &self,
        path: &str,
        body: &serde_json::Value,
        answer: impl Fn(&Engine) -> anyhow::Result<Answer>,
    ) -> anyhow::Result<Question> {
        let named = |engine: &Engine| {
            anyhow::Ok((engine.model().fingerprint().to_owned(), answer(engine)?))
        };
        Ok(Question {
            request: wire::post(path, body.to_string().as_bytes()),
            answers: self.engines.iter().map(named).collect::<anyhow::Result<_>>()?,
            known: RefCell::default(),
        })
    }
}

impl Question {
    /// Which model gave this answer, or what is wrong with it.
    pub fn check(&self, body: &[u8]) -> Result<usize, String> {
        let known = self.known.borrow().iter().find(|(_, bytes)| bytes == body).map(|(m, _)| *m);
        if let Some(model) = known {
            return Ok(model);
        }
        let served: Served = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let model = self.answers.iter().position(|(name, _)| *name == served.fingerprint);
        let model = model.ok_or_else(|| format!("unknown fingerprint {}", served.fingerprint))?;
        let right = self.answers.get(model).map(|(_, answer)| answer);
        let got = match right {
            Some(Answer::Ranking(_)) => {
                let results = served.results.iter();
                Answer::Ranking(results.map(|r| (r.index, r.score.to_bits())).collect())
            }
            _ => Answer::Scores {
                bits: served.scores.iter().map(|score| score.to_bits()).collect(),
                unscored: served.unscored,
            },
        };
        if right != Some(&got) {
            let shown = |answer: &dyn std::fmt::Debug| {
                format!("{answer:?}").chars().take(200).collect::<String>()
            };
            return Err(format!("expected {}, got {}", shown(&right), shown(&got)));
        }
        let mut known = self.known.borrow_mut();
        if known.len() < 4 {
            known.push((model, body.to_vec()));
        }
        Ok(model)
    }
}
