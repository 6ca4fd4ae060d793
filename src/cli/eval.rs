//! Flags of `cognate eval`.

mod events;
mod recommend;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use cognate::engine::{Engine, Measure, Opposites};
use cognate::model::writer::clash;
use cognate::model::{OpenOptions, disk};
use cognate_eval::{
    CalibrateOptions, Choice, CombineOptions, EvalError, Figures, PairsOptions, RankingOptions,
    Report, StsOptions, View,
};
use cognate_stats::bootstrap::Bootstrap;
use cognate_stats::threshold::Criterion;

use crate::cli::choices::choice;
use crate::cli::model_file::ModelArgs;
use crate::cli::{Failure, MAX_RESAMPLES, count, print, usage};
use crate::http::request::fields::OpposedPolicy;

/// Largest rank at which precision is computed; no query has as many candidates.
const MAX_RANK: u64 = 1_000_000;

#[derive(Debug, Subcommand)]
pub(super) enum EvalCommand {
    /// Compare scores with gold scores; rows of score, sentence, sentence
    Sts(StsArgs),
    /// Compare scores with labels; rows of label, text, text, or a header with label, text1, text2
    Pairs(PairsArgs),
    /// Find events in a labelled stream by each method and setting, and compare them with the labels
    Events(events::EventsArgs),
    /// Compare rankings with judgements; rows of qid, query, label, text, or with id, rank, score
    Ranking(RankingArgs),
    /// Recommend to readers who like some texts of a topic the others of it; rows as for ranking
    Recommend(recommend::RecommendArgs),
    /// Find thresholds on labelled pairs and store them in the model file
    Calibrate(CalibrateArgs),
}

#[derive(Debug, Args)]
struct Shared {
    /// Files, or folders of .tsv files; .gz and .zst are read directly
    #[arg(required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    model: ModelArgs,
    /// Methods, separated by commas; `all`: each method that the model can serve; `none`
    #[arg(long, value_delimiter = ',', default_value = "all")]
    methods: Vec<String>,
    /// Measures of vector methods, separated by commas [default: each method's own]
    #[arg(long, value_parser = choice::<Measure>(), value_delimiter = ',')]
    measure: Vec<Measure>,
    /// What opposites do to the scores of methods that count them [default: as the method does]
    #[arg(long, value_parser = choice::<Opposites>())]
    opposites: Option<Opposites>,
    /// Baseline method for significance tests
    #[arg(long, value_name = "METHOD", default_value = "avg-cos")]
    baseline: String,
    /// Random seed
    #[arg(long, default_value_t = Bootstrap::default().seed)]
    seed: u64,
    /// Write every figure as JSON; `-` is standard output, and then no table is printed
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
    /// Write one HTML page with tables and plots
    #[arg(long, value_name = "PATH")]
    html: Option<PathBuf>,
    /// Store the best measured similarity method as what `auto` stands for
    ///
    /// The best is by mean Pearson correlation in sts (Spearman with --view mteb), by mean split
    /// error over the files in pairs, by mean average precision over the files in ranking. Only
    /// similarity methods by their own measure can be chosen: no rankers, columns, combinations or
    /// ablations.
    #[arg(long)]
    set_auto: bool,
    /// Model file to write with --set-auto or --combine [default of --set-auto and --fused-name: the
    /// measured model]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(super) struct StsArgs {
    #[command(flatten)]
    shared: Shared,
    /// What correlations are taken over
    #[arg(long, value_parser = choice::<View>(), default_value = "files")]
    view: View,
    /// Resamples of each bootstrap interval
    #[arg(long, value_name = "N", default_value_t = Bootstrap::default().resamples,
          value_parser = count::<usize>(0, MAX_RESAMPLES))]
    resamples: usize,
    /// Also measure ablations: variants that show the effect of each part of a method
    #[arg(long)]
    ablations: bool,
}

#[derive(Debug, Args)]
pub(super) struct PairsArgs {
    #[command(flatten)]
    shared: Shared,
    /// File to find thresholds on [default: one half of each file, drawn by --seed]
    #[arg(long, value_name = "FILE")]
    threshold_from: Option<PathBuf>,
    /// Also measure ablations: variants that show the effect of each part of a method
    #[arg(long)]
    ablations: bool,
}

#[derive(Debug, Args)]
pub(super) struct RankingArgs {
    #[command(flatten)]
    shared: Shared,
    /// Judgements: qid, document, grade a row, or trec_eval's four columns
    #[arg(long, value_name = "FILE", num_args = 1..)]
    qrels: Vec<PathBuf>,
    /// Columns of numbers whose order is measured too, such as ql_score
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    column: Vec<String>,
    /// Learn a combination of the scores of these methods and columns, and measure it too
    #[arg(long, value_name = "NAME", value_delimiter = ',', requires = "combine_on")]
    combine: Vec<String>,
    /// Files, or folders of .tsv files, to learn the combination on; none of the measured files
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "combine")]
    combine_on: Vec<PathBuf>,
    /// Judgements of the files of --combine-on [default: their labels]
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "combine_on")]
    combine_qrels: Vec<PathBuf>,
    /// Keep the combination in the model file as the method fused:NAME [default with -o:
    /// combination]
    #[arg(long, value_name = "NAME", requires = "combine", conflicts_with = "set_auto")]
    fused_name: Option<String>,
    /// Ranks at which precision is taken
    #[arg(long, value_name = "K", value_delimiter = ',', default_value = "5,10,30",
          value_parser = count::<usize>(1, MAX_RANK))]
    at: Vec<usize>,
    /// Resamples of each bootstrap interval
    #[arg(long, value_name = "N", default_value_t = Bootstrap::default().resamples,
          value_parser = count::<usize>(0, MAX_RESAMPLES))]
    resamples: usize,
}

