//! The tables of a report, for the terminal and the page: which figures they contain.

use indicatif::HumanCount;

use crate::combination::{Combination, Weight};
use crate::pairs::{PairFile, PairsFigures};
use crate::ranking::{RankingFigures, RankingFile};
use crate::report::Report;
use crate::sts::{StsFigures, Subtask};
use crate::table::{Better, Cell, Column, Mark, Table};

/// Differences with a smaller p value are called significant.
const SIGNIFICANT: f64 = 0.05;

pub fn terminal<F: Tables>(report: &Report<F>) -> String {
    let model = &report.model;
    let mut out = format!(
        "model {} ({}), {} words × {} dimensions; baseline {}\n\n",
        model.name,
        model.fingerprint,
        HumanCount(model.words as u64),
        model.dims,
        report.baseline
    );
    for table in report.figures.tables() {
        out.push_str(&table.to_string());
        out.push('\n');
    }
    for left_out in &report.unavailable {
        out.push_str(&format!("not measured: {} ({})\n", left_out.method, left_out.reason));
    }
    out.push_str("* best of the column; + and − significantly above and below the baseline\n");
    out
}

/// Figures that can be shown as tables.
pub trait Tables {
    /// All tables; the summary comes first.
    fn tables(&self) -> Vec<Table>;
}

impl Tables for StsFigures {
    fn tables(&self) -> Vec<Table> {
        sts(self)
    }
}

impl Tables for PairsFigures {
    fn tables(&self) -> Vec<Table> {
        let rule = match &self.threshold_from {
            Some(file) => format!("Thresholds of lowest split error, found on {file}."),
            None => "Thresholds of lowest split error, found on a seeded half of the pairs and \
                     judged by the other half."
                .to_owned(),
        };
        self.files.iter().map(|file| pairs(file, &rule)).collect()
    }
}

impl Tables for RankingFigures {
    fn tables(&self) -> Vec<Table> {
        let by = format!("Judged by {}; trec_eval's definitions.", self.judgements);
        let files = self.files.iter().map(|file| ranking(file, &self.at, &by));
        files.chain(self.combination.as_ref().map(combination)).collect()
    }
}

fn column(name: impl Into<String>, better: Better) -> Column {
    Column { name: name.into(), better }
}

fn sts(figures: &StsFigures) -> Vec<Table> {
    let mut tables = vec![sts_summary(figures)];
    for year in &figures.years {
        let of_year = figures.subtasks.iter().filter(|of| of.year == Some(year.year));
        tables.push(subtasks(&year.year.to_string(), &of_year.collect::<Vec<_>>()));
    }
    let alone: Vec<&Subtask> = figures.subtasks.iter().filter(|of| of.year.is_none()).collect();
    if !alone.is_empty() {
        tables.push(subtasks("Data sets without a year", &alone));
    }
    tables
}

fn sts_summary(figures: &StsFigures) -> Table {
    let rows = figures.overall.results.iter().enumerate().map(|(method, overall)| {
        let wilcoxon = overall.wilcoxon.as_ref();
        let mark = wilcoxon.map_or(Mark::None, |test| {
            Mark::of(test.p < SIGNIFICANT, test.wins as f64 - test.losses as f64)
        });
        let years = figures.years.iter().map(|year| &year.results[method]);
        let mut cells: Vec<Cell> =
            years.map(|mean| Cell::both(mean.pearson, mean.spearman, Mark::None)).collect();
        cells.push(Cell::both(overall.mean.pearson, overall.mean.spearman, mark));
        cells.push(Cell::chance(wilcoxon.map(|test| test.p)));
        let unscored = figures.subtasks.iter().map(|of| of.results[method].unscored).sum();
        cells.push(Cell::count(unscored));
        (overall.mean.method.clone(), cells)
    });
    let mut columns: Vec<Column> =
        figures.years.iter().map(|year| column(year.year.to_string(), Better::Higher)).collect();
    columns.push(column("mean", Better::Higher));
    columns.push(column("p", Better::Neither));
    columns.push(column("unscored", Better::Neither));
    Table {
        title: format!("Pearson / Spearman × 100, mean over {}", figures.overall.over),
        stub: "method",
        columns,
        rows: rows.collect(),
        notes: vec![
            "p: Wilcoxon's signed-rank test over the differences in Pearson of the subtasks that \
             the mean is of."
                .to_owned(),
            "An unscored pair counts as 0.".to_owned(),
        ],
    }
}

fn mark_of(result: &crate::sts::SubtaskResult) -> Mark {
    result.difference.map_or(Mark::None, |found| Mark::of(found.significant, found.estimate))
}

fn subtasks(title: &str, of: &[&Subtask]) -> Table {
    let methods = of.first().map_or(0, |first| first.results.len());
    let rows = (0..methods).map(|method| {
        let results = of.iter().map(|subtask| &subtask.results[method]);
        let cells = results.map(|of| Cell::both(of.pearson, of.spearman, mark_of(of)));
        (of[0].results[method].method.clone(), cells.collect())
    });
    Table {
        title: format!("{title}: Pearson / Spearman × 100"),
        stub: "method",
        columns: of.iter().map(|subtask| column(short_name(subtask), Better::Higher)).collect(),
        rows: rows.collect(),
        notes: vec![
            "Marks: BCa bootstrap, 95 %, of the difference in Pearson to the baseline.".to_owned(),
        ],
    }
}

