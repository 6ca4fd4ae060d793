//! A named set of weights: written into a model beside its other sets, exported as JSON, and imported
//! onto other vectors without training (De Boom et al. 2016, section 5.3, do so with Google's vectors).

use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use cognate::methods::Measure;
use cognate::methods::means::learned_idf;
use cognate::methods::means::learned_idf::WeightSet;
use cognate::model::format::Dtype;
use cognate::model::provenance::TrainingRecord;
use cognate::model::update::Update;
use cognate::model::writer::{Draft, Source, Table, Written};
use cognate::model::{Model, OpenOptions};
use cognate_files::ReadError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Result, TrainError, run};

pub const MAX_RANKS: usize = 512;
const NAME_BYTES: usize = 64;

/// Which set a model uses after this one was added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// The set in use before; this set if there was none.
    AsBefore,
    This,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NamedSet {
    pub set: String,
    pub measure: Measure,
    pub weights: Vec<f32>,
    pub trained: Option<TrainingRecord>,
}

/// Refuses a name that cannot be typed or listed.
pub(super) fn check_name(name: &str) -> Result<()> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let holds = (1..=NAME_BYTES).contains(&name.len()) && name.bytes().all(fine);
    run::demand(
        holds,
        format!(
            "--set: expected up to {NAME_BYTES} letters, digits, `-`, `_` and `.`, got `{name}`"
        ),
    )
}

pub(super) fn open(path: &Path) -> Result<Model> {
    let model = Model::open(path, &OpenOptions::default())?;
    match learned_idf::without_ranks(&model) {
        Some(reason) => Err(TrainError::Options(format!("{}: {reason}", path.display()))),
        None => Ok(model),
    }
}

impl NamedSet {
    pub(super) fn said(&self, in_use: bool) -> String {
        let usage = if in_use { "in use" } else { "not in use" };
        let (count, measure) = (self.weights.len(), self.measure.name());
        format!("  set {} ({usage}): {count} weights for {measure}", self.set)
    }

    /// Writes the model with this set, replacing one of the same name; returns whether this set is
    /// in use.
    pub(super) fn write_into(
        &self,
        model: &Model,
        usage: Use,
        output: &Path,
    ) -> Result<(Written, bool)> {
        let update = Update::new(model, output)?;
        let model = update.model();
        let of_model = learned_idf::settings(model)?;
        let section = model.section(learned_idf::SECTION);
        // Fields of other sets that this version does not know are kept.
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
        tables.push(Table::new(name, Dtype::F32, &[self.weights.len()], &self.weights));
        let mut draft = Draft::from_model(model);
        draft.set_section(learned_idf::SECTION, settings.to_string(), tables);
        Ok((update.write(draft)?, default == self.set))
    }
}

const FORMAT: &str = "cognate-weights-1";
const FILE_BYTES: u64 = 1 << 20;

#[derive(Debug, Serialize, Deserialize)]
struct Exchanged {
    format: String,
    set: String,
    measure: Measure,
    max_length: usize,
    weights: Vec<f32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trained: Option<TrainingRecord>,
}

pub(super) fn export(set: &NamedSet, path: &Path) -> Result<()> {
    let exchanged = Exchanged {
        format: FORMAT.to_owned(),
        set: set.set.clone(),
        measure: set.measure,
        max_length: set.weights.len(),
        weights: set.weights.clone(),
        trained: set.trained.clone(),
    };
    // Every key is a string and every number finite, so serialising cannot fail.
    let json = serde_json::to_string_pretty(&exchanged).unwrap_or_default() + "\n";
    run::write(path, &json)
}

#[derive(Debug, Clone)]
pub struct ImportOptions {
    pub file: PathBuf,
    pub model: PathBuf,
    pub output: PathBuf,
    pub set: Option<String>,
    pub usage: Use,
}

#[derive(Debug, Clone, Serialize)]
pub struct Imported {
    #[serde(flatten)]
    pub set: NamedSet,
    pub in_use: bool,
    #[serde(flatten)]
    pub written: Written,
}

impl std::fmt::Display for Imported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (written, set) = (&self.written, self.set.said(self.in_use));
        write!(f, "{}\n{set}\n{written}", written.path.display())
    }
}

pub fn import(options: &ImportOptions) -> Result<Imported> {
    run::check_outputs(&options.output, &[], [&options.file], Some(&options.model))?;
    let mut set = read(&options.file)?;
    if let Some(name) = &options.set {
        set.set = name.clone();
    }
    check_name(&set.set)?;
    let model = open(&options.model)?;
    let (written, in_use) = set.write_into(&model, options.usage, &options.output)?;
    Ok(Imported { set, in_use, written })
}

/// A set that was written as JSON, and not trained now.
#[derive(Debug, Clone, Serialize)]
pub struct Exported {
    #[serde(flatten)]
    pub set: NamedSet,
    pub in_use: bool,
    pub path: PathBuf,
}

impl std::fmt::Display for Exported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\n{}", self.path.display(), self.set.said(self.in_use))
    }
}

/// Writes a set that a model has as JSON: the one of this name, or the one in use.
pub fn export_stored(path: &Path, name: Option<&str>, file: &Path) -> Result<Exported> {
    run::check_outputs(file, &[], [], Some(&path.to_owned()))?;
    let model = open(path)?;
    let problem = |problem: &str| TrainError::Options(format!("{}: {problem}", path.display()));
    let settings = learned_idf::settings(&model)?;
    let (Some(mut settings), Some(section)) = (settings, model.section(learned_idf::SECTION))
    else {
        return Err(problem("the model has no trained weights"));
    };
    let name = name.unwrap_or(&settings.default).to_owned();
    let known = settings.sets.keys().cloned().collect::<Vec<_>>().join(", ");
    let Some(WeightSet { measure, trained }) = settings.sets.remove(&name) else {
        return Err(problem(&format!("--set: the sets of the model are {known}, not `{name}`")));
    };
    let weights = section.floats(&learned_idf::tensor(&name));
    let weights = weights.ok_or_else(|| problem("a set of weights is missing"))?.to_vec();
    let in_use = name == settings.default;
    let set = NamedSet { set: name, measure, weights, trained };
    export(&set, file)?;
    Ok(Exported { set, in_use, path: file.to_owned() })
}

fn read(path: &Path) -> Result<NamedSet> {
    let failed = |source| ReadError::Io { path: path.to_owned(), source };
    let wrong = |problem: String| TrainError::Data { file: path.display().to_string(), problem };
    let mut json = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(FILE_BYTES + 1).read_to_end(&mut json).map_err(failed)?;
    if json.len() as u64 > FILE_BYTES {
        return Err(wrong(format!("expected at most {FILE_BYTES} bytes of weights, found more")));
    }
    let found: Exchanged = serde_json::from_slice(&json)
        .map_err(|error| wrong(format!("expected weights as --export writes them: {error}")))?;
    if found.format != FORMAT {
        return Err(wrong(format!("expected format `{FORMAT}`, found `{}`", found.format)));
    }
    let (count, stated) = (found.weights.len(), found.max_length);
    if !(1..=MAX_RANKS).contains(&count) || count != stated {
        return Err(wrong(format!(
            "expected 1 to {MAX_RANKS} weights, as many as max_length says; found {count}, and \
             max_length {stated}"
        )));
    }
    let Exchanged { set, measure, weights, trained, .. } = found;
    Ok(NamedSet { set, measure, weights, trained })
}
