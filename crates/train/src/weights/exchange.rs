//! Weights apart from any model: out into a file of their own, and from there onto other vectors
//! without training (De Boom et al. 2016, section 5.3, do so with Google's vectors).

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use cognate::methods::Measure;
use cognate::methods::means::learned_idf;
use cognate::model::provenance::TrainingRecord;
use cognate::model::writer::Written;
use cognate::model::{Model, OpenOptions};
use cognate_files::ReadError;
use serde::{Deserialize, Serialize};

use crate::outputs::Outputs;
use crate::weights::set;
use crate::weights::set::{MOST_RANKS, NamedSet, Use};
use crate::{TrainError, outputs};

/// The name and version of the shape.
const FORMAT: &str = "cognate-weights-1";
/// Largest file of weights.
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

/// Writes a set as JSON.
pub(super) fn export(set: &NamedSet, path: &Path) -> Result<(), TrainError> {
    let exchanged = Exchanged {
        format: FORMAT.to_owned(),
        set: set.set.clone(),
        measure: set.measure,
        max_length: set.weights.len(),
        weights: set.weights.clone(),
        trained: set.trained.clone(),
    };
    // Every key is a string and every number finite, so nothing here can fail.
    let json = serde_json::to_string_pretty(&exchanged).unwrap_or_default() + "\n";
    outputs::write(path, &json)
}

/// Weights to be put into a model.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    pub file: PathBuf,
    pub model: PathBuf,
    /// The model file to write; may be the same.
    pub output: PathBuf,
    /// The name of the set, unless it keeps its own.
    pub set: Option<String>,
    /// Which set the model uses afterwards.
    pub usage: Use,
}

/// What was put into a model.
#[derive(Debug, Clone, Serialize)]
pub struct Imported {
    #[serde(flatten)]
    pub set: NamedSet,
    /// Whether it is the one in use.
    pub in_use: bool,
    #[serde(flatten)]
    pub written: Written,
}

impl std::fmt::Display for Imported {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.written.path.display())?;
        let usage = if self.in_use { "in use" } else { "not in use" };
        let measure = self.set.measure.name();
        let count = self.set.weights.len();
        writeln!(f, "  set {} ({usage}): {count} weights for {measure}", self.set.set)?;
        write!(f, "{}", self.written)
    }
}

/// Puts weights that were trained elsewhere into a model.
pub fn import(options: &ImportOptions) -> Result<Imported, TrainError> {
    let written = Outputs { output: &options.output, checkpoint: None, beside: &[] };
    written.check([&options.file], Some(&options.model))?;
    let mut set = read(&options.file)?;
    if let Some(name) = &options.set {
        set.set = name.clone();
    }
    set::check_name(&set.set)?;
    let model = Model::open(&options.model, &OpenOptions::default())?;
    if let Some(reason) = learned_idf::without_ranks(&model) {
        return Err(TrainError::Options(format!("{}: {reason}", options.model.display())));
    }
    let (written, in_use) = set.write_into(&model, options.usage, &options.output)?;
    Ok(Imported { set, in_use, written })
}

fn read(path: &Path) -> Result<NamedSet, TrainError> {
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
    if !(1..=MOST_RANKS).contains(&count) || count != stated {
        return Err(wrong(format!(
            "expected 1 to {MOST_RANKS} weights, as many as max_length says; found {count}, and \
             max_length {stated}"
        )));
    }
    if let Some(rank) = found.weights.iter().position(|weight| !weight.is_finite()) {
        return Err(wrong(format!("weight {} is not a finite number", rank + 1)));
    }
    let Exchanged { set, measure, weights, trained, .. } = found;
    Ok(NamedSet { set, measure, weights, trained })
}
