//! The options of a match, and the work that it takes.

use cognate::engine::Opposites;
use cognate::window::options::{Least, OptionError, OptionProblem, Options};
use cognate::window::stream::{AddPolicy, Settings};
use cognate::window::usual::Preset;
use cognate_collections::{Filter, MatchOptions};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::http::api::collections::call;
use crate::http::api::pipeline::NUMBER_BYTES;
use crate::http::error::{ApiError, Code, Pointer, Result};
use crate::http::registry::models::Models;
use crate::http::request::fields::{ModelName, OpposedPolicy, VectorMethod};
use crate::http::request::query::{Resolved, Selection};
use crate::http::request::threshold::Threshold;

const MAX_WINDOW: usize = 100_000;

/// Bytes of the answer to a text besides ids and scores.
const MATCHED_BYTES: usize = 80;
/// Bytes of the words that are returned as reasons.
const WORDS_BYTES: usize = 256;
/// Bytes that an answer adds around the score of a near item.
const NEAR_BYTES: usize = 24;
/// Bytes of an item in an answer's list of reasons, with the item's event.
pub(super) const REASON_BYTES: usize = 160;

/// Products of bytes that take as long as one of floats.
const BYTES_A_NUMBER: u64 = 4;

pub(crate) struct Matching {
    pub(crate) resolved: Resolved,
    pub(crate) how: MatchOptions,
}

impl Matching {
    /// Finds the model and checks the options; absent switches are off.
    pub(crate) fn new(
        model: Option<&str>,
        options: &Options<'_>,
        models: &Models,
        (filter, add): (Filter, Option<AddPolicy>),
        [explain, replace]: [Option<bool>; 2],
    ) -> Result<Self> {
        let mut resolved = Selection { model, ..Selection::default() }.resolve(models)?;
        let stream = options.resolve(&resolved.model.engine, MAX_WINDOW);
        let stream = stream.map_err(of_option)?;
        resolved.query.method = stream.method;
        let [explain, replace] = [explain, replace].map(Option::unwrap_or_default);
        let add = add.unwrap_or_default();
        Ok(Self { resolved, how: MatchOptions { stream, filter, add, explain, replace } })
    }

