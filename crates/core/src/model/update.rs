//! A model file that gets more: what others put into the same file meanwhile stays in it.
//!
//! Sections are made without a lock, which may take hours, from vectors and counts alone. Then,
//! under the lock on the directory, the file is read again, and what it holds by now is written
//! with the new sections. What sections are is not known here.

use std::path::Path;

use crate::model::disk::{Disk, LocalDisk};
use crate::model::draft::Draft;
use crate::model::format::{AUTO_METHOD, HEADER_DIGEST};
use crate::model::target::{Target, directory_of};
use crate::model::writer::Written;
use crate::model::{Model, ModelError, OpenOptions};

/// The turn of one process to write a model with changes. Others wait until it is dropped.
pub struct Update<'m> {
    target: Target,
    lock: <LocalDisk as Disk>::Lock,
    model: &'m Model,
    current: Option<Model>,
}

impl<'m> Update<'m> {
    /// Waits for the turn to write what becomes of `model` to `output`, which may be the file that
    /// the model was read from.
    pub fn new(model: &'m Model, output: &Path) -> Result<Self, ModelError> {
        let target = Target::follow(output).map_err(ModelError::io(output, "write to"))?;
        let directory = directory_of(&target.path);
        let lock = LocalDisk.lock(directory).map_err(ModelError::io(output, "write"))?;
        let mut update = Self { target, lock, model, current: None };
        if update.target.is(model.path()) {
            let current = Model::open(&update.target.path, &OpenOptions::default())?;
            if !base(model).eq(base(&current)) {
                return Err(ModelError::Replaced { path: output.to_owned() });
            }
            update.current = Some(current);
        }
        Ok(update)
    }

    /// The model that the changes are made to.
    pub fn model(&self) -> &Model {
        self.current.as_ref().unwrap_or(self.model)
    }

    /// Writes the changed model.
    pub fn write(&self, draft: Draft<'_>) -> Result<Written, ModelError> {
        draft.write_locked(&self.lock, self.target.clone())
    }
}

/// What a model says of itself and the digests of its tables, but for sections and for the method
/// that `auto` stands for, which nothing is made from.
fn base(model: &Model) -> impl Iterator<Item = (&String, &String)> {
    let of_sections = |key: &str| {
        let named = key.strip_prefix("b3.").unwrap_or(key);
        named.starts_with("section.") || [HEADER_DIGEST, AUTO_METHOD].contains(&key)
    };
    model.metadata().iter().filter(move |(key, _)| !of_sections(key))
}
