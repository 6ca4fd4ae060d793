//! Flags of `cognate eval events`.

use std::path::PathBuf;

use clap::Args;
use cognate::engine::Engine;
use cognate::model::OpenOptions;
use cognate::model::writer::clash;
use cognate::window::usual::Preset;
use cognate::window::{Limits, usual};
use cognate_eval::events;
use cognate_eval::events::EventsOptions;
use cognate_files::records::Options as RecordOptions;

use crate::cli::choices::choice;
use crate::cli::eval::{outputs, publish, refused, write};
use crate::cli::events::duration;
use crate::cli::model_file::ModelArgs;
use crate::cli::{Failure, count, print, usage};
use crate::http::request::fields::OpposedPolicy;

#[derive(Debug, Args)]
pub(in crate::cli) struct EventsArgs {
    /// Texts with times and events: a JSON object a line, or rows under a header between tabs or
    /// commas; .gz and .zst are read directly
    file: PathBuf,
    /// Field of events; a text without one is an event of its own
    #[arg(long, value_name = "NAME")]
    gold: String,
    /// Stream to choose settings on [default: the measured one]; with --fit thresholds are chosen on both
    #[arg(long, value_name = "FILE")]
    choose_on: Option<PathBuf>,
    /// Let all events begin at the same moment; texts whose column `related` is not 1 are events of
    /// their own, those whose column `english` is not 1 are left out
    #[arg(long)]
    interleave: bool,
    /// With --interleave, how many streams are drawn of the events, which begin at random moments of five
    /// days: figures are means over them
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = count::<usize>(1, 1000))]
    streams: usize,
    /// Methods that score the nearest by avg-cos once more, separated by commas; `none` leaves them
    /// as they are [default: none, coverage, and same-event where the model was fitted for it]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    second: Vec<String>,
    /// Instead of measuring, find on the stream what the model needs for streams of this kind, and store it
    /// in the model file of -o: thresholds, and for topics the numbers of same-event
    #[arg(long, value_name = "KIND", value_parser = choice::<Preset>(), requires = "output",
          conflicts_with_all = ["json", "html", "second"])]
    fit: Option<Preset>,
    /// Model file to write with --fit; may be the same
    #[arg(short, long, value_name = "FILE", requires = "fit")]
    output: Option<PathBuf>,
    /// Leave out the references, tf-idf and MinHash
    #[arg(long)]
    no_references: bool,
    /// Field of texts
    #[arg(long, value_name = "NAME", default_value = "text")]
    text: String,
    /// Field of times [default: the first of time, time_utc, created_at, timestamp]
    #[arg(long, value_name = "NAME")]
    time: Option<String>,
    /// Number of preceding texts that each text is compared with
    #[arg(long, value_name = "N", default_value_t = usual::LAST,
          value_parser = count::<usize>(1, 10_000_000))]
    last: usize,
    /// Maximum time between a text and its neighbours, as 30s, 15m, 24h or 7d [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    within: Option<i64>,
    /// Number of nearest texts that decide the event
    #[arg(long, value_name = "N", default_value_t = usual::NEAREST,
          value_parser = count::<usize>(1, 1000))]
    nearest: usize,
    /// What becomes of those among them that say the opposite of a text [default: they stay]
    #[arg(long, value_name = "POLICY", value_parser = choice::<OpposedPolicy>())]
    opposes: Option<OpposedPolicy>,
    #[command(flatten)]
    model: ModelArgs,
    /// Write every figure as JSON; `-` is standard output, and then no table is printed
    #[arg(long, value_name = "PATH")]
    json: Option<PathBuf>,
    /// Write one HTML page with tables and a timeline
    #[arg(long, value_name = "PATH")]
    html: Option<PathBuf>,
}

pub(super) fn run(args: EventsArgs) -> Result<(), Failure> {
    let written = outputs(args.json.as_deref(), args.html.as_deref());
    let model = args.model.path()?;
    let read = args.choose_on.iter().chain([&args.file, &model]).map(PathBuf::as_path);
    if let Some(problem) = clash(&written, read) {
        return Err(usage(problem));
    }
    if let Some(problem) =
        args.output.as_deref().and_then(|path| clash(&[("-o", path)], [args.file.as_path()]))
    {
        return Err(usage(problem));
    }
    let engine = Engine::open(&model, &OpenOptions::default())?;
    let options = EventsOptions {
        file: args.file,
        records: RecordOptions::default(),
        gold: args.gold,
        text: args.text,
        time: args.time,
        interleave: args.interleave,
        streams: args.streams,
        choose_on: args.choose_on,
        seconds: args.second,
        references: !args.no_references,
        limits: Limits { last: args.last, within: args.within },
        nearest: args.nearest,
        drop_opposed: args.opposes == Some(OpposedPolicy::Drop),
    };
    if let (Some(preset), Some(output)) = (args.fit, &args.output) {
        let fitted = events::fit_events(&engine, preset, &options, output).map_err(refused)?;
        return print(&fitted.to_string());
    }
    let report = events::eval_events(&engine, &options).map_err(refused)?;
    if let Some(path) = &args.html {
        write(path, &events::html(&report))?;
    }
    publish(args.json.as_deref(), &report.json(), &report.to_string())
}
