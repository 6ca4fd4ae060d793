//! `cognate events`: groups a stream of texts into events and writes each record back with its
//! event.
//!
//! Records come from a file or standard input and are written as soon as they are decided; memory
//! is bounded by the window, however long the stream is. What forms an event is defined by
//! [`window`](cognate::window).

mod checkpoint;
mod named;
mod output;
mod source;
mod state;
mod summary;

use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cognate::engine::{Engine, QueryError};
use cognate::window::BATCH;
use cognate::window::events::Decision;
use cognate::window::stream::{Item, Settings};
use cognate::window::usual::Preset;
use cognate_files::ReadError;
use cognate_files::progress::Progress;
use cognate_files::records::{Added, Appender, Options as RecordOptions};
pub use named::{NamedStream, Names};
pub use output::Output;
use serde::Serialize;
pub use source::Columns;

use crate::events::output::Order;
use crate::events::source::{Source, Tweet};
pub use crate::events::summary::Sizes;
use crate::events::summary::Summary;
use crate::{LeftOut, OnBadRow, appender};

#[derive(Debug, thiserror::Error)]
pub enum EventsError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Options that contradict each other, the records or the state.
    #[error("{0}")]
    Options(String),
    #[error("cannot write: {0}")]
    Output(#[source] std::io::Error),
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{}: {problem}", path.display())]
    State { path: PathBuf, problem: String },
}

#[derive(Debug, Clone)]
pub struct EventsOptions {
    pub input: PathBuf,
    pub records: RecordOptions,
    pub bad_rows: OnBadRow,
    pub columns: Columns,
    /// The only fields to write, including added ones; if empty, all.
    pub written: Vec<String>,
    pub prefix: String,
    pub settings: Settings,
    /// The kind of the stream by which it is followed.
    pub preset: Preset,
    pub slack: i64,
    pub summary: Option<PathBuf>,
    /// Minimum texts of an event in that table.
    pub least: u64,
    pub state: Option<PathBuf>,
    /// How often the state is written during the run, with the length of the output, so that a
    /// killed run can be resumed. The output must be a file.
    pub checkpoint: Option<Duration>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Outcome {
    pub texts: u64,
    pub events: u64,
    pub joined: u64,
    /// Number of texts without a vector, each an event of its own.
    pub unscored: u64,
    pub late: u64,
    /// Number of texts in the whole stream, including earlier runs.
    pub total: u64,
    /// Sizes of the events, if a table of events was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// The kind of stream that set the defaults.
    #[serde(skip)]
    pub preset: Preset,
    #[serde(flatten)]
    pub left_out: LeftOut,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} texts, {} events, {} joined one", self.texts, self.events, self.joined)?;
        if self.unscored > 0 {
            write!(f, "; {} without a known word", self.unscored)?;
        }
        if self.late > 0 {
            write!(f, "; {} later than the slack", self.late)?;
        }
        if self.total > self.texts {
            write!(f, "; {} since the stream began", self.total)?;
        }
        if let Some(sizes) = self.sizes
            && let Some(kind) = sizes.look_like(self.preset)
        {
            write!(
                f,
                "; the largest event has {}, {:.0} % are in events of 2 to 16: it looks like --preset {}",
                sizes.largest,
                100.0 * sizes.in_small as f64 / sizes.texts as f64,
                kind.name(),
            )?;
        }
        if let Some(told) = self.left_out.told() {
            write!(f, "; {told}")?;
        }
        Ok(())
    }
}

const FIELDS: [&str; 4] = ["event", "nearest", "score", "new"];

