//! Measures rankings against judgements, by the definitions of trec_eval.
//!
//! With judgements (qrels), means are over the queries that occur in both the judgements and the
//! file, and relevant documents that are not candidates count as missed. Without them, the labels
//! of the file are the judgements, and queries whose candidates are all relevant or all not are
//! left out: every ranking of them is equally good.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cognate::engine::Engine;
use cognate::methods::Kind;
use cognate_stats::bootstrap::Bootstrap;
use cognate_stats::page::Page;
use cognate_stats::page::dots::{Dot, Drawing};
use cognate_stats::page::frame::{Axis, Frame, MIDDLE};
use cognate_stats::page::table::{Better, Cell, Column, Mark, Table};
use cognate_stats::ranking::JudgedRanking;
use cognate_stats::significance::Randomisation;
use indicatif::HumanCount;
use serde::Serialize;

use crate::combination::{Combination, CombineOptions};
use crate::contenders::{Choice, Field};
use crate::datasets::{Judged, RankingSet, Topic};
use crate::pairs::mean;
use crate::report::{Figures, SIGNIFICANT, compare};
use crate::scoring::Scored;
use crate::{EvalError, Report, Result, contenders, datasets, scoring};

#[derive(Debug, Clone)]
pub struct RankingOptions {
    pub files: Vec<PathBuf>,
    /// Files of judgements; if empty, the files' labels are used.
    pub qrels: Vec<PathBuf>,
    /// Columns of numbers that are evaluated as rankings in addition to the methods.
    pub columns: Vec<String>,
    pub at: Vec<usize>,
    pub choice: Choice,
    pub combine: Option<CombineOptions>,
    /// How intervals are computed; its seed also fixes the randomisation test and the combination.
    pub bootstrap: Bootstrap,
}

#[derive(Debug, Clone, Serialize)]
pub struct RankingFigures {
    /// `qrels`, or `labels` if the files' own labels were used.
    pub judgements: &'static str,
    pub at: Vec<usize>,
    /// The learned combination, if scores were combined.
    pub combination: Option<Combination>,
    pub files: Vec<RankingFile>,
}

#[derive(Debug, Clone, Serialize)]
pub struct RankingFile {
    pub name: String,
    pub queries: usize,
    pub counted: usize,
    pub candidates: usize,
    pub results: Vec<RankingResult>,
}

#[derive(Debug, Clone, Serialize)]
pub struct RankingResult {
    pub method: String,
    pub map: f64,
    /// BCa interval of the mean over resampled queries; `null` with fewer than two.
    pub map_interval: Option<[f64; 2]>,
    pub mrr: f64,
    pub precision_at: BTreeMap<usize, f64>,
    pub ndcg: f64,
    /// Number of candidates without a score; they rank last.
    pub unscored: usize,
    pub truncated: usize,
    /// Fisher's paired randomisation test against the baseline, two-sided, for each measure; `null`
    /// for the baseline.
    pub p_values: Option<PValues>,
    #[serde(skip)]
    pub by_query: Vec<f64>,
}

/// For each measure the probability that chance alone gives a mean difference at least as large.
#[derive(Debug, Clone, Serialize)]
pub struct PValues {
    pub map: f64,
    pub mrr: f64,
    pub precision_at: BTreeMap<usize, f64>,
    pub ndcg: f64,
}

type ByQuery = Vec<Vec<f64>>;

pub fn eval_ranking(engine: &Engine, options: &RankingOptions) -> Result<Report<RankingFigures>> {
    if options.at.is_empty() || options.at.contains(&0) {
        return Err(EvalError::Options("expected ranks from 1 for precision".to_owned()));
    }
    let kinds = [Kind::Similarity, Kind::Ranker];
    let mut field = contenders::choose(engine, &options.choice, &kinds, &options.columns)?;
    let sources = datasets::sources(&options.files)?;
    let read = |source| datasets::read_ranking(source, &options.columns);
    let sets = sources.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let judged = Judged::read(&options.qrels)?;
    let learned = match &options.combine {
        Some(combine) => {
            let places = combine.places(&mut field)?;
            let (columns, seed) = (&options.columns, options.bootstrap.seed);
            Some((combine.learn(&field, &places, &sources, columns, seed)?, places))
        }
        None => None,
    };
    let mut scored = scoring::rankings(engine, &field.contenders, &sets)?;
    if let Some((combination, places)) = &learned {
        scored.iter_mut().for_each(|file| combination.apply(file, places));
        field.contenders.push(combination.contender());
    }
    let mut files = Vec::new();
    for (set, scored) in sets.iter().zip(&scored) {
        files.push(file(set, scored, &field, &judged, options)?);
    }
    let figures = RankingFigures {
        judgements: judged.name(),
        at: options.at.clone(),
        combination: learned.map(|(combination, _)| combination),
        files,
    };
    let draws = (options.bootstrap.seed, options.bootstrap.resamples);
    Ok(Report::new(&field, figures, draws))
}