fn pairs(file: &PairFile, rule: &str) -> Table {
    let rows = file.results.iter().map(|result| {
        let test = result.sign_test.as_ref();
        let mark = test.map_or(Mark::None, |test| {
            Mark::of(test.p < SIGNIFICANT, f64::from(test.wins) - f64::from(test.losses))
        });
        let cells = vec![
            Cell::share(result.roc_auc, Mark::None),
            Cell::share(result.average_precision, Mark::None),
            Cell::fine(result.js_divergence, Mark::None),
            Cell {
                text: format!("{:.2}", 100.0 * result.split_error),
                ..Cell::share(result.split_error, mark)
            },
            Cell::chance(test.map(|test| test.p)),
            Cell::share(result.threshold, Mark::None),
            Cell::share(result.precision, Mark::None),
            Cell::share(result.recall, Mark::None),
            Cell::share(result.f1, Mark::None),
            Cell::count(result.unscored),
        ];
        (result.method.clone(), cells)
    });
    Table {
        title: format!(
            "{}: {} pairs, {} related",
            file.name,
            HumanCount(file.pairs as u64),
            HumanCount(file.related as u64)
        ),
        stub: "method",
        columns: vec![
            column("AUC", Better::Higher),
            column("AP", Better::Higher),
            column("JS", Better::Higher),
            column("split error %", Better::Lower),
            column("p", Better::Neither),
            column("threshold", Better::Neither),
            column("precision", Better::Higher),
            column("recall", Better::Higher),
            column("F1", Better::Higher),
            column("unscored", Better::Neither),
        ],
        rows: rows.collect(),
        notes: vec![
            rule.to_owned(),
            format!(
                "Split error, precision, recall and F1 over {} pairs. p: two-tailed sign test \
                 against the baseline; + errs less often.",
                file.judged_pairs
            ),
            "JS: Jensen-Shannon divergence, base 2, 100 equal bins over the joint range."
                .to_owned(),
        ],
    }
}

fn ranking(file: &RankingFile, at: &[usize], judged: &str) -> Table {
    let baseline = file.results.iter().find(|result| result.p_values.is_none());
    let rows = file.results.iter().map(|result| {
        let mark = |p: Option<f64>, value: f64, of: Option<f64>| {
            Mark::of(p.is_some_and(|p| p < SIGNIFICANT), value - of.unwrap_or(value))
        };
        let p = result.p_values.as_ref();
        let mut cells = vec![
            Cell::fine(result.map, mark(p.map(|p| p.map), result.map, baseline.map(|of| of.map))),
            Cell::chance(p.map(|p| p.map)),
            Cell::fine(result.mrr, mark(p.map(|p| p.mrr), result.mrr, baseline.map(|of| of.mrr))),
        ];
        for k in at {
            let value = result.precision_at.get(k).copied().unwrap_or(0.0);
            let chance = p.and_then(|p| p.precision_at.get(k).copied());
            let of = baseline.and_then(|of| of.precision_at.get(k).copied());
            cells.push(Cell::fine(value, mark(chance, value, of)));
        }
        let of = baseline.map(|of| of.ndcg);
        cells.push(Cell::fine(result.ndcg, mark(p.map(|p| p.ndcg), result.ndcg, of)));
        cells.push(Cell::count(result.unscored));
        (result.method.clone(), cells)
    });
    let mut columns = vec![column("MAP", Better::Higher), column("p", Better::Neither)];
    columns.push(column("MRR", Better::Higher));
    columns.extend(at.iter().map(|k| column(format!("P@{k}"), Better::Higher)));
    columns.push(column("NDCG", Better::Higher));
    columns.push(column("unscored", Better::Neither));
    Table {
        title: format!(
            "{}: {} of {} queries, {} candidates",
            file.name,
            file.counted,
            file.queries,
            HumanCount(file.candidates as u64)
        ),
        stub: "method",
        columns,
        rows: rows.collect(),
        notes: vec![format!("{judged} p: Fisher's paired randomisation test of MAP.")],
    }
}

fn combination(combination: &Combination) -> Table {
    let row = |of: &Weight| (of.name.clone(), vec![Cell::share(of.weight, Mark::None)]);
    Table {
        title: format!("combination, learned on {}", combination.learned_on.join(", ")),
        stub: "score",
        columns: vec![column("weight", Better::Neither)],
        rows: combination.weights.iter().map(row).collect(),
        notes: vec![format!(
            "Weights of scores standardised within each query, by coordinate ascent on MAP, there \
             {:.4} over {} queries judged by {}.",
            combination.map, combination.queries, combination.judgements
        )],
    }
}

/// A subtask's name without its year.
pub(super) fn short_name(subtask: &Subtask) -> &str {
    let year = subtask.year.map(|year| format!("{year}.")).unwrap_or_default();
    subtask.name.strip_prefix(&year).unwrap_or(&subtask.name)
}
