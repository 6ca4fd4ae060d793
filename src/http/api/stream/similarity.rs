//! `POST /similarity` as lines: a pair in, its score out.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use cognate::engine::{Counts, Oppositions, Reason, Scores, TextPair};
use serde::{Deserialize, Serialize};

use crate::http::api::question::Asked;
use crate::http::api::similarity::{Scoring, SimilarityParameters};
use crate::http::api::stream::job::Part;
use crate::http::api::stream::line::{Line, LineId, Lines, parse, write};
use crate::http::api::stream::{LineQuestion, Opening};
use crate::http::app::App;
use crate::http::error::{Pointer, Result};
use crate::http::request::fields::{MeasureName, Text, TwoTexts, forms};
use crate::http::request::json;
use crate::http::request::query::{Resolved, Selection};
use crate::http::request::threshold::Threshold;
use crate::http::work::pool::JobContext;

pub(crate) async fn answer(app: Arc<App>, request: Request) -> Result<Response> {
    let opening = Opening::new(app, &request)?;
    let asked: SimilarityParameters = json::read_query(request.uri())?;
    let selection = Selection {
        measure: asked.measure.map(|MeasureName(measure)| measure),
        opposites: asked.opposites,
        oov: asked.oov,
        truncate: asked.truncate,
        return_opposes: asked.return_opposes,
        ..Selection::named(asked.model.as_ref(), asked.method.as_ref())
    };
    let threshold = asked.threshold.as_deref();
    let threshold = threshold.map(|written| Threshold::parse(written, "/threshold")).transpose()?;
    let scoring = Scoring::new(&selection, threshold, &opening.app.models())?;
    let place = opening.place()?;
    Ok(opening.answer(scoring, place, request.into_body(), Lines::default()))
}

pub(super) struct PairLine<'b> {
    id: Option<LineId<'b>>,
    a: Text<'b>,
    b: Text<'b>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'b"))]
struct NamedPair<'b> {
    id: Option<LineId<'b>>,
    a: Text<'b>,
    b: Text<'b>,
}

forms!(PairLine<'b>: "a list of two strings or an object with `a` and `b`";
    list(TwoTexts { a, b } in TwoTexts<'de>) => Ok(PairLine { id: None, a, b });
    object(NamedPair { id, a, b } in NamedPair<'de>) => Ok(PairLine { id, a, b }););

#[derive(Serialize)]
struct Scored<'l> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<LineId<'l>>,
    score: f32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unscored: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// How the texts are opposed, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    opposes: Option<Oppositions>,
    /// Whether the texts are related, if there is a threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<bool>,
}

impl TextPair for PairLine<'_> {
    fn texts(&self) -> (&str, &str) {
        (self.a.as_ref(), self.b.as_ref())
    }
}

impl LineQuestion for Scoring {
    type Item<'b> = PairLine<'b>;
    type Answers = Scores;
    type Kept = ();

    fn resolved(&self) -> Option<&Resolved> {
        Some(&self.resolved)
    }

    fn read<'b>(&self, line: Option<&'b [u8]>) -> Result<PairLine<'b>> {
        parse(line)
    }

    fn id<'i>(item: &'i PairLine<'_>) -> Option<LineId<'i>> {
        item.id
    }

    fn per_part(&self, items: &[&PairLine<'_>]) -> usize {
        Asked::per_part(self, items)
    }

    fn ask(&self, items: &[&PairLine<'_>], _: &JobContext) -> Result<Scores> {
        Ok(Asked::ask(self, items)?)
    }

    fn counts(answers: &Scores) -> Counts {
        answers.counts
    }

    fn write(
        &self,
        _: &Line,
        item: &PairLine<'_>,
        answers: &Scores,
        place: usize,
        part: &mut Part<()>,
    ) {
        let unscored = answers.unscored.binary_search(&place).ok();
        let scored = Scored {
            id: item.id,
            score: answers.scores.get(place).copied().unwrap_or(0.0),
            unscored: unscored.is_some(),
            reason: unscored.and_then(|at| answers.reasons.get(at).copied()),
            truncated: answers.truncated.binary_search(&place).is_ok(),
            opposes: answers.opposes.get(place).copied(),
            related: answers.related.get(place).copied(),
        };
        write(&mut part.answer, &scored);
    }

    fn pointer_in_line(pointer: Pointer) -> Pointer {
        pointer.of_pair().map_or(pointer, |(_, field)| field.into())
    }
}
