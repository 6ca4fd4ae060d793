//! A report as one HTML page: which tables and drawings stand on it, in which words.

mod plots;

use cognate_stats::page;
use cognate_stats::page::dots::{Dot, Drawing};
use cognate_stats::page::frame::escaped;
use cognate_stats::page::{Cell, Emphasis, Head, Page, Sign, dots};
use indicatif::HumanCount;

use crate::pairs::{PairFile, PairsFigures};
use crate::ranking::{RankingFigures, RankingFile};
use crate::report::Report;
use crate::sts::{StsFigures, Subtask};
use crate::summary;
use crate::summary::Tables;
use crate::table::{Mark, Table};

/// Figures that fill a page.
pub trait Presented: Tables {
    const TITLE: &'static str;

    /// Adds the figures, whose tables are given, to a page.
    fn fill(&self, page: &mut Page, tables: &[Table], baseline: &str);
}

impl Presented for StsFigures {
    const TITLE: &'static str = "Semantic textual similarity";

    fn fill(&self, page: &mut Page, tables: &[Table], baseline: &str) {
        sts(page, self, tables, baseline);
    }
}

impl Presented for PairsFigures {
    const TITLE: &'static str = "Related and unrelated pairs";

    fn fill(&self, page: &mut Page, tables: &[Table], _: &str) {
        for (file, table) in self.files.iter().zip(tables) {
            pairs(page, file, table);
        }
    }
}

impl Presented for RankingFigures {
    const TITLE: &'static str = "Ranking";

    fn fill(&self, page: &mut Page, tables: &[Table], _: &str) {
        for (file, table) in self.files.iter().zip(tables) {
            ranking(page, file, table);
        }
        // The table of the combination stands after those of the files.
        for table in tables.iter().skip(self.files.len()) {
            page.section(&table.title);
            add(page, table, &[]);
            page.end_section();
        }
    }
}

/// The report as a page.
pub fn html<F: Presented>(report: &Report<F>) -> String {
    let mut page = begun(report);
    report.figures.fill(&mut page, &report.figures.tables(), &report.baseline);
    methods(&mut page, report);
    page.finish()
}

/// A page with the facts of a report.
fn begun<F: Presented>(report: &Report<F>) -> Page {
    let model = &report.model;
    let facts = [
        ("model", model.name.clone()),
        ("fingerprint", model.fingerprint.clone()),
        ("vectors", format!("{} × {}", HumanCount(model.words as u64), model.dims)),
        ("methods", report.methods.len().to_string()),
        ("baseline", report.baseline.clone()),
        ("seed", report.seed.to_string()),
    ];
    Page::new(&Head {
        kicker: "cognate eval",
        title: F::TITLE,
        subject: &model.name,
        facts: &facts,
    })
}

/// Adds the figures that methods are compared by, and what their whiskers are.
fn compared(page: &mut Page, figures: &[Dot], drawing: Drawing<'_>, whiskers: &str) {
    let cut = if dots::is_cut(figures) { " The axis does not begin at 0." } else { "" };
    let caption = format!("{}. {whiskers}; dashed: the baseline.{cut}", drawing.label);
    page.figure(&caption, &dots::dots(figures, drawing));
}

/// Adds a table with its best figures and significant differences marked, its rows in the order in
/// which these figures are drawn.
fn add(page: &mut Page, table: &Table, figures: &[Dot]) {
    let columns = table.columns.iter().map(|column| column.name.as_str()).collect();
    let figure = |name: &str| {
        figures.iter().find(|dot| dot.name == name).map_or(f64::NEG_INFINITY, |dot| dot.value)
    };
    let mut order: Vec<&(String, Vec<_>)> = table.rows.iter().collect();
    order.sort_by(|(a, _), (b, _)| figure(b).total_cmp(&figure(a)));
    let rows = order.into_iter().map(|(name, cells)| {
        let cells = cells.iter().enumerate().map(|(column, cell)| Cell {
            text: &cell.text,
            emphasis: if table.is_best(column, cell) { Emphasis::Best } else { Emphasis::None },
            sign: match cell.mark {
                Mark::None => Sign::None,
                Mark::Above => Sign::Plus,
                Mark::Below => Sign::Minus,
            },
        });
        (name.as_str(), cells.collect())
    });
    let notes = table.notes.iter().map(String::as_str).collect();
    page.table(&page::Table { stub: table.stub, columns, rows: rows.collect(), notes });
}

fn sts(page: &mut Page, figures: &StsFigures, tables: &[Table], baseline: &str) {
    let dots = figures.overall.results.iter().map(|result| Dot {
        name: result.mean.method.clone(),
        value: 100.0 * result.mean.pearson,
        interval: Some(result.mean.interval.map(|end| 100.0 * end)),
        baseline: result.wilcoxon.is_none(),
    });
    let dots: Vec<Dot> = dots.collect();
    let over = figures.overall.over;
    let mut groups: Vec<Vec<&Subtask>> = Vec::new();
    for year in &figures.years {
        let of_year = figures.subtasks.iter().filter(|of| of.year == Some(year.year));
        groups.push(of_year.collect());
    }
    let alone: Vec<&Subtask> = figures.subtasks.iter().filter(|of| of.year.is_none()).collect();
    groups.extend((!alone.is_empty()).then_some(alone));
    let Some((summary, details)) = tables.split_first() else { return };
    page.section(&summary.title);
    let what = format!("Mean Pearson × 100 over {over}");
    let caption =
        "Whiskers: approximate 95 % intervals, from the standard errors of the correlations";
    compared(page, &dots, Drawing { digits: 1, label: &what }, caption);
    add(page, summary, &dots);
    page.end_section();
    for (table, group) in details.iter().zip(groups) {
        page.section(&table.title);
        add(page, table, &dots);
        page.put("<div class=\"grid pairs\">");
        for subtask in group {
            scatters(page, subtask, baseline);
        }
        page.put("</div>");
        page.end_section();
    }
}

