//! How vectors are written.

use serde::Deserialize;
use utoipa::ToSchema;

/// How vectors are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// A list of numbers.
    #[default]
    Float,
    /// Their bytes as 32-bit floats, little end first, in base64.
    Base64,
}
