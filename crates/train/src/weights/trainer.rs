//! A training run from its couples to its weights, with checkpoints: the finished folds of the
//! search for κ, then the state between two epochs.

use std::time::Instant;

use cognate::methods::Measure;
use cognate::methods::means::learned_idf;
use cognate::model::provenance::{TrainingFile, Validation};
use cognate::model::{Model, provenance};
use cognate_files::progress::Progress;
use cognate_stats::distribution::quantile;

use crate::Result;
use crate::checkpoint::Checkpoint;
use crate::run::demand;
use crate::weights::couples::{Couple, CoupleSplit};
use crate::weights::descent::{Descent, Finished, Measured, Objective, Search, Slope, State};
use crate::weights::forms::{DistanceScale, FIRST_WEIGHT, PairForms};

use crate::weights::{
    Course, Kappa, Loss, NamedSet, Resumed, Seconds, ValidationDistances, ValidationSide,
    WeightsOptions, descent,
};

pub(super) type GoOn<'g> = &'g (dyn Fn() -> Result<()> + Sync);

pub(super) struct Run<'r> {
    pub(super) options: &'r WeightsOptions,
    pub(super) model: &'r Model,
    pub(super) go_on: GoOn<'r>,
}

impl Run<'_> {
    /// Reads couples, searches for κ, trains the weights and validates them.
    pub(super) fn go(&self, name: &str) -> Result<(Course, Checkpoint)> {
        let (options, model) = (self.options, self.model);
        let mut clock = Instant::now();
        let mut lap = || std::mem::replace(&mut clock, Instant::now()).elapsed().as_secs_f64();
        let parted = CoupleSplit::read(model, options)?;
        let checkpoint = checkpoint(options, model, &parted.files)?;
        let (mut finished, state) = load(&checkpoint, options.max_length)?;
        let epochs = state.as_ref().map_or(0, |state| state.losses.len());
        let resumed = Resumed { runs: finished.len(), epochs };
        let mut seconds = Seconds { reading: lap(), ..Seconds::default() };

        let forms = self.pair_forms(&parted.couples);
        let trained_on = parted.by_label.concat();
        let scale = DistanceScale::new(&forms, &trained_on).ok_or_else(|| {
            parted.unfit("half of the couples have texts of the same words, at no distance")
        })?;
        seconds.forms = lap();

        let slope = self.slope(&parted, scale, &mut finished, &checkpoint)?;
        seconds.search = lap();

        let [related, others] = &parted.by_label;
        let descent = Descent {
            forms: &forms,
            objective: Objective { scale, slope, lambda: options.lambda },
            seed: options.seed,
            epochs: options.epochs,
            by_label: [related, others],
        };
        let mut state = state.unwrap_or_else(|| State::new(options.max_length));
        descent.run(&mut state, &Progress::run("training"), &mut |state| {
            save(&checkpoint, &finished, Some(state))?;
            (self.go_on)()
        })?;
        seconds.training = lap();

        let weights = stored(&forms, &scale, &trained_on, &state.weights);
        let holds = state.is_finite() && weights.iter().all(|weight| weight.is_finite());
        let problem = "the weights left the finite numbers; try a smaller --lambda or --kappa";
        demand(holds, problem)?;
        let judged = judge(&forms, &scale, [&trained_on, &parted.validation_places], &weights)
            .ok_or_else(|| parted.unfit("the distances have no figures"))?;
        seconds.judging = lap();
        let trained = self.facts(&parted, &scale, slope, (&state, &judged));
        let measure = options.measure;
        let set = NamedSet { set: name.to_owned(), measure, weights, trained: Some(trained) };
        let (losses, tried) = (state.losses, descent::tried(&finished));
        let bytes = [forms.bytes(), forms.kept_bytes()];
        Ok((Course { set, tried, losses, bytes, resumed, seconds, judged }, checkpoint))
    }

    fn pair_forms<'c>(&'c self, couples: &'c [Couple]) -> PairForms<'c> {
        let shape = (self.options.measure, self.options.max_length);
        PairForms::new(self.model, couples, shape, self.options.memory)
    }

    /// Returns the loss with its slope κ: the κ of the options, or the best κ of the search.
    fn slope(
        &self,
        parted: &CoupleSplit,
        scale: DistanceScale,
        finished: &mut Finished,
        checkpoint: &Checkpoint,
    ) -> Result<Slope> {
        let options = self.options;
        match (options.loss, options.kappa) {
            (Loss::Contrastive, _) => return Ok(Slope::Contrastive),
            (_, Kappa::Given(kappa)) => return Ok(Slope::Median { kappa }),
            (_, Kappa::Searched) => {}
        }
        let mut couples = Vec::new();
        let most = descent::most_couples(options.measure, options.max_length);
        let by_label = descent::draw(&parted.by_label, options.seed, most).map(|places| {
            let first = couples.len();
            couples.extend(places.into_iter().map(|place| parted.couples[place].clone()));
            (first..couples.len()).collect()
        });
        let search = Search {
            forms: &self.pair_forms(&couples),
            scale,
            lambda: options.lambda,
            seed: options.seed,
            epochs: options.epochs,
            by_label,
        };
        *finished = search.run(std::mem::take(finished), &|finished| {
            save(checkpoint, finished, None)?;
            (self.go_on)()
        })?;
        let kappa = descent::best(finished).ok_or_else(|| parted.unfit("no κ could be tried"))?;
        Ok(Slope::Median { kappa })
    }

    fn facts(
        &self,
        parted: &CoupleSplit,
        scale: &DistanceScale,
        slope: Slope,
        (state, judged): (&State, &ValidationDistances),
    ) -> provenance::TrainingRecord {
        let options = self.options;
        provenance::TrainingRecord {
            loss: options.loss.name().to_owned(),
            kappa: match slope {
                Slope::Median { kappa } => Some(kappa),
                Slope::Contrastive => None,
            },
            unit: scale.unit,
            lambda: options.lambda,
            max_length: options.max_length,
            seed: options.seed,
            couples: parted.by_label.iter().map(Vec::len).sum(),
            left_out: parted.left_out,
            epochs: state.losses.len(),
            final_loss: state.losses.last().copied().unwrap_or_default(),
            validation: Some(Validation {
                couples: parted.validation_places.len(),
                before: judged.before.parting,
                after: judged.after.parting,
            }),
            files: parted.files[0].clone(),
            vectors: fingerprint_of_vectors(self.model),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

fn stored(
    forms: &PairForms<'_>,
    scale: &DistanceScale,
    trained_on: &[usize],
    weights: &[f64],
) -> Vec<f32> {
    let median = match forms.measure {
        Measure::Cosine => None,
        Measure::Euclidean => quantile(&scale.all(forms, trained_on, weights), 0.5),
    };
    let size = median.filter(|median| *median > 0.0).map_or(1.0, |median| median * scale.unit);
    weights.iter().map(|weight| (weight / size) as f32).collect()
}

/// The figures of the initial and the trained weights on the validation couples, each with the
/// threshold that is best on the training couples.
fn judge(
    forms: &PairForms<'_>,
    scale: &DistanceScale,
    [trained_on, validation_places]: [&[usize]; 2],
    weights: &[f32],
) -> Option<ValidationDistances> {
    let related = |places: &[usize]| -> Vec<bool> {
        places.iter().map(|&place| forms.related(place)).collect()
    };
    let side = |weights: &[f64]| {
        let measured = |places: &[usize]| {
            let mut distances = scale.all(forms, places, weights);
            distances.iter_mut().for_each(|distance| *distance *= scale.unit);
            Measured { related: related(places), distances }
        };
        let threshold = measured(trained_on).threshold()?;
        let judged = measured(validation_places);
        let parting = judged.parting(threshold)?;
        Some(ValidationSide { distances: judged.distances, threshold, parting })
    };
    let after: Vec<f64> = weights.iter().copied().map(f64::from).collect();
    Some(ValidationDistances {
        related: related(validation_places),
        before: side(&vec![FIRST_WEIGHT; weights.len()])?,
        after: side(&after)?,
    })
}

/// The first digits of the digest of a model's word vectors, which do not depend on its sections.
fn fingerprint_of_vectors(model: &Model) -> String {
    let digest = model.metadata().get("b3.vectors").map(String::as_str).unwrap_or_default();
    digest.chars().take(16).collect()
}

/// The checkpoint of a run on these files. The model is identified by its metadata and the digests
/// of its tables, without learned weights: the run writes those, possibly into the same file.
fn checkpoint(
    options: &WeightsOptions,
    model: &Model,
    files: &[Vec<TrainingFile>; 2],
) -> Result<Checkpoint> {
    let learned = format!("section.{}", learned_idf::SECTION);
    let own = |key: &str| {
        let key = key.strip_prefix("b3.").unwrap_or(key);
        key == "header" || key.starts_with(&learned)
    };
    let model: Vec<_> = model.metadata().iter().filter(|(key, _)| !own(key)).collect();
    options.run.checkpoint(options, &(files, model))
}

/// The checkpoint's content, every number as its bits: the finished folds by exponent and fold;
/// after the search the weights, the losses, and whether the rate is reduced and the descent
/// finished.
type StoredRun = (Vec<(i32, usize, u64)>, Option<(Vec<u64>, Vec<u64>, bool, bool)>);

fn load(checkpoint: &Checkpoint, ranks: usize) -> Result<(Finished, Option<State>)> {
    let Some(found) = checkpoint.load::<StoredRun>()? else { return Ok(Default::default()) };
    let (finished, state) = found.position;
    let numbers = |bits: Vec<u64>| bits.into_iter().map(f64::from_bits).collect();
    let state = state.map(|(weights, losses, lowered, finished)| State {
        weights: numbers(weights),
        losses: numbers(losses),
        lowered,
        finished,
    });
    if state.as_ref().is_some_and(|state| state.weights.len() != ranks) {
        return Err(checkpoint.problem("it holds another number of weights; remove it".into()));
    }
    let finished = finished.into_iter();
    let finished = finished.map(|(power, fold, bits)| ((power, fold), f64::from_bits(bits)));
    Ok((finished.collect(), state))
}

fn save(checkpoint: &Checkpoint, finished: &Finished, state: Option<&State>) -> Result<()> {
    let bits = |numbers: &[f64]| numbers.iter().map(|number| number.to_bits()).collect();
    let runs = finished.iter().map(|((power, fold), error)| (*power, *fold, error.to_bits()));
    let state = state
        .map(|state| (bits(&state.weights), bits(&state.losses), state.lowered, state.finished));
    let kept: StoredRun = (runs.collect(), state);
    checkpoint.save(&kept, &[])
}