    /// Approximate bytes of the answer to one text.
    pub(crate) fn answer_bytes(&self) -> usize {
        let MatchOptions { explain, stream: Settings { nearest, .. }, .. } = self.how;
        let (near, words) = if explain { (REASON_BYTES, WORDS_BYTES) } else { (NEAR_BYTES, 0) };
        MATCHED_BYTES + words + nearest * (NUMBER_BYTES + near)
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct MatchParameters {
    /// The model.
    #[param(value_type = Option<ModelName<'_>>)]
    model: Option<String>,
    /// The method whose vectors find the nearest.
    #[param(value_type = Option<VectorMethod<'_>>)]
    method: Option<String>,
    /// The kind of stream, which says what is usual.
    preset: Option<Preset>,
    /// A method that scores the nearest once more, or `none`.
    second: Option<String>,
    /// How many items before a text it is matched against.
    #[param(minimum = 1, maximum = 100000)]
    last: Option<usize>,
    /// None of them that is earlier or later than the text by more
    /// than this.
    within: Option<String>,
    /// A number or `calibrated`; `min_score` is the same.
    #[serde(alias = "min_score")]
    #[param(value_type = Option<Threshold>)]
    threshold: Option<String>,
    /// How many of the nearest are looked at.
    #[param(minimum = 1, maximum = 1000)]
    nearest: Option<usize>,
    /// How many items of an event must speak for it, at most those of it
    /// that are in the window, and `nearest`.
    #[param(minimum = 1, maximum = 1000)]
    votes: Option<usize>,
    /// The share of an event's score that is the cosine to the mean of its last
    /// texts.
    #[param(minimum = 0, maximum = 1)]
    centre: Option<f64>,
    /// The least score at which a text is a duplicate of its nearest,
    /// whose event it joins.
    duplicate_score: Option<f64>,
    /// What happens to items that are opposed to a text.
    opposes: Option<OpposedPolicy>,
    /// Which opposed items `drop` leaves out.
    #[param(inline)]
    opposites: Option<Opposites>,
    /// Which texts are added.
    add: Option<AddPolicy>,
    /// Whether texts whose names the collection has are matched anew and take
    /// the places of those.
    replace: Option<bool>,
    /// The items that texts are matched against, as JSON: `{"user": "u1"}`. It
    /// must admit those that are added.
    filter: Option<String>,
    /// Whether each answer says why the text has its event.
    explain: Option<bool>,
}

impl MatchParameters {
    pub(crate) fn matching(&self, models: &Models) -> Result<Matching> {
        let least = self.threshold.as_deref();
        let least = least.map(|written| Threshold::parse(written, "/threshold"));
        let options = Options {
            preset: self.preset,
            method: self.method.as_deref(),
            second: self.second.as_deref(),
            last: self.last,
            within: call::within(self.within.as_deref())?,
            threshold: least.transpose()?.map(Least::from),
            nearest: self.nearest,
            votes: self.votes,
            centre: self.centre,
            duplicate_score: self.duplicate_score,
            drop_opposed: self.opposes == Some(OpposedPolicy::Drop),
            opposites: self.opposites,
        };
        let items = (call::filter(self.filter.as_deref())?, self.add);
        let switches = [self.explain, self.replace];
        Matching::new(self.model.as_deref(), &options, models, items, switches)
    }
}

fn of_option(OptionError { option, problem }: OptionError) -> ApiError {
    let pointer = Pointer::from("").field(option);
    let detail = problem.to_string();
    match problem {
        OptionProblem::Query(error) => {
            let error = ApiError::from(error);
            error.renamed(|at| if at == Pointer::from("/method") { pointer.clone() } else { at })
        }
        OptionProblem::OutOfRange { .. } => ApiError::at(Code::OutOfRange, pointer, detail),
        OptionProblem::NoneDropped => ApiError::at(Code::InvalidField, pointer, detail),
        OptionProblem::NoUsual { .. } => ApiError::at(Code::NotCalibrated, pointer, detail),
    }
}

/// Approximate multiplications for matching some texts.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Effort {
    /// For the scan of the window for their nearest, which many texts share.
    scan: u64,
    /// For scoring the nearest once more, at least and at most.
    second: [u64; 2],
}

impl Effort {
    /// Returns the work of matching texts against items with this many words each.
    pub(crate) fn new<'t>(
        Matching { resolved, how }: &Matching,
        words: u64,
        texts: impl Iterator<Item = &'t str>,
    ) -> Self {
        let Settings { second, nearest, limits, .. } = how.stream;
        let dims = resolved.model.engine.model().dims() as u64;
        let scan = (limits.last as u64).saturating_mul(dims) / BYTES_A_NUMBER;
        let again = |text: &str| {
            let Some(cost) = second.map(|method| &method.info().cost) else { return [0; 2] };
            let each = |cost: fn(u64, u64, u64) -> u64| cost(resolved.words(text), words, dims);
            // Repeated words make less work than the costs of optimal transport state.
            let both = [each(cost.bound.unwrap_or(cost.candidate)), each(cost.candidate)];
            both.map(|each| each.saturating_mul(nearest as u64))
        };
        texts.fold(Self::default(), |sum, text| {
            let ([least, most], [one, other]) = (sum.second, again(text));
            Self {
                scan: sum.scan.saturating_add(scan),
                second: [least.saturating_add(one), most.saturating_add(other)],
            }
        })
    }

    pub(crate) fn bounds(self) -> [u64; 2] {
        self.second.map(|second| self.scan.saturating_add(second))
    }

    /// The second scoring, at most.
    pub(crate) fn second(self) -> u64 {
        self.second[1]
    }
}
