//! The HTML report on events: the table, figures by threshold, and a timeline of the gold events
//! and of the largest events found.

use std::fmt::Write;

use cognate_stats::page;
use cognate_stats::page::frame::escaped;
use cognate_stats::page::{Cell, Emphasis, Head, Page, Sign};

use crate::events::{EventsReport, Timeline, worth};

const BINS: usize = 96;
/// Width of the names, height of a row, and width of a bin.
const LEFT: f64 = 240.0;
const ROW: f64 = 22.0;
const STEP: f64 = 7.0;

pub fn html(report: &EventsReport) -> String {
    let facts = [
        ("stream", report.file.clone()),
        ("chosen on", report.chosen_on.clone()),
        ("texts", report.texts.to_string()),
        ("fingerprint", report.fingerprint.clone()),
    ];
    let mut page = Page::new(&Head {
        kicker: "cognate eval events",
        title: "Events in a stream",
        subject: &report.file,
        facts: &facts,
    });
    let table = report.table();
    page.section(&table.title);
    let columns = table.columns.iter().map(|column| column.name.as_str()).collect();
    let rows = table.rows.iter().map(|(name, cells)| {
        let cells = cells.iter().enumerate().map(|(column, cell)| Cell {
            text: &cell.text,
            emphasis: if table.is_best(column, cell) { Emphasis::Best } else { Emphasis::None },
            sign: Sign::None,
        });
        (name.as_str(), cells.collect())
    });
    let notes = table.notes.iter().map(String::as_str).collect();
    page.table(&page::Table { stub: table.stub, columns, rows: rows.collect(), notes });
    page.end_section();
    page.section("Timeline");
    let caption = "Texts by hour since the stream began, darker for more: labelled events above, the \
                   largest found by the best contender below, each named after the event that most of \
                   its texts are of";
    page.figure(caption, &timeline(&report.courses));
    page.end_section();
    page.section("Settings tried");
    for result in &report.results {
        let mut grid: Vec<_> = result.grid.iter().collect();
        grid.sort_by(|one, other| worth(&other.1).total_cmp(&worth(&one.1)));
        let best: Vec<String> = grid
            .iter()
            .take(5)
            .map(|(rule, figures)| {
                format!(
                    "threshold {:.2}, votes {}, centre {:.1}: {:.3}",
                    rule.threshold,
                    rule.votes,
                    rule.centre,
                    worth(figures)
                )
            })
            .collect();
        page.note(&format!("{}: {}", result.name, best.join("; ")));
    }
    page.note(
        "The figure is the mean of F1, B³ F, AMI and ARI on the stream settings were chosen on.",
    );
    page.end_section();
    page.finish()
}

/// The timeline as an SVG: one row of bins for each event.
fn timeline(courses: &[Timeline]) -> String {
    let end =
        courses.iter().flat_map(|course| &course.hours).fold(1.0_f64, |end, &hour| end.max(hour));
    let (width, height) = (LEFT + STEP * BINS as f64, ROW * (courses.len() as f64 + 1.0));
    let mut out = format!(
        "<svg viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"Timeline of events\">"
    );
    for (number, course) in courses.iter().enumerate() {
        let mut bins = [0_u32; BINS];
        for hour in &course.hours {
            // No hour is after the end, so the index is within the bins.
            let at = (hour / end * (BINS - 1) as f64) as usize;
            bins[at.min(BINS - 1)] += 1;
        }
        let most = f64::from(bins.iter().copied().max().unwrap_or(1).max(1));
        let top = ROW * number as f64;
        let class = if course.found { "c1" } else { "c0" };
        let name = format!("{} ({})", course.name, course.hours.len());
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "<text x=\"0\" y=\"{:.1}\" font-size=\"11\" fill=\"currentColor\">{}</text>",
            top + 0.7 * ROW,
            escaped(&name)
        );
        for (at, &count) in bins.iter().enumerate().filter(|&(_, &count)| count > 0) {
            let shade = 0.15 + 0.85 * (f64::from(count) / most).sqrt();
            let _ = write!(
                out,
                "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 fill=\"currentColor\" fill-opacity=\"{shade:.2}\"/>",
                LEFT + STEP * at as f64,
                top + 3.0,
                STEP - 0.5,
                ROW - 6.0
            );
        }
    }
    let foot = ROW * courses.len() as f64 + 0.7 * ROW;
    let _ = write!(
        out,
        "<text x=\"{LEFT}\" y=\"{foot:.1}\" font-size=\"11\" fill=\"currentColor\">0 h</text>\
         <text x=\"{width}\" y=\"{foot:.1}\" font-size=\"11\" fill=\"currentColor\" \
         text-anchor=\"end\">{end:.0} h</text></svg>"
    );
    out
}
