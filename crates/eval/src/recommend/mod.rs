//! `cognate eval recommend`: what is recommended to readers who like some texts of a topic, or of
//! several, and how much of it are other texts of these.
//!
//! The rankings are those of `/rank` with `like`, `strategy` and `diversify`. All settings rank the
//! same candidates for the same readers: every text of the file but those that the reader likes.

mod readers;

use std::fmt;
use std::path::PathBuf;

use cognate::engine::{
    Boosts, Engine, Liked, Likes, Measure, Query, QueryError, RankOptions, Strategy,
};
use cognate_stats::ranking::JudgedRanking;
use cognate_stats::significance::Randomisation;
use indicatif::HumanCount;
use serde::Serialize;

use crate::contenders::Scores;
use crate::datasets::ranking;
use crate::datasets::ranking::Judged;
use crate::recommend::readers::{Draws, Library, Reader};
use crate::table::{Better, Cell, Column, Mark, Table};
use crate::{EvalError, contenders, datasets, scoring};

/// How many of the first texts a reader looks at.
const SHOWN: usize = 10;

/// Below this chance a difference is marked.
const SIGNIFICANT: f64 = 0.05;

/// What `cognate eval recommend` measures.
#[derive(Debug, Clone)]
pub struct RecommendOptions {
    /// Files, or folders of files, with topics and their texts.
    pub files: Vec<PathBuf>,
    /// Judgements; without any, the files' labels.
    pub qrels: Vec<PathBuf>,
    pub methods: Vec<String>,
    /// Measures of the vector methods; without any, each method's own.
    pub measures: Vec<Measure>,
    /// Texts that a reader likes.
    pub liked: usize,
    /// Topics that they are of.
    pub topics: usize,
    /// Readers of each topic.
    pub draws: usize,
    /// What a score counts against likeness to the texts before, where texts shall differ.
    pub lambda: f64,
    /// How many of the best may take the first places then.
    pub pool: usize,
    /// Fixes which texts readers like.
    pub seed: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct RecommendReport {
    /// Name and version of this shape.
    pub format: &'static str,
    pub fingerprint: String,
    /// Topics that a reader likes.
    pub topics: usize,
    /// Readers of each topic.
    pub draws: usize,
    /// What a score counts against likeness to the texts before.
    pub lambda: f64,
    /// How many of the best may take the first places.
    pub pool: usize,
    /// What fixed which texts readers like.
    pub seed: u64,
    pub files: Vec<RecommendFile>,
}

/// Figures of a file.
#[derive(Debug, Clone, Serialize)]
pub struct RecommendFile {
    pub name: String,
    /// Its texts, each counted once.
    pub texts: usize,
    /// Topics with enough relevant texts.
    pub topics: usize,
    /// For each method, its settings.
    pub results: Vec<RecommendResult>,
}

/// Figures of a method under a setting, means over topics of means over their readers.
#[derive(Debug, Clone, Serialize)]
pub struct RecommendResult {
    pub method: String,
    pub setting: String,
    pub map: f64,
    /// The chance of a difference in average precision at least as large, by Fisher's randomisation
    /// test over topics, beside one liked text; none for that.
    pub p: Option<f64>,
    /// Normalised discounted cumulative gain of the first ten.
    pub ndcg_at_10: f64,
    /// The share of wanted texts among the first ten.
    pub precision_at_10: f64,
    /// How much the first ten are like each other: the mean score of their pairs.
    pub alike_at_10: f64,
}

/// What is asked for a reader.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Setting {
    /// Whether all liked texts are given, and what is made of their scores; else the first alone.
    several: Option<Strategy>,
    diverse: bool,
}

/// Without diversity first: the diverse order is made of the other.
const SETTINGS: [Setting; 6] = [
    Setting { several: None, diverse: false },
    Setting { several: None, diverse: true },
    Setting { several: Some(Strategy::Best), diverse: false },
    Setting { several: Some(Strategy::Best), diverse: true },
    Setting { several: Some(Strategy::Mean), diverse: false },
    Setting { several: Some(Strategy::Mean), diverse: true },
];

impl Setting {
    fn name(self, options: &RecommendOptions) -> String {
        let liked = match self.several {
            None => "1 liked".to_owned(),
            Some(Strategy::Best) => format!("{} liked, best", options.liked),
            Some(Strategy::Mean) => format!("{} liked, mean", options.liked),
            Some(Strategy::Sum) => format!("{} liked, sum", options.liked),
        };
        if self.diverse { format!("{liked}, diversify {}", options.lambda) } else { liked }
    }
}

