//! A report as one HTML page: its tables, drawings and captions.

use cognate_stats::classification::{precision_recall, roc};
use cognate_stats::distribution::{equal_edges, histogram};
use cognate_stats::page;
use cognate_stats::page::dots::{Dot, Drawing};
use cognate_stats::page::frame::{Axis, Frame, MIDDLE, SMALL, WIDE, escaped};
use cognate_stats::page::{Cell, Emphasis, Head, Page, Sign, dots};
use indicatif::HumanCount;

use crate::pairs::{PairFile, PairResult, PairsFigures};
use crate::ranking::{RankingFigures, RankingFile};
use crate::report::Report;
use crate::sts::{StsFigures, Subtask, SubtaskResult};
use crate::summary;
use crate::summary::Tables;
use crate::table::{Mark, Table};

/// Figures that can be shown on a page.
pub trait Presented: Tables {
    const TITLE: &'static str;

    /// Adds the figures, given their tables, to a page.
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
        // The combination's table follows those of the files.
        for table in tables.iter().skip(self.files.len()) {
            page.section(&table.title);
            add(page, table, &[]);
            page.end_section();
        }
    }
}

pub fn html<F: Presented>(report: &Report<F>) -> String {
    let mut page = begun(report);
    report.figures.fill(&mut page, &report.figures.tables(), &report.baseline);
    methods(&mut page, report);
    page.finish()
}

/// A page that begins with the facts of a report.
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

/// Adds a dot plot that compares methods, with a note about its whiskers.
fn compared(page: &mut Page, figures: &[Dot], drawing: Drawing<'_>, whiskers: &str) {
    let cut = if dots::is_cut(figures) { " The axis does not begin at 0." } else { "" };
    let caption = format!("{}. {whiskers}; dashed: the baseline.{cut}", drawing.label);
    page.figure(&caption, &dots::dots(figures, drawing));
}

/// Adds a table with its best figures and significant differences marked; rows are in the order of
/// the dot plot.
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

