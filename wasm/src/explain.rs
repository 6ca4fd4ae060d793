//! Why two texts score as they do, in the form of the service's `/explain`.

use cognate::Engine;
use cognate::engine::{ExplainedWord, Explanation, OpposedWord, Opposition, UnknownToken};
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
    let unknown = unknown
        .iter()
        .map(|UnknownToken { token, share }| json!({ "token": token, "share": share }));
    json!({
        "words": words.iter().map(word).collect::<Vec<_>>(),
        "unknown": unknown.collect::<Vec<_>>(),
        "known": explained.known.get(at),
        "truncated": explained.truncated.get(at),
    })
}

fn word(explained: &ExplainedWord) -> Value {
    let ExplainedWord { token, span, word, found, pieces, idf, norm, share } = explained;
    json!({
        "token": token, "span": span, "word": word, "found": found, "pieces": pieces, "idf": idf,
        "norm": norm, "share": share,
    })
}

fn opposition(told: &Opposition) -> Value {
    let [a, b] = told.words.each_ref().map(|words| {
        let words = words.iter();
        let words =
            words.map(|OpposedWord { token, span }| json!({ "token": token, "span": span }));
        words.collect::<Vec<_>>()
    });
    json!({ "kind": told.kind, "a": a, "b": b })
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
