//! What a checkpoint keeps of a run: the finished runs of the search for κ, and the state between
//! two epochs, every number by its bits.

use cognate::methods::Measure;
use cognate::methods::means::learned_idf;
use cognate::model::Model;
use cognate::model::provenance::TrainingFile;
use serde::{Deserialize, Serialize};

use crate::TrainError;
use crate::checkpoint::Checkpoint;
use crate::weights::descent::State;
use crate::weights::loss::Loss;
use crate::weights::search::Finished;
use crate::weights::{Kappa, WeightsOptions};

/// Settings and data that fix every bit of the outcome.
#[derive(Serialize)]
struct Identity<'i> {
    version: &'static str,
    loss: Loss,
    measure: Measure,
    max_length: usize,
    lambda: u64,
    kappa: Option<u64>,
    seed: u64,
    epochs: usize,
    couples: &'i [TrainingFile],
    validation: &'i [TrainingFile],
    /// What the model says of itself and its tables, but for learned weights: they are what is
    /// written, maybe into the same file.
    model: Vec<(&'i str, &'i str)>,
}

/// The checkpoint of a run on these couples.
pub(super) fn checkpoint(
    options: &WeightsOptions,
    model: &Model,
    [couples, validation]: &[Vec<TrainingFile>; 2],
) -> Result<Checkpoint, TrainError> {
    let own = |key: &str| {
        let learned = format!("section.{}", learned_idf::SECTION);
        let key = key.strip_prefix("b3.").unwrap_or(key);
        key == "header" || key.starts_with(&learned)
    };
    let said = model.metadata().iter().filter(|(key, _)| !own(key));
    let identity = Identity {
        version: env!("CARGO_PKG_VERSION"),
        loss: options.loss,
        measure: options.measure,
        max_length: options.max_length,
        lambda: options.lambda.to_bits(),
        kappa: match options.kappa {
            Kappa::Searched => None,
            Kappa::Given(kappa) => Some(kappa.to_bits()),
        },
        seed: options.seed,
        epochs: options.epochs,
        couples,
        validation,
        model: said.map(|(key, value)| (key.as_str(), value.as_str())).collect(),
    };
    Checkpoint::begin(&options.checkpoint, &identity, options.restart)
}

/// How far a run is.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    pub(super) finished: Finished,
    /// Once the search is over.
    pub(super) state: Option<State>,
}

/// The same in bits.
#[derive(Serialize, Deserialize)]
struct Bits {
    finished: Vec<(i32, usize, u64)>,
    state: Option<BitsOfState>,
}

#[derive(Serialize, Deserialize)]
struct BitsOfState {
    weights: Vec<u64>,
    losses: Vec<u64>,
    lowered: bool,
    finished: bool,
}

impl Kept {
    /// What an earlier run kept; nothing if there was none.
    pub(super) fn load(checkpoint: &Checkpoint, ranks: usize) -> Result<Self, TrainError> {
        let Some(found) = checkpoint.load::<Bits>()? else { return Ok(Self::default()) };
        let Bits { finished, state } = found.position;
        let of = |bits: Vec<u64>| bits.into_iter().map(f64::from_bits).collect();
        let state = state.map(|state| State {
            weights: of(state.weights),
            losses: of(state.losses),
            lowered: state.lowered,
            finished: state.finished,
        });
        if state.as_ref().is_some_and(|state| state.weights.len() != ranks) {
            return Err(checkpoint.problem("it holds another number of weights; remove it".into()));
        }
        let finished = finished.into_iter();
        let finished = finished.map(|(power, fold, bits)| ((power, fold), f64::from_bits(bits)));
        Ok(Self { finished: finished.collect(), state })
    }

    pub(super) fn save(
        checkpoint: &Checkpoint,
        finished: &Finished,
        state: Option<&State>,
    ) -> Result<(), TrainError> {
        let bits = |numbers: &[f64]| numbers.iter().map(|number| number.to_bits()).collect();
        let runs = finished.iter().map(|((power, fold), error)| (*power, *fold, error.to_bits()));
        let bits = Bits {
            finished: runs.collect(),
            state: state.map(|state| BitsOfState {
                weights: bits(&state.weights),
                losses: bits(&state.losses),
                lowered: state.lowered,
                finished: state.finished,
            }),
        };
        checkpoint.save(&bits, &[])
    }
}
