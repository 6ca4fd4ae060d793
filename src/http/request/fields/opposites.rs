//! What a request says of texts that say the opposite of each other, and how answers name it.

use std::borrow::Cow;

use cognate::engine::{Opposites, OppositionKind};
use serde::Deserialize;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

/// Whether a text that says the opposite of the other is less alike for it; without this as the method
/// does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OppositesRule {
    /// It is: a method that does not count opposites is refused.
    Count,
    /// It is not: the answer is that of the method without opposites, `coverage-blend` for
    /// `polarity-blend`, and with a `threshold` texts are related by their score alone.
    Ignore,
}

impl From<OppositesRule> for Opposites {
    fn from(rule: OppositesRule) -> Self {
        match rule {
            OppositesRule::Count => Self::Count,
            OppositesRule::Ignore => Self::Ignore,
        }
    }
}

/// What becomes of texts that say the opposite of the one they are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OpposedPolicy {
    /// They are left out.
    Drop,
}

/// The schema of [`OppositionKind`].
pub(crate) struct OppositionName;

impl PartialSchema for OppositionName {
    fn schema() -> RefOr<Schema> {
        let description = "How two texts are opposed: one negates and the other does not, a word stands \
                           exchanged for its opposite, their numbers differ, or two parts have changed \
                           places around a third.";
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(OppositionKind::ALL.map(OppositionKind::name)))
            .description(Some(description))
            .into()
    }
}

impl ToSchema for OppositionName {
    fn name() -> Cow<'static, str> {
        "OppositionKind".into()
    }
}
