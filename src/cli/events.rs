//! Flags of `cognate events`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use cognate::engine::{Engine, Opposites};
use cognate::model::writer::clash;
use cognate::window::options::{Least, MAX_LAST, MAX_NEAREST, OptionError, Options};
use cognate::window::stream::Settings;
use cognate::window::usual;
use cognate::window::usual::Preset;
use cognate_files::instant;
use cognate_rows::events::{Columns, EventsError, EventsOptions, Output};
use cognate_rows::{OnBadRow, events};

use crate::cli::ask::rank::threshold;
use crate::cli::choices::choice;
use crate::cli::files::RecordArgs;
use crate::cli::{Failure, ask, count, share, usage};
use crate::http::request::fields::OpposedPolicy;
use crate::http::request::threshold::Threshold;

#[derive(Debug, Args)]
pub(super) struct EventsArgs {
    /// Texts in the order of their times: a JSON object a line, or rows under a header between tabs
    /// or commas; .gz and .zst are read directly, `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// File to write; with --state, to add to [default: standard output]
    #[arg(short, long, default_value = "-", hide_default_value = true)]
    output: PathBuf,
    #[command(flatten)]
    records: RecordArgs,
    /// Field of texts
    #[arg(long, value_name = "NAME", default_value = "text")]
    text: String,
    /// Field of times: RFC 3339, `YYYY-MM-DD HH:MM:SS`, seconds or milliseconds since 1970, or as
    /// Twitter writes it [default: the first of time, time_utc, created_at, timestamp]
    #[arg(long, value_name = "NAME")]
    time: Option<String>,
    /// Field of ids, by which events and neighbours are named; without a field of times, these are
    /// read from it if the first is the id of a tweet [default: the first of id_str, id, tweet_id]
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
    /// Put before the names of the added fields event, nearest, score and new
    #[arg(long, value_name = "TEXT", default_value = "")]
    prefix: String,
    #[command(flatten)]
    follow: FollowArgs,
    /// How late a text may come, as 30s; texts wait so long to be put in the order of their times
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "0s")]
    slack: i64,
    /// Table of events to write: event, start, end, texts, per_hour, words, central, chatter
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Fewest texts of an event in the table
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = count::<u64>(1, u64::MAX))]
    least: u64,
    /// File that the stream goes on from, if it is there, and that keeps what it got to
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// How often the state is written while the stream goes on, as 30s, with how far input and output were: a
    /// run that was killed is gone on from by the same command, which writes no line twice
    #[arg(long, value_name = "TIME", value_parser = duration, requires = "state",
          conflicts_with = "summary")]
    checkpoint: Option<i64>,
    /// Model file, as FILE or NAME=FILE [default: the first that `cognate serve` would take; env
    /// COGNATE_MODEL]
    #[arg(long, value_name = "[NAME=]FILE")]
    model: Option<String>,
}

impl EventsArgs {
    /// Refuses to overwrite an input, or to write two outputs into one file.
    fn check(&self) -> Result<(), Failure> {
        let file = |path: &'_ PathBuf| path.as_os_str() != "-";
        let bad_rows = match self.records.bad_rows() {
            OnBadRow::Keep(path) => Some(path),
            OnBadRow::Stop | OnBadRow::Skip => None,
        };
        if self.checkpoint.is_some() && bad_rows.is_some() {
            let problem = "a file of broken rows would lose those of a run that was killed; with \
                           --checkpoint, --bad-rows takes skip or stop";
            return Err(usage(problem));
        }
        let written = [
            ("-o", Some(&self.output).filter(|path| file(path))),
            ("--summary", self.summary.as_ref()),
            ("--state", self.state.as_ref()),
            ("--bad-rows", bad_rows.as_ref()),
        ];
        let written: Vec<(&str, &Path)> = written
            .iter()
            .filter_map(|(flag, path)| Some((*flag, path.as_ref()?.as_path())))
            .collect();
        if self.checkpoint.is_some() && self.output.as_os_str() == "-" {
            let problem = "--checkpoint needs a file to write (-o): what has left by standard output \
                           cannot be cut";
            return Err(usage(problem));
        }
        let read = Some(self.file.as_path()).filter(|path| path.as_os_str() != "-");
        clash(&written, read).map_or(Ok(()), |problem| Err(usage(problem)))
    }
}