pub fn run(
    engine: &Engine,
    options: &EventsOptions,
    out: &mut Output,
    interrupted: &AtomicBool,
) -> Result<Outcome, EventsError> {
    let mut source = Source::open(options)?;
    let names = FIELDS.map(|name| format!("{}{name}", options.prefix));
    source.refuse_fields(&names)?;
    let mut run = Run {
        engine,
        named: NamedStream::new(engine, options.settings)?,
        appender: appender(&source.records, names, &options.written, out.path())?,
        summary: options.summary.as_deref().map(|path| Summary::create(path, options.least)),
        lines: String::new(),
        outcome: Outcome { preset: options.preset, ..Outcome::default() },
    };
    let mut order = Order::new(options.slack);
    let mut next = None;
    let state = options.state.as_deref();
    let kept = state.filter(|_| options.checkpoint.is_some());
    let before =
        state.map(|path| state::resume(path, &mut run.named, &mut order)).transpose()?.flatten();
    let is_unfinished = before.as_ref().is_some_and(|before| !before.ended);
    if let (Some(path), None, true) = (state, kept, is_unfinished) {
        let problem = "the run before was interrupted: go on with --checkpoint".to_owned();
        return Err(EventsError::State { path: path.to_owned(), problem });
    }
    if let Some(path) = kept {
        if !is_unfinished {
            // Before the first line: everything written from here on can be cut off.
            state::save(path, &run.named, &order, Some(source.checkpoint(&order, out, false)?))?;
        }
        if let Some(before) = before {
            next = source.pass_over(&before, &run.named, &order, path)?;
            if is_unfinished {
                out.cut(&before.output, path)?;
            }
        }
    }
    // A resumed output already has its header.
    if run.named.stream().next() == 0 && order.newest.is_none() {
        run.appender.header(source.records.header(), &mut run.lines);
    }
    let progress = Progress::bytes("events");
    let (mut ended, mut stopped, mut saved) = (false, false, Instant::now());
    while !ended && !stopped {
        let mut due = Vec::new();
        for _ in 0..BATCH {
            match next.take().map_or_else(|| source.read(), |tweet| Ok(Some(tweet)))? {
                Some(tweet) => {
                    run.outcome.late += u64::from(order.take(tweet));
                    // After each text, so that the number of texts read together makes no
                    // difference.
                    due.extend(order.ready(false));
                }
                None => ended = true,
            }
            if ended || !source.records.is_ready() {
                break;
            }
        }
        stopped = interrupted.load(Ordering::Relaxed);
        // With checkpoints, waiting texts are stored in the state.
        due.extend(order.ready(ended || (stopped && kept.is_none())));
        run.decide(due)?;
        source.records.follow(&progress);
        let waits = !source.records.is_ready() || ended || stopped;
        if run.lines.len() > WRITTEN_BYTES || waits {
            run.write(out, waits)?;
        }
        if let (Some(path), Some(every)) = (kept, options.checkpoint)
            && saved.elapsed() >= every
        {
            run.write(out, true)?;
            state::save(path, &run.named, &order, Some(source.checkpoint(&order, out, false)?))?;
            saved = Instant::now();
        }
    }
    drop(progress);
    if let Some(summary) = run.summary.take() {
        run.outcome.sizes = Some(summary.finish(&run.named.names, engine)?);
    }
    run.outcome.total = run.named.stream().next();
    if let Some(path) = state {
        let checkpoint = kept.map(|_| source.checkpoint(&order, out, ended)).transpose()?;
        state::save(path, &run.named, &order, checkpoint)?;
    }
    run.outcome.left_out = source.finish()?;
    Ok(run.outcome)
}

/// Maximum bytes of lines held back while more records are available.
const WRITTEN_BYTES: usize = 64 << 10;

struct Run<'e> {
    engine: &'e Engine,
    named: NamedStream<&'e Engine>,
    appender: Appender,
    summary: Option<Summary>,
    lines: String,
    outcome: Outcome,
}

/// The name of a text: its id, or its position in the stream, from 1.
fn called(id: Option<&str>, number: u64) -> Added<'_> {
    id.map_or(Added::Count(number + 1), Added::Text)
}

