//! `cognate events`: a stream of texts, each written back whole with the event that it belongs to.
//!
//! Records come from a file or standard input and leave as soon as they are decided; memory is that
//! of the window, however long the stream is. What makes an event is known in
//! [`window`](cognate::window).

mod output;
mod source;
mod state;
mod summary;
use std::path::PathBuf;

use cognate::engine::QueryError;
use cognate_files::ReadError;

/// Why a stream could not be followed.
#[derive(Debug, thiserror::Error)]
pub enum EventsError {
    /// A record could not be read, or makes no sense.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A method cannot do what is asked of it.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Options that contradict each other, the records or the state.
    #[error("{0}")]
    Options(String),
    /// Lines could not be written.
    #[error("cannot write: {0}")]
    Output(#[source] std::io::Error),
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A state that cannot be gone on from.
    #[error("{}: {problem}", path.display())]
    State {
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use cognate::engine::Engine;
use cognate::window::BATCH;
use cognate::window::events::Decision;
use cognate::window::stream::{Item, Settings, Stream};
use cognate_files::progress::Progress;
use cognate_files::records::{Added, Appender, Options as RecordOptions};
pub use output::Output;
use serde::Serialize;
pub use source::Columns;

use crate::events::output::Order;
use crate::events::source::{Source, Tweet};
use crate::events::summary::Summary;

/// What is done with a stream.
#[derive(Debug, Clone)]
pub struct EventsOptions {
    /// The records; `-` is standard input.
    pub input: PathBuf,
    /// How they are written down.
    pub records: RecordOptions,
    /// Which fields hold what.
    pub columns: Columns,
    /// What stands before the names of added fields.
    pub prefix: String,
    /// How the stream is followed.
    pub settings: Settings,
    /// A record may be so many milliseconds late.
    pub slack: i64,
    /// A table of events to write.
    pub summary: Option<PathBuf>,
    /// Fewest texts of an event in that table.
    pub least: u64,
    /// What the stream goes on from, and where what it got to is kept.
    pub state: Option<PathBuf>,
}

/// What came of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    /// Texts that were read.
    pub texts: u64,
    pub events: u64,
    /// Texts that joined an event.
    pub joined: u64,
    /// Texts without a vector, each an event of its own.
    pub unscored: u64,
    /// Texts that came later than the slack allows.
    pub late: u64,
    /// Texts that the stream has had since it began, those of earlier runs among them.
    pub total: u64,
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
        Ok(())
    }
}

/// Names of the fields that are added.
const FIELDS: [&str; 4] = ["event", "nearest", "score", "new"];

/// Texts between two looks at names that no text of the window needs any more.
const SWEEP: u64 = 4096;

/// Follows a stream to its end, or until it is `interrupted`: what was read by then is decided and
/// written.
pub fn run(
    engine: &Engine,
    options: &EventsOptions,
    out: &mut dyn Write,
    interrupted: &AtomicBool,
) -> Result<Outcome, EventsError> {
    let mut source = Source::open(options)?;
    let names = FIELDS.map(|name| format!("{}{name}", options.prefix));
    source.refuse_fields(&names)?;
    let mut run = Run {
        engine,
        stream: Stream::new(engine, options.settings)?,
        names: Names::default(),
        appender: Appender::new(source.format(), names),
        summary: options.summary.as_deref().map(|path| Summary::create(path, options.least)),
        lines: String::new(),
        outcome: Outcome { texts: 0, events: 0, joined: 0, unscored: 0, late: 0, total: 0 },
    };
    if let Some(path) = &options.state {
        state::resume(path, &mut run)?;
    }
    // Whoever appends what goes on has the header already.
    if run.stream.next() == 0 {
        run.appender.header(source.header(), &mut run.lines);
    }
    let progress = Progress::bytes("events");
    let mut order = Order::new(options.slack);
    let mut ended = false;
    while !ended {
        for _ in 0..BATCH {
            match source.read()? {
                Some(tweet) => run.outcome.late += u64::from(order.take(tweet)),
                None => ended = true,
            }
            if ended || !source.is_ready() {
                break;
            }
        }
        ended |= interrupted.load(Ordering::Relaxed);
        run.decide(order.ready(ended))?;
        source.follow(&progress);
        let waits = !source.is_ready();
        if run.lines.len() > WRITTEN_BYTES || waits || ended {
            run.write(out, waits || ended)?;
        }
    }
    drop(progress);
    if let Some(summary) = run.summary.take() {
        summary.finish(&run.names, engine)?;
    }
    run.outcome.total = run.stream.next();
    if let Some(path) = &options.state {
        state::save(path, &run)?;
    }
    Ok(run.outcome)
}

/// Bytes of lines that are kept before they are written, while more records are there.
const WRITTEN_BYTES: usize = 64 << 10;

/// A stream at work, with the names that its texts have outside.
struct Run<'e> {
    engine: &'e Engine,
    stream: Stream<&'e Engine>,
    names: Names,
    appender: Appender,
    summary: Option<Summary>,
    lines: String,
    outcome: Outcome,
}

