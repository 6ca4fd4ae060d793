//! A set of weights on its way into a model file, beside those that are there.

use std::borrow::Cow;
use std::path::Path;

use cognate::methods::Measure;
use cognate::methods::means::learned_idf;
use cognate::methods::means::learned_idf::WeightSet;
use cognate::model::Model;
use cognate::model::format::Dtype;
use cognate::model::provenance::TrainingRecord;
use cognate::model::update::Update;
use cognate::model::writer::{Draft, Source, Table, Written};
use serde::Serialize;
use serde_json::{Value, json};

use crate::TrainError;

/// Most weights of a set.
pub const MOST_RANKS: usize = 512;
/// Longest name of a set.
const NAME_BYTES: usize = 64;

/// Which set a model uses once it has this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The one it uses already; this one if it had none.
    AsBefore,
    This,
}

/// A set of weights and its name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamedSet {
    pub set: String,
    /// What it is for.
    pub measure: Measure,
    /// The weights, that of the highest idf first.
    pub weights: Vec<f32>,
    /// How it was trained, where that is known.
    pub trained: Option<TrainingRecord>,
}

/// Refuses a name that could not be typed or listed.
pub(super) fn check_name(name: &str) -> Result<(), TrainError> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.len() > NAME_BYTES || !name.bytes().all(fine) {
        return Err(TrainError::Options(format!(
            "--set: expected up to {NAME_BYTES} letters, digits, `-`, `_` and `.`, got `{name}`"
        )));
    }
    Ok(())
}

impl NamedSet {
    /// Writes the model with this set, in place of one of the same name; tells whether it is the one
    /// in use.
    pub(super) fn write_into(
        &self,
        model: &Model,
        usage: Use,
        output: &Path,
    ) -> Result<(Written, bool), TrainError> {
        let update = Update::of(model, output)?;
        let model = update.model();
        let of_model = learned_idf::settings(model)?;
        let section = model.section(learned_idf::SECTION);
        // What this version does not know of other sets stays as it is.
        let stored = section.and_then(|section| serde_json::from_str(section.settings).ok());
        let mut settings: Value = stored.unwrap_or_else(|| json!({"sets": {}}));
        let set = WeightSet { measure: self.measure, trained: self.trained.clone() };
        settings["sets"][&self.set] = json!(set);
        let before = of_model.map(|settings| settings.default);
        let default = match (usage, before) {
            (Use::AsBefore, Some(before)) => before,
            _ => self.set.clone(),
        };
        settings["default"] = json!(default);

        let name = learned_idf::tensor(&self.set);
        let prefix = format!("section.{}.", learned_idf::SECTION);
        let of_section = model.tensors().filter_map(|(tensor, bytes)| {
            let within = tensor.name.strip_prefix(&prefix)?;
            (within != name).then(|| Table {
                name: within.to_owned(),
                dtype: tensor.dtype,
                shape: tensor.shape.clone(),
                source: Source::Bytes(Cow::Borrowed(bytes)),
            })
        });
        let mut tables: Vec<Table<'_>> = of_section.collect();
        tables.push(Table::of(name, Dtype::F32, &[self.weights.len()], &self.weights));
        let mut draft = Draft::of(model);
        draft.set_section(learned_idf::SECTION, settings.to_string(), tables);
        Ok((update.write(draft)?, default == self.set))
    }
}
