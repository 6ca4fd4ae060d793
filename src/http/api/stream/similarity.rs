//! `POST /similarity` as lines: a pair in, its score out.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use cognate::engine::{Counts, Oppositions, Reason, Scores};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use crate::http::api::stream::job::Part;
use crate::http::api::stream::line::{Line, LineId, Lines, parse, write};
use crate::http::api::stream::{LineQuestion, Opening, settings};
use crate::http::app::App;
use crate::http::error::{ApiError, Pointer};
use crate::http::request::fields::{
    MeasureName, ModelName, OppositesRule, PairMethod, Text, TwoTexts, forms,
};
use crate::http::request::query::{OovPolicy, Resolved, Selection, estimate};
use crate::http::request::threshold::{Cutoff, Threshold};
use crate::http::work::pool::JobContext;
use crate::http::work::pool::items_per_part;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SimilarityParameters {
    /// `application/x-ndjson` only: the model.
    #[param(value_type = Option<ModelName<'_>>)]
    model: Option<String>,
    /// `application/x-ndjson` only: the method.
    #[param(value_type = Option<PairMethod<'_>>)]
    method: Option<String>,
    /// `application/x-ndjson` only: the measure.
    #[param(value_type = Option<MeasureName>)]
    measure: Option<MeasureName>,
    /// `application/x-ndjson` only: whether opposites count.
    opposites: Option<OppositesRule>,
    /// `application/x-ndjson` only: what to do with a pair of which a text cannot be scored. It is
    /// answered by score 0 and a reason, or by an error.
    oov: Option<OovPolicy>,
    /// `application/x-ndjson` only: cut a text with too many tokens rather than refuse it.
    truncate: Option<bool>,
    /// `application/x-ndjson` only: adds `opposes` to each line, how its texts are opposed.
    return_opposes: Option<bool>,
    /// `application/x-ndjson` only: a number or `calibrated`; adds `related` to each line.
    threshold: Option<String>,
}

struct Pairs {
    resolved: Resolved,
}

pub(crate) async fn answer(app: Arc<App>, request: Request) -> Result<Response, ApiError> {
    let opening = Opening::of(app, &request)?;
    let names = "model, method, measure, opposites, oov, truncate, return_opposes and threshold";
    let asked: SimilarityParameters = settings(request.uri(), names)?;
    let selection = Selection {
        measure: asked.measure.map(|MeasureName(measure)| measure),
        opposites: asked.opposites,
        oov: asked.oov,
        truncate: asked.truncate,
        return_opposes: asked.return_opposes,
        ..Selection::named(asked.model.as_ref(), asked.method.as_ref())
    };
    let resolved = selection.resolve(&opening.app.models())?;
    resolved.check_scores()?;
    let threshold = asked.threshold.as_deref();
    let threshold = threshold.map(|written| Threshold::parse(written, "/threshold")).transpose()?;
    let resolved = Cutoff::ask(threshold, resolved)?;
    let place = opening.place()?;
    let body = request.into_body();
    Ok(opening.answer(Pairs { resolved }, place, body, Lines::default()))
}

/// One line: `["a","b"]` or `{"id":…,"a":…,"b":…}`.
pub(super) struct PairLine<'b> {
    id: Option<LineId<'b>>,
    a: Text<'b>,
    b: Text<'b>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedPair<'b> {
    #[serde(borrow)]
    id: Option<LineId<'b>>,
    #[serde(borrow)]
    a: Text<'b>,
    #[serde(borrow)]
    b: Text<'b>,
}

forms!(PairLine<'b>: "a list of two strings or an object with `a` and `b`";
    list(TwoTexts { a, b } in TwoTexts<'de>) => Ok(PairLine { id: None, a, b });
    object(NamedPair { id, a, b } in NamedPair<'de>) => Ok(PairLine { id, a, b }););

#[derive(Serialize)]
struct Scored<'l> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<LineId<'l>>,
    /// The score; 0 if the pair is unscored.
    score: f32,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unscored: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
    /// How the texts are opposed, where that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    opposes: Option<Oppositions>,
    /// Whether the texts are related, if there is a threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    related: Option<bool>,
}

impl LineQuestion for Pairs {
    type Item<'b> = PairLine<'b>;
    type Answers = Scores;
    type Kept = ();

    fn resolved(&self) -> Option<&Resolved> {
        Some(&self.resolved)
    }

    fn read<'b>(&self, line: Option<&'b [u8]>) -> Result<PairLine<'b>, ApiError> {
        parse(line)
    }

    fn id<'i>(item: &'i PairLine<'_>) -> Option<LineId<'i>> {
        item.id
    }

    fn per_part(&self, items: &[&PairLine<'_>]) -> usize {
        let each = |item: &&PairLine<'_>| {
            let (a, b) = (item.a.as_ref(), item.b.as_ref());
            estimate(a.len() + b.len(), self.resolved.multiplications(a, b))
        };
        items_per_part(items.len(), items.iter().map(each).fold(0, u64::saturating_add))
    }

    fn ask(&self, items: &[&PairLine<'_>], _: &JobContext) -> Result<Scores, ApiError> {
        let pairs: Vec<(&str, &str)> =
            items.iter().map(|item| (item.a.as_ref(), item.b.as_ref())).collect();
        Ok(self.resolved.model.engine.similarity(&pairs, &self.resolved.query)?)
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
        let score = answers.scores.get(place).copied().unwrap_or(0.0);
        let unscored = answers.unscored.binary_search(&place).ok();
        let scored = Scored {
            id: item.id,
            score,
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
