//! What every question has in common: which model, which method, which measure, and what to do
//! with texts that are unknown or too long.

use std::sync::Arc;

use serde::Deserialize;
use serde::Serialize;
use utoipa::ToSchema;

use crate::engine::Measure;
use crate::engine::Place;
use crate::engine::Query;
use crate::engine::QueryError;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::error::Fault;
use crate::http::error::MOST_ITEMS;
use crate::http::fields::Text;
use crate::http::models::Served;
use crate::http::models::Shelf;
use crate::http::settings::Settings;
use crate::methods::Kind;
use crate::methods::Method;

/// What to do with a text of which no word is known: list it as unscored, or refuse the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Oov {
    /// Score 0, and its index is listed under `unscored`.
    #[default]
    Score,
    /// The whole request is refused.
    Error,
}

/// The settings that every question may have.
#[derive(Debug, Default)]
pub struct Choice<'r, 'b> {
    /// The model's name.
    pub model: Option<&'r Text<'b>>,
    /// The method's name.
    pub method: Option<&'r Text<'b>>,
    /// The measure.
    pub measure: Option<Measure>,
    /// What to do with unknown texts.
    pub oov: Option<Oov>,
    /// Whether a text with too many tokens is cut.
    pub truncate: Option<bool>,
}

/// A question's model and settings, resolved.
pub struct Asked {
    /// The model, held until the answer is there.
    pub served: Arc<Served>,
    /// Method, measure, and what to do with unknown and overlong texts.
    pub query: Query,
}

impl Choice<'_, '_> {
    /// Finds the model and the method.
    pub fn resolve(&self, shelf: &Shelf) -> Result<Asked, ApiError> {
        let served = shelf.choose(self.model.map(AsRef::as_ref))?;
        let name = self.method.map_or("auto", AsRef::as_ref);
        // Mostly a name is as listings have it, and need not be folded to be known.
        let listed = Method::ALL.iter().copied().find(|method| method.name() == name);
        let method = listed.map_or_else(|| served.engine.method(name), Ok)?;
        let query = Query {
            method,
            measure: self.measure,
            refuse_unknown: self.oov == Some(Oov::Error),
            truncate: self.truncate.unwrap_or(false),
        };
        Ok(Asked { served: Arc::clone(served), query })
    }
}

impl Asked {
    /// The measure that scores are computed by.
    pub fn measure(&self) -> Measure {
        let own = || self.served.engine.default_measure(self.query.method);
        self.query.measure.unwrap_or_else(own)
    }

    /// Refuses a method that cannot score pairs, or not by the measure asked for.
    pub fn check_scores(&self) -> Result<(), ApiError> {
        let info = self.query.method.info();
        if info.kind == Kind::Ranker {
            return Err(QueryError::OnlyRanks { method: info.name }.into());
        }
        Ok(self.served.engine.check(&self.query)?)
    }

    /// Refuses a method whose scores of pairs cannot be explained.
    pub fn check_explains(&self) -> Result<(), ApiError> {
        Ok(self.served.engine.check_explain(&self.query)?)
    }

    /// Multiplications that a text of so many bytes against another takes, roughly: a word of
    /// running text is about six bytes.
    pub fn multiplications(&self, one: &str, other: &str) -> u64 {
        let most = self.served.engine.limits().tokens;
        let words = |text: &str| (text.len() / 6 + 1).min(most);
        let dims = self.served.engine.model().vectors().dims();
        (self.query.method.info().cost)(words(one), words(other), dims)
    }

    /// Every text that is at fault, where scoring stopped at the first.
    pub fn faults<'t>(&self, texts: impl Iterator<Item = (Place, &'t str)>) -> Vec<Fault> {
        let fault = |(place, text)| {
            let error = self.served.engine.check_text(text, &self.query, place).err()?;
            Fault::of(&error)
        };
        texts.filter_map(fault).take(MOST_ITEMS).collect()
    }

    /// Adds the other faults of a question to the first one.
    pub fn explain<'t>(
        &self,
        mut error: ApiError,
        texts: impl Iterator<Item = (Place, &'t str)>,
    ) -> ApiError {
        let of_text = matches!(
            error.code,
            Code::EmptyText | Code::TextTooLong | Code::TooManyTokens | Code::AllOov
        );
        if of_text {
            let faults = self.faults(texts);
            if !faults.is_empty() {
                error.faults = faults;
            }
        }
        error
    }

    /// Refuses a question whose texts have too many tokens in all.
    pub fn check_total<'t>(
        &self,
        texts: impl Iterator<Item = (Place, &'t str)> + Clone,
        settings: &Settings,
    ) -> Result<(), ApiError> {
        let limit = settings.tokens_total;
        // A token takes a byte at least, so only long questions have to be counted.
        let bytes: usize = texts.clone().map(|(_, text)| text.len()).sum();
        if bytes <= limit {
            return Ok(());
        }
        let count = |total: usize, (place, text)| {
            let read = self.served.engine.check_text(text, &self.query, place)?;
            Ok::<_, QueryError>(total.saturating_add(read))
        };
        let total = texts
            .clone()
            .try_fold(0, count)
            .map_err(|error| self.explain(ApiError::from(error), texts))?;
        if total > limit {
            return Err(ApiError::beyond(
                Code::TooManyTokensTotal,
                "",
                "tokens in all",
                limit,
                total,
            ));
        }
        Ok(())
    }
}
