//! The HTML report on events: the table, the times and characteristic words of labelled and of the
//! largest found events, and figures by setting.

use std::fmt::Write;

use cognate_files::instant;
use cognate_stats::page::frame::escaped;
use cognate_stats::page::table::{Better, Cell, Column, Mark, Table};
use cognate_stats::page::{Head, Page};

use crate::events::courses::Course;
use crate::events::{EventsReport, EventsResult, SETTINGS, file_name, worth};

/// Bars of a course, and the height of the highest.
const BARS: usize = 96;
const HEIGHT: f64 = 20.0;
const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;

pub fn html(report: &EventsReport) -> String {
    let facts = [
        ("stream", file_name(&report.file).to_owned()),
        ("chosen on", file_name(&report.chosen_on).to_owned()),
        ("texts", report.texts.to_string()),
        ("fingerprint", report.fingerprint.clone()),
    ];
    let mut page = Page::new(&Head {
        kicker: "cognate eval events",
        title: "Events in a stream",
        subject: file_name(&report.file),
        facts: &facts,
    });
    let mut table = report.table();
    page.section(&table.title);
    // The figures before the settings, so that a narrow screen shows some.
    table.columns.rotate_left(SETTINGS);
    table.rows.iter_mut().for_each(|(_, cells)| cells.rotate_left(SETTINGS));
    page.table(&table);
    courses(&mut page, report);
    page.section("Settings tried");
    page.note(
        "The mean of F1, B³ F, AMI and ARI on the stream that settings were chosen on, in hundredths, by \
         threshold (rows) and votes (columns).",
    );
    for result in &report.results {
        settings(&mut page, result);
    }
    page.finish()
}

/// Adds a table of a contender's settings: a row for each threshold, a column for each number of votes,
/// for the chosen centre.
fn settings(page: &mut Page, result: &EventsResult) {
    let EventsResult { name, rule, grid, .. } = result;
    page.put(format!("<h3>{}</h3>", escaped(name)));
    let of_centre = |centre: f32| grid.iter().filter(move |(tried, _)| tried.centre == centre);
    let mut votes: Vec<usize> = of_centre(rule.centre).map(|(tried, _)| tried.votes).collect();
    votes.sort_unstable();
    votes.dedup();
    let mut thresholds: Vec<f32> =
        of_centre(rule.centre).map(|(tried, _)| tried.threshold).collect();
    thresholds.sort_by(f32::total_cmp);
    thresholds.dedup();
    let shown = |figure: f64| format!("{:.1}", 100.0 * figure);
    let rows = thresholds.iter().map(|&threshold| {
        let cells = votes.iter().map(|&votes| {
            let mut of = of_centre(rule.centre);
            let tried = of.find(|(tried, _)| (tried.threshold, tried.votes) == (threshold, votes));
            let chosen = (threshold, votes) == (rule.threshold, rule.votes);
            let text = tried.map_or_else(String::new, |(_, figures)| shown(worth(figures)));
            Cell { mark: if chosen { Mark::Chosen } else { Mark::None }, ..Cell::plain(text) }
        });
        (format!("{threshold:.2}"), cells.collect())
    });
    let rows = rows.collect();
    let columns = votes.iter().map(|votes| Column::new(votes.to_string(), Better::Neither));
    let mut centres: Vec<f32> = grid.iter().map(|(tried, _)| tried.centre).collect();
    centres.sort_by(f32::total_cmp);
    centres.dedup();
    let best = centres.iter().filter(|&&centre| centre != rule.centre).filter_map(|&centre| {
        let of = of_centre(centre).max_by(|one, other| worth(&one.1).total_cmp(&worth(&other.1)));
        let (tried, figures) = of?;
        let (threshold, votes) = (tried.threshold, tried.votes);
        let mean = shown(worth(figures));
        Some(format!(
            "{mean} with a centre of {centre:.1} (threshold {threshold:.2}, votes {votes})"
        ))
    });
    let best: Vec<String> = best.collect();
    let mut notes = vec![format!(
        "Chosen: threshold {:.2}, votes {}, centre {:.1}.",
        rule.threshold, rule.votes, rule.centre
    )];
    if !best.is_empty() {
        notes.push(format!("The best of other centres: {}.", best.join(", ")));
    }
    let columns = columns.collect();
    page.table(&Table { stub: "threshold", columns, rows, notes, ..Table::default() });
}

