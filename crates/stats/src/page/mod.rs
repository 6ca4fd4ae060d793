//! A self-contained HTML page: style and drawings are embedded, nothing is fetched, there are no
//! scripts.
//!
//! What a page shows, and its wording, is decided by the callers: figures of an evaluation, the
//! course of a training run.

pub mod dots;
pub mod frame;
pub mod table;

use std::fmt::Write;

use crate::page::frame::escaped;

#[derive(Debug, Clone)]
pub struct Head<'h> {
    pub kicker: &'h str,
    pub title: &'h str,
    /// The subject, shown in the browser's tab next to the title.
    pub subject: &'h str,
    pub facts: &'h [(&'h str, String)],
}

#[derive(Debug)]
pub struct Page {
    out: String,
    open: bool,
}

impl Page {
    pub fn new(head: &Head<'_>) -> Self {
        let mut page = Self { out: String::new(), open: false };
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

    pub fn put(&mut self, html: impl AsRef<str>) {
        self.out.push_str(html.as_ref());
    }

    pub fn section(&mut self, title: &str) {
        let before = if std::mem::replace(&mut self.open, true) { "</section>" } else { "" };
        let _ = write!(self.out, "{before}<section><h2>{}</h2>", escaped(title));
    }

    pub fn figure(&mut self, caption: &str, drawing: &str) {
        let caption = escaped(caption);
        let _ = write!(self.out, "<figure>{drawing}<figcaption>{caption}</figcaption></figure>");
    }

    pub fn legend(&mut self, names: &[(&str, &str)]) {
        self.put("<p class=\"legend\">");
        for (class, name) in names {
            let name = escaped(name);
            let _ = write!(self.out, "<span><i class=\"{class}\"></i>{name}</span>");
        }
        self.put("</p>");
    }

    pub fn note(&mut self, note: &str) {
        let _ = write!(self.out, "<p class=\"note\">{}</p>", escaped(note));
    }

    pub fn finish(mut self) -> String {
        self.put(if self.open { "</section>" } else { "" });
        self.put("</main></body></html>\n");
        self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::table::{Better, Cell, Column, Mark, Table};

    #[test]
    fn whatever_is_shown_is_escaped_and_whatever_is_opened_is_closed() {
        let evil = "<&'\">";
        let head = Head { kicker: evil, title: evil, subject: evil, facts: &[(evil, evil.into())] };
        let mut page = Page::new(&head);
        page.section(evil);
        page.legend(&[("c0", evil)]);
        page.figure(evil, "<svg></svg>");
        let cell = |mark| Cell { mark, ..Cell::plain(evil) };
        let columns = vec![Column::new(evil, Better::Neither); 2];
        let rows = vec![(evil.to_owned(), vec![cell(Mark::Chosen), cell(Mark::Below)])];
        let (title, notes) = (evil.to_owned(), vec![evil.to_owned()]);
        page.table(&Table { title, stub: evil, columns, rows, notes });
        let html = page.finish();
        let body = html.split_once("</style>").unwrap().1;
        assert!(!html.contains("<&") && !body.contains("'") && !html.contains("<script"));
        assert!(html.contains("<td class=\"best\">&lt;&amp;&#39;&quot;&gt;</td><td>"));
        assert!(html.contains("<sup class=\"down\">−"));
        for closed in ["table", "tr", "td", "section", "figure", "p", "main", "html"] {
            let opened = html.matches(&format!("<{closed}>")).count();
            let more = html.matches(&format!("<{closed} ")).count();
            let ended = html.matches(&format!("</{closed}>")).count();
            assert_eq!(opened + more, ended, "{closed}");
        }
    }
}
