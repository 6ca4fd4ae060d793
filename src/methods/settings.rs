//! Settings that a model file keeps for a method: JSON under the section's name.

use serde::de::DeserializeOwned;

use crate::model::Model;
use crate::model::ModelError;

/// The settings of a section, or the method's own where the model has none.
pub(crate) fn of<T: DeserializeOwned + Default>(
    model: &Model,
    section: &str,
) -> Result<T, ModelError> {
    match model.section(section) {
        None => Ok(T::default()),
        Some(stored) => serde_json::from_str(stored.settings)
            .map_err(|error| broken(model, section, format!("its settings: {error}"))),
    }
}

/// A section that is there but cannot be used.
pub(crate) fn broken(model: &Model, section: &str, problem: String) -> ModelError {
    ModelError::Section { path: model.path().to_owned(), section: section.to_owned(), problem }
}
