//! The recorded figures as one page of tables and small plots.

use cognate_stats::page::frame::{Axis, Frame};
use cognate_stats::page::table::{Better, Cell, Column, Table};
use cognate_stats::page::{Head, Page};
use serde_json::{Map, Value};

const SIZE: (f64, f64) = (330.0, 250.0);
const CLASSES: [&str; 4] = ["c0", "c1", "c2", "c3"];

/// The page.
pub fn html(parts: &Map<String, Value>) -> String {
    let facts = [("measured on", "STS 2012 to 2015, avg-cos, Pearson × 100".to_owned())];
    let mut page = Page::new(&Head {
        kicker: "cargo bench --bench training",
        title: "Word vectors that are made for being averaged",
        subject: "training",
        facts: &facts,
    });
    if let Some(sets) = parts.get("sets") {
        by_set(&mut page, sets);
    }
    if let Some(subjects) = parts.get("subjects") {
        by_epochs(&mut page, subjects);
    }
    if let Some(analyses) = parts.get("analyses").and_then(Value::as_array) {
        page.section("Settings of Siamese CBOW");
        page.put("<div class=\"grid\">");
        for panel in analyses {
            let points = points(&panel["points"]);
            let name = panel["panel"].as_str().unwrap_or_default();
            let label = match name {
                "random others" => "random others",
                "dimensions" => "dimensions",
                _ => "epochs",
            };
            page.figure(name, &curves(&[points], label));
        }
        page.put("</div>");
    }
    page.finish()
}

fn by_set(page: &mut Page, sets: &Value) {
    page.section("Sets");
    let contestants = sets["contestants"].as_array().cloned().unwrap_or_default();
    let name = |of: &Value| of["name"].as_str().unwrap_or_default().to_owned();
    let rows = sets["sets"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| {
            let figures = row["figures"].as_array().into_iter().flatten();
            let shown = figures.map(|of| {
                let number = |at: usize| of[at].as_f64().unwrap_or(0.0);
                Cell::plain(format!("{:.1} / {:.1}", number(0), number(1)))
            });
            (row["set"].as_str().unwrap_or_default().to_owned(), shown.collect())
        })
        .collect();
    let notes: Vec<String> = sets["wilcoxon"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|test| {
            format!(
                "Siamese CBOW is above {} on {} of {} yearly sets, Wilcoxon's p = {:.1e}.",
                test["against"].as_str().unwrap_or_default(),
                test["wins"],
                test["of"],
                test["p"].as_f64().unwrap_or(1.0)
            )
        })
        .collect();
    let columns = contestants.iter().map(|of| Column::new(name(of), Better::Neither)).collect();
    page.table(&Table { stub: "Pearson / Spearman", columns, rows, notes, ..Table::default() });
}

fn by_epochs(page: &mut Page, subjects: &Value) {
    page.section("Learning curves");
    let all: Vec<&Value> = subjects["curves"].as_array().into_iter().flatten().collect();
    let learners: Vec<(&str, &str)> = all
        .iter()
        .take(4)
        .zip(CLASSES)
        .filter_map(|(of, class)| Some((class, of["learner"].as_str()?)))
        .collect();
    page.legend(&learners);
    page.put("<div class=\"grid\">");
    for of_text in all.chunks(4) {
        let drawn: Vec<Vec<(f64, f64)>> = of_text.iter().map(|of| points(&of["points"])).collect();
        page.figure(of_text[0]["text"].as_str().unwrap_or_default(), &curves(&drawn, "epochs"));
    }
    page.put("</div>");
}

fn points(list: &Value) -> Vec<(f64, f64)> {
    let number = |of: &Value| of.as_f64().unwrap_or(0.0);
    list.as_array().into_iter().flatten().map(|of| (number(&of[0]), number(&of[1]))).collect()
}

fn curves(all: &[Vec<(f64, f64)>], label: &'static str) -> String {
    let flat = || all.iter().flatten();
    let x = Axis::over(flat().map(|(x, _)| *x).chain([0.0]), label);
    let y = Axis::over(flat().map(|(_, y)| *y), "mean Pearson × 100");
    let mut frame = Frame::new(SIZE, x, y, label);
    for (points, class) in all.iter().zip(CLASSES) {
        frame.curve(class, points.iter().copied());
        frame.dots(class, points.iter().copied());
    }
    frame.finish()
}