/// What texts and events are called: by the id of a text, or its place in the stream from 1.
#[derive(Default)]
struct Names {
    /// The ids of the texts of the window, from number `first` on.
    ids: VecDeque<Option<Box<str>>>,
    first: u64,
    /// The ids of the texts that events began with.
    events: HashMap<u64, Box<str>>,
}

impl Names {
    fn id(&self, number: u64) -> Option<&str> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        self.ids.get(at)?.as_deref()
    }

    fn of_text(&self, number: u64) -> Added<'_> {
        self.id(number).map_or(Added::Count(number + 1), Added::Text)
    }

    fn of_event(&self, event: u64) -> Added<'_> {
        self.events.get(&event).map_or(Added::Count(event + 1), |id| Added::Text(id))
    }

    fn add(&mut self, id: Option<Box<str>>, number: u64, event: u64) {
        if let (true, Some(id)) = (number == event, &id) {
            self.events.insert(event, id.clone());
        }
        self.ids.push_back(id);
    }
}

impl Run<'_> {
    /// Decides texts in their order, and adds their lines.
    fn decide(&mut self, tweets: Vec<Tweet>) -> Result<(), EventsError> {
        for batch in tweets.chunks(BATCH) {
            let items = batch.iter().map(|tweet| Item { time: tweet.time, text: &tweet.text });
            let items: Vec<Item<'_>> = items.collect();
            let first = self.stream.next();
            let decisions = self.stream.follow(&items)?;
            for ((number, tweet), decision) in (first..).zip(batch).zip(&decisions) {
                self.names.add(tweet.id.clone(), number, decision.event);
                self.add_line(tweet, decision);
                self.count(number, decision);
                if let Some(summary) = &mut self.summary {
                    summary.take(tweet, number, decision, self.engine.model().normalisation());
                }
            }
            // After the batch, because what its last texts forgot may be named by its first.
            let next = self.stream.next();
            if first / SWEEP != next / SWEEP {
                self.sweep(next)?;
            }
        }
        Ok(())
    }

    fn add_line(&mut self, tweet: &Tweet, decision: &Decision) {
        let nearest = decision.nearest.map(|near| near.number);
        let values = [
            self.names.of_event(decision.event),
            nearest.map_or(Added::Nothing, |number| self.names.of_text(number)),
            decision.score.map_or(Added::Nothing, Added::Score),
            Added::Truth(decision.new),
        ];
        self.appender.record(&tweet.raw, &values, &mut self.lines);
    }

    fn count(&mut self, number: u64, decision: &Decision) {
        let without = self.stream.window().text(number).is_some_and(|text| text.vector.is_none());
        self.outcome.texts += 1;
        self.outcome.events += u64::from(decision.new);
        self.outcome.joined += u64::from(!decision.new);
        self.outcome.unscored += u64::from(without);
    }

    /// Forgets names that the window needs no more, and ends events.
    fn sweep(&mut self, number: u64) -> Result<(), EventsError> {
        let kept = number.saturating_sub(self.stream.settings().limits.last as u64 + BATCH as u64);
        while self.names.first < kept && self.names.ids.pop_front().is_some() {
            self.names.first += 1;
        }
        let events = self.stream.events();
        if let Some(summary) = &mut self.summary {
            summary.end(&self.names, self.engine, |event| events.size(event) == 0)?;
        }
        self.names.events.retain(|&event, _| events.size(event) > 0);
        Ok(())
    }

    fn write(&mut self, out: &mut dyn Write, flush: bool) -> Result<(), EventsError> {
        out.write_all(self.lines.as_bytes()).map_err(EventsError::Output)?;
        self.lines.clear();
        if flush {
            out.flush().map_err(EventsError::Output)?;
        }
        Ok(())
    }
}
