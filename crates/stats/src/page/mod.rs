//! A self-contained HTML page: style and drawings are embedded, nothing is fetched, there are no
//! scripts.
//!
//! What a page shows, and its wording, is decided by the callers: figures of an evaluation, the
//! course of a training run.

pub mod dots;
pub mod frame;

use std::fmt::Write;

use crate::page::frame::escaped;

#[derive(Debug, Clone)]
pub struct Head<'h> {
    /// The command that made the page.
    pub kicker: &'h str,
    pub title: &'h str,
    /// The subject, shown in the browser's tab next to the title.
    pub subject: &'h str,
    /// Short facts with their names.
    pub facts: &'h [(&'h str, String)],
}

#[derive(Debug)]
pub struct Page {
    out: String,
}

#[derive(Debug, Clone)]
pub struct Table<'t> {
    /// Heading of the first column.
    pub stub: &'t str,
    /// Headings of the other columns.
    pub columns: Vec<&'t str>,
    /// The rows, each with the text of its first column.
    pub rows: Vec<(&'t str, Vec<Cell<'t>>)>,
    pub notes: Vec<&'t str>,
}

#[derive(Debug, Clone, Copy)]
pub struct Cell<'t> {
    pub text: &'t str,
    /// How its text is emphasised.
    pub emphasis: Emphasis,
    /// The sign after the text.
    pub sign: Sign,
}

/// How the text of a cell is emphasised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emphasis {
    None,
    /// Bold, for the best figure of a column.
    Best,
}

/// The sign after the text of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    None,
    /// A plus in the colour of improvements.
    Plus,
    /// A minus in the colour of losses.
    Minus,
}

impl<'t> Cell<'t> {
    /// A cell without emphasis or sign.
    pub fn plain(text: &'t str) -> Self {
        Self { text, emphasis: Emphasis::None, sign: Sign::None }
    }
}

impl Page {
    pub fn new(head: &Head<'_>) -> Self {
        let mut page = Self { out: String::new() };
        let title = escaped(head.title);
        let _ = write!(
            page.out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title} · {}</title><style>{}</style></head><body><main>\
             <header><p class=\"kicker\">{}</p><h1>{title}</h1><dl class=\"facts\">",
            escaped(head.subject),
            include_str!("page.css"),
            escaped(head.kicker)
        );
        for (name, value) in head.facts {
            let (name, value) = (escaped(name), escaped(value));
            let _ = write!(page.out, "<div><dt>{name}</dt><dd>{value}</dd></div>");
        }
        page.put("</dl></header>");
        page
    }

    /// Adds HTML without escaping.
    pub fn put(&mut self, html: impl AsRef<str>) {
        self.out.push_str(html.as_ref());
    }

    /// Begins a section; [`end_section`](Self::end_section) ends it.
    pub fn section(&mut self, title: &str) {
        let _ = write!(self.out, "<section><h2>{}</h2>", escaped(title));
    }

    pub fn end_section(&mut self) {
        self.put("</section>");
    }

    pub fn figure(&mut self, caption: &str, drawing: &str) {
        let caption = escaped(caption);
        let _ = write!(self.out, "<figure>{drawing}<figcaption>{caption}</figcaption></figure>");
    }

    /// Adds a legend: names, each with the CSS class of its colour.
    pub fn legend(&mut self, names: &[(&str, &str)]) {
        self.put("<p class=\"legend\">");
        for (class, name) in names {
            let name = escaped(name);
            let _ = write!(self.out, "<span><i class=\"{class}\"></i>{name}</span>");
        }
        self.put("</p>");
    }

    /// Adds a note in small print.
    pub fn note(&mut self, note: &str) {
        let _ = write!(self.out, "<p class=\"note\">{}</p>", escaped(note));
    }

    /// Adds a table that scrolls if it is too wide.
    pub fn table(&mut self, table: &Table<'_>) {
        let label = escaped(table.stub);
        let _ = write!(
            self.out,
            "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"Figures by {label}\">\
             <table><thead><tr>"
        );
        for column in std::iter::once(&table.stub).chain(&table.columns) {
            let _ = write!(self.out, "<th scope=\"col\">{}</th>", escaped(column));
        }
        self.put("</tr></thead><tbody>");
        for (name, cells) in &table.rows {
            let _ = write!(self.out, "<tr><th scope=\"row\">{}</th>", escaped(name));
            for cell in cells {
                let class = match cell.emphasis {
                    Emphasis::None => "",
                    Emphasis::Best => " class=\"best\"",
                };
                let sign = match cell.sign {
                    Sign::None => "",
                    Sign::Plus => "<sup class=\"up\">+</sup>",
                    Sign::Minus => "<sup class=\"down\">−</sup>",
                };
                let _ = write!(self.out, "<td{class}>{}{sign}</td>", escaped(cell.text));
            }
            self.put("</tr>");
        }
        self.put("</tbody></table></div>");
        table.notes.iter().for_each(|note| self.note(note));
    }

    pub fn finish(mut self) -> String {
        self.put("</main></body></html>\n");
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_shown_is_escaped_and_whatever_is_opened_is_closed() {
        let evil = "<&'\">";
        let head = Head { kicker: evil, title: evil, subject: evil, facts: &[(evil, evil.into())] };
        let mut page = Page::new(&head);
        page.section(evil);
        page.legend(&[("c0", evil)]);
        page.figure(evil, "<svg></svg>");
        let best = Cell { emphasis: Emphasis::Best, sign: Sign::Minus, ..Cell::plain(evil) };
        let rows = vec![(evil, vec![Cell::plain(evil), best])];
        page.table(&Table { stub: evil, columns: vec![evil; 2], rows, notes: vec![evil] });
        page.end_section();
        let html = page.finish();
        let body = html.split_once("</style>").unwrap().1;
        assert!(!html.contains("<&") && !body.contains("'") && !html.contains("<script"));
        assert!(html.contains("<td class=\"best\">&lt;&amp;&#39;&quot;&gt;<sup class=\"down\">−"));
        for closed in ["table", "tr", "td", "section", "figure", "p", "main", "html"] {
            let opened = html.matches(&format!("<{closed}>")).count();
            let more = html.matches(&format!("<{closed} ")).count();
            let ended = html.matches(&format!("</{closed}>")).count();
            assert_eq!(opened + more, ended, "{closed}");
        }
    }
}
