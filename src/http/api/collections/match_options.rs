//! What is asked of texts that are matched, and how much work that is.

use cognate::window::options::{OptionError, OptionProblem, Options};
use cognate::window::stream::Settings;
use cognate::window::usual;
use cognate_collections::MatchOptions;

use crate::http::error::{ApiError, Code, Pointer};
use crate::http::registry::models::Models;
use crate::http::request::query::{Resolved, Selection};

/// Most items that a text is matched against.
const MAX_WINDOW: usize = 100_000;

/// Products of bytes that take as long as one of numbers.
const BYTES_A_NUMBER: u64 = 4;

/// What is asked of texts that are matched.
pub(crate) struct Matching {
    pub(crate) resolved: Resolved,
    pub(crate) how: MatchOptions,
}

impl Matching {
    /// The model that answers, and how; `treated` says what else is wanted of texts by these settings.
    pub(crate) fn new(
        model: Option<&str>,
        options: &Options<'_>,
        models: &Models,
        treated: impl FnOnce(Settings) -> MatchOptions,
    ) -> Result<Self, ApiError> {
        let method = Some(options.method.unwrap_or(usual::METHOD));
        let resolved = Selection { model, method, ..Selection::default() }.resolve(models)?;
        let stream = options.resolve(&resolved.model.engine, MAX_WINDOW);
        Ok(Self { resolved, how: treated(stream.map_err(of_option)?) })
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
        OptionProblem::NoUsual { .. } | OptionProblem::NotCalibrated => {
            ApiError::at(Code::NotCalibrated, pointer, detail)
        }
    }
}

/// Multiplications that matching some texts takes, roughly.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Effort {
    /// To look through the window for their nearest, which many texts share.
    scan: u64,
    /// To score the nearest once more, at least and at most.
    second: [u64; 2],
}

impl Effort {
    /// The work of matching texts against items of so many words each.
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
            // Words that repeat make less work than the costs of optimal transport say.
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

    /// All of it, at least and at most.
    pub(crate) fn bounds(self) -> [u64; 2] {
        self.second.map(|second| self.scan.saturating_add(second))
    }

    /// That of the second look, at most.
    pub(crate) fn second(self) -> u64 {
        self.second[1]
    }
}
