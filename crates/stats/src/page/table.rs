//! A table of figures with the best of each column marked, for a terminal and for a page. Which
//! measures it shows is not known here.

use std::fmt;
use std::fmt::Write;

use crate::page::Page;
use crate::page::frame::escaped;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    pub title: String,
    pub stub: &'static str,
    pub columns: Vec<Column>,
    pub rows: Vec<(String, Vec<Cell>)>,
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    pub name: String,
    pub better: Better,
}

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
    pub mark: Mark,
}

/// Whether a figure is significantly above or below the baseline, or chosen, which a page shows as
/// the best of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Above,
    Below,
    Chosen,
    None,
}

impl Mark {
    pub fn from_difference(significant: bool, difference: f64) -> Self {
        match (significant, difference > 0.0) {
            (true, true) => Self::Above,
            (true, false) => Self::Below,
            (false, _) => Self::None,
        }
    }

    fn sign(self) -> &'static str {
        match self {
            Self::Above => "+",
            Self::Below => "−",
            Self::Chosen | Self::None => "",
        }
    }
}

impl Column {
    pub fn new(name: impl Into<String>, better: Better) -> Self {
        Self { name: name.into(), better }
    }
}

impl Cell {
    /// Text that is left out when the best figure of its column is looked for.
    pub fn plain(text: impl Into<String>) -> Self {
        Self { value: f64::NEG_INFINITY, text: text.into(), mark: Mark::None }
    }

    /// A share in three digits.
    pub fn share(value: f64, mark: Mark) -> Self {
        Self { value, text: format!("{value:.3}"), mark }
    }

    /// A share in four digits.
    pub fn fine(value: f64, mark: Mark) -> Self {
        Self { value, text: format!("{value:.4}"), mark }
    }

    /// Two shares in per cent, compared by the first.
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
    fn is_best(&self, column: usize, cell: &Cell) -> bool {
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
                format!("{}{:1}{best}", cell.text, cell.mark.sign())
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

impl Page {
    pub fn table(&mut self, table: &Table) {
        let label = escaped(table.stub);
        let _ = write!(
            self.out,
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Figures by {label}\">\
             <table><thead><tr><th scope=\"col\">{label}</th>"
        );
        for column in &table.columns {
            let _ = write!(self.out, "<th scope=\"col\">{}</th>", escaped(&column.name));
        }
        self.put("</tr></thead><tbody>");
        for (name, cells) in &table.rows {
            let _ = write!(self.out, "<tr><th scope=\"row\">{}</th>", escaped(name));
            for (column, cell) in cells.iter().enumerate() {
                let best = cell.mark == Mark::Chosen || table.is_best(column, cell);
                let class = if best { " class=\"best\"" } else { "" };
                let sign = match cell.mark {
                    Mark::Above => "<sup class=\"up\">+</sup>",
                    Mark::Below => "<sup class=\"down\">−</sup>",
                    Mark::Chosen | Mark::None => "",
                };
                let _ = write!(self.out, "<td{class}>{}{sign}</td>", escaped(&cell.text));
            }
            self.put("</tr>");
        }
        self.put("</tbody></table></div>");
        table.notes.iter().for_each(|note| self.note(note));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_stand_below_each_other_and_the_best_is_marked() {
        let row = |name: &str, r, error, mark| {
            (name.to_owned(), vec![Cell::both(r, r, mark), Cell::share(error, Mark::None)])
        };
        let table = Table {
            title: "Quality".to_owned(),
            stub: "method",
            columns: vec![Column::new("r", Better::Higher), Column::new("error", Better::Lower)],
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
