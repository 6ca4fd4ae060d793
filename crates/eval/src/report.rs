//! The report of one evaluation: as `--json` writes it, for a terminal, and as one HTML page.
//!
//! The format of the JSON is stable: fields may be added, and `format` changes when one is removed or changes
//! its meaning. Correlations, precisions and areas are shares (0.586, not 58.6); p values are
//! two-sided, intervals are for 95 %. A figure without a value for the data is `null`.

use std::borrow::Cow;

use cognate_stats::page::dots::{Dot, Drawing};
use cognate_stats::page::frame::escaped;
use cognate_stats::page::table::Table;
use cognate_stats::page::{Head, Page, dots};
use indicatif::HumanCount;
use serde::Serialize;

use crate::contenders::{Field, LeftOut};

const FORMAT: &str = "cognate-eval-1";
/// Differences with a smaller p value are called significant.
pub(crate) const SIGNIFICANT: f64 = 0.05;

#[derive(Debug, Clone, Serialize)]
pub struct Report<F> {
    pub format: &'static str,
    pub model: ModelFacts,
    pub methods: Vec<MethodFacts>,
    /// The contender that others are tested against.
    pub baseline: String,
    pub unavailable: Vec<LeftOut>,
    pub seed: u64,
    pub resamples: usize,
    pub task: &'static str,
    #[serde(flatten)]
    pub figures: F,
}

pub trait Figures: Serialize {
    const TASK: &'static str;
    const TITLE: &'static str;

    /// All tables; the summary comes first.
    fn tables(&self) -> Vec<Table>;

    /// Adds the report's plots and its tables to a page.
    fn fill(&self, page: &mut Page, tables: Vec<Table>, baseline: &str);

    fn criterion(&self) -> &'static str;

    /// The deciding figure of the method at an index of the report's list; higher is better.
    fn figure(&self, place: usize) -> Option<f64>;

    fn show(&self, figure: f64) -> String;
}

#[derive(Debug, Clone, Serialize)]
pub struct ModelFacts {
    /// The model file's name, without folder and ending.
    pub name: String,
    pub fingerprint: String,
    pub words: usize,
    pub dims: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct MethodFacts {
    pub name: String,
    /// The method's canonical name, `column`, or `combination`.
    pub method: Cow<'static, str>,
    /// How vectors are compared; `null` for a column and for a method without vectors.
    pub measure: Option<&'static str>,
    pub summary: String,
}

impl<F: Figures> Report<F> {
    pub(super) fn new(field: &Field<'_>, figures: F, draws: (u64, usize)) -> Self {
        let model = field.engine.model();
        let stem = model.path().file_stem().unwrap_or_default();
        let methods = field.contenders.iter().map(|contender| MethodFacts {
            name: contender.name.clone(),
            method: contender.method.clone(),
            measure: contender.measure.map(|measure| measure.name()),
            summary: contender.summary.clone(),
        });
        let baseline = field.contenders.get(field.baseline);
        Self {
            format: FORMAT,
            model: ModelFacts {
                name: stem.to_string_lossy().into_owned(),
                fingerprint: model.fingerprint().to_owned(),
                words: model.vocabulary().len(),
                dims: model.dims(),
            },
            methods: methods.collect(),
            baseline: baseline.map(|contender| contender.name.clone()).unwrap_or_default(),
            unavailable: field.unavailable.clone(),
            seed: draws.0,
            resamples: draws.1,
            task: F::TASK,
            figures,
        }
    }

    pub fn json(&self) -> String {
        json(self)
    }

    pub fn terminal(&self) -> String {
        let model = &self.model;
        let mut out = format!(
            "model {} ({}), {} words × {} dimensions; baseline {}\n\n",
            model.name,
            model.fingerprint,
            HumanCount(model.words as u64),
            model.dims,
            self.baseline
        );
        for table in self.figures.tables() {
            out.push_str(&format!("{table}\n"));
        }
        for left_out in &self.unavailable {
            out.push_str(&format!("not measured: {} ({})\n", left_out.method, left_out.reason));
        }
        out + "* best of the column; + and − significantly above and below the baseline\n"
    }

    pub fn html(&self) -> String {
        let model = &self.model;
        let facts = [
            ("model", model.name.clone()),
            ("fingerprint", model.fingerprint.clone()),
            ("vectors", format!("{} × {}", HumanCount(model.words as u64), model.dims)),
            ("methods", self.methods.len().to_string()),
            ("baseline", self.baseline.clone()),
            ("seed", self.seed.to_string()),
        ];
        let (kicker, subject) = ("cognate eval", &*model.name);
        let mut page = Page::new(&Head { kicker, title: F::TITLE, subject, facts: &facts });
        self.figures.fill(&mut page, self.figures.tables(), &self.baseline);
        page.section("Methods");
        page.put("<dl class=\"methods\">");
        for method in &self.methods {
            let measure = method.measure.map(|measure| format!(" · {measure}"));
            let (name, summary) = (escaped(&method.name), escaped(&method.summary));
            let measure = measure.unwrap_or_default();
            page.put(format!("<dt>{name}<small>{measure}</small></dt><dd>{summary}</dd>"));
        }
        for left_out in &self.unavailable {
            let (name, reason) = (escaped(&left_out.method), escaped(&left_out.reason));
            page.put(format!("<dt>{name}<small> · not measured</small></dt><dd>{reason}</dd>"));
        }
        page.put("</dl>");
        page.note(
            "In the tables the best figure of a column is set bold; + and − say that a method is \
             significantly (5 %) above or below the baseline. A text without a known word is unscored: \
             its pair counts as 0, as a candidate it ranks last; none is dropped.",
        );
        page.finish()
    }
}

pub(crate) fn json(report: &impl Serialize) -> String {
    // Every key is a string and every number finite, so serialising cannot fail.
    serde_json::to_string_pretty(report).unwrap_or_default()
}

pub(crate) fn compare(
    page: &mut Page,
    table: Table,
    figures: &[Dot],
    drawing: Drawing<'_>,
    whiskers: &str,
) {
    page.section(&table.title);
    let cut = if dots::is_cut(figures) { " The axis does not begin at 0." } else { "" };
    let caption = format!("{}. {whiskers}; dashed: the baseline.{cut}", drawing.label);
    page.figure(&caption, &dots::dots(figures, drawing));
    page.table(&ordered(table, figures));
}

pub(crate) fn ordered(mut table: Table, figures: &[Dot]) -> Table {
    let figure = |name: &str| {
        figures.iter().find(|dot| dot.name == name).map_or(f64::NEG_INFINITY, |dot| dot.value)
    };
    table.rows.sort_by(|(a, _), (b, _)| figure(b).total_cmp(&figure(a)));
    table
}
