//! `cognate eval events`: events found in a labelled stream, against the events that people saw.
//!
//! For every contender the nearest of each text are found once, then texts are joined to events by
//! every setting of a grid. The setting with the best mean of four figures is chosen, on another
//! stream if one is given, and its figures on the measured stream are told. The grid, the nearest and
//! the joining are those of `cognate events`.

mod neighbours;
mod page;
mod reference;
mod stream;

use std::path::PathBuf;

use cognate::engine::Engine;
use cognate::window::Near;
use cognate::window::events::{Events, Rule};
use cognate_files::records::Options as RecordOptions;
use cognate_kernels::vector;
use cognate_kernels::vector::Row;
use cognate_stats::clustering;
use cognate_stats::clustering::Agreement;
pub use page::html;
use rayon::prelude::*;
use serde::Serialize;

use crate::EvalError;
use crate::events::neighbours::Contender;
use crate::events::stream::Labelled;
use crate::table::{Better, Cell, Column, Mark, Table};

#[derive(Debug, Clone)]
pub struct EventsOptions {
    pub file: PathBuf,
    /// How its records are written down.
    pub records: RecordOptions,
    /// The field that holds the event; a text without one is an event of its own.
    pub gold: String,
    pub text: String,
    pub time: Option<String>,
    /// Whether every event is shifted to begin at the same moment, texts that are not related are
    /// events of their own, and texts that are not English are left out, as columns of these names
    /// say.
    pub interleave: bool,
    /// A stream that settings are chosen on; else they are chosen on the measured one.
    pub choose_on: Option<PathBuf>,
    /// Methods that score the nearest by vectors once more; `none` leaves them as they are.
    pub seconds: Vec<String>,
    /// Whether tf-idf and MinHash are measured, too.
    pub references: bool,
    /// Texts that are looked back at.
    pub last: usize,
    /// How many of the nearest are asked.
    pub nearest: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct EventsReport {
    /// Name and version of this shape.
    pub format: &'static str,
    pub fingerprint: String,
    pub file: String,
    /// The stream that settings were chosen on.
    pub chosen_on: String,
    /// Texts of the measured stream.
    pub texts: usize,
    /// Events of two texts or more in it.
    pub gold_events: usize,
    /// Texts that are events of their own.
    pub alone: usize,
    /// Texts that are looked back at.
    pub last: usize,
    /// How many of the nearest are asked.
    pub nearest: usize,
    /// For each contender, the chosen setting and its figures.
    pub results: Vec<EventsResult>,
    /// The course of the gold events, and of those that the best contender found.
    #[serde(skip)]
    courses: Vec<Course>,
}

#[derive(Debug, Clone, Serialize)]
pub struct EventsResult {
    /// What found the nearest.
    pub name: String,
    /// The setting that was chosen.
    pub rule: Rule,
    /// Its figures on the stream that it was chosen on.
    pub chosen: Agreement,
    /// Its figures on the measured stream.
    pub figures: Agreement,
    /// Events it found there.
    pub events: usize,
    /// Each setting of the grid with its figures on the stream that it was chosen on.
    pub grid: Vec<(Rule, Agreement)>,
}

/// When texts of an event came: a name, and times in hours since the stream began.
#[derive(Debug, Clone)]
struct Course {
    name: String,
    found: bool,
    hours: Vec<f64>,
}

/// What a setting is chosen by: the mean of four figures.
fn worth(figures: &Agreement) -> f64 {
    (figures.best_match_f1 + figures.b_cubed_f + figures.ami + figures.ari) / 4.0
}

/// A stream with the vectors of its texts, each brought to length 1, and the nearest of each text.
struct Prepared<'s> {
    stream: &'s Labelled,
    vectors: &'s [Option<Vec<f32>>],
    near: Vec<Vec<Near>>,
}

