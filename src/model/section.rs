//! What trained methods added to a model file: named sets of tensors, each with its settings.
//!
//! A section's meaning belongs to the method that wrote it; here it is bytes under a name.

use std::collections::BTreeSet;

use crate::model::Model;
use crate::model::format::Dtype;
use crate::model::format::Tensor;
use crate::model::mapped::numbers;

impl Model {
    /// What a trained method stored under `name`.
    pub fn section(&self, name: &str) -> Option<Section<'_>> {
        let prefix = format!("section.{name}.");
        let settings = self.header.metadata.get(&format!("section.{name}"));
        let has_tensor = self.header.tensors.iter().any(|t| t.name.starts_with(&prefix));
        if settings.is_none() && !has_tensor {
            return None;
        }
        let settings = settings.map(String::as_str).unwrap_or("{}");
        Some(Section { model: self, prefix, settings })
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

/// What a trained method stored in the model file.
#[derive(Debug, Clone)]
pub struct Section<'m> {
    model: &'m Model,
    prefix: String,
    /// Its settings, as JSON.
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
}
