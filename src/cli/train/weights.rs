//! Flags of `cognate train weights`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use cognate::engine::Measure;
use cognate_train::weights;
use cognate_train::weights::{ImportOptions, Kappa, Loss, Use, WeightsOptions};

use crate::cli::choices::choice;
use crate::cli::files::bytes;
use crate::cli::model_file::ModelArgs;
use crate::cli::train::{CheckpointArgs, refused};
use crate::cli::{Failure, MAX_EPOCHS, MAX_THREADS, count, show, usage};

/// Help writes the default of `--memory` with its unit.
const _: () = assert!(weights::KEPT_BYTES == 4 << 30);

/// Flags of training, which have no effect on existing weights.
const OF_TRAINING: [&str; 15] = [
    "couples",
    "loss",
    "measure",
    "max_length",
    "lambda",
    "kappa",
    "seed",
    "epochs",
    "threads",
    "memory",
    "valid",
    "export",
    "report",
    "checkpoint",
    "restart",
];

#[derive(Debug, Args)]
pub(in crate::cli) struct WeightsArgs {
    /// Labelled pairs: label (1 related, 0 not), text, text a row, or a header with label, text1,
    /// text2; .gz and .zst are read directly
    #[arg(value_name = "PAIRS", required_unless_present_any = ["import", "export"])]
    couples: Vec<PathBuf>,
    /// Import the weights that --export wrote instead of training: this carries them
    /// over to other vectors
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_TRAINING)]
    import: Option<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
    /// Model file to write; may be the same
    #[arg(short, long, required_unless_present = "export")]
    output: Option<PathBuf>,
    /// Name of the set of weights; one that is there is replaced [default: loss and measure, or
    /// what the imported file says]
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// Make this weight set the model's default; a model's first set always becomes the default
    #[arg(long)]
    default: bool,
    /// Loss to minimise
    #[arg(long, value_parser = choice::<Loss>(), default_value = "median")]
    loss: Loss,
    /// Measure that texts are compared by
    #[arg(long, value_parser = choice::<Measure>(), default_value = "euclidean")]
    measure: Measure,
    /// Number of weights; texts of another length spread them over their words
    #[arg(long, value_name = "M", default_value_t = 30)]
    max_length: usize,
    /// Weight of the L2 penalty
    #[arg(long, default_value_t = 0.001)]
    lambda: f64,
    /// How steep the median loss is, in multiples of one over the median distance; auto finds it by
    /// five-fold cross-validation
    #[arg(long, value_name = "auto|X", default_value = "auto", value_parser = kappa)]
    kappa: Kappa,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Maximum number of epochs; training stops when the loss stops falling
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = count::<usize>(1, MAX_EPOCHS))]
    epochs: usize,
    /// Number of threads; the result does not depend on it [default: all the machine has]
    #[arg(long, value_name = "N", value_parser = count::<usize>(1, MAX_THREADS))]
    threads: Option<usize>,
    /// Memory for what is computed of the pairs once, for 30 weights 2 KB a pair, or 6 KB with the cosine;
    /// without room it is computed at each use, which is slow and changes no bit
    #[arg(long, value_name = "BYTES", default_value = "4G", value_parser = bytes)]
    memory: usize,
    /// Labelled pairs to evaluate the weights on [default: a tenth of PAIRS, which is not trained on]
    #[arg(long, value_name = "FILE")]
    valid: Option<PathBuf>,
    /// Also write the weights as JSON; without PAIRS, write the model's weights and train nothing
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    /// Write one HTML page with the course of the training
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    checkpoint: CheckpointArgs,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn kappa(text: &str) -> Result<Kappa, String> {
    match (text, text.parse::<f64>()) {
        ("auto", _) => Ok(Kappa::Searched),
        (_, Ok(number)) if number.is_finite() && number > 0.0 => Ok(Kappa::Given(number)),
        _ => Err("expected auto or a number above 0".to_owned()),
    }
}

impl WeightsArgs {
    fn options(self) -> Result<WeightsOptions, Failure> {
        let output = self.output.ok_or_else(|| usage("-o is missing: the model file to write"))?;
        Ok(WeightsOptions {
            usage: if self.default { Use::This } else { Use::AsBefore },
            run: self.checkpoint.files(output, self.report),
            couples: self.couples,
            validation: self.valid,
            model: self.model.path()?,
            set: self.set,
            loss: self.loss,
            measure: self.measure,
            max_length: self.max_length,
            lambda: self.lambda,
            kappa: self.kappa,
            seed: self.seed,
            epochs: self.epochs,
            threads: self.threads.and_then(NonZeroUsize::new),
            export: self.export,
            memory: self.memory,
        })
    }
}

pub(super) fn run(args: WeightsArgs) -> Result<(), Failure> {
    let as_json = args.json;
    if let (Some(file), []) = (&args.export, &*args.couples) {
        if args.output.is_some() {
            return Err(usage("-o is for weights that are trained on PAIRS"));
        }
        let model = args.model.path()?;
        let done = weights::export_stored(&model, args.set.as_deref(), file);
        return show(&done.map_err(refused)?, as_json);
    }
    if let (Some(file), Some(output)) = (&args.import, &args.output) {
        let options = ImportOptions {
            file: file.clone(),
            usage: if args.default { Use::This } else { Use::AsBefore },
            model: args.model.path()?,
            output: output.clone(),
            set: args.set,
        };
        return show(&weights::import(&options).map_err(refused)?, as_json);
    }
    show(&weights::train(&args.options()?).map_err(refused)?, as_json)
}