impl Run<'_> {
    fn decide(&mut self, tweets: Vec<Tweet>) -> Result<(), EventsError> {
        for batch in tweets.chunks(BATCH) {
            let items = batch.iter().map(|tweet| {
                let item = Item { time: tweet.time, text: &tweet.text };
                (item, tweet.id.as_deref())
            });
            let items: Vec<(Item<'_>, Option<&str>)> = items.collect();
            let first = self.named.stream.next();
            let decisions = self.named.decide(&items)?;
            for ((number, tweet), decision) in (first..).zip(batch).zip(&decisions) {
                self.add_line(tweet, decision);
                self.count(number, decision);
                if let Some(summary) = &mut self.summary {
                    summary.take(tweet, number, decision, self.engine);
                }
            }
            if self.named.is_to_sweep(batch.len()) {
                let events = self.named.stream.events();
                if let Some(summary) = &mut self.summary {
                    let is_over = |event| events.size(event) == 0;
                    summary.end(&self.named.names, self.engine, is_over)?;
                }
                self.named.sweep();
            }
        }
        Ok(())
    }

    fn add_line(&mut self, tweet: &Tweet, decision: &Decision) {
        let nearest = decision.nearest.map(|near| near.number);
        let names = &self.named.names;
        let values = [
            called(names.of_event(decision.event), decision.event),
            nearest.map_or(Added::Nothing, |number| called(names.of_text(number), number)),
            decision.score.map_or(Added::Nothing, Added::Score),
            Added::Truth(decision.new),
        ];
        self.appender.record(&tweet.raw, &values, &mut self.lines);
    }

    fn count(&mut self, number: u64, decision: &Decision) {
        let text = self.named.stream.window().text(number);
        let without = text.is_some_and(|text| text.vector.is_none());
        self.outcome.texts += 1;
        self.outcome.events += u64::from(decision.new);
        self.outcome.joined += u64::from(!decision.new);
        self.outcome.unscored += u64::from(without);
    }

    fn write(&mut self, out: &mut Output, flush: bool) -> Result<(), EventsError> {
        out.write_all(self.lines.as_bytes()).map_err(EventsError::Output)?;
        self.lines.clear();
        if flush {
            out.flush().map_err(EventsError::Output)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::events::output::Order;
    use crate::events::source::Tweet;

    fn tweet(time: i64) -> Tweet {
        Tweet { raw: "".into(), text: "".into(), id: None, time }
    }

    /// The times of texts in the order of their output, and how many were too late.
    fn through(slack: i64, times: &[i64]) -> (Vec<i64>, usize) {
        let mut order = Order::new(slack);
        let mut left = Vec::new();
        let mut late = 0;
        for &time in times {
            late += usize::from(order.take(tweet(time)));
            left.extend(order.ready(false).into_iter().map(|tweet| tweet.time));
        }
        left.extend(order.ready(true).into_iter().map(|tweet| tweet.time));
        (left, late)
    }

    #[test]
    fn without_slack_texts_leave_as_they_come() {
        assert_eq!(through(0, &[5, 3, 9, 9, 1]), (vec![5, 3, 9, 9, 1], 2));
    }

    #[test]
    fn within_the_slack_texts_leave_in_order_and_later_ones_at_once() {
        assert_eq!(through(10, &[5, 3, 9, 20, 12]), (vec![3, 5, 9, 12, 20], 0));
        // The third is 27 behind the second; the order of the others is kept.
        assert_eq!(through(10, &[5, 30, 3, 31]), (vec![5, 3, 30, 31], 1));
    }

    #[test]
    fn a_text_waits_until_none_can_come_before_it() {
        let mut order = Order::new(10);
        order.take(tweet(100));
        assert!(order.ready(false).is_empty());
        order.take(tweet(109));
        assert!(order.ready(false).is_empty());
        order.take(tweet(110));
        assert_eq!(order.ready(false).len(), 1);
        assert_eq!(order.ready(true).len(), 2);
    }
}