/// The best method and the baseline: what changes between them is what a reader looks for.
fn scatters(page: &mut Page, subtask: &Subtask, baseline: &str) {
    let best = subtask.results.iter().max_by(|a, b| a.pearson.total_cmp(&b.pearson));
    let base = subtask.results.iter().find(|result| result.method == baseline);
    page.put("<div class=\"pair\">");
    let same = best.map(|best| &best.method) == base.map(|base| &base.method);
    for result in best.into_iter().chain(base.filter(|_| !same)) {
        let (name, r) = (summary::short_name(subtask), 100.0 * result.pearson);
        let caption = format!("{name}: {}, r\u{a0}=\u{a0}{r:.1}", result.method);
        let class = if result.method == baseline { "c1" } else { "c0" };
        page.figure(&caption, &plots::scatter(subtask, result, class));
    }
    page.put("</div>");
}

fn pairs(page: &mut Page, file: &PairFile, table: &Table) {
    page.section(&table.title);
    let dots = file.results.iter().map(|result| Dot {
        name: result.method.clone(),
        value: result.roc_auc,
        interval: Some(result.roc_auc_interval),
        baseline: result.sign_test.is_none(),
    });
    let dots: Vec<Dot> = dots.collect();
    let drawing = Drawing { digits: 3, label: "Area under the ROC curve" };
    compared(page, &dots, drawing, "Whiskers: 95 % intervals after DeLong");
    add(page, table, &dots);
    page.put("<h3>Curves</h3>");
    let coloured = plots::coloured(file).into_iter().filter(|(_, class)| *class != "rest");
    let names = coloured.map(|(place, class)| (class, file.results[place].method.as_str()));
    let others = (file.results.len() > 5).then_some(("rest", "others"));
    page.legend(&names.chain(others).collect::<Vec<_>>());
    page.put("<div class=\"grid two\">");
    page.figure("ROC", &plots::roc_curves(file));
    page.figure("Precision and recall", &plots::precision_recall_curves(file));
    page.put("</div><h3>Scores</h3>");
    page.legend(&[("c0", "related"), ("c1", "unrelated"), ("line", "threshold")]);
    page.put("<div class=\"grid\">");
    for result in &file.results {
        let js = result.js_divergence;
        let caption = format!("{}, divergence {js:.4}", result.method);
        page.figure(&caption, &plots::histograms(file, result));
    }
    page.put("</div>");
    page.end_section();
}

fn ranking(page: &mut Page, file: &RankingFile, table: &Table) {
    page.section(&table.title);
    let dots = file.results.iter().map(|result| Dot {
        name: result.method.clone(),
        value: result.map,
        interval: result.map_interval,
        baseline: result.p_values.is_none(),
    });
    let dots: Vec<Dot> = dots.collect();
    let drawing = Drawing { digits: 4, label: "Mean average precision" };
    compared(page, &dots, drawing, "Whiskers: 95 % BCa bootstrap intervals over queries");
    add(page, table, &dots);
    if let Some(base) = file.results.iter().find(|result| result.p_values.is_none()) {
        page.put("<h3>Query by query</h3><div class=\"grid\">");
        for result in file.results.iter().filter(|result| result.p_values.is_some()) {
            let drawn = plots::by_query(&result.method, &result.by_query, &base.by_query);
            page.figure(&format!("{} against {}", result.method, base.method), &drawn);
        }
        page.put("</div>");
    }
    page.end_section();
}

fn methods<F>(page: &mut Page, report: &Report<F>) {
    page.section("Methods");
    page.put("<dl class=\"methods\">");
    for method in &report.methods {
        let measure = method.measure.map(|measure| format!(" · {measure}"));
        let (name, summary) = (escaped(&method.name), escaped(&method.summary));
        let measure = measure.unwrap_or_default();
        page.put(format!("<dt>{name}<small>{measure}</small></dt><dd>{summary}</dd>"));
    }
    for left_out in &report.unavailable {
        let (name, reason) = (escaped(&left_out.method), escaped(&left_out.reason));
        page.put(format!("<dt>{name}<small> · not measured</small></dt><dd>{reason}</dd>"));
    }
    page.put("</dl>");
    page.note(
        "In the tables the best figure of a column is set bold; + and − say that a method is \
         significantly (5 %) above or below the baseline. A text without a known word is unscored: \
         its pair counts as 0, as a candidate it ranks last; none is dropped.",
    );
    page.end_section();
}
