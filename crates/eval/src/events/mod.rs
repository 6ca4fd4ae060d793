//! `cognate eval events`: measures how well events found in a labelled stream agree with those that
//! people marked.
//!
//! For every contender the nearest texts of each text are found once, then texts are grouped into
//! events with every setting of a grid. The setting with the best mean of four figures is chosen,
//! on another stream if one is given, and its figures on the measured stream are reported. Search
//! and grouping are those of `cognate events`. A single stream is a poor measure, as its largest
//! event may hold together by chance. So streams are drawn from the labelled events, which begin at
//! random moments, and figures are means over them.

mod chatter;
mod courses;
mod draws;
mod fit;
mod neighbours;
mod page;
mod sweep;

use std::path::{Path, PathBuf};

pub use chatter::ChatterReport;
use cognate::engine::{Embeddings, Engine};
use cognate::window::events::{Events, Rule};
use cognate::window::usual::Preset;
use cognate::window::{Limits, Near};
use cognate_files::instant;
use cognate_files::records::Options as RecordOptions;
use cognate_stats::clustering;
use cognate_stats::clustering::Agreement;
use cognate_stats::page::table::{Better, Cell, Column, Mark, Table};
pub use fit::{EventsFit, fit_events};
pub use page::html;
use rayon::prelude::*;
use serde::Serialize;
pub use sweep::{Sweep, SweepLabels, SweptThreshold, sweep_events};

use crate::Result;
use crate::events::courses::Course;
use crate::events::draws::Labelled;
use crate::events::neighbours::Contender;
use crate::report::json;

/// A table is shown to others, to whom a machine's folders mean nothing.
fn file_name(path: &str) -> &str {
    let name = Path::new(path).file_name();
    name.and_then(|name| name.to_str()).unwrap_or(path)
}

#[derive(Debug, Clone)]
pub struct EventsOptions {
    pub file: PathBuf,
    pub records: RecordOptions,
    pub gold: String,
    pub text: String,
    pub time: Option<String>,
    /// Whether every event is shifted to begin at the same moment. Columns with fixed names then
    /// mark unrelated texts, which become events of their own, and texts that are not English,
    /// which are left out.
    pub interleave: bool,
    /// Number of streams drawn from the labelled events; 1 if these are not shifted.
    pub streams: usize,
    pub choose_on: Option<PathBuf>,
    /// Methods that rescore the nearest texts found by vectors; `none` keeps the order of the
    /// vectors.
    pub seconds: Vec<String>,
    /// Whether the references tf-idf and MinHash are measured too.
    pub references: bool,
    pub limits: Limits,
    pub nearest: usize,
    /// Whether texts opposed to a text are left out of its nearest by vectors.
    pub drop_opposed: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct EventsReport {
    pub format: &'static str,
    pub fingerprint: String,
    pub file: String,
    pub chosen_on: String,
    pub texts: usize,
    pub gold_events: usize,
    pub alone: usize,
    /// Number of streams that were measured: the labelled stream and resamples of its events.
    pub streams: usize,
    pub last: usize,
    /// Maximum time difference between a text and its neighbours, in milliseconds; `None`: no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<i64>,
    pub nearest: usize,
    /// Whether opposed texts found by vectors were left out.
    pub drop_opposed: bool,
    pub results: Vec<EventsResult>,
    /// The score of chatter of the events that the best contender found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chatter: Option<ChatterReport>,
    /// Whether labelled events were shifted to begin at the same moment.
    #[serde(skip)]
    interleaved: bool,
    /// Number of events of at least two texts that the best contender found.
    #[serde(skip)]
    found_events: usize,
    /// The courses of the largest labelled events, and of the largest that the best contender
    /// found.
    #[serde(skip)]
    courses: Vec<Course>,
}

#[derive(Debug, Clone, Serialize)]
pub struct EventsResult {
    pub name: String,
    pub rule: Rule,
    /// The setting as the query string of `match`, and as flags of `cognate events`; `None` for
    /// references.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flags: Option<String>,
    /// Mean figures on the streams where the setting was chosen.
    pub chosen: Agreement,
    /// Mean figures on the measured streams.
    pub figures: Agreement,
    /// Figures on each measured stream.
    pub streams: Vec<Agreement>,
    /// Number of events found in the first of them.
    pub events: usize,
    pub grid: Vec<(Rule, Agreement)>,
}

/// The figure by which settings are chosen: the mean of four others.
fn worth(figures: &Agreement) -> f64 {
    (figures.best_match_f1 + figures.b_cubed_f + figures.ami + figures.ari) / 4.0
}

struct PreparedStream<'s> {
    stream: &'s Labelled,
    vectors: Embeddings,
    near: Vec<Vec<Near>>,
    limits: Limits,
}

impl<'s> PreparedStream<'s> {
    fn new(
        engine: &Engine,
        contender: Contender,
        stream: &'s Labelled,
        options: &EventsOptions,
    ) -> Result<Self> {
        let vectors = neighbours::vectors(engine, stream)?;
        let near = contender.nearest(engine, stream, &vectors, options)?;
        Ok(Self { stream, vectors, near, limits: options.limits })
    }

