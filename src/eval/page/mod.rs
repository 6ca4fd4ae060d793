//! A report as one HTML page that needs nothing beside it: style and drawings are in it, nothing is
//! fetched, no script runs.

mod frame;
mod plots;

use std::fmt::Write;

use crate::eval::page::frame::escaped;
use crate::eval::page::plots::Bar;
use crate::eval::pairs::PairFile;
use crate::eval::ranking::RankingFile;
use crate::eval::report::Figures;
use crate::eval::report::Report;
use crate::eval::sts::StsFigures;
use crate::eval::sts::Subtask;
use crate::eval::summary;
use crate::eval::table::Mark;
use crate::eval::table::Table;

/// The report as a page.
pub fn html(report: &Report) -> String {
    let title = match &report.figures {
        Figures::Sts(_) => "Semantic textual similarity",
        Figures::Pairs(_) => "Related and unrelated pairs",
        Figures::Ranking(_) => "Ranking",
    };
    let mut page = Page { out: String::new() };
    page.head(title, report);
    let tables = summary::tables(report);
    match &report.figures {
        Figures::Sts(figures) => page.sts(figures, &tables, &report.baseline),
        Figures::Pairs(figures) => {
            for (file, table) in figures.files.iter().zip(&tables) {
                page.pairs(file, table);
            }
        }
        Figures::Ranking(figures) => {
            for (file, table) in figures.files.iter().zip(&tables) {
                page.ranking(file, table);
            }
        }
    }
    page.methods(report);
    page.out.push_str("</main></body></html>\n");
    page.out
}

struct Page {
    out: String,
}

impl Page {
    fn put(&mut self, html: impl AsRef<str>) {
        self.out.push_str(html.as_ref());
    }

