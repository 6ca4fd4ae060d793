//! Why two texts score as they do, in the form of the service's `/explain`.

use cognate::Engine;
use cognate::engine::{ExplainedWord, Explanation, Opposition, UnknownToken};
use cognate::methods::ranker::Attention;
use serde_json::{Value, json};

use crate::Answer;
use crate::error::{Problem, of_pair};
use crate::question::Question;

/// The explanation of the first two texts.
pub(crate) fn answer(engine: &Engine, question: &Question<'_>) -> Result<Answer, Problem> {
    let explained = engine
        .explain(question.text(0), question.text(1), &question.query)
        .map_err(|error| Problem::Query(error, of_pair))?;
    let method = question.query.method.name();
    let shares = explained.shares.as_ref();
    let mut json = json!({
        "method": method,
        "measure": engine.measure_of(&question.query).name(),
        "fingerprint": engine.model().fingerprint(),
        "score": explained.score,
        "unscored": explained.unscored,
        "a": side(&explained, &explained.one, &explained.one_unknown, 0),
        "b": side(&explained, &explained.other, &explained.other_unknown, 1),
        "matrix": explained.cosines,
        "adds_up": shares.is_some(),
        "opposes": explained.opposes.iter().map(opposition).collect::<Vec<_>>(),
        "sentence": explained.sentence(method),
    });
    if let Some(of) = shares.and_then(|shares| shares.memberships.as_ref()) {
        json["memberships"] = json!({ "a": of.one, "b": of.other });
    }
    if let Some(words) = &explained.attention {
        let words: Vec<Value> =
            words.iter().filter_map(|word| attention(&explained, word)).collect();
        json["attention"] = words.into();
    }
    Ok(json.into())
}

fn side(
    explained: &Explanation,
    words: &[ExplainedWord],
    unknown: &[UnknownToken],
    at: usize,
) -> Value {
    let known = explained.known.get(at);
    let mut side = json!({ "words": words, "unknown": unknown, "known": known });
    if explained.truncated.get(at) == Some(&true) {
        side["truncated"] = true.into();
    }
    side
}

fn opposition(Opposition { kind, words: [a, b] }: &Opposition) -> Value {
    json!({ "kind": kind, "a": a, "b": b })
}

fn attention(explained: &Explanation, read: &Attention) -> Option<Value> {
    let token = &explained.one.get(read.word)?.token;
    let from = read.to.iter().filter_map(|seen| {
        let token = &explained.other.get(seen.word)?.token;
        let mut of = json!({ "word": seen.word, "token": token, "weight": seen.weight });
        if let Some(cosine) = seen.cosine {
            of["cosine"] = cosine.into();
        }
        Some(of)
    });
    Some(json!({ "word": read.word, "token": token, "to": from.collect::<Vec<_>>() }))
}
