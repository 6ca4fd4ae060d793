//! `cognate train weights`: weights for the ranks of a text's words by idf, learned from couples of
//! texts that are related or not (De Boom et al. 2016).
//!
//! What the weights are used for is [`learned_idf`]'s business. Departures from the paper:
//!
//! - distances are measured in units of their median under the untrained weights, so that learning
//!   rate, κ and λ mean the same for word vectors of any length;
//! - weights can be trained for the cosine too, as `1 − cosine`.
//!
//! Weights mostly fall with the rank. Where lengths differ, the second and third can yet be the
//! largest: only long texts use them, whose means lie closer together than those of short ones, and
//! the median loss evens that out. The first is lower where the rarest words have poor vectors.
//!
//! Weights for the Euclidean distance are stored times what makes the median distance of the couples
//! trained on 1, so that its score `1 / (1 + distance)` is a half there, whatever λ and κ made of
//! their size; those for the cosine, whose every multiple scores alike, as training leaves them.

mod couples;
mod descent;
mod forms;
mod loss;
mod report;
mod set;
#[cfg(test)]
mod tests;
mod trainer;

use std::num::NonZeroUsize;
use std::path::PathBuf;

use cognate::methods::Measure;
use cognate::methods::means::learned_idf;
use cognate::model::{Model, OpenOptions};
pub use descent::Tried;
pub use loss::Loss;
pub use report::{Course, Trained};
use serde::Serialize;
pub use set::{ImportOptions, Imported, MOST_RANKS, NamedSet, Use, import};

use crate::run::RunFiles;
use crate::weights::forms::KEPT_BYTES;
use crate::weights::trainer::Run;
use crate::{TrainError, run};

/// Purposes of random numbers: streams of different purposes are independent.
const ORDER_OF_BATCHES: u64 = 1;
const ORDER_OF_COUPLES: u64 = 2;
/// Orders of couples: to hold some out, and to search for κ with some.
const HELD_OUT: u64 = 0;
const SEARCHED: u64 = 1;
/// Couples of either label in a minibatch.
const HALF: usize = 50;
/// Folds of the cross-validation.
const FOLDS: usize = 5;

/// How steep the median loss is, κ, in multiples of one over the median distance.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum Kappa {
    /// The best value by cross-validation.
    Searched,
    Given(f64),
}

/// What to train and how. What is serialised fixes the bits of the outcome, with the couples and the
/// model.
#[derive(Debug, Clone, Serialize)]
pub struct WeightsOptions {
    /// Files of couples: label, text, text a row.
    #[serde(skip)]
    pub couples: Vec<PathBuf>,
    /// Couples that judge the weights; default: a tenth of the others.
    #[serde(skip)]
    pub validation: Option<PathBuf>,
    #[serde(skip)]
    pub model: PathBuf,
    #[serde(skip)]
    pub run: RunFiles,
    /// Name of the set; default: loss and measure.
    #[serde(skip)]
    pub set: Option<String>,
    /// Which set the model uses afterwards.
    #[serde(skip)]
    pub usage: Use,
    /// The objective that training minimises.
    pub loss: Loss,
    /// The measure that compares texts.
    pub measure: Measure,
    /// How many weights, M.
    pub max_length: usize,
    /// Weight of the L2 penalty.
    pub lambda: f64,
    pub kappa: Kappa,
    pub seed: u64,
    /// Maximum number of epochs.
    pub epochs: usize,
    /// Default: one a core. Threads change no bit.
    #[serde(skip)]
    pub threads: Option<NonZeroUsize>,
    #[serde(skip)]
    pub export: Option<PathBuf>,
}

pub fn train(options: &WeightsOptions) -> Result<Trained, TrainError> {
    train_until(options, KEPT_BYTES, &|| Ok(()))
}

/// [`train`] with room for so many bytes of forms, asking after every step that was kept whether to
/// go on.
fn train_until(
    options: &WeightsOptions,
    most_bytes: usize,
    go_on: &(dyn Fn() -> Result<(), TrainError> + Sync),
) -> Result<Trained, TrainError> {
    check(options)?;
    let name = options
        .set
        .clone()
        .unwrap_or_else(|| format!("{}-{}", options.loss.name(), options.measure.name()));
    set::check_name(&name)?;
    let model = Model::open(&options.model, &OpenOptions::default())?;
    if let Some(reason) = learned_idf::without_ranks(&model) {
        return Err(TrainError::Options(format!("{}: {reason}", options.model.display())));
    }
    let pool = run::pool(options.threads.map_or(0, NonZeroUsize::get))?;
    let run = Run { options, model: &model, most_bytes, go_on };
    let (course, checkpoint) = pool.install(|| run.go(&name))?;
    if let Some(path) = &options.export {
        set::export(&course.set, path)?;
    }
    let (written, in_use) = course.set.write_into(&model, options.usage, &options.run.output)?;
    options.run.finish(&checkpoint, || report::html(&course, &model))?;
    Ok(Trained { course, in_use, written })
}

/// Refuses invalid options before anything is read.
fn check(options: &WeightsOptions) -> Result<(), TrainError> {
    let refuse = |problem: String| Err(TrainError::Options(problem));
    if !(1..=MOST_RANKS).contains(&options.max_length) {
        return refuse(format!("--max-length: expected 1 to {MOST_RANKS} weights"));
    }
    if !(options.lambda.is_finite() && options.lambda >= 0.0) {
        return refuse("--lambda: expected a number that is not below 0".to_owned());
    }
    if let Kappa::Given(kappa) = options.kappa {
        if options.loss == Loss::Contrastive {
            return refuse("--kappa: only the median loss has one".to_owned());
        }
        if !(kappa.is_finite() && kappa > 0.0) {
            return refuse("--kappa: expected auto or a number above 0".to_owned());
        }
    }
    if options.epochs == 0 {
        return refuse("--epochs: expected at least 1".to_owned());
    }
    let read = options.couples.iter().chain(&options.validation);
    options.run.check(&[("--export", &options.export)], read, Some(&options.model))
}
