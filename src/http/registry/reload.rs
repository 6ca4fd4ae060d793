//! What a reload took over, as it is answered.

use serde::Serialize;
use utoipa::ToSchema;

/// What a reload took over.
#[derive(Debug, Serialize, ToSchema)]
pub struct Reloaded {
    /// How many keys are let in, where keys are set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<usize>,
    /// Name and fingerprint of each model.
    pub models: Vec<ModelSummary>,
}

/// A model that was loaded.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ModelSummary {
    /// Its name.
    pub name: String,
    /// Sixteen hexadecimal digits that change with the model.
    pub fingerprint: String,
}
