//! What a scenario found: figures beside the promise's figure, and counts that must be right.
//!
//! A latency that misses its figure is printed as missed and no more: it says as much of the machine
//! as of the program. A count that is wrong (an answer lost, wrong, or of the wrong status) breaks a
//! promise on any machine.

use serde_json::{Value, json};

use crate::machine;
use crate::options::Options;
use crate::tally::{Tally, milliseconds};

/// What a figure should be.
#[derive(Debug, Clone, Copy)]
pub enum Bar {
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// Within this range.
    Between(f64, f64),
    /// It is for information.
    None,
}

/// What a scenario found.
#[derive(Debug)]
pub struct Report {
    scenario: String,
    promise: &'static str,
    figures: Vec<Figure>,
    counts: Vec<(String, u64)>,
    broken: Vec<String>,
    notes: Vec<String>,
    curve: Vec<[f64; 3]>,
    skipped: bool,
}

#[derive(Debug)]
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    bar: Bar,
}

impl Figure {
    fn verdict(&self) -> &'static str {
        let held = match self.bar {
            Bar::None => return "",
            Bar::AtMost(bar) => self.value <= bar,
            Bar::AtLeast(bar) => self.value >= bar,
            Bar::Between(low, high) => (low..=high).contains(&self.value),
        };
        if held { "held" } else { "missed" }
    }

    fn promised(&self) -> String {
        match self.bar {
            Bar::None => String::new(),
            Bar::AtMost(bar) => format!("<= {}", shown(bar)),
            Bar::AtLeast(bar) => format!(">= {}", shown(bar)),
            Bar::Between(low, high) => format!("{} to {}", shown(low), shown(high)),
        }
    }
}

fn shown(value: f64) -> String {
    let digits = if value.abs() >= 1000.0 || value.fract() == 0.0 { 0 } else { 2 };
    format!("{value:.digits$}")
}

impl Report {
    /// An empty one.
    pub fn new(scenario: &str, promise: &'static str) -> Self {
        Self {
            scenario: scenario.to_owned(),
            promise,
            figures: Vec::new(),
            counts: Vec::new(),
            broken: Vec::new(),
            notes: Vec::new(),
            curve: Vec::new(),
            skipped: false,
        }
    }

    /// Adds a figure.
    pub fn figure(&mut self, name: impl Into<String>, value: f64, unit: &'static str, bar: Bar) {
        self.figures.push(Figure { name: name.into(), value, unit, bar });
    }

    /// Adds a count that is only told.
    pub fn count(&mut self, name: impl Into<String>, count: u64) {
        self.counts.push((name.into(), count));
    }

    /// Adds a count that must be zero.
    pub fn zero(&mut self, name: impl Into<String>, count: u64) {
        let name = name.into();
        self.must(count == 0, || format!("{name}: {count}, and it must be 0"));
        self.counts.push((name, count));
    }

    /// Something that must be so.
    pub fn must(&mut self, so: bool, otherwise: impl FnOnce() -> String) {
        if !so {
            self.broken.push(otherwise());
        }
    }

    /// Adds a sentence.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// What changed over time: minutes, mebibytes of memory, milliseconds of p99.
    pub fn curve(&mut self, points: impl Iterator<Item = [f64; 3]>) {
        self.curve = points.collect();
    }

    /// Says why the scenario could not be run here.
    pub fn skip(&mut self, reason: impl Into<String>) {
        self.skipped = true;
        self.note(format!("skipped: {}", reason.into()));
    }

    /// The counts of a run in which every request must be answered, and rightly.
    pub fn all_answered(&mut self, run: &str, tally: &Tally) {
        self.zero(format!("{run}: shed"), tally.shed);
        self.answered_or_shed(run, tally);
    }

    /// The counts of a run in which a request may be turned away, but only in the proper way.
    pub fn answered_or_shed(&mut self, run: &str, tally: &Tally) {
        self.must(tally.answered() > 0, || format!("{run}: nothing was answered"));
        if let Some(speed) = machine::slowest_tenth() {
            self.figure(format!("{run}: the machine's slowest tenth"), speed, "%", Bar::None);
        }
        self.count(format!("{run}: right answers"), tally.answered());
        self.zero(format!("{run}: wrong answers"), tally.wrong);
        self.zero(format!("{run}: 503 without Retry-After or problem"), tally.shed_bare);
        self.zero(format!("{run}: 4xx"), tally.refused);
        self.zero(format!("{run}: other statuses"), tally.strange);
        self.zero(format!("{run}: resets"), tally.reset);
        self.zero(format!("{run}: timeouts"), tally.late);
        self.zero(format!("{run}: not connected"), tally.unconnected);
        if tally.unsent > 0 {
            self.count(format!("{run}: not sent before the end"), tally.unsent);
        }
        if let Some(example) = &tally.example {
            self.note(format!("{run}: first unexpected answer: {}", example.replace("\r\n", "; ")));
        }
    }

    /// The latencies from the scheduled time that P1 is about.
    pub fn latency(&mut self, run: &str, tally: &Tally, p99: f64, p999: f64) {
        self.told_latency(run, tally, [Bar::None, Bar::AtMost(p99), Bar::AtMost(p999)]);
    }

    /// The same latencies, only told unless a bar is given.
    pub fn told_latency(&mut self, run: &str, tally: &Tally, bars: [Bar; 3]) {
        let quantiles = [("p50", 0.5), ("p99", 0.99), ("p99.9", 0.999)];
        for ((name, quantile), bar) in quantiles.into_iter().zip(bars) {
            let value = milliseconds(&tally.scheduled, quantile);
            self.figure(format!("{run}: {name}"), value, "ms", bar);
        }
    }

    /// Whether a promise is broken.
    pub fn is_broken(&self) -> bool {
        !self.broken.is_empty()
    }

    /// For people.
    pub fn print(&self) {
        println!("\n{} ({})", self.scenario, self.promise);
        for figure in &self.figures {
            println!(
                "  {:<58} {:>10} {:<6} {:<14} {}",
                figure.name,
                shown(figure.value),
                figure.unit,
                figure.promised(),
                figure.verdict()
            );
        }
        for (name, count) in self.counts.iter().filter(|(_, count)| *count > 0) {
            println!("  {name:<58} {count:>10}");
        }
        let zero = self.counts.iter().filter(|(_, count)| *count == 0).count();
        println!("  {:<58} {zero:>10}", "counts that are 0 (resets, timeouts, wrong answers, ...)");
        for note in &self.notes {
            println!("  {note}");
        }
        for broken in &self.broken {
            println!("  BROKEN: {broken}");
        }
        println!("  => {}", self.verdict());
    }

    fn verdict(&self) -> &'static str {
        match (self.skipped, self.is_broken()) {
            (_, true) => "broken",
            (true, false) => "skipped",
            (false, false) => "kept",
        }
    }

    /// For programs.
    pub fn json(&self, options: &Options) -> Value {
        let figures = self.figures.iter().map(|figure| {
            json!({
                "name": figure.name, "value": figure.value, "unit": figure.unit,
                "promised": figure.promised(), "verdict": figure.verdict(),
            })
        });
        let counts = self.counts.iter().map(|(name, count)| (name.clone(), json!(count)));
        json!({
            "scenario": self.scenario, "promise": self.promise, "seed": options.seed,
            "seconds": options.seconds, "setting": options.setting(), "verdict": self.verdict(), "broken": self.broken,
            "figures": figures.collect::<Vec<_>>(),
            "counts": counts.collect::<serde_json::Map<_, _>>(), "notes": self.notes,
            "curve": self.curve,
        })
    }
}
