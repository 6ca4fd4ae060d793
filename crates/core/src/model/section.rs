//! What fitted and trained methods added to a model file: named sets of tensors, each with its
//! settings, checked before they are believed. A section of another shape is a broken model, not a
//! missing one.
//!
//! A section's meaning belongs to the method that wrote it; here it is numbers under a name.

use std::collections::BTreeSet;

use serde::de::DeserializeOwned;

use crate::model::bytes::numbers;
use crate::model::format::{Dtype, Tensor};
use crate::model::{Model, ModelError};

impl Model {
    /// The section of a trained method, by name.
    pub fn section(&self, name: &str) -> Option<Section<'_>> {
        let prefix = format!("section.{name}.");
        let settings = self.header.metadata.get(&format!("section.{name}"));
        let has_tensor = self.header.tensors.iter().any(|t| t.name.starts_with(&prefix));
        if settings.is_none() && !has_tensor {
            return None;
        }
        let settings = settings.map(String::as_str).unwrap_or("{}");
        Some(Section { model: self, name: name.to_owned(), prefix, settings })
    }

    /// The settings of the section `name`, or the default where the model has no such section.
    pub(crate) fn section_settings<T>(&self, name: &str) -> Result<T, ModelError>
    where
        T: DeserializeOwned + Default,
    {
        self.section(name).map_or_else(|| Ok(T::default()), |section| section.parse_settings())
    }

    pub(crate) fn broken_section(&self, name: &str, problem: String) -> ModelError {
        ModelError::Section { path: self.path().to_owned(), section: name.to_owned(), problem }
    }

    /// Names of all sections, sorted.
    pub fn sections(&self) -> BTreeSet<&str> {
        let settings = self.header.metadata.keys().filter_map(|key| key.strip_prefix("section."));
        let tensors = self.header.tensors.iter().filter_map(|tensor| {
            tensor.name.strip_prefix("section.")?.split_once('.').map(|(section, _)| section)
        });
        settings.chain(tensors).collect()
    }
}

/// A section that a trained method stored in the model file.
#[derive(Debug, Clone)]
pub struct Section<'m> {
    model: &'m Model,
    name: String,
    prefix: String,
    /// The section's settings, as JSON.
    pub settings: &'m str,
}

impl<'m> Section<'m> {
    /// A tensor of the section, by the name it has within it.
    pub fn tensor(&self, name: &str) -> Option<(&'m Tensor, &'m [u8])> {
        let tensor = self.model.header.tensor(&format!("{}{name}", self.prefix))?;
        Some((tensor, self.model.slice(&tensor.range)))
    }

    /// The floats of a tensor, if it is there and holds 32-bit floats.
    pub fn floats(&self, name: &str) -> Option<&'m [f32]> {
        let (tensor, bytes) = self.tensor(name)?;
        if tensor.dtype == Dtype::F32 { numbers(bytes) } else { None }
    }

    /// The finite floats of a tensor of the shape `expected`; `None` in it is any length but zero.
    pub(crate) fn floats_shaped(
        &self,
        tensor: &str,
        expected: &[Option<u64>],
    ) -> Result<&'m [f32], ModelError> {
        let length = |length: &Option<u64>| length.map_or("n".to_owned(), |n| n.to_string());
        let wanted = expected.iter().map(length).collect::<Vec<_>>().join(", ");
        let broken = |got: &str| {
            self.broken(format!("tensor `{tensor}`: expected F32 [{wanted}], got {got}"))
        };
        let Some((found, _)) = self.tensor(tensor) else { return Err(broken("none")) };
        let fits = |(wanted, &got): (&Option<u64>, &u64)| wanted.map_or(got > 0, |w| w == got);
        let shaped =
            found.shape.len() == expected.len() && expected.iter().zip(&found.shape).all(fits);
        match self.floats(tensor) {
            Some(floats) if shaped => {
                // A model opened by structure alone was not searched for such numbers.
                match floats.iter().position(|value| !value.is_finite()) {
                    None => Ok(floats),
                    Some(at) => Err(broken(&format!("a number that is not finite at {at}"))),
                }
            }
            _ => Err(broken(&format!("{} {:?}", found.dtype.name(), found.shape))),
        }
    }

    pub(crate) fn parse_settings<T: DeserializeOwned>(&self) -> Result<T, ModelError> {
        serde_json::from_str(self.settings)
            .map_err(|error| self.broken(format!("settings: {error}")))
    }

    pub(crate) fn broken(&self, problem: String) -> ModelError {
        self.model.broken_section(&self.name, problem)
    }
}
