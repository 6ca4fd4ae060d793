//! `GET /methods` and `GET /models`: what this server can do.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use cognate::engine::fuse::stored::StoredPart;
use cognate::engine::fuse::{FusedMethod, Fusion};
use cognate::engine::{Engine, Measure};
use cognate::methods::{Kind, Method, Reads};
use cognate::model::Frequency;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::http::app::App;
use crate::http::error::{Code, Result};
use crate::http::openapi::refusals::refusals;
use crate::http::registry::models::LoadedModel;
use crate::http::request::fields::ModelName;
use crate::http::request::json;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ModelQuery {
    /// The model's name; without one the first is used.
    #[param(value_type = Option<ModelName>)]
    model: Option<String>,
}

/// Every method.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MethodList {
    /// The model's name.
    model: String,
    /// Sixteen hexadecimal digits that change with the model.
    fingerprint: String,
    /// The method that `auto` means.
    auto: &'static str,
    /// Every method, whether or not this model can serve it; last those that the model fuses.
    methods: Vec<MethodEntry>,
}

/// One method.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MethodEntry {
    /// The name; for a stored fusion `fused:` and a name.
    name: Cow<'static, str>,
    /// `similarity` scores pairs and ranks; `ranker` only ranks.
    #[schema(value_type = String)]
    kind: cognate::methods::Kind,
    /// What the method does.
    summary: Cow<'static, str>,
    /// The paper.
    paper: &'static str,
    /// Between which numbers its scores lie; `null` on a side where they have no bound, as those of
    /// some rankers have none.
    #[schema(value_type = Vec<Option<f32>>, min_items = 2, max_items = 2)]
    range: (Option<f32>, Option<f32>),
    /// Whether it has a vector of one text alone, so that `/embed` can use it.
    embeds: bool,
    /// The measure of requests that name none.
    measure: &'static str,
    /// What a text must have to be scored: known `words`, or `tokens` of any kind.
    #[schema(value_type = String)]
    reads: cognate::methods::Reads,
    /// Whether this model can serve it.
    available: bool,
    /// Why it is not available, and which command adds what is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// A note on the method with this model.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// How a fused method fuses, `rrf` or `zscore`.
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'static str>,
    /// The parts of a fused method.
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Vec<PartEntry>>,
}

/// A part of a fused method.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PartEntry {
    /// A method.
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    /// The measure that compares vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    measure: Option<String>,
    /// Without a method: the name under which each candidate brings its own number.
    #[serde(skip_serializing_if = "Option::is_none")]
    scores: Option<String>,
    /// The weight of the part.
    weight: f64,
}

/// Every model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelList {
    /// The models, the default first.
    models: Vec<ModelEntry>,
}

/// One model.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelEntry {
    /// The name by which requests choose the model.
    name: String,
    /// Whether requests without a model's name use this model.
    default: bool,
    /// Sixteen hexadecimal digits that change with the model.
    fingerprint: String,
    /// Words of the vocabulary.
    words: usize,
    /// Dimensions of the word vectors.
    dimensions: usize,
    /// Size of the file.
    bytes: u64,
    /// Terms of use, as the file states them.
    #[serde(skip_serializing_if = "Option::is_none")]
    licence: Option<String>,
    /// Codes of the languages it is for, in ISO 639-1; left out if the file does not state them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    languages: Vec<String>,
    /// The method that `auto` means.
    auto: &'static str,
    /// `in_norm` if the vectors' lengths carry how frequent a word is, else `none`.
    frequency: &'static str,
    /// Thresholds that were found on labelled pairs.
    thresholds: Vec<ThresholdEntry>,
}

/// A threshold of one method and measure.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ThresholdEntry {
    /// The method.
    method: &'static str,
    /// The measure.
    measure: &'static str,
    /// Lowest score that counts as related.
    threshold: f64,
    /// The aim for which the threshold was chosen.
    aim: String,
    /// Share of the pairs above it that are related.
    precision: f64,
    /// Share of the related pairs that are above it.
    recall: f64,
    /// Their harmonic mean.
    f1: f64,
}

impl MethodEntry {
    fn new(method: Method, engine: &Engine) -> Self {
        let info = method.info();
        let reason = engine.unavailable(method).map(ToString::to_string);
        let carried = engine.model().frequency() == Frequency::InNorm;
        let note = "the lengths of this model's vectors already carry how frequent a word is, \
                    so that weighting by frequency counts it twice; `auto` never picks it";
        Self {
            name: info.name.into(),
            kind: info.kind,
            summary: info.summary.into(),
            paper: info.paper,
            range: (bound(info.range.0), bound(info.range.1)),
            embeds: info.embeds,
            measure: engine.default_measure(method).name(),
            reads: info.reads,
            available: reason.is_none(),
            reason,
            note: (carried && info.weights_frequency).then_some(note),
            by: None,
            parts: None,
        }
    }