    fn head(&mut self, title: &str, report: &Report) {
        let model = &report.model;
        let facts = [
            ("model", model.name.clone()),
            ("fingerprint", model.fingerprint.clone()),
            ("vectors", format!("{} × {}", summary::grouped(model.words), model.dims)),
            ("methods", report.methods.len().to_string()),
            ("baseline", report.baseline.clone()),
            ("seed", report.seed.to_string()),
        ];
        let _ = write!(
            self.out,
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title} · {}</title><style>{}</style></head><body><main>\
             <header><p class=\"kicker\">cognate eval</p><h1>{title}</h1><dl class=\"facts\">",
            escaped(&model.name),
            include_str!("page.css")
        );
        for (name, value) in facts {
            let _ = write!(self.out, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(&value));
        }
        self.put("</dl></header>");
    }

    fn table(&mut self, table: &Table) {
        self.put("<div class=\"scroll\"><table><thead><tr>");
        let _ = write!(self.out, "<th scope=\"col\">{}</th>", escaped(table.stub));
        for column in &table.columns {
            let _ = write!(self.out, "<th scope=\"col\">{}</th>", escaped(&column.name));
        }
        self.put("</tr></thead><tbody>");
        for (name, cells) in &table.rows {
            let _ = write!(self.out, "<tr><th scope=\"row\">{}</th>", escaped(name));
            for (column, cell) in cells.iter().enumerate() {
                let best = if table.is_best(column, cell) { " class=\"best\"" } else { "" };
                let sign = match cell.mark {
                    Mark::None => String::new(),
                    Mark::Above => "<sup class=\"up\">+</sup>".to_owned(),
                    Mark::Below => "<sup class=\"down\">−</sup>".to_owned(),
                };
                let _ = write!(self.out, "<td{best}>{}{sign}</td>", escaped(&cell.text));
            }
            self.put("</tr>");
        }
        self.put("</tbody></table></div>");
        for note in &table.notes {
            let _ = write!(self.out, "<p class=\"note\">{}</p>", escaped(note));
        }
    }

    fn section(&mut self, title: &str) {
        let _ = write!(self.out, "<section><h2>{}</h2>", escaped(title));
    }

    fn figure(&mut self, caption: &str, drawing: &str) {
        let caption = escaped(caption);
        let _ = write!(self.out, "<figure>{drawing}<figcaption>{caption}</figcaption></figure>");
    }

    fn sts(&mut self, figures: &StsFigures, tables: &[Table], baseline: &str) {
        let bars = figures.overall.results.iter().map(|result| Bar {
            name: result.mean.method.clone(),
            value: result.mean.pearson,
            interval: Some(result.mean.interval),
            baseline: result.wilcoxon.is_none(),
        });
        let bars: Vec<Bar> = bars.collect();
        let over = figures.overall.over;
        let mut groups: Vec<Vec<&Subtask>> = Vec::new();
        for year in &figures.years {
            let of_year = figures.subtasks.iter().filter(|of| of.year == Some(year.year));
            groups.push(of_year.collect());
        }
        let alone: Vec<&Subtask> = figures.subtasks.iter().filter(|of| of.year.is_none()).collect();
        groups.extend((!alone.is_empty()).then_some(alone));
        let Some((summary, details)) = tables.split_first() else { return };
        self.section(&summary.title);
        let what = format!("Mean Pearson × 100 over {over}");
        let drawn = plots::bars(&bars, 1, 100.0, &what);
        let caption = format!(
            "{what}. Whiskers: approximate 95 % intervals, from the standard errors of the \
             correlations; dashed: the baseline."
        );
        self.figure(&caption, &drawn);
        self.table(summary);
        self.put("</section>");
        for (table, group) in details.iter().zip(groups) {
            self.section(&table.title);
            self.table(table);
            self.put("<div class=\"grid pairs\">");
            for subtask in group {
                self.scatters(subtask, baseline);
            }
            self.put("</div></section>");
        }
    }

    /// The best method and the baseline: what changes between them is what a reader looks for.
    fn scatters(&mut self, subtask: &Subtask, baseline: &str) {
        let best = subtask.results.iter().max_by(|a, b| a.pearson.total_cmp(&b.pearson));
        let base = subtask.results.iter().find(|result| result.method == baseline);
        self.put("<div class=\"pair\">");
        let same = best.map(|best| &best.method) == base.map(|base| &base.method);
        for result in best.into_iter().chain(base.filter(|_| !same)) {
            let (name, r) = (summary::short_name(subtask), 100.0 * result.pearson);
            let caption = format!("{name}: {}, r\u{a0}=\u{a0}{r:.1}", result.method);
            let class = if result.method == baseline { "c1" } else { "c0" };
            self.figure(&caption, &plots::scatter(subtask, result, class));
        }
        self.put("</div>");
    }

    fn pairs(&mut self, file: &PairFile, table: &Table) {
        self.section(&table.title);
        let bars = file.results.iter().map(|result| Bar {
            name: result.method.clone(),
            value: result.roc_auc,
            interval: Some(result.roc_auc_interval),
            baseline: result.sign_test.is_none(),
        });
        let drawn = plots::bars(&bars.collect::<Vec<_>>(), 3, 1.0, "Area under the ROC curve");
        let caption = "Area under the ROC curve. Whiskers: 95 % intervals after DeLong; dashed: the \
                       baseline.";
        self.figure(caption, &drawn);
        self.table(table);
        self.put("<h3>Curves</h3><p class=\"legend\">");
        for (place, class) in plots::coloured(file).into_iter().filter(|(_, of)| *of != "rest") {
            let name = escaped(&file.results[place].method);
            let _ = write!(self.out, "<span><i class=\"{class}\"></i>{name}</span>");
        }
        let more = file.results.len() > 5;
        self.put(if more { "<span><i class=\"rest\"></i>others</span></p>" } else { "</p>" });
        self.put("<div class=\"grid two\">");
        self.figure("ROC", &plots::roc_curves(file));
        self.figure("Precision and recall", &plots::precision_recall_curves(file));
        self.put(
            "</div><h3>Scores</h3><p class=\"legend\"><span><i class=\"c0\"></i>related</span><span>\
             <i class=\"c1\"></i>unrelated</span><span><i class=\"line\"></i>threshold</span></p>\
             <div class=\"grid\">",
        );
        for result in &file.results {
            let js = result.js_divergence;
            let caption = format!("{}, divergence {js:.4}", result.method);
            self.figure(&caption, &plots::histograms(file, result));
        }
        self.put("</div></section>");
    }

    fn ranking(&mut self, file: &RankingFile, table: &Table) {
        self.section(&table.title);
        let bars = file.results.iter().map(|result| Bar {
            name: result.method.clone(),
            value: result.map,
            interval: result.map_interval,
            baseline: result.p_values.is_none(),
        });
        let drawn = plots::bars(&bars.collect::<Vec<_>>(), 4, 1.0, "Mean average precision");
        let caption = "Mean average precision. Whiskers: 95 % BCa bootstrap intervals over queries; \
                       dashed: the baseline.";
        self.figure(caption, &drawn);
        self.table(table);
        if let Some(base) = file.results.iter().find(|result| result.p_values.is_none()) {
            self.put("<h3>Query by query</h3><div class=\"grid\">");
            for result in file.results.iter().filter(|result| result.p_values.is_some()) {
                let drawn = plots::by_query(&result.method, &result.by_query, &base.by_query);
                self.figure(&format!("{} against {}", result.method, base.method), &drawn);
            }
            self.put("</div>");
        }
        self.put("</section>");
    }

    fn methods(&mut self, report: &Report) {
        self.section("Methods");
        self.put("<dl class=\"methods\">");
        for method in &report.methods {
            let measure = method.measure.map(|measure| format!(" · {measure}"));
            let (name, summary) = (escaped(&method.name), escaped(&method.summary));
            let measure = measure.unwrap_or_default();
            let _ = write!(self.out, "<dt>{name}<small>{measure}</small></dt><dd>{summary}</dd>");
        }
        for left_out in &report.unavailable {
            let (name, reason) = (escaped(left_out.method), escaped(&left_out.reason));
            let _ =
                write!(self.out, "<dt>{name}<small> · not measured</small></dt><dd>{reason}</dd>");
        }
        self.put(
            "</dl><p class=\"note\">In the tables the best figure of a column is set bold; + and − \
             say that a method is significantly (5 %) above or below the baseline. A text without a \
             known word is unscored: its pair counts as 0, as a candidate it ranks last; none is \
             dropped.</p></section>",
        );
    }
}