#[derive(Debug, Args)]
pub(super) struct CalibrateArgs {
    /// Labelled pairs: label, text, text a row, or a header naming label, text1, text2
    file: PathBuf,
    #[command(flatten)]
    model: ModelArgs,
    /// Model file to write; may be the same
    #[arg(short, long)]
    output: PathBuf,
    /// Methods, separated by commas; `all` that the model can serve
    #[arg(long, value_delimiter = ',', default_value = "all")]
    methods: Vec<String>,
    /// Measures of vector methods, separated by commas [default: each method's own]
    #[arg(long, value_parser = choice::<Measure>(), value_delimiter = ',')]
    measure: Vec<Measure>,
    /// Goal of the threshold: f1, accuracy, precision=SHARE for the highest recall at it, or
    /// recall=SHARE for the highest threshold at it
    #[arg(long, default_value = "f1", value_parser = aim)]
    aim: Criterion,
    /// Share of related pairs where the threshold will be used; in a stream 0.01 or less
    /// [default: the share in the file]
    #[arg(long, value_name = "SHARE")]
    prior: Option<f64>,
    /// How a pair of opposed texts counts: as unrelated, whatever its score, as in requests with
    /// `"opposes": "drop"` [default: its score decides]
    #[arg(long, value_name = "POLICY", value_parser = choice::<OpposedPolicy>())]
    opposes: Option<OpposedPolicy>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn aim(text: &str) -> Result<Criterion, String> {
    let share = |text: &str| text.parse().ok().filter(|&share| share > 0.0 && share <= 1.0);
    match text.split_once('=') {
        None if text == "f1" => Some(Criterion::F1),
        None if text == "accuracy" => Some(Criterion::Accuracy),
        Some(("precision", wanted)) => share(wanted).map(Criterion::Precision),
        Some(("recall", wanted)) => share(wanted).map(Criterion::Recall),
        _ => None,
    }
    .ok_or_else(|| {
        "expected f1, accuracy, precision= or recall= and a number above 0, at most 1".to_owned()
    })
}

impl Shared {
    fn choice(&self) -> Choice {
        Choice {
            methods: self.methods.clone(),
            measures: self.measure.clone(),
            opposites: self.opposites,
            baseline: self.baseline.clone(),
            ablations: false,
        }
    }

    fn bootstrap(&self, resamples: usize) -> Bootstrap {
        Bootstrap { resamples, seed: self.seed, ..Bootstrap::default() }
    }

    /// Refuses a model file to write if nothing is written to it, and writing into a model that no
    /// flag names.
    fn check_output(&self, combines: bool) -> Result<(), Failure> {
        if self.set_auto && self.output.is_none() {
            self.model.check_written()?;
        }
        if self.output.is_none() || self.set_auto || combines {
            return Ok(());
        }
        Err(usage("-o names the model file that --set-auto or --combine writes; neither is given"))
    }

    /// Refuses to overwrite an input with the figures.
    fn check<'p>(
        &'p self,
        model: &Path,
        more: impl IntoIterator<Item = &'p PathBuf>,
    ) -> Result<(), Failure> {
        let written = outputs(self.json.as_deref(), self.html.as_deref());
        let data: Vec<&Path> = self.files.iter().chain(more).map(PathBuf::as_path).collect();
        let figures = clash(&written, data.iter().copied().chain([model]));
        // The model may be overwritten: it is read first and replaced as a whole.
        let output = self.output.as_deref().map(|path| ("-o", path));
        let all: Vec<(&str, &Path)> = written.into_iter().chain(output).collect();
        figures.or_else(|| clash(&all, data)).map_or(Ok(()), |problem| Err(usage(problem)))
    }

    /// Files first, so that the printed report means that all went well.
    fn publish<F: Figures>(&self, engine: &Engine, report: &Report<F>) -> Result<(), Failure> {
        if let Some(path) = &self.html {
            write(path, &report.html())?;
        }
        publish(self.json.as_deref(), &report.json(), &report.terminal())?;
        if !self.set_auto {
            return Ok(());
        }
        let set =
            cognate_eval::set_auto(engine, report, self.output.as_deref()).map_err(refused)?;
        self.tell(&set.to_string())
    }