pub(super) fn run(args: EventsArgs) -> Result<(), Failure> {
    args.check()?;
    let model = ask::open_model(args.model.as_ref())?;
    let settings = args.follow.settings(&model.engine, None)?;
    let options = EventsOptions {
        input: args.file,
        records: args.records.options()?,
        bad_rows: args.records.bad_rows(),
        written: args.records.columns(),
        columns: Columns { text: args.text, time: args.time, id: args.id },
        prefix: args.prefix,
        settings,
        preset: args.follow.preset.unwrap_or_default(),
        slack: args.slack,
        summary: args.summary,
        least: args.least,
        state: args.state,
        checkpoint: args.checkpoint.map(|every| Duration::from_millis(every.unsigned_abs())),
    };
    let interrupted = Arc::new(AtomicBool::new(false));
    stop_at_signals(&interrupted)?;
    let named = |error| refused(naming(error, &args.output));
    let mut out = Output::open(&args.output, &options).map_err(refused)?;
    match events::run(&model.engine, &options, &mut out, &interrupted) {
        Ok(outcome) => {
            out.finish().map_err(named)?;
            // Standard output may hold the records.
            if !args.records.quiet {
                eprintln!("{outcome}");
            }
            Ok(())
        }
        Err(EventsError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(named(error)),
    }
}

/// Names the output in an error of writing lines.
fn naming(error: EventsError, output: &Path) -> EventsError {
    match error {
        EventsError::Output(source) => {
            let standard = output.as_os_str() == "-";
            let path = if standard { Path::new("standard output") } else { output };
            EventsError::Write { path: path.to_owned(), source }
        }
        other => other,
    }
}

/// After the first signal, records already read are still decided and written; the second ends the
/// process.
pub(super) fn stop_at_signals(interrupted: &Arc<AtomicBool>) -> Result<(), Failure> {
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(interrupted))?;
        signal_hook::flag::register(signal, Arc::clone(interrupted))?;
    }
    Ok(())
}

fn refused(error: EventsError) -> Failure {
    match error {
        EventsError::Options(problem) => usage(problem),
        EventsError::Query(problem) => usage(problem),
        other => other.into(),
    }
}

#[derive(Debug, Args)]
pub(super) struct FollowArgs {
    /// Number of preceding texts that each text is compared with
    #[arg(long, value_name = "N", default_value_t = usual::LAST,
          value_parser = count::<usize>(1, MAX_LAST as u64))]
    last: usize,
    /// Maximum time between a text and its neighbours, as 30s, 15m, 24h or 7d [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    within: Option<i64>,
    /// Method whose vectors find the nearest
    #[arg(long, value_name = "NAME", default_value = usual::METHOD)]
    method: String,
    /// Kind of the stream, which says what is usual [default: topics]
    #[arg(long, value_name = "KIND", value_parser = choice::<Preset>())]
    preset: Option<Preset>,
    /// Method that scores the nearest once more, or `none` [default: same-event for topics, where the
    /// model was fitted for it, else coverage]
    #[arg(long, value_name = "NAME")]
    second: Option<String>,
    /// How many of the nearest are scored once more and asked for their events
    #[arg(long, value_name = "N", default_value_t = usual::NEAREST,
          value_parser = count::<usize>(1, MAX_NEAREST as u64))]
    nearest: usize,
    /// Number of the nearest texts of an event over which its score is the mean; no more than the window holds of
    /// the event, and than --nearest
    #[arg(long, value_name = "N", default_value_t = usual::VOTES,
          value_parser = count::<usize>(1, MAX_NEAREST as u64))]
    votes: usize,
    /// Share of an event's score that is the cosine to the mean of its last texts, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = usual::CENTRE.into(), value_parser = share)]
    centre: f64,
    /// Least score at which a text is near another and belongs to its event [default: what was found for
    /// the method that scores: see docs/measurements/events.md]
    #[arg(long, alias = "min-score", value_name = "SCORE", value_parser = threshold)]
    threshold: Option<Threshold>,
    /// What becomes of the nearest that say the opposite of a text [default: they stay]
    #[arg(long, value_name = "POLICY", value_parser = choice::<OpposedPolicy>())]
    opposes: Option<OpposedPolicy>,
    /// Which opposed texts --opposes leaves out [default: without_names]
    #[arg(long, value_name = "KINDS", value_parser = choice::<Opposites>(), requires = "opposes")]
    opposites: Option<Opposites>,
}

pub(super) fn duration(text: &str) -> Result<i64, String> {
    instant::span(text).ok_or_else(|| format!("expected {}", instant::SPANS))
}

impl FollowArgs {
    pub(super) fn settings(
        &self,
        engine: &Engine,
        duplicate_score: Option<f64>,
    ) -> Result<Settings, Failure> {
        let options = Options {
            preset: self.preset,
            method: Some(&self.method),
            second: self.second.as_deref(),
            last: Some(self.last),
            within: self.within,
            threshold: self.threshold.map(Least::from),
            nearest: Some(self.nearest),
            votes: Some(self.votes),
            centre: Some(self.centre),
            duplicate_score,
            drop_opposed: self.opposes == Some(OpposedPolicy::Drop),
            opposites: self.opposites,
        };
        options.resolve(engine, MAX_LAST).map_err(|OptionError { option, problem }| {
            usage(format!("--{}: {problem}", option.replace('_', "-")))
        })
    }
}