fn courses(page: &mut Page, report: &EventsReport) {
    let span = Span::new(report);
    let width = (span.to - span.from).max(1) as f64 / BARS as f64;
    let bar = match width / HOUR_MS as f64 {
        hours if hours >= 48.0 => format!("{:.1} days", hours / 24.0),
        hours if hours >= 2.0 => format!("{hours:.0} h"),
        hours => format!("{:.0} min", 60.0 * hours),
    };
    let shifted = match report.interleaved {
        true => " All labelled events are shifted to begin at the same moment, the first day.",
        false => "",
    };
    let parts = [
        (false, "c0", "Labelled events", report.gold_events, "with words that tell each apart"),
        (true, "c1", "Events found", report.found_events, "by the contender that agrees best"),
    ];
    for (found, class, title, all, told) in parts {
        let shown: Vec<&Course> =
            report.courses.iter().filter(|course| course.found == found).collect();
        page.section(title);
        page.note(&format!(
            "{}, {told}. A bar is {bar} long; the highest of each event is its own.{shifted}",
            match shown.len() == all {
                true => format!("All {all}"),
                false => format!("The largest {} of {all}", shown.len()),
            },
        ));
        page.put(format!("<div class=\"courses {class}\">"));
        shown.iter().for_each(|course| page.put(span.row(course)));
        page.put(format!(
            "<p class=\"when ends\"><span>{}</span><span>{}</span></p></div>",
            span.moment(span.from),
            span.moment(span.to)
        ));
    }
}

struct Span {
    from: i64,
    to: i64,
    shifted: bool,
}

impl Span {
    fn new(report: &EventsReport) -> Self {
        let times = || report.courses.iter().flat_map(|course| &course.times).copied();
        let from = times().min().unwrap_or(0);
        Self { from, to: times().max().unwrap_or(from), shifted: report.interleaved }
    }

    /// A moment in words, without the hour if the stream is long.
    fn moment(&self, time: i64) -> String {
        let written = instant::written(time);
        let (date, clock) = written.split_at(written.len().min(10));
        let date = match self.shifted {
            true => format!("day {}", time.div_euclid(DAY_MS) + 1),
            false => date.to_owned(),
        };
        match clock.get(1..6).filter(|_| self.to - self.from < 14 * DAY_MS) {
            Some(clock) => format!("{date} {clock}"),
            None => date,
        }
    }

    /// One event: its names, the bars of its texts, and when it was.
    fn row(&self, course: &Course) -> String {
        let Course { name, words, times, .. } = course;
        let first = times.first().copied().unwrap_or(0);
        let last = times.last().copied().unwrap_or(0);
        let mut when = self.moment(first);
        if self.moment(last) != when {
            let _ = write!(when, " to {}", self.moment(last));
        }
        let words = words.join(" · ");
        let (bold, small) = if course.found { (&words, name) } else { (name, &words) };
        format!(
            "<div class=\"course\"><div class=\"name\"><b>{}</b> <small>{}</small></div>{}\
             <p class=\"when\"><span>{when}</span><span>{} texts</span></p></div>",
            escaped(bold),
            escaped(small),
            self.bars(times),
            times.len()
        )
    }

    /// The times as bars: a drawing without text, so that it may be as narrow as a telephone.
    fn bars(&self, times: &[i64]) -> String {
        let mut bars = [0_u32; BARS];
        let span = (self.to - self.from).max(1) as f64;
        for &time in times {
            let at = (BARS as f64 * (time - self.from) as f64 / span) as usize;
            bars[at.min(BARS - 1)] += 1;
        }
        let most = f64::from(bars.iter().copied().max().unwrap_or(1).max(1));
        let mut out = format!(
            "<svg viewBox=\"0 0 {BARS} {HEIGHT}\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"
        );
        for (at, &count) in bars.iter().enumerate().filter(|&(_, &count)| count > 0) {
            // A single text remains visible beside hundreds.
            let height = HEIGHT * (0.15 + 0.85 * (f64::from(count) / most).sqrt());
            // Writing to a string cannot fail.
            let _ = write!(
                out,
                "<rect x=\"{at}\" y=\"{:.1}\" width=\"1\" height=\"{height:.1}\"/>",
                HEIGHT - height
            );
        }
        out + "</svg>"
    }
}
