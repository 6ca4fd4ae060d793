//! Flags of `cognate events`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use cognate::model::writer::clash;
use cognate::window::usual;
use cognate_files::records::{Format, Options as RecordOptions};
use cognate_rows::events;
use cognate_rows::events::{Columns, EventsError, EventsOptions, Output};

use crate::cli::follow::{FollowArgs, duration, share};
use crate::cli::{Failure, ask, count, usage};

#[derive(Debug, Args)]
pub(super) struct EventsArgs {
    /// Texts in the order of their times: a JSON object a line, or rows under a header between tabs
    /// or commas; .gz and .zst are read directly, `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// File to write; with --state, to add to [default: standard output]
    #[arg(short, long, default_value = "-", hide_default_value = true)]
    output: PathBuf,
    /// How records are written down [default: what the file's name says, or its first line]
    #[arg(long, value_parser = PossibleValuesParser::new(Format::NAMES)
          .try_map(|name| name.parse::<Format>()))]
    format: Option<Format>,
    /// Rows have no header; columns are named by their numbers, from 1
    #[arg(long)]
    no_header: bool,
    /// Field of texts
    #[arg(long, value_name = "NAME", default_value = "text")]
    text: String,
    /// Field of times: RFC 3339, `YYYY-MM-DD HH:MM:SS`, seconds or milliseconds since 1970, or as
    /// Twitter writes it [default: the first of time, time_utc, created_at, timestamp]
    #[arg(long, value_name = "NAME")]
    time: Option<String>,
    /// Field of ids, by which events and neighbours are named; without a field of times, these are
    /// read from it as from the ids of tweets [default: the first of id_str, id, tweet_id]
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
    /// Share of the cosine to an event's centre in its score, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = usual::CENTRE,
          value_parser = share)]
    centre: f32,
    /// Least score at which a text joins an event [default: what was found for the method that
    /// scores: see docs/events.md]
    #[arg(long, value_name = "SCORE", value_parser = share)]
    threshold: Option<f32>,
    /// Table of events to write: event, start, end, texts, per_hour, words, central
    #[arg(long, value_name = "FILE")]
    summary: Option<PathBuf>,
    /// Fewest texts of an event in the table
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = count::<u64>(1, u64::MAX))]
    least: u64,
    /// File that the stream goes on from, if it is there, and that keeps what it got to
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Model file, as FILE or NAME=FILE [default: the first that `cognate serve` would take; env
    /// COGNATE_MODEL]
    #[arg(long, value_name = "[NAME=]FILE")]
    model: Option<String>,
}

impl EventsArgs {
    /// Refuses to write over what is read, or two things into one file.
    fn check(&self) -> Result<(), Failure> {
        let file = |path: &'_ PathBuf| path.as_os_str() != "-";
        let written = [
            ("-o", Some(&self.output).filter(|path| file(path))),
            ("--summary", self.summary.as_ref()),
            ("--state", self.state.as_ref()),
        ];
        let written: Vec<(&str, &Path)> = written
            .iter()
            .filter_map(|(flag, path)| Some((*flag, path.as_ref()?.as_path())))
            .collect();
        let read = Some(self.file.as_path()).filter(|path| path.as_os_str() != "-");
        clash(&written, read).map_or(Ok(()), |problem| Err(usage(problem)))
    }
}

pub(super) fn run(args: EventsArgs) -> Result<(), Failure> {
    args.check()?;
    let model = ask::open_model(args.model.as_ref())?;
    let threshold = ("--threshold", args.threshold);
    let settings = args.follow.settings(&model.engine, args.centre, threshold)?;
    let options = EventsOptions {
        input: args.file,
        records: RecordOptions { format: args.format, headless: args.no_header },
        columns: Columns { text: args.text, time: args.time, id: args.id },
        prefix: args.prefix,
        settings,
        slack: args.slack,
        summary: args.summary,
        least: args.least,
        state: args.state,
    };
    let interrupted = Arc::new(AtomicBool::new(false));
    stop_at_signals(&interrupted)?;
    let named = |error| refused(naming(error, &args.output));
    let mut out = Output::open(&args.output, options.state.is_some()).map_err(refused)?;
    match events::run(&model.engine, &options, &mut out, &interrupted) {
        Ok(outcome) => {
            out.finish().map_err(named)?;
            // Standard output may hold the records.
            eprintln!("{outcome}");
            Ok(())
        }
        Err(EventsError::Output(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        Err(error) => {
            out.give_up();
            Err(named(error))
        }
    }
}

/// Says where lines could not be written.
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

/// What was read is still decided and written after the first signal; the second ends the process.
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
