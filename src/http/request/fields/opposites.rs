//! What a request says of texts that say the opposite of each other.

use serde::Deserialize;
use utoipa::ToSchema;

/// What is done with texts that say the opposite of the one they are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OpposedPolicy {
    /// Opposed texts are left out.
    Drop,
}
