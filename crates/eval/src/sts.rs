//! Measures scores against gold scores: Pearson and Spearman correlations per subtask, per year and
//! overall.
//!
//! A difference from the baseline is tested in two ways. *Within a subtask:* could it be due to the
//! choice of sentences? The BCa bootstrap interval of the difference of Pearson correlations over
//! resampled pairs answers this, as in the DynaMax paper. *Across subtasks:* is the method better
//! on data sets of this kind? Wilcoxon's signed-rank test over the subtasks' differences of Pearson
//! correlations answers this (Demšar, "Statistical comparisons of classifiers over multiple data
//! sets", 2006). Errors of single pairs are not tested: they need scores on the scale of the gold
//! scores, hence a fit for each method, and a method with smaller errors on most pairs may still
//! correlate worse.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cognate::engine::Engine;
use cognate::methods::Kind;
use cognate_stats::bootstrap::{Bootstrap, Interval};
use cognate_stats::correlation::{pearson, spearman};
use cognate_stats::page::Page;
use cognate_stats::page::dots::{Dot, Drawing};
use cognate_stats::page::frame::{Axis, Frame, SMALL};
use cognate_stats::page::table::{Better, Cell, Column, Mark, Table};
use cognate_stats::significance::{SignedRank, signed_rank};
use serde::Serialize;

use crate::contenders::{Choice, Field};
use crate::report::{Figures, SIGNIFICANT, compare, ordered};
use crate::scoring::Scored;
use crate::{Report, Result, contenders, datasets, scoring};

/// Maximum points of a scatter plot; more could not be distinguished.
const POINTS: usize = 800;

#[derive(Debug, Clone)]
pub struct StsOptions {
    pub files: Vec<PathBuf>,
    pub view: View,
    pub choice: Choice,
    pub bootstrap: Bootstrap,
}

/// What correlations are computed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum View {
    /// Each file, as in the papers; a year's figure is the mean over its files.
    #[default]
    Files,
    /// All pairs of a year as one list, as in the MTEB benchmark (Muennighoff et al. 2023) and
    /// published model comparisons, which use Spearman's correlation.
    Mteb,
}

#[derive(Debug, Clone, Serialize)]
pub struct StsFigures {
    pub view: View,
    /// A subtask for each file; in [`View::Mteb`], for each year.
    pub subtasks: Vec<Subtask>,
    /// One for each year from 2012 to 2016 that a file name begins with.
    pub years: Vec<Year>,
    /// The mean over the years; without years, over the files.
    pub overall: Overall,
}

#[derive(Debug, Clone, Serialize)]
pub struct Subtask {
    pub name: String,
    pub year: Option<u16>,
    pub pairs: usize,
    pub results: Vec<SubtaskResult>,
    #[serde(skip)]
    pub gold: Vec<f64>,
}