impl Prepared<'_> {
    /// The event of each text under a setting.
    fn events(&self, rule: &Rule) -> Vec<u64> {
        let mut events = Events::default();
        let vectors = self.vectors.iter();
        vectors
            .zip(&self.near)
            .map(|(vector, near)| events.join(vector.as_deref(), near, rule).event)
            .collect()
    }

    fn figures(&self, rule: &Rule) -> Option<Agreement> {
        clustering::agreement(&self.stream.gold, &self.events(rule))
    }
}

/// The settings that are tried: thresholds differ by scale, and centres are of vectors only.
fn grid(contender: &Contender) -> Vec<Rule> {
    let centres: &[f32] = if contender.has_vectors() { &[0.0, 0.1, 0.2] } else { &[0.0] };
    let mut rules = Vec::new();
    for &centre in centres {
        for votes in 1..=4 {
            for step in contender.steps() {
                rules.push(Rule { threshold: step as f32 * 0.03, votes, centre });
            }
        }
    }
    rules
}

/// Measures events found in a stream.
pub fn eval_events(engine: &Engine, options: &EventsOptions) -> Result<EventsReport, EvalError> {
    let contenders = Contender::all(engine, options)?;
    let measured = Labelled::read(&options.file, options)?;
    let other = options.choose_on.as_ref().map(|path| Labelled::read(path, options)).transpose()?;
    let choosing = other.as_ref().unwrap_or(&measured);
    let vectors = neighbours::vectors(engine, &measured)?;
    let other_vectors =
        other.as_ref().map(|other| neighbours::vectors(engine, other)).transpose()?;
    let choosing_vectors = other_vectors.as_ref().unwrap_or(&vectors);
    let mut results = Vec::new();
    let mut best: Option<(f64, Vec<u64>)> = None;
    for contender in &contenders {
        let prepare = |stream, vectors| -> Result<Prepared<'_>, EvalError> {
            let near = contender.nearest(engine, stream, vectors, options)?;
            Ok(Prepared { stream, vectors, near })
        };
        let on = prepare(choosing, choosing_vectors)?;
        let rules = grid(contender);
        let all = rules.par_iter().filter_map(|rule| Some((*rule, on.figures(rule)?)));
        let all: Vec<(Rule, Agreement)> = all.collect();
        let chosen = all.iter().max_by(|one, other| worth(&one.1).total_cmp(&worth(&other.1)));
        let Some(&(rule, chosen)) = chosen else { continue };
        let measured = match &other {
            Some(_) => prepare(&measured, &vectors)?,
            None => on,
        };
        let found = measured.events(&rule);
        let Some(figures) = clustering::agreement(&measured.stream.gold, &found) else { continue };
        let mut numbers = found.clone();
        numbers.sort_unstable();
        numbers.dedup();
        if best.as_ref().is_none_or(|(highest, _)| worth(&figures) > *highest) {
            best = Some((worth(&figures), found));
        }
        let name = contender.name();
        results.push(EventsResult {
            name,
            rule,
            chosen,
            figures,
            events: numbers.len(),
            grid: all,
        });
    }
    let courses = best.map(|(_, found)| courses(&measured, &found)).unwrap_or_default();
    let named = |path: &PathBuf| path.display().to_string();
    Ok(EventsReport {
        format: "cognate-eval-events-1",
        fingerprint: engine.model().fingerprint().to_owned(),
        file: named(&options.file),
        chosen_on: named(options.choose_on.as_ref().unwrap_or(&options.file)),
        texts: measured.gold.len(),
        gold_events: measured.names.len(),
        alone: measured.gold.iter().filter(|&&gold| gold >= measured.names.len() as u64).count(),
        last: options.last,
        nearest: options.nearest,
        results,
        courses,
    })
}

/// Events that a timeline shows.
const SHOWN: usize = 12;