fn file(
    set: &RankingSet,
    scored: &[Vec<Scored>],
    field: &Field<'_>,
    judged: &Judged,
    options: &RankingOptions,
) -> Result<RankingFile> {
    let counted: Vec<(usize, BTreeMap<String, u32>)> = set
        .topics
        .iter()
        .enumerate()
        .filter_map(|(place, topic)| Some((place, judged.grades(topic)?)))
        .collect();
    if counted.is_empty() {
        let problem = judged.none_counts().to_owned();
        return Err(EvalError::Data { file: set.name.clone(), problem });
    }
    let places: Vec<usize> = (0..scored.len()).collect();
    let by_query: Vec<ByQuery> = scoring::map("measuring", &places, |&method| {
        let of = |(place, grades): &(usize, BTreeMap<String, u32>)| {
            judge(&set.topics[*place], &scored[method][*place], grades, &options.at)
        };
        counted.iter().map(of).collect::<Option<Vec<_>>>()
    })
    .into_iter()
    .collect::<Option<_>>()
    .ok_or_else(|| EvalError::Data {
        file: set.name.clone(),
        problem: "a column has a value that is not a number, or a document occurs twice".to_owned(),
    })?;
    let results = scoring::map("intervals", &places, |&method| {
        let baseline = (method != field.baseline).then(|| &by_query[field.baseline]);
        let mut result = metrics(&by_query[method], baseline, options);
        result.method = field.contenders[method].name.clone();
        result.unscored = scored[method].iter().map(|topic| topic.unscored).sum();
        result.truncated = scored[method].iter().map(|topic| topic.truncated).sum();
        result
    });
    Ok(RankingFile {
        name: set.name.clone(),
        queries: set.topics.len(),
        counted: counted.len(),
        candidates: set.topics.iter().map(|topic| topic.texts.len()).sum(),
        results,
    })
}

fn judge(
    topic: &Topic,
    scored: &Scored,
    grades: &BTreeMap<String, u32>,
    at: &[usize],
) -> Option<Vec<f64>> {
    let run: Vec<(String, f64)> =
        topic.documents.iter().cloned().zip(scored.scores.iter().copied()).collect();
    let judged = JudgedRanking::of_run(run, grades)?;
    let mut figures = vec![judged.average_precision(), judged.reciprocal_rank(), judged.ndcg()];
    figures.extend(at.iter().map(|&k| judged.precision_at(k)));
    Some(figures)
}

fn metrics(
    by_query: &ByQuery,
    baseline: Option<&ByQuery>,
    options: &RankingOptions,
) -> RankingResult {
    let column = |of: &ByQuery, figure: usize| -> Vec<f64> {
        of.iter().map(|query| query[figure]).collect()
    };
    let mean = |figure: usize| {
        by_query.iter().map(|query| query[figure]).sum::<f64>() / by_query.len() as f64
    };
    let test = |figure: usize, baseline: &ByQuery| {
        let pairs = column(by_query, figure).into_iter().zip(column(baseline, figure));
        let differences: Vec<f64> = pairs.map(|(one, other)| one - other).collect();
        let test = Randomisation { seed: options.bootstrap.seed, ..Randomisation::default() };
        test.p_value(&differences).unwrap_or(1.0)
    };
    let precisions = || options.at.iter().enumerate().map(|(place, &k)| (k, 3 + place));
    let averages = column(by_query, 0);
    let interval = options.bootstrap.of_statistic(averages.len(), |drawn| {
        drawn.iter().map(|&query| averages[query]).sum::<f64>() / drawn.len() as f64
    });
    RankingResult {
        method: String::new(),
        map: mean(0),
        map_interval: interval.map(|interval| [interval.low, interval.high]),
        mrr: mean(1),
        precision_at: precisions().map(|(k, figure)| (k, mean(figure))).collect(),
        ndcg: mean(2),
        unscored: 0,
        truncated: 0,
        p_values: baseline.map(|baseline| PValues {
            map: test(0, baseline),
            mrr: test(1, baseline),
            precision_at: precisions().map(|(k, figure)| (k, test(figure, baseline))).collect(),
            ndcg: test(2, baseline),
        }),
        by_query: averages,
    }
}

