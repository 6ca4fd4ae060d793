//! What a chart is made of: panels, lines, points; kept as JSON between measuring and drawing.

use serde::{Deserialize, Serialize};

/// Everything that was measured.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Chart {
    /// In the order they are drawn.
    pub panels: Vec<Panel>,
}

/// How one cost depends on one size.
#[derive(Debug, Serialize, Deserialize)]
pub struct Panel {
    /// What this panel is called on the command line and in the record.
    pub name: String,
    /// What stands above it.
    pub title: String,
    /// The size, along the bottom.
    pub x: String,
    /// The cost, with its unit.
    pub y: String,
    /// The one-minute load of the machine when it was begun; more than 1 means company.
    pub load: f64,
    /// One a contestant.
    pub lines: Vec<Line>,
}

/// One contestant.
#[derive(Debug, Serialize, Deserialize)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// (size, cost), by growing size.
    pub points: Vec<(f64, f64)>,
}

impl Panel {
    /// A panel without lines.
    pub fn new(name: &str, title: &str, x: &str, y: &str) -> Self {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
        let [name, title, x, y] = [name, title, x, y].map(str::to_owned);
        Self { name, title, x, y, load, lines: Vec::new() }
    }

    /// Adds a line.
    pub fn line(mut self, name: &str, points: Vec<(f64, f64)>) -> Self {
        self.lines.push(Line { name: name.to_owned(), points });
        self
    }

    /// The figures as a table, a size a row.
    pub fn print(&self) {
        println!("\n{}: {} (load {:.1})", self.title, self.y, self.load);
        print!("  {:>20}", self.x);
        for line in &self.lines {
            print!(" {:>24}", line.name);
        }
        println!();
        let sizes = self.lines.first().map_or(&[][..], |line| &line.points);
        for (row, (size, _)) in sizes.iter().enumerate() {
            print!("  {size:>20}");
            for line in &self.lines {
                print!(" {:>24.1}", line.points.get(row).map_or(f64::NAN, |point| point.1));
            }
            println!();
        }
    }
}