#[derive(Debug, Clone, Serialize)]
pub struct SubtaskResult {
    pub method: String,
    /// Pearson's correlation; 0 if all scores are equal.
    pub pearson: f64,
    /// Spearman's correlation; 0 if all scores are equal.
    pub spearman: f64,
    /// Number of pairs without a score; they count as 0.
    pub unscored: usize,
    /// Number of pairs with a truncated text.
    pub truncated: usize,
    /// The difference in Pearson correlation from the baseline, with its BCa interval; `null` for
    /// the baseline, or if a correlation has no value.
    pub difference: Option<Difference>,
    #[serde(skip)]
    pub scores: Vec<f64>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Year {
    pub year: u16,
    pub subtasks: usize,
    pub results: Vec<MeanResult>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Difference {
    /// Of the method's figure less the baseline's.
    #[serde(flatten)]
    pub interval: Interval,
    /// Whether the interval excludes 0.
    pub significant: bool,
}

/// Unweighted means of a method's figures.
#[derive(Debug, Clone, Serialize)]
pub struct MeanResult {
    pub method: String,
    pub pearson: f64,
    pub spearman: f64,
    /// An approximate 95 % interval of the mean of Pearson's correlations: the standard error of
    /// each is taken as (1 − r²) / √(n − 1), and subtasks as independent.
    pub interval: [f64; 2],
}

#[derive(Debug, Clone, Serialize)]
pub struct Overall {
    /// What the means are over: `years` or `files`.
    pub over: &'static str,
    pub results: Vec<OverallResult>,
}

#[derive(Debug, Clone, Serialize)]
pub struct OverallResult {
    #[serde(flatten)]
    pub mean: MeanResult,
    /// Whether the method is better than the baseline across the averaged subtasks; `null` for the
    /// baseline.
    pub wilcoxon: Option<Wilcoxon>,
}

/// Wilcoxon's signed-rank test over the subtasks' differences in Pearson's correlation.
#[derive(Debug, Clone, Serialize)]
pub struct Wilcoxon {
    #[serde(flatten)]
    pub test: SignedRank,
    pub wins: usize,
    pub losses: usize,
}

pub fn eval_sts(engine: &Engine, options: &StsOptions) -> Result<Report<StsFigures>> {
    let field = contenders::choose(engine, &options.choice, &[Kind::Similarity], &[])?;
    let mut sets = datasets::read_all(&options.files, datasets::read_sts)?;
    if options.view == View::Mteb {
        sets = datasets::joined_by_year(sets);
    }
    let texts: Vec<_> = sets.iter().map(|set| (set.name.as_str(), set.texts.as_slice())).collect();
    let scored = scoring::pairs(engine, &field.contenders, &texts)?;
    let both = sets.into_iter().zip(scored);
    let mut subtasks: Vec<_> = both.map(|(set, scored)| subtask(set, scored, &field)).collect();
    add_differences(&mut subtasks, field.baseline, &options.bootstrap);
    let figures = StsFigures {
        view: options.view,
        years: by_year(&subtasks).into_iter().map(Year::new).collect(),
        overall: overall(&subtasks, field.baseline),
        subtasks,
    };
    let draws = (options.bootstrap.seed, options.bootstrap.resamples);
    Ok(Report::new(&field, figures, draws))
}

fn subtask(set: datasets::Subtask, scored: Vec<Scored>, field: &Field<'_>) -> Subtask {
    let results = field.contenders.iter().zip(scored).map(|(contender, scored)| SubtaskResult {
        method: contender.name.clone(),
        pearson: pearson(&set.gold, &scored.scores).unwrap_or(0.0),
        spearman: spearman(&set.gold, &scored.scores).unwrap_or(0.0),
        unscored: scored.unscored,
        truncated: scored.truncated,
        difference: None,
        scores: scored.scores,
    });
    let results = results.collect();
    Subtask { name: set.name, year: set.year, pairs: set.gold.len(), results, gold: set.gold }
}

/// Adds the intervals of differences; they take the most time, so they use every core.
fn add_differences(subtasks: &mut [Subtask], baseline: usize, bootstrap: &Bootstrap) {
    let mut jobs = Vec::new();
    for (place, subtask) in subtasks.iter().enumerate() {
        let others = (0..subtask.results.len()).filter(|&other| other != baseline);
        jobs.extend(others.map(|other| (place, other)));
    }
    let differences = scoring::map("intervals", &jobs, |&(place, other)| {
        let subtask = &subtasks[place];
        let [first, second] = [other, baseline].map(|method| &subtask.results[method].scores);
        let interval = bootstrap.of_pearson_difference(&subtask.gold, first, second)?;
        Some(Difference { interval, significant: interval.excludes_zero() })
    });
    for ((place, other), difference) in jobs.into_iter().zip(differences) {
        subtasks[place].results[other].difference = difference;
    }
}

fn by_year(subtasks: &[Subtask]) -> BTreeMap<u16, Vec<&Subtask>> {
    let mut years: BTreeMap<u16, Vec<&Subtask>> = BTreeMap::new();
    for subtask in subtasks {
        if let Some(year) = subtask.year {
            years.entry(year).or_default().push(subtask);
        }
    }
    years
}

impl Year {
    fn new((year, of): (u16, Vec<&Subtask>)) -> Self {
        Self { year, subtasks: of.len(), results: means(&[of]) }
    }
}

fn overall(subtasks: &[Subtask], baseline: usize) -> Overall {
    // STS Benchmark consists of pairs from the yearly sets, so together they would count pairs
    // twice.
    let yearly: Vec<Vec<&Subtask>> = by_year(subtasks).into_values().collect();
    let (over, groups) = match yearly.is_empty() {
        true => ("files", vec![subtasks.iter().collect()]),
        false => ("years", yearly),
    };
    let counted = groups.concat();
    let pearsons = |method: usize| counted.iter().map(move |of| of.results[method].pearson);
    let test = |method: usize| {
        let differences: Vec<f64> =
            pearsons(method).zip(pearsons(baseline)).map(|(one, other)| one - other).collect();
        Some(Wilcoxon {
            test: signed_rank(&differences)?,
            wins: differences.iter().filter(|&&difference| difference > 0.0).count(),
            losses: differences.iter().filter(|&&difference| difference < 0.0).count(),
        })
    };
    let results = means(&groups).into_iter().enumerate().map(|(method, mean)| OverallResult {
        mean,
        wilcoxon: if method == baseline { None } else { test(method) },
    });
    Overall { over, results: results.collect() }
}

fn means(groups: &[Vec<&Subtask>]) -> Vec<MeanResult> {
    let Some(first) = groups.first().and_then(|group| group.first()) else { return Vec::new() };
    let mean = |method: usize, figure: &dyn Fn(&Subtask, &SubtaskResult) -> f64| {
        let of_group = |group: &Vec<&Subtask>| {
            let figures = group.iter().map(|of| figure(of, &of.results[method]));
            figures.sum::<f64>() / group.len() as f64
        };
        groups.iter().map(of_group).sum::<f64>() / groups.len() as f64
    };
    let deviation = |method: usize| {
        let variance = |of: &Subtask| {
            let left = 1.0 - of.results[method].pearson.powi(2);
            left * left / (of.pairs as f64 - 1.0)
        };
        let of_group = |group: &Vec<&Subtask>| {
            group.iter().map(|of| variance(of)).sum::<f64>() / (group.len() as f64).powi(2)
        };
        (groups.iter().map(of_group).sum::<f64>()).sqrt() / groups.len() as f64
    };
    (0..first.results.len())
        .map(|method| {
            let pearson = mean(method, &|_, result| result.pearson);
            // 1.96 deviations hold 95 % of a normal distribution.
            let half = 1.96 * deviation(method);
            MeanResult {
                method: first.results[method].method.clone(),
                pearson,
                spearman: mean(method, &|_, result| result.spearman),
                interval: [(pearson - half).max(-1.0), (pearson + half).min(1.0)],
            }
        })
        .collect()
}

impl StsFigures {
    /// The subtasks of each year, and those without one, with the title of their table.
    fn groups(&self) -> Vec<(String, Vec<&Subtask>)> {
        let years = by_year(&self.subtasks).into_iter().map(|(year, of)| (year.to_string(), of));
        let alone: Vec<&Subtask> = self.subtasks.iter().filter(|of| of.year.is_none()).collect();
        let alone = (!alone.is_empty()).then(|| ("Data sets without a year".to_owned(), alone));
        years.chain(alone).collect()
    }

    fn summary(&self) -> Table {
        let rows = self.overall.results.iter().enumerate().map(|(method, overall)| {
            let wilcoxon = overall.wilcoxon.as_ref();
            let mark = wilcoxon.map_or(Mark::None, |of| {
                Mark::from_difference(of.test.p < SIGNIFICANT, of.wins as f64 - of.losses as f64)
            });
            let years = self.years.iter().map(|year| &year.results[method]);
            let mut cells: Vec<Cell> =
                years.map(|mean| Cell::both(mean.pearson, mean.spearman, Mark::None)).collect();
            cells.push(Cell::both(overall.mean.pearson, overall.mean.spearman, mark));
            cells.push(Cell::chance(wilcoxon.map(|of| of.test.p)));
            let unscored = self.subtasks.iter().map(|of| of.results[method].unscored).sum();
            cells.push(Cell::count(unscored));
            (overall.mean.method.clone(), cells)
        });
        let years =
            self.years.iter().map(|year| Column::new(year.year.to_string(), Better::Higher));
        let others =
            [("mean", Better::Higher), ("p", Better::Neither), ("unscored", Better::Neither)];
        Table {
            title: format!("Pearson / Spearman × 100, mean over {}", self.overall.over),
            stub: "method",
            columns: years.chain(others.map(|(name, better)| Column::new(name, better))).collect(),
            rows: rows.collect(),
            notes: vec![
                "p: Wilcoxon's signed-rank test over the differences in Pearson of the subtasks that \
                 the mean is of."
                    .to_owned(),
                "An unscored pair counts as 0.".to_owned(),
            ],
        }
    }
}

impl Figures for StsFigures {
    const TASK: &'static str = "sts";
    const TITLE: &'static str = "Semantic textual similarity";

    fn tables(&self) -> Vec<Table> {
        let details = self.groups().into_iter().map(|(title, of)| details(&title, &of));
        std::iter::once(self.summary()).chain(details).collect()
    }

    fn fill(&self, page: &mut Page, tables: Vec<Table>, baseline: &str) {
        let dots = self.overall.results.iter().map(|result| Dot {
            name: result.mean.method.clone(),
            value: 100.0 * result.mean.pearson,
            interval: Some(result.mean.interval.map(|end| 100.0 * end)),
            baseline: result.wilcoxon.is_none(),
        });
        let dots: Vec<Dot> = dots.collect();
        let mut tables = tables.into_iter();
        let label = format!("Mean Pearson × 100 over {}", self.overall.over);
        let whiskers =
            "Whiskers: approximate 95 % intervals, from the standard errors of the correlations";
        let drawing = Drawing { digits: 1, label: &label };
        compare(page, tables.next().unwrap_or_default(), &dots, drawing, whiskers);
        for (table, (_, group)) in tables.zip(self.groups()) {
            page.section(&table.title);
            page.table(&ordered(table, &dots));
            page.put("<div class=\"grid pairs\">");
            group.into_iter().for_each(|subtask| scatters(page, subtask, baseline));
            page.put("</div>");
        }
    }

    fn criterion(&self) -> &'static str {
        match self.view {
            View::Files => "mean Pearson correlation × 100",
            View::Mteb => "mean Spearman correlation × 100",
        }
    }

    fn figure(&self, place: usize) -> Option<f64> {
        let mean = &self.overall.results.get(place)?.mean;
        Some(match self.view {
            View::Files => mean.pearson,
            View::Mteb => mean.spearman,
        })
    }

    fn show(&self, figure: f64) -> String {
        format!("{:.1}", 100.0 * figure)
    }
}

fn details(title: &str, of: &[&Subtask]) -> Table {
    let methods = of.first().map_or(0, |first| first.results.len());
    let rows = (0..methods).map(|method| {
        let cells = of.iter().map(|subtask| {
            let result = &subtask.results[method];
            let mark = |found: Difference| {
                Mark::from_difference(found.significant, found.interval.estimate)
            };
            let mark = result.difference.map_or(Mark::None, mark);
            Cell::both(result.pearson, result.spearman, mark)
        });
        (of[0].results[method].method.clone(), cells.collect())
    });
    Table {
        title: format!("{title}: Pearson / Spearman × 100"),
        stub: "method",
        columns: of.iter().map(|of| Column::new(of.short_name(), Better::Higher)).collect(),
        rows: rows.collect(),
        notes: vec![
            "Marks: BCa bootstrap, 95 %, of the difference in Pearson to the baseline.".to_owned(),
        ],
    }
}

impl Subtask {
    fn short_name(&self) -> &str {
        let year = self.year.map(|year| format!("{year}.")).unwrap_or_default();
        self.name.strip_prefix(&year).unwrap_or(&self.name)
    }
}

/// Adds scatter plots of the best method and the baseline, so that readers can compare them.
fn scatters(page: &mut Page, subtask: &Subtask, baseline: &str) {
    let best = subtask.results.iter().max_by(|a, b| a.pearson.total_cmp(&b.pearson));
    let base = subtask.results.iter().find(|result| result.method == baseline);
    page.put("<div class=\"pair\">");
    let same = best.map(|best| &best.method) == base.map(|base| &base.method);
    for result in best.into_iter().chain(base.filter(|_| !same)) {
        let (name, r) = (subtask.short_name(), 100.0 * result.pearson);
        let caption = format!("{name}: {}, r\u{a0}=\u{a0}{r:.1}", result.method);
        let x = Axis::over(subtask.gold.iter().copied(), "gold score");
        let y = Axis::over(result.scores.iter().copied(), "score");
        let what = format!("Scores of {} against gold scores of {}", result.method, subtask.name);
        let mut frame = Frame::new(SMALL, x, y, &what);
        let every = subtask.gold.len().div_ceil(POINTS).max(1);
        let points = subtask.gold.iter().copied().zip(result.scores.iter().copied());
        let class = if result.method == baseline { "c1" } else { "c0" };
        frame.dots(class, points.step_by(every));
        page.figure(&caption, &frame.finish());
    }
    page.put("</div>");
}