    fn of_fused(fused: &FusedMethod, engine: &Engine) -> Self {
        let stored = fused.stored();
        let fusion = engine.fusion(fused);
        let part = |part: &StoredPart| PartEntry {
            method: part.method.clone(),
            measure: part.measure.clone(),
            scores: part.scores.clone(),
            weight: part.weight,
        };
        // A candidate is scored if any part scores it; runs and tokens require less than words.
        let words = |fusion: &Arc<Fusion>| {
            let words = |method: Method| method.info().reads == Reads::Words;
            fusion.methods().all(|(_, method, _)| words(method)) && fusion.runs().next().is_none()
        };
        let needs_words = fusion.as_ref().is_ok_and(words);
        Self {
            name: fused.name().to_string().into(),
            kind: Kind::Ranker,
            summary: fused.summary().into(),
            paper: stored.by.paper(),
            range: (bound(stored.by.range().0), bound(stored.by.range().1)),
            embeds: false,
            measure: Measure::default().name(),
            reads: if needs_words { Reads::Words } else { Reads::Tokens },
            available: fusion.is_ok(),
            reason: fusion.err().map(|error| error.to_string()),
            note: None,
            by: Some(stored.by.name()),
            parts: Some(stored.parts.iter().map(part).collect()),
        }
    }
}

impl ModelEntry {
    fn new(loaded: &LoadedModel, default: bool) -> Self {
        let engine = &loaded.engine;
        let model = engine.model();
        let keys =
            Method::ALL.iter().flat_map(|&method| Measure::ALL.map(|measure| (method, measure)));
        let thresholds = keys.filter_map(|(method, measure)| {
            let known = &engine.calibration(method, measure)?.threshold;
            Some(ThresholdEntry {
                method: method.name(),
                measure: measure.name(),
                threshold: known.threshold,
                aim: known.aim.clone(),
                precision: known.precision,
                recall: known.recall,
                f1: known.f1,
            })
        });
        Self {
            name: loaded.name.to_string(),
            default,
            fingerprint: model.fingerprint().to_owned(),
            words: model.vocabulary().len(),
            dimensions: model.dims(),
            bytes: model.bytes(),
            licence: model.metadata().get("licence").cloned(),
            languages: model.languages().map(str::to_owned).collect(),
            auto: engine.auto().name(),
            frequency: match model.frequency() {
                Frequency::InNorm => "in_norm",
                Frequency::None => "none",
            },
            thresholds: thresholds.collect(),
        }
    }
}

/// JSON has no infinity.
fn bound(end: f32) -> Option<f32> {
    end.is_finite().then_some(end)
}

refusals!(MethodsRefusals: &[Code::InvalidField, Code::UnknownModel, Code::NotReady]);

/// Lists the methods: what each does, and whether the model can serve it.
///
/// A method that needs what the model lacks is listed with the reason.
#[utoipa::path(
    get,
    path = "/methods",
    tag = "describe",
    params(ModelQuery),
    responses((status = 200, description = "Every method", body = MethodList), MethodsRefusals),
)]
pub(crate) async fn methods(State(app): State<Arc<App>>, uri: Uri) -> Result<Json<MethodList>> {
    let of: ModelQuery = json::read_query(&uri)?;
    let models = app.models();
    let loaded = models.choose(of.model.as_deref())?;
    let engine = &loaded.engine;
    let methods = Method::ALL.iter().map(|&each| MethodEntry::new(each, engine));
    let fused = engine.fusions().iter().map(|each| MethodEntry::of_fused(each, engine));
    Ok(Json(MethodList {
        model: loaded.name.to_string(),
        fingerprint: engine.model().fingerprint().to_owned(),
        auto: engine.auto().name(),
        methods: methods.chain(fused).collect(),
    }))
}

refusals!(ModelsRefusals: &[Code::NotReady]);

/// Lists the models: size, terms and thresholds of each.
///
/// The first is the default. The fingerprint changes with the model's bytes.
#[utoipa::path(
    get,
    path = "/models",
    tag = "describe",
    responses(
        (status = 200, description = "Every model, the default first", body = ModelList),
        ModelsRefusals,
    ),
)]
pub async fn models(State(app): State<Arc<App>>) -> Result<Json<ModelList>> {
    let models = app.models();
    models.choose(None)?;
    let entry = |(place, loaded): (usize, &Arc<LoadedModel>)| ModelEntry::new(loaded, place == 0);
    Ok(Json(ModelList { models: models.all().iter().enumerate().map(entry).collect() }))
}