/// Average precision, gain, precision, likeness.
type Figures = [f64; 4];

/// Measures what is recommended under every setting.
pub fn eval_recommend(
    engine: &Engine,
    options: &RecommendOptions,
) -> Result<RecommendReport, EvalError> {
    let methods = contenders::methods(engine, &options.methods, &options.measures)?;
    let queries = methods.iter().filter_map(|contender| match contender.scores {
        Scores::Method(method, measure) => {
            Some((contender.name.as_str(), contenders::query(method, measure)))
        }
        _ => None,
    });
    let queries: Vec<(&str, Query)> = queries.collect();
    let judged = Judged::read(&options.qrels)?;
    let draws = Draws {
        liked: options.liked,
        topics: options.topics,
        readers: options.draws,
        seed: options.seed,
    };
    let mut files = Vec::new();
    for source in datasets::sources(&options.files)? {
        let set = ranking::read(&source, &[])?;
        let library = Library::of(&set, &judged, draws);
        if library.readers.is_empty() {
            let most = options.liked.div_ceil(options.topics);
            let problem = match options.topics {
                1 => format!("no topic has more than {most} relevant texts"),
                few => format!("fewer than {few} topics have more than {most} relevant texts"),
            };
            return Err(EvalError::Data { file: set.name, problem });
        }
        let jobs: Vec<(&Query, &Reader)> = queries
            .iter()
            .flat_map(|(_, query)| library.readers.iter().map(move |reader| (query, reader)))
            .collect();
        let figures = scoring::map("recommending", &jobs, |(query, reader)| {
            recommended(engine, &library, reader, query, options)
        });
        let figures = figures
            .into_iter()
            .collect::<Result<Vec<_>, _>>()
            .map_err(|source| EvalError::Query { file: set.name.clone(), source })?;
        let results = queries
            .iter()
            .zip(figures.chunks(library.readers.len()))
            .flat_map(|((name, _), figures)| results(name, &library, figures, options));
        files.push(RecommendFile {
            results: results.collect(),
            name: set.name,
            texts: library.texts.len(),
            topics: library.topics,
        });
    }
    Ok(RecommendReport {
        format: "cognate-recommend-1",
        fingerprint: engine.model().fingerprint().to_owned(),
        topics: options.topics,
        draws: options.draws,
        lambda: options.lambda,
        pool: options.pool,
        seed: options.seed,
        files,
    })
}

/// The figures of every setting for a reader.
fn recommended(
    engine: &Engine,
    library: &Library,
    reader: &Reader,
    query: &Query,
    options: &RecommendOptions,
) -> Result<Vec<Figures>, QueryError> {
    let candidates: Vec<usize> =
        (0..library.texts.len()).filter(|text| !reader.liked.contains(text)).collect();
    let texts: Vec<&str> = candidates.iter().map(|&at| library.texts[at].as_str()).collect();
    let mut figures = Vec::with_capacity(SETTINGS.len());
    let mut order = Vec::new();
    for setting in SETTINGS {
        if setting.diverse {
            let pool = options.pool.min(order.len());
            let choice = (options.lambda, SHOWN);
            engine.diversify(&mut order[..pool], &texts, choice, query, || {
                Ok::<(), QueryError>(())
            })?;
        } else {
            let liked = &reader.liked[..setting.several.map_or(1, |_| reader.liked.len())];
            let liked = liked.iter().map(|&at| Liked { text: &library.texts[at], weight: 1.0 });
            let likes = Likes {
                liked: liked.collect(),
                disliked: Vec::new(),
                strategy: setting.several.unwrap_or_default(),
                unlike_weight: 0.0,
            };
            let (all, none) = (RankOptions::all(*query), Boosts::default());
            order = engine.rank_liked(&likes, &texts, &none, &all, || true)?.results;
        }
        let grade = |at: usize| reader.wanted.get(&candidates[at]).copied().unwrap_or(0);
        let ranked: Vec<u32> = order.iter().map(|ranked| grade(ranked.index)).collect();
        let mut missed = reader.wanted.clone();
        order.iter().for_each(|ranked| {
            missed.remove(&candidates[ranked.index]);
        });
        let judged = JudgedRanking::new(ranked, &missed.into_values().collect::<Vec<_>>());
        let first: Vec<&str> = order.iter().take(SHOWN).map(|ranked| texts[ranked.index]).collect();
        figures.push([
            judged.average_precision(),
            judged.ndcg_at(SHOWN),
            judged.precision_at(SHOWN),
            likeness(engine, &first, query)?,
        ]);
    }
    Ok(figures)
}