/// When texts of the gold events and of the largest found ones came.
fn courses(stream: &Labelled, found: &[u64]) -> Vec<Course> {
    let start = stream.times.first().copied().unwrap_or(0);
    let hours = |labels: &[u64], label: u64| -> Vec<f64> {
        let of = labels.iter().zip(&stream.times).filter(|&(&known, _)| known == label);
        of.map(|(_, &time)| (time - start) as f64 / 3_600_000.0).collect()
    };
    let mut courses: Vec<Course> = (0..)
        .zip(&stream.names)
        .map(|(label, name)| Course {
            name: name.clone(),
            found: false,
            hours: hours(&stream.gold, label),
        })
        .collect();
    let mut sizes = std::collections::BTreeMap::<u64, usize>::new();
    for &event in found {
        *sizes.entry(event).or_default() += 1;
    }
    let mut largest: Vec<(usize, u64)> =
        sizes.into_iter().map(|(event, size)| (size, event)).collect();
    largest.sort_unstable_by(|one, other| other.cmp(one));
    for (_, event) in largest.into_iter().take(SHOWN) {
        // Named after the gold event that most of its texts are of.
        let mut votes = std::collections::BTreeMap::<u64, usize>::new();
        for (&gold, _) in stream.gold.iter().zip(found).filter(|&(_, &known)| known == event) {
            *votes.entry(gold.min(stream.names.len() as u64)).or_default() += 1;
        }
        let most = votes.into_iter().max_by_key(|&(_, count)| count);
        let name = most.and_then(|(gold, _)| stream.names.get(usize::try_from(gold).ok()?));
        let name = name.map_or("none of them", String::as_str).to_owned();
        courses.push(Course { name, found: true, hours: hours(found, event) });
    }
    courses
}

impl EventsReport {
    pub fn json(&self) -> String {
        // Every key is a string and every number finite, so nothing here can fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// The figures as a table.
    fn table(&self) -> Table {
        let column = |name: &str, better| Column { name: name.to_owned(), better };
        let mut columns: Vec<Column> =
            ["threshold", "votes", "centre"].map(|name| column(name, Better::Neither)).into();
        let figures = ["F1", "B³ P", "B³ R", "B³ F", "NMI", "AMI", "ARI"];
        columns.extend(figures.map(|name| column(name, Better::Higher)));
        columns.push(column("events", Better::Neither));
        let rows = self.results.iter().map(|result| {
            let Agreement {
                best_match_f1,
                b_cubed_precision,
                b_cubed_recall,
                b_cubed_f,
                nmi,
                ami,
                ari,
            } = result.figures;
            let rule = result.rule;
            let mut cells = vec![
                plain(rule.threshold, format!("{:.2}", rule.threshold)),
                plain(rule.votes as f32, rule.votes.to_string()),
                plain(rule.centre, format!("{:.1}", rule.centre)),
            ];
            let shares =
                [best_match_f1, b_cubed_precision, b_cubed_recall, b_cubed_f, nmi, ami, ari];
            cells.extend(shares.map(|share| Cell::share(share, Mark::None)));
            cells.push(Cell::count(result.events));
            (result.name.clone(), cells)
        });
        let title = format!(
            "{}: {} texts, {} events, {} texts alone",
            self.file, self.texts, self.gold_events, self.alone
        );
        let settings = match self.chosen_on == self.file {
            true => "Settings were chosen on the same stream: figures of another will be lower."
                .to_owned(),
            false => format!("Settings were chosen on {}.", self.chosen_on),
        };
        let window = format!(
            "Of the last {} texts the {} nearest are asked. F1 is the mean over events of the best \
             match.",
            self.last, self.nearest
        );
        Table {
            title,
            stub: "nearest by",
            columns,
            rows: rows.collect(),
            notes: vec![settings, window],
        }
    }
}

impl std::fmt::Display for EventsReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.table())
    }
}

fn plain(value: f32, text: String) -> Cell {
    Cell { value: f64::from(value), text, mark: Mark::None }
}

/// Brings a vector to length 1; one without length is none.
fn unit(vector: Vec<f32>) -> Option<Vec<f32>> {
    let length = vector::norm(Row::F32(&vector));
    let sound = length.is_finite() && length > 0.0;
    sound.then(|| vector.iter().map(|number| number / length).collect())
}