/// Adds scatter plots of the best method and the baseline, so that readers can compare them.
fn scatters(page: &mut Page, subtask: &Subtask, baseline: &str) {
    let best = subtask.results.iter().max_by(|a, b| a.pearson.total_cmp(&b.pearson));
    let base = subtask.results.iter().find(|result| result.method == baseline);
    page.put("<div class=\"pair\">");
    let same = best.map(|best| &best.method) == base.map(|base| &base.method);
    for result in best.into_iter().chain(base.filter(|_| !same)) {
        let (name, r) = (summary::short_name(subtask), 100.0 * result.pearson);
        let caption = format!("{name}: {}, r\u{a0}=\u{a0}{r:.1}", result.method);
        let class = if result.method == baseline { "c1" } else { "c0" };
        page.figure(&caption, &scatter(subtask, result, class));
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
    let coloured = coloured(file).into_iter().filter(|(_, class)| *class != "rest");
    let names = coloured.map(|(place, class)| (class, file.results[place].method.as_str()));
    let others = (file.results.len() > 5).then_some(("rest", "others"));
    page.legend(&names.chain(others).collect::<Vec<_>>());
    page.put("<div class=\"grid two\">");
    page.figure("ROC", &roc_curves(file));
    page.figure("Precision and recall", &precision_recall_curves(file));
    page.put("</div><h3>Scores</h3>");
    page.legend(&[("c0", "related"), ("c1", "unrelated"), ("line", "threshold")]);
    page.put("<div class=\"grid\">");
    for result in &file.results {
        let js = result.js_divergence;
        let caption = format!("{}, divergence {js:.4}", result.method);
        page.figure(&caption, &histograms(file, result));
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
            let drawn = by_query(&result.method, &result.by_query, &base.by_query);
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

/// Maximum points of a curve or scatter plot; more could not be distinguished.
const POINTS: usize = 800;
/// Bins of a drawn histogram; the divergence uses bins of its own.
const BINS: usize = 50;

/// A scatter plot of scores against gold scores.
fn scatter(subtask: &Subtask, result: &SubtaskResult, class: &str) -> String {
    let x = Axis::over(subtask.gold.iter().copied(), "gold score");
    let y = Axis::over(result.scores.iter().copied(), "score");
    let what = format!("Scores of {} against gold scores of {}", result.method, subtask.name);
    let mut frame = Frame::new(SMALL, x, y, &what);
    let every = subtask.gold.len().div_ceil(POINTS).max(1);
    let points = subtask.gold.iter().copied().zip(result.scores.iter().copied());
    frame.dots(class, points.step_by(every));
    frame.finish()
}

/// Histograms of the scores of related and of unrelated pairs, with the threshold.
fn histograms(file: &PairFile, result: &PairResult) -> String {
    let mut x = Axis::over(result.scores.iter().copied(), "score");
    x.low = x.low.min(result.threshold);
    x.high = x.high.max(result.threshold);
    let edges = equal_edges(x.low, x.high, BINS);
    let shares = |wanted: bool| -> Vec<f64> {
        let pairs = file.labels.iter().zip(&result.scores);
        let numbers: Vec<f64> =
            pairs.filter(|(label, _)| **label == wanted).map(|(_, score)| *score).collect();
        let counts = histogram(&numbers, &edges).unwrap_or_default();
        counts.into_iter().map(|count| 100.0 * count as f64 / numbers.len().max(1) as f64).collect()
    };
    let (related, unrelated) = (shares(true), shares(false));
    let highest = related.iter().chain(&unrelated).copied().fold(0.1, f64::max);
    let y = Axis { low: 0.0, high: 1.05 * highest, label: "% of pairs" };
    let what = format!("Scores of {} for related and unrelated pairs", result.method);
    let mut frame = Frame::new(MIDDLE, x, y, &what);
    frame.steps("c1", &edges, &unrelated);
    frame.steps("c0", &edges, &related);
    frame.mark("threshold", result.threshold);
    frame.finish()
}

/// The indices of the coloured results (the baseline and the best other method) with their CSS
/// classes. All others are grey, because a dozen colours cannot be distinguished.
fn coloured(file: &PairFile) -> Vec<(usize, &'static str)> {
    let mut order: Vec<usize> = (0..file.results.len()).collect();
    order.sort_by(|&a, &b| file.results[b].roc_auc.total_cmp(&file.results[a].roc_auc));
    let base = order.iter().position(|&place| file.results[place].sign_test.is_none());
    let baseline = base.map(|place| order.remove(place));
    let mut colours = ["c0", "c2", "c3", "c4"].into_iter();
    let best = order.iter().map(|&place| (place, colours.next().unwrap_or("rest")));
    baseline.map(|place| (place, "c1")).into_iter().chain(best).collect()
}

fn roc_curves(file: &PairFile) -> String {
    let x = Axis::share("unrelated pairs accepted");
    let y = Axis::share("related pairs accepted");
    let mut frame = Frame::new(WIDE, x, y, &format!("ROC curves on {}", file.name));
    frame.curve("chance", [(0.0, 0.0), (1.0, 1.0)].into_iter());
    // Coloured curves are drawn last, on top of the others.
    for (place, class) in coloured(file).into_iter().rev() {
        let points = roc(&file.labels, &file.results[place].scores, 120).unwrap_or_default();
        let points = points.iter().map(|at| (at.false_positive_rate, at.true_positive_rate));
        frame.curve(class, points);
    }
    frame.finish()
}

/// Precision-recall curves of all methods.
fn precision_recall_curves(file: &PairFile) -> String {
    let (x, y) = (Axis::share("recall"), Axis::share("precision"));
    let mut frame = Frame::new(WIDE, x, y, &format!("Precision-recall curves on {}", file.name));
    for (place, class) in coloured(file).into_iter().rev() {
        let scores = &file.results[place].scores;
        let points = precision_recall(&file.labels, scores, 120).unwrap_or_default();
        frame.curve(class, points.iter().map(|at| (at.recall, at.precision)));
    }
    frame.finish()
}

/// A drawing of each query's difference in average precision from the baseline, in falling order.
fn by_query(method: &str, one: &[f64], baseline: &[f64]) -> String {
    let mut gains: Vec<f64> = one.iter().zip(baseline).map(|(one, other)| one - other).collect();
    gains.sort_unstable_by(|a, b| b.total_cmp(a));
    let x = Axis { low: 0.0, high: gains.len().max(1) as f64, label: "queries" };
    let y = Axis::over(gains.iter().copied().chain([0.0]), "gain in average precision");
    let what = format!("Gain of {method} over the baseline by query");
    let mut frame = Frame::new(MIDDLE, x, y, &what);
    let zero = frame.up(0.0);
    for (place, &gain) in gains.iter().enumerate() {
        let at = frame.across(place as f64 + 0.5);
        let class = if gain >= 0.0 { "stick c0" } else { "stick c1" };
        let to = frame.up(gain);
        frame.line(class, [at, zero], [at, to]);
    }
    frame.finish()
}