/// The mean score of the pairs of texts; 0 where there is no pair.
fn likeness(engine: &Engine, texts: &[&str], query: &Query) -> Result<f64, QueryError> {
    let pairs: Vec<(&str, &str)> = (0..texts.len())
        .flat_map(|one| (0..one).map(move |other| (texts[one], texts[other])))
        .collect();
    if pairs.is_empty() {
        return Ok(0.0);
    }
    let scores = engine.similarity(&pairs, query)?.scores;
    Ok(scores.iter().map(|&score| f64::from(score)).sum::<f64>() / pairs.len() as f64)
}

/// Means of a method's figures, a setting a result.
fn results(
    method: &str,
    library: &Library,
    figures: &[Vec<Figures>],
    options: &RecommendOptions,
) -> Vec<RecommendResult> {
    let by_topic = |setting: usize, figure: usize| {
        let mut topics = vec![0.0; library.topics];
        for (reader, figures) in library.readers.iter().zip(figures) {
            topics[reader.topic] += figures[setting][figure] / options.draws as f64;
        }
        topics
    };
    let mean = |topics: &[f64]| topics.iter().sum::<f64>() / topics.len() as f64;
    let one = by_topic(0, 0);
    let of = |(place, setting): (usize, &Setting)| {
        let precisions = by_topic(place, 0);
        let differences: Vec<f64> = precisions.iter().zip(&one).map(|(a, b)| a - b).collect();
        let test = Randomisation { seed: options.seed, ..Randomisation::default() };
        RecommendResult {
            method: method.to_owned(),
            setting: setting.name(options),
            map: mean(&precisions),
            p: (place > 0).then(|| test.p_value(&differences).unwrap_or(1.0)),
            ndcg_at_10: mean(&by_topic(place, 1)),
            precision_at_10: mean(&by_topic(place, 2)),
            alike_at_10: mean(&by_topic(place, 3)),
        }
    };
    SETTINGS.iter().enumerate().map(of).collect()
}

impl RecommendReport {
    pub fn json(&self) -> String {
        // Every key is a string and every number finite, so nothing here can fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

impl fmt::Display for RecommendReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, file) in self.files.iter().enumerate() {
            let mut methods: Vec<&str> = file.results.iter().map(|of| of.method.as_str()).collect();
            methods.dedup();
            for (number, method) in methods.into_iter().enumerate() {
                if place + number > 0 {
                    writeln!(f)?;
                }
                write!(f, "{}", table(file, method, self))?;
            }
        }
        Ok(())
    }
}

fn table(file: &RecommendFile, method: &str, report: &RecommendReport) -> Table {
    let of = match report.topics {
        1 => String::new(),
        topics => format!(" of {topics} topics"),
    };
    let column = |name: &str, better| Column { name: name.to_owned(), better };
    let of_method = || file.results.iter().filter(|result| result.method == method);
    let one = of_method().next().map_or(0.0, |result| result.map);
    let row = |result: &RecommendResult| {
        let significant = result.p.is_some_and(|p| p < SIGNIFICANT);
        let cells = vec![
            Cell::fine(result.map, Mark::of(significant, result.map - one)),
            Cell::chance(result.p),
            Cell::fine(result.ndcg_at_10, Mark::None),
            Cell::fine(result.precision_at_10, Mark::None),
            Cell::share(result.alike_at_10, Mark::None),
        ];
        (result.setting.clone(), cells)
    };
    Table {
        title: format!(
            "{}, {method}: {} topics, {} readers each{of}, {} texts",
            file.name,
            file.topics,
            report.draws,
            HumanCount(file.texts as u64)
        ),
        stub: "setting",
        columns: vec![
            column("MAP", Better::Higher),
            column("p", Better::Neither),
            column("NDCG@10", Better::Higher),
            column("P@10", Better::Higher),
            column("alike@10", Better::Lower),
        ],
        rows: of_method().map(row).collect(),
        notes: vec![
            "p: Fisher's paired randomisation test of average precision over topics, against 1 liked."
                .to_owned(),
            "alike@10: the mean score of the pairs of the first ten.".to_owned(),
        ],
    }
}
