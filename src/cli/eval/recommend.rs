//! Flags of `cognate eval recommend`.

use std::path::PathBuf;

use clap::Args;
use cognate::engine::{Diversify, Engine, Measure};
use cognate::model::OpenOptions;
use cognate::model::writer::clash;
use cognate_eval::recommend;
use cognate_eval::recommend::RecommendOptions;

use crate::cli::choices::choice;
use crate::cli::eval::{outputs, publish, refused};
use crate::cli::model_file::ModelArgs;
use crate::cli::{Failure, count, share, usage};

#[derive(Debug, Args)]
pub(in crate::cli) struct RecommendArgs {
    /// Files, or folders of .tsv files; .gz and .zst are read directly
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Judgements: qid, document, grade a row, or trec_eval's four columns
    #[arg(long, value_name = "FILE", num_args = 1..)]
    qrels: Vec<PathBuf>,
    /// A log of what readers opened, in place of topics: records of reader, item and time, and FILES are the
    /// items, each with id and text. Each reader waits for the last item, after --liked ones before it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["qrels", "topics", "draws"])]
    clicks: Option<PathBuf>,
    /// Methods for pairs, separated by commas; `all` that the model can serve
    #[arg(long, value_delimiter = ',', default_value = "auto")]
    methods: Vec<String>,
    /// Measures of vector methods, separated by commas [default: each method's own]
    #[arg(long, value_parser = choice::<Measure>(), value_delimiter = ',')]
    measure: Vec<Measure>,
    /// Texts that a reader likes
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count::<usize>(2, 100))]
    liked: usize,
    /// Topics that these are of
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count::<usize>(1, 100))]
    topics: usize,
    /// Readers of each topic, who like other texts of it
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = count::<usize>(1, 10_000))]
    draws: usize,
    /// What a score counts against likeness to the texts before, from 0 to 1
    #[arg(long, value_name = "LAMBDA", default_value_t = Diversify::LAMBDA, value_parser = share)]
    lambda: f64,
    /// How many of the best results may be reordered into the first ten
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = count::<usize>(10, 1000))]
    pool: usize,
    /// Random seed
    #[arg(long, default_value_t = 1935)]
    seed: u64,
    #[command(flatten)]
    model: ModelArgs,
    /// Write every figure as JSON; `-` is standard output, and then no table is printed
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
}

pub(super) fn run(args: RecommendArgs) -> Result<(), Failure> {
    let written = outputs(args.json.as_deref(), None);
    let model = args.model.path()?;
    let read = args
        .files
        .iter()
        .chain(&args.qrels)
        .chain(&args.clicks)
        .chain([&model])
        .map(PathBuf::as_path);
    if let Some(problem) = clash(&written, read) {
        return Err(usage(problem));
    }
    if args.topics > args.liked {
        return Err(usage("a reader cannot like more topics than texts"));
    }
    let engine = Engine::open(&model, &OpenOptions::default())?;
    let options = RecommendOptions {
        files: args.files,
        draws: if args.clicks.is_some() { 1 } else { args.draws },
        qrels: args.qrels,
        clicks: args.clicks,
        methods: args.methods,
        measures: args.measure,
        liked: args.liked,
        topics: args.topics,
        lambda: args.lambda,
        pool: args.pool,
        seed: args.seed,
    };
    let report = recommend::eval_recommend(&engine, &options).map_err(refused)?;
    publish(args.json.as_deref(), &report.json(), &report.to_string())
}
