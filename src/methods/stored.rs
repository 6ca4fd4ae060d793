//! Numbers and settings that a fitted or trained method kept in the model file, checked before
//! they are believed: a section of another shape is a broken model, not a missing one.

use serde::de::DeserializeOwned;

use crate::model::Model;
use crate::model::ModelError;
use crate::model::Section;

/// The section `name` of a model, if it is there.
pub(crate) fn section<'m>(model: &'m Model, name: &'static str) -> Option<Stored<'m>> {
    model.section(name).map(|section| Stored { model, name, section })
}

/// A section that is there, and the words for what is wrong with it.
pub(crate) struct Stored<'m> {
    model: &'m Model,
    name: &'static str,
    section: Section<'m>,
}

impl Stored<'_> {
    /// The error that this section is not as it must be.
    pub(crate) fn broken(&self, problem: String) -> ModelError {
        broken(self.model, self.name, problem)
    }

    /// The section's settings.
    pub(crate) fn settings<T: DeserializeOwned>(&self) -> Result<T, ModelError> {
        let settings = self.section.settings;
        serde_json::from_str(settings).map_err(|error| self.broken(format!("settings: {error}")))
    }

    /// The finite floats of a tensor whose shape must be `expected`; nothing stands for any
    /// length but zero.
    pub(crate) fn floats(
        &self,
        tensor: &str,
        expected: &[Option<u64>],
    ) -> Result<Vec<f32>, ModelError> {
        let side = |side: &Option<u64>| side.map_or("n".to_owned(), |side| side.to_string());
        let wanted = expected.iter().map(side).collect::<Vec<_>>().join(", ");
        let broken = |got: &str| {
            self.broken(format!("tensor `{tensor}`: expected F32 [{wanted}], got {got}"))
        };
        let Some((found, _)) = self.section.tensor(tensor) else { return Err(broken("none")) };
        let fits = |(wanted, &got): (&Option<u64>, &u64)| wanted.map_or(got > 0, |w| w == got);
        let shaped =
            found.shape.len() == expected.len() && expected.iter().zip(&found.shape).all(fits);
        match self.section.floats(tensor) {
            Some(floats) if shaped => {
                // A model opened by its structure alone was not searched for such numbers.
                match floats.iter().position(|value| !value.is_finite()) {
                    None => Ok(floats.to_vec()),
                    Some(at) => Err(broken(&format!("a number that is not finite at {at}"))),
                }
            }
            _ => Err(broken(&format!("{} {:?}", found.dtype.name(), found.shape))),
        }
    }
}

/// The settings of a section, or the method's own where the model has none.
pub(crate) fn settings_or_default<T: DeserializeOwned + Default>(
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