    fn tell(&self, written: &str) -> Result<(), Failure> {
        if self.json.as_deref().is_some_and(|path| path.as_os_str() == "-") {
            // Standard output has one JSON document.
            eprintln!("{written}");
            return Ok(());
        }
        print(&format!("\n{written}"))
    }
}

/// The files that take figures, with their flags; `-` is standard output.
fn outputs<'p>(json: Option<&'p Path>, html: Option<&'p Path>) -> Vec<(&'static str, &'p Path)> {
    let json = json.filter(|path| path.as_os_str() != "-");
    let written = [("--json", json), ("--html", html)];
    written.into_iter().filter_map(|(flag, path)| Some((flag, path?))).collect()
}

/// Writes figures as JSON if a file is named, and prints the table, or the JSON in its place.
fn publish(path: Option<&Path>, json: &str, table: &str) -> Result<(), Failure> {
    match path {
        Some(path) if path.as_os_str() == "-" => return print(json),
        Some(path) => write(path, &format!("{json}\n"))?,
        None => {}
    }
    print(table)
}

pub(in crate::cli) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |source| EvalError::Write { path: path.to_owned(), source };
    Ok(disk::replace_by(path, text.as_bytes()).map_err(failed)?)
}

pub(in crate::cli) fn refused(error: EvalError) -> Failure {
    match error {
        EvalError::Options(problem) => usage(problem),
        other => other.into(),
    }
}

pub(super) fn run(command: EvalCommand) -> Result<(), Failure> {
    let open = |path: &Path| Engine::open(path, &OpenOptions::default());
    match command {
        EvalCommand::Sts(args) => {
            args.shared.check_output(false)?;
            let model = args.shared.model.path()?;
            args.shared.check(&model, [])?;
            let options = StsOptions {
                files: args.shared.files.clone(),
                view: args.view,
                choice: Choice { ablations: args.ablations, ..args.shared.choice() },
                bootstrap: args.shared.bootstrap(args.resamples),
            };
            let engine = open(&model)?;
            args.shared
                .publish(&engine, &cognate_eval::eval_sts(&engine, &options).map_err(refused)?)
        }
        EvalCommand::Pairs(args) => {
            args.shared.check_output(false)?;
            let model = args.shared.model.path()?;
            args.shared.check(&model, &args.threshold_from)?;
            let options = PairsOptions {
                files: args.shared.files.clone(),
                threshold_from: args.threshold_from,
                choice: Choice { ablations: args.ablations, ..args.shared.choice() },
                seed: args.shared.seed,
            };
            let engine = open(&model)?;
            args.shared
                .publish(&engine, &cognate_eval::eval_pairs(&engine, &options).map_err(refused)?)
        }
        EvalCommand::Ranking(args) => ranking(args),
        EvalCommand::Events(args) => events::run(args),
        EvalCommand::Recommend(args) => recommend::run(args),
        EvalCommand::Calibrate(args) => {
            let options = CalibrateOptions {
                file: args.file,
                methods: args.methods,
                measures: args.measure.clone(),
                aim: args.aim,
                prior: args.prior,
                drop_opposed: args.opposes == Some(OpposedPolicy::Drop),
                output: args.output,
            };
            let engine = open(&args.model.path()?)?;
            let calibrated = cognate_eval::calibrate(&engine, &options).map_err(refused)?;
            if args.json {
                return print(&serde_json::to_string_pretty(&calibrated)?);
            }
            print(&calibrated.to_string())
        }
    }
}

fn ranking(args: RankingArgs) -> Result<(), Failure> {
    args.shared.check_output(!args.combine.is_empty())?;
    if args.fused_name.is_some() && args.shared.output.is_none() {
        args.shared.model.check_written()?;
    }
    let more = [&args.qrels, &args.combine_on, &args.combine_qrels];
    let model = args.shared.model.path()?;
    args.shared.check(&model, more.into_iter().flatten())?;
    // With --set-auto the file is written for that alone.
    let by_output = args.shared.output.is_some() && !args.shared.set_auto;
    let name = args.fused_name.or_else(|| by_output.then(|| "combination".to_owned()));
    name.as_deref().map_or(Ok(()), cognate_eval::check_name).map_err(refused)?;
    let combine =
        CombineOptions { names: args.combine, files: args.combine_on, qrels: args.combine_qrels };
    let options = RankingOptions {
        files: args.shared.files.clone(),
        qrels: args.qrels,
        columns: args.column,
        at: args.at,
        choice: args.shared.choice(),
        combine: (!combine.names.is_empty()).then_some(combine),
        bootstrap: args.shared.bootstrap(args.resamples),
    };
    let engine = Engine::open(&model, &OpenOptions::default())?;
    let report = cognate_eval::eval_ranking(&engine, &options).map_err(refused)?;
    args.shared.publish(&engine, &report)?;
    let combination = report.figures.combination.as_ref();
    let Some((name, combination)) = name.as_deref().zip(combination) else { return Ok(()) };
    let output = args.shared.output.as_deref();
    let kept = cognate_eval::keep(&engine, combination, name, output).map_err(refused)?;
    args.shared.tell(&kept.to_string())
}