    fn events(&self, rule: &Rule) -> Vec<u64> {
        let mut events = Events::default();
        let vector_of = |number: u64| self.vectors.get(usize::try_from(number).ok()?);
        let texts = (0_u64..).zip(&self.near).zip(&self.stream.times);
        let each = texts.map(|((number, near), &time)| {
            events.forget_before(number.saturating_sub(self.limits.last as u64));
            let reach = self.limits.reach(time);
            let (decision, _) = events.decide(vector_of(number), near, &reach, rule, vector_of);
            events.add(decision.event, time);
            decision.event
        });
        each.collect()
    }

    fn figures(&self, rule: &Rule) -> Option<Agreement> {
        clustering::agreement(&self.stream.gold, &self.events(rule))
    }
}

/// The settings to try: thresholds depend on the contender's scale, and centres exist only for
/// vectors.
fn grid(contender: &Contender, nearest: usize) -> Vec<Rule> {
    let centres: &[f32] = if contender.has_vectors() { &[0.0, 0.1, 0.2] } else { &[0.0] };
    let mut rules = Vec::new();
    for &centre in centres {
        for votes in 1..=nearest.min(4) {
            rules.extend(contender.rules(Preset::Topics, votes, centre));
        }
    }
    rules
}

/// For each rule the figures on each stream.
fn tried<'s>(
    rules: &[Rule],
    streams: &'s [Labelled],
    prepare: impl Fn(&'s Labelled) -> Result<PreparedStream<'s>>,
) -> Result<Vec<(Rule, Vec<Agreement>)>> {
    let mut all: Vec<(Rule, Vec<Agreement>)> = rules.iter().map(|&rule| (rule, vec![])).collect();
    for stream in streams {
        let prepared = prepare(stream)?;
        let figures: Vec<_> = rules.par_iter().map(|rule| prepared.figures(rule)).collect();
        all.iter_mut().zip(figures).for_each(|((_, all), figures)| all.extend(figures));
    }
    Ok(all)
}

pub fn eval_events(engine: &Engine, options: &EventsOptions) -> Result<EventsReport> {
    let contenders = Contender::all(engine, options)?;
    let drawn = Labelled::draw(&options.file, options)?;
    let Some(measured) = drawn.first() else { return Err(draws::none(&options.file, options)) };
    let other = options.choose_on.as_ref().map(|path| Labelled::draw(path, options)).transpose()?;
    let choosing = other.as_ref().unwrap_or(&drawn);
    let mut results = Vec::new();
    let mut best: Option<(f64, String, Vec<u64>)> = None;
    for &contender in &contenders {
        let rules = grid(&contender, options.nearest);
        let prepare = |stream| PreparedStream::new(engine, contender, stream, options);
        let all = tried(&rules, choosing, prepare)?;
        let all: Vec<(Rule, Agreement, Vec<Agreement>)> = all
            .into_iter()
            .filter_map(|(rule, each)| Some((rule, clustering::mean(&each)?, each)))
            .collect();
        let chosen = all.iter().max_by(|one, other| worth(&one.1).total_cmp(&worth(&other.1)));
        let Some((rule, chosen, each)) = chosen.cloned() else { continue };
        let streams = match &other {
            Some(_) => {
                let on = tried(&[rule], &drawn, prepare)?;
                on.into_iter().flat_map(|(_, each)| each).collect()
            }
            None => each,
        };
        let Some(figures) = clustering::mean(&streams) else { continue };
        let found = prepare(measured)?.events(&rule);
        let mut numbers = found.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let name = contender.name();
        if best.as_ref().is_none_or(|(highest, ..)| worth(&figures) > *highest) {
            best = Some((worth(&figures), name.clone(), found));
        }
        let asked = contender.second().map(|second| asked(&rule, second, options));
        results.push(EventsResult {
            name,
            rule,
            query: asked.as_ref().map(|asked| joined(asked, "", "=", "&")),
            flags: asked.as_ref().map(|asked| joined(asked, "--", " ", " ")),
            chosen,
            figures,
            streams,
            events: numbers.len(),
            grid: all.into_iter().map(|(rule, figures, _)| (rule, figures)).collect(),
        });
    }
    let told = best.as_ref();
    let chatter = told.and_then(|(_, of, found)| chatter::report(engine, measured, found, of));
    let courses =
        told.map(|(.., found)| courses::courses(engine, measured, found)).unwrap_or_default();
    let found_events = told.map_or(0, |(.., found)| {
        courses::largest(found).into_iter().filter(|&(size, _)| size > 1).count()
    });
    let named = |path: &PathBuf| path.display().to_string();
    Ok(EventsReport {
        format: "cognate-eval-events-1",
        fingerprint: engine.model().fingerprint().to_owned(),
        file: named(&options.file),
        chosen_on: named(options.choose_on.as_ref().unwrap_or(&options.file)),
        texts: measured.gold.len(),
        gold_events: measured.names.len(),
        alone: measured.gold.iter().filter(|&&gold| gold >= measured.names.len() as u64).count(),
        streams: drawn.len(),
        last: options.limits.last,
        within: options.limits.within,
        nearest: options.nearest,
        drop_opposed: options.drop_opposed,
        results,
        chatter,
        interleaved: options.interleave,
        found_events,
        courses,
    })
}