impl Figures for RankingFigures {
    const TASK: &'static str = "ranking";
    const TITLE: &'static str = "Ranking";

    fn tables(&self) -> Vec<Table> {
        let by = format!("Judged by {}; trec_eval's definitions.", self.judgements);
        let files = self.files.iter().map(|file| file.table(&self.at, &by));
        files.chain(self.combination.as_ref().map(Combination::table)).collect()
    }

    fn fill(&self, page: &mut Page, tables: Vec<Table>, _: &str) {
        let mut tables = tables.into_iter();
        self.files.iter().zip(tables.by_ref()).for_each(|(file, table)| file.fill(page, table));
        // The combination's table follows those of the files.
        for table in tables {
            page.section(&table.title);
            page.table(&table);
        }
    }

    fn criterion(&self) -> &'static str {
        "mean average precision"
    }

    fn figure(&self, place: usize) -> Option<f64> {
        mean(self.files.iter().map(|file| Some(file.results.get(place)?.map)))
    }

    fn show(&self, figure: f64) -> String {
        format!("{figure:.4}")
    }
}

impl RankingFile {
    fn baseline(&self) -> Option<&RankingResult> {
        self.results.iter().find(|result| result.p_values.is_none())
    }

    fn table(&self, at: &[usize], judged: &str) -> Table {
        let baseline = self.baseline();
        let rows = self.results.iter().map(|result| {
            let p = result.p_values.as_ref();
            let cell = |value: f64, p: Option<f64>, of: Option<f64>| {
                let significant = p.is_some_and(|p| p < SIGNIFICANT);
                Cell::fine(value, Mark::from_difference(significant, value - of.unwrap_or(value)))
            };
            let mut cells = vec![
                cell(result.map, p.map(|p| p.map), baseline.map(|of| of.map)),
                Cell::chance(p.map(|p| p.map)),
                cell(result.mrr, p.map(|p| p.mrr), baseline.map(|of| of.mrr)),
            ];
            cells.extend(at.iter().map(|k| {
                let chance = p.and_then(|p| p.precision_at.get(k).copied());
                let of = baseline.and_then(|of| of.precision_at.get(k).copied());
                cell(result.precision_at.get(k).copied().unwrap_or(0.0), chance, of)
            }));
            cells.push(cell(result.ndcg, p.map(|p| p.ndcg), baseline.map(|of| of.ndcg)));
            cells.push(Cell::count(result.unscored));
            (result.method.clone(), cells)
        });
        let mut columns =
            vec![Column::new("MAP", Better::Higher), Column::new("p", Better::Neither)];
        columns.push(Column::new("MRR", Better::Higher));
        columns.extend(at.iter().map(|k| Column::new(format!("P@{k}"), Better::Higher)));
        columns.push(Column::new("NDCG", Better::Higher));
        columns.push(Column::new("unscored", Better::Neither));
        let Self { name, counted, queries, .. } = self;
        let candidates = HumanCount(self.candidates as u64);
        Table {
            title: format!("{name}: {counted} of {queries} queries, {candidates} candidates"),
            stub: "method",
            columns,
            rows: rows.collect(),
            notes: vec![format!("{judged} p: Fisher's paired randomisation test of MAP.")],
        }
    }

    fn fill(&self, page: &mut Page, table: Table) {
        let dots = self.results.iter().map(|result| Dot {
            name: result.method.clone(),
            value: result.map,
            interval: result.map_interval,
            baseline: result.p_values.is_none(),
        });
        let drawing = Drawing { digits: 4, label: "Mean average precision" };
        let whiskers = "Whiskers: 95 % BCa bootstrap intervals over queries";
        compare(page, table, &dots.collect::<Vec<_>>(), drawing, whiskers);
        let Some(base) = self.baseline() else { return };
        page.put("<h3>Query by query</h3><div class=\"grid\">");
        for result in self.results.iter().filter(|result| result.p_values.is_some()) {
            let caption = format!("{} against {}", result.method, base.method);
            page.figure(&caption, &by_query(&result.method, &result.by_query, &base.by_query));
        }
        page.put("</div>");
    }
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
