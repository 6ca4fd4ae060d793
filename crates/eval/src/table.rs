//! A table of figures, aligned for a terminal, with the best figure of each column marked. Which
//! measures it shows is not known here.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    pub title: String,
    /// Heading of the first column.
    pub stub: &'static str,
    pub columns: Vec<Column>,
    pub rows: Vec<(String, Vec<Cell>)>,
    /// Sentences below the table.
    pub notes: Vec<String>,
}

/// A column: its heading and which of its figures are better.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    pub better: Better,
}

/// Whether higher or lower figures are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    Higher,
    Lower,
    Neither,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The value for finding the best figure of the column.
    pub value: f64,
    pub text: String,
    /// Whether it differs significantly from the baseline.
    pub mark: Mark,
}

/// Whether a figure is significantly above or below the baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Above,
    Below,
    None,
}

impl Mark {
    pub fn of(significant: bool, difference: f64) -> Self {
        match (significant, difference > 0.0) {
            (true, true) => Self::Above,
            (true, false) => Self::Below,
            (false, _) => Self::None,
        }
    }

    pub fn sign(self) -> &'static str {
        match self {
            Self::Above => "+",
            Self::Below => "−",
            Self::None => "",
        }
    }
}

impl Cell {
    /// A cell with a share in three digits.
    pub fn share(value: f64, mark: Mark) -> Self {
        Self { value, text: format!("{value:.3}"), mark }
    }

    /// A cell with a share in four digits.
    pub fn fine(value: f64, mark: Mark) -> Self {
        Self { value, text: format!("{value:.4}"), mark }
    }

    /// A cell with two shares in per cent, compared by the first.
    pub fn both(first: f64, second: f64, mark: Mark) -> Self {
        let text = format!("{:.1} / {:.1}", 100.0 * first, 100.0 * second);
        Self { value: first, text, mark }
    }

    pub fn count(count: usize) -> Self {
        Self { value: count as f64, text: count.to_string(), mark: Mark::None }
    }

    pub fn chance(p: Option<f64>) -> Self {
        let text = match p {
            None => String::new(),
            Some(p) if p < 0.001 => "<0.001".to_owned(),
            Some(p) => format!("{p:.3}"),
        };
        Self { value: p.unwrap_or(1.0), text, mark: Mark::None }
    }
}

impl Table {
    /// Whether a cell shows the best figure of its column, compared as displayed.
    pub fn is_best(&self, column: usize, cell: &Cell) -> bool {
        let texts = self.rows.iter().filter_map(|(_, cells)| cells.get(column));
        let best = match self.columns.get(column).map(|column| column.better) {
            Some(Better::Higher) => texts.max_by(|a, b| a.value.total_cmp(&b.value)),
            Some(Better::Lower) => texts.min_by(|a, b| a.value.total_cmp(&b.value)),
            _ => None,
        };
        self.rows.len() > 1 && best.is_some_and(|best| best.text == cell.text)
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut grid = vec![vec![self.stub.to_owned()]];
        grid[0].extend(self.columns.iter().map(|column| format!("{}  ", column.name)));
        for (name, cells) in &self.rows {
            let shown = cells.iter().enumerate().map(|(column, cell)| {
                let best = if self.is_best(column, cell) { "*" } else { " " };
                let mark = if cell.mark == Mark::None { " " } else { cell.mark.sign() };
                format!("{}{mark}{best}", cell.text)
            });
            grid.push(std::iter::once(name.clone()).chain(shown).collect());
        }
        let width = |column: usize| {
            let cells = grid.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..=self.columns.len()).map(width).collect();
        writeln!(f, "{}", self.title)?;
        for row in &grid {
            let mut line = String::from("  ");
            for (column, cell) in row.iter().enumerate() {
                let width = widths.get(column).copied().unwrap_or(0);
                if column == 0 {
                    line.push_str(&format!("{cell:<width$}"));
                } else {
                    line.push_str(&format!("  {cell:>width$}"));
                }
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "  {note}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_and_the_best_is_marked() {
        let column = |name: &str, better| Column { name: name.to_owned(), better };
        let row = |name: &str, r, error, mark| {
            (name.to_owned(), vec![Cell::both(r, r, mark), Cell::share(error, Mark::None)])
        };
        let table = Table {
            title: "Quality".to_owned(),
            stub: "method",
            columns: vec![column("r", Better::Higher), column("error", Better::Lower)],
            rows: vec![
                row("plain", 0.5, 0.2, Mark::None),
                row("better", 0.61, 0.1, Mark::Above),
                row("as good", 0.6, 0.10004, Mark::Below),
            ],
            notes: vec!["A note.".to_owned()],
        };
        let expected = "Quality\n  \
                        method             r    error\n  \
                        plain    50.0 / 50.0    0.200\n  \
                        better   61.0 / 61.0+*  0.100 *\n  \
                        as good  60.0 / 60.0−   0.100 *\n  \
                        A note.\n";
        assert_eq!(table.to_string(), expected);
    }
}