/// Returns a rule's settings as pairs of name and value; requests and flags use the same names.
fn asked(rule: &Rule, second: &str, options: &EventsOptions) -> Vec<(&'static str, String)> {
    let Limits { last, within } = options.limits;
    let mut asked = vec![
        ("second", second.to_owned()),
        ("threshold", rule.threshold.to_string()),
        ("votes", rule.votes.to_string()),
        ("centre", rule.centre.to_string()),
        ("nearest", options.nearest.to_string()),
        ("last", last.to_string()),
    ];
    asked.extend(within.map(|within| ("within", instant::written_span(within))));
    asked.extend(options.drop_opposed.then(|| ("opposes", "drop".to_owned())));
    asked
}

fn joined(asked: &[(&str, String)], before: &str, is: &str, between: &str) -> String {
    let each = asked.iter().map(|(name, value)| format!("{before}{name}{is}{value}"));
    each.collect::<Vec<_>>().join(between)
}

/// The first columns of the table, which name the setting.
const SETTINGS: usize = 3;

impl EventsReport {
    pub fn json(&self) -> String {
        json(self)
    }

    fn table(&self) -> Table {
        let settings: [&str; SETTINGS] = ["threshold", "votes", "centre"];
        let neither = |name: &str| Column::new(name, Better::Neither);
        let mut columns: Vec<Column> = settings.map(neither).into();
        let figures = ["F1", "B³ P", "B³ R", "B³ F", "NMI", "AMI", "ARI"];
        columns.extend(figures.map(|name| Column::new(name, Better::Higher)));
        columns.push(neither("events"));
        if self.streams > 1 {
            columns.extend([Column::new("mean", Better::Higher), neither("by stream")]);
        }
        let rows = self.results.iter().map(|result| {
            let (of, rule) = (result.figures, result.rule);
            let mut cells = vec![
                Cell::plain(format!("{:.2}", rule.threshold)),
                Cell::plain(rule.votes.to_string()),
                Cell::plain(format!("{:.1}", rule.centre)),
            ];
            let b_cubed = [of.b_cubed_precision, of.b_cubed_recall, of.b_cubed_f];
            let shares = [&[of.best_match_f1][..], &b_cubed, &[of.nmi, of.ami, of.ari]].concat();
            cells.extend(shares.into_iter().map(|share| Cell::share(share, Mark::None)));
            cells.push(Cell::count(result.events));
            if self.streams > 1 {
                let each = || result.streams.iter().map(worth);
                let (least, most) = (each().fold(1.0, f64::min), each().fold(0.0, f64::max));
                cells.push(Cell::share(worth(&of), Mark::None));
                cells.push(Cell::plain(format!("{:.1}–{:.1}", 100.0 * least, 100.0 * most)));
            }
            (result.name.clone(), cells)
        });
        let title = format!(
            "{}: {} texts, {} events, {} texts alone",
            file_name(&self.file),
            self.texts,
            self.gold_events,
            self.alone
        );
        let settings = match self.chosen_on == self.file {
            true => "Settings were chosen on the same stream: figures of another will be lower."
                .to_owned(),
            false => format!("Settings were chosen on {}.", file_name(&self.chosen_on)),
        };
        let opposed = if self.drop_opposed { ", without opposed ones" } else { "" };
        let within = self.within.map(instant::written_span);
        let within =
            within.map_or_else(String::new, |within| format!(", none further away than {within},"));
        let window = format!(
            "Of the last {} texts{within} the {} nearest are asked{opposed}. F1 is the mean over events \
             of the best match.",
            self.last, self.nearest
        );
        let mut notes = vec![settings, window];
        if self.streams > 1 {
            notes.push(format!(
                "Figures are means of {} streams: the events as they are, and random ones of them from \
                 random moments of five days on.",
                self.streams
            ));
        }
        let vectors = self.results.iter().filter(|result| result.query.is_some());
        let best = vectors.max_by(|one, other| worth(&one.chosen).total_cmp(&worth(&other.chosen)));
        if let Some(EventsResult { name, query: Some(query), flags: Some(flags), .. }) = best {
            notes.push(format!("The best setting where they were chosen is of {name}:"));
            notes.push(format!("POST /collections/NAME/match?{query}"));
            notes.push(format!("cognate events {flags}"));
        }
        notes.extend(self.chatter.as_ref().map(ChatterReport::to_string));
        Table { title, stub: "nearest by", columns, rows: rows.collect(), notes }
    }
}

impl std::fmt::Display for EventsReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.table())
    }
}
