//! `cognate fit MODEL --components FILE --universe axes:K --polarity FILE --names FILE --bylines drop`: adds to a
//! model file what methods fit to it, and says whether texts are read with their bylines.
//!
//! Everything else in the file is kept byte for byte; only sections fitted anew are replaced. What
//! is fitted is defined by the methods.

use std::path::{Path, PathBuf};

use cognate::choice::Unexpected;
use cognate::methods::means::{sif, usif};
use cognate::methods::sets::fbow_jaccard;
use cognate::methods::sets::fbow_jaccard::Universe;
use cognate::methods::{Fitted, polarity};
use cognate::model::format::Limits;
use cognate::model::update::Update;
use cognate::model::writer::{Draft, Written, clash};
use cognate::model::{Model, OpenOptions};
use cognate::text::{Bylines, Normalisation};
use cognate_files::ReadError;
use cognate_files::input::Input;
use cognate_files::progress::Progress;

use crate::{PackError, Result};

#[derive(Debug, Default)]
pub struct FitOptions {
    pub model: PathBuf,
    pub output: PathBuf,
    pub components: Option<PathBuf>,
    pub universe: Option<UniverseChoice>,
    pub polarity: Option<PathBuf>,
    pub names: Option<PathBuf>,
    pub bylines: Option<Bylines>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UniverseChoice {
    kind: Universe,
    size: usize,
}

impl std::str::FromStr for UniverseChoice {
    type Err = Unexpected;

    fn from_str(text: &str) -> Result<Self, Unexpected> {
        let (kind, size) = text.split_once(':').unwrap_or((text, ""));
        let kind = kind.parse()?;
        let most = Limits::DEFAULT.dims as usize;
        match size.parse() {
            Ok(size) if (1..=most).contains(&size) => Ok(Self { kind, size }),
            _ => Err(Unexpected::new(&format!("1 to {most} members after a colon"), size)),
        }
    }
}

/// Seed of the clustering; fixed, so that a universe can be reproduced.
const SEED: u64 = 0;

#[derive(Debug, serde::Serialize)]
pub struct FitReport {
    pub sections: Vec<(&'static str, serde_json::Value)>,
    #[serde(flatten)]
    pub written: Written,
}

impl std::fmt::Display for FitReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{}", self.written.path.display())?;
        for (section, settings) in &self.sections {
            writeln!(f, "  {section} {settings}")?;
        }
        write!(f, "{}", self.written)
    }
}

pub fn fit(options: &FitOptions) -> Result<FitReport> {
    let read = options.components.iter().chain(&options.polarity).chain(&options.names);
    if let Some(problem) = clash(&[("-o", &options.output)], read.map(PathBuf::as_path)) {
        return Err(PackError::Options(problem));
    }
    let model = Model::open(&options.model, &OpenOptions::default())?;
    let fitted = sections(&model, options)?;
    let update = Update::new(&model, &options.output)?;
    let mut draft = Draft::from_model(update.model());
    fitted.iter().for_each(|fitted| fitted.put_into(&mut draft));
    if let Some(bylines) = options.bylines {
        let rules = Normalisation { bylines, ..update.model().normalisation().clone() };
        let rules = serde_json::to_string(&rules);
        let rules = rules.map_err(|error| PackError::Options(error.to_string()))?;
        draft.metadata.insert("normalisation".to_owned(), rules);
    }
    let written = update.write(draft)?;
    let settings = |fitted: &Fitted| {
        (fitted.section, serde_json::from_str(&fitted.settings).unwrap_or_default())
    };
    Ok(FitReport { sections: fitted.iter().map(settings).collect(), written })
}

fn sections(model: &Model, options: &FitOptions) -> Result<Vec<Fitted>> {
    let mut fitted = Vec::new();
    if let Some(file) = &options.components {
        fitted.push(sif::fit(model, |see| each_sentence(file, "sif-pca", see))?);
        fitted.push(usif::fit(model, |see| each_sentence(file, "usif", see))?);
    }
    if let Some(UniverseChoice { kind, size }) = options.universe {
        fitted.push(fbow_jaccard::fit(model, kind, size, SEED));
    }
    if let Some(file) = &options.polarity {
        fitted.push(polarity::fit(&model.vocabulary(), read_lines(file)?)?);
    }
    if let Some(file) = &options.names {
        fitted.push(polarity::fit_names(model, read_lines(file)?)?);
    }
    Ok(fitted)
}

pub(crate) fn read_lines(path: &Path) -> Result<Vec<String>, ReadError> {
    let mut input = Input::open(path)?;
    input.skip_byte_order_mark()?;
    let mut lines = Vec::new();
    while let Some(line) = input.read_line()? {
        // A last field may be empty.
        lines.push(String::from_utf8_lossy(line).trim_end_matches([' ', '\r']).to_owned());
    }
    Ok(lines)
}

fn each_sentence(path: &Path, step: &'static str, see: &mut dyn FnMut(&str)) -> Result<()> {
    let progress = Progress::bytes(step);
    let mut input = Input::open(path)?;
    input.skip_byte_order_mark()?;
    while let Some(line) = input.read_line()? {
        let sentence = String::from_utf8_lossy(line);
        if !sentence.trim().is_empty() {
            see(&sentence);
        }
        progress.follow(&input);
    }
    Ok(())
}
