//! `cognate eval recommend`: simulates readers who like some texts of one topic or several, and
//! measures how many other texts of these topics are recommended.
//!
//! The rankings are those of `/rank` with `like`, `strategy` and `diversify`. All settings rank the
//! same candidates for the same readers: every text of the file except those that the reader likes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use cognate::engine::rank::Question;
use cognate::engine::{Candidates, Engine, Likes, Measure, Query, QueryError, Strategy};
use cognate_files::input::shown;
use cognate_files::records::Records;
use cognate_files::{ReadError, instant};
use cognate_kernels::random::Random;
use cognate_stats::page::table::{Better, Cell, Column, Mark, Table};
use cognate_stats::ranking::JudgedRanking;
use cognate_stats::significance::Randomisation;
use indicatif::HumanCount;
use serde::Serialize;

use crate::contenders::Scores;
use crate::datasets::{Judged, RankingSet, is_blank};
use crate::report::{SIGNIFICANT, json};
use crate::{EvalError, Result, contenders, datasets, scoring};

const SHOWN: usize = 10;

#[derive(Debug, Clone, Default)]
pub struct RecommendOptions {
    pub files: Vec<PathBuf>,
    pub qrels: Vec<PathBuf>,
    /// Records of reader, item and time: the files then hold items, each with id and text, and every reader
    /// waits for the last item that was opened, after `liked` ones before it.
    pub clicks: Option<PathBuf>,
    pub methods: Vec<String>,
    pub measures: Vec<Measure>,
    pub liked: usize,
    /// Number of topics they belong to; liked texts are spread evenly over the topics.
    pub topics: usize,
    pub draws: usize,
    /// With diversification, the weight of a score against similarity to earlier results.
    pub lambda: f64,
    /// With diversification, the number of best candidates to choose from.
    pub pool: usize,
    pub seed: u64,
}

#[derive(Debug, Clone, Serialize)]
pub struct RecommendReport {
    pub format: &'static str,
    pub fingerprint: String,
    pub topics: usize,
    /// Number of readers drawn for each topic; with a click log every reader is a topic.
    pub draws: usize,
    pub clicks: bool,
    /// The weight of a score against similarity to earlier results.
    pub lambda: f64,
    pub pool: usize,
    pub seed: u64,
    pub files: Vec<RecommendFile>,
}

#[derive(Debug, Clone, Serialize)]
pub struct RecommendFile {
    pub name: String,
    pub texts: usize,
    pub topics: usize,
    pub results: Vec<RecommendResult>,
}

/// Figures of a method under a setting: means over topics of the means over their readers.
#[derive(Debug, Clone, Serialize)]
pub struct RecommendResult {
    pub method: String,
    pub setting: String,
    pub map: f64,
    /// p value of the difference in average precision from the setting with one liked text, by
    /// Fisher's randomisation test over topics; `null` for that setting itself.
    pub p: Option<f64>,
    pub ndcg_at_10: f64,
    pub precision_at_10: f64,
    /// Mean score of the pairs among the first ten: how similar they are to each other.
    pub alike_at_10: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Setting {
    /// With a strategy, all liked texts are used; without one, only the first.
    several: Option<Strategy>,
    diverse: bool,
}

/// Every setting; one without diversification comes first, as diversification reorders its ranking.
fn settings() -> impl Iterator<Item = Setting> {
    let liked = [None, Some(Strategy::Best), Some(Strategy::Mean)].into_iter();
    liked.flat_map(|several| [false, true].map(|diverse| Setting { several, diverse }))
}

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

type Figures = [f64; 4];

pub fn eval_recommend(engine: &Engine, options: &RecommendOptions) -> Result<RecommendReport> {
    let methods = contenders::methods(engine, &options.methods, &options.measures)?;
    let queries = methods.iter().filter_map(|contender| match contender.scores {
        Scores::Method(query) => Some((contender.name.as_str(), query)),
        _ => None,
    });
    let queries: Vec<(&str, Query)> = queries.collect();
    let judged = Judged::read(&options.qrels)?;
    let opened = options.clicks.as_deref().map(opened).transpose()?;
    let mut files = Vec::new();
    for source in datasets::sources(&options.files)? {
        let (name, library) = match &opened {
            None => {
                let set = datasets::read_ranking(&source, &[])?;
                let library = Library::draw(&set, &judged, options);
                (set.name, library)
            }
            Some(opened) => (source.name, Library::of_clicks(&source.path, opened, options.liked)?),
        };
        if library.readers.is_empty() {
            let most = options.liked.div_ceil(options.topics);
            let problem = match options.topics {
                _ if options.clicks.is_some() => "no reader opened two of the items".to_owned(),
                1 => format!("no topic has more than {most} relevant texts"),
                few => format!("fewer than {few} topics have more than {most} relevant texts"),
            };
            return Err(EvalError::Data { file: name, problem });
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
            .map_err(|source| EvalError::Query { file: name.clone(), source })?;
        let results = queries
            .iter()
            .zip(figures.chunks(library.readers.len()))
            .flat_map(|((method, _), figures)| results(method, &library, figures, options));
        files.push(RecommendFile {
            results: results.collect(),
            name,
            texts: library.texts.len(),
            topics: library.topics,
        });
    }
    Ok(RecommendReport {
        format: "cognate-recommend-1",
        fingerprint: engine.model().fingerprint().to_owned(),
        topics: options.topics,
        draws: options.draws,
        clicks: options.clicks.is_some(),
        lambda: options.lambda,
        pool: options.pool,
        seed: options.seed,
        files,
    })
}

fn recommended(
    engine: &Engine,
    library: &Library,
    reader: &Reader,
    query: &Query,
    options: &RecommendOptions,
) -> Result<Vec<Figures>, QueryError> {
    let candidates: Vec<usize> =
        (0..library.texts.len()).filter(|text| !reader.known.contains(text)).collect();
    let texts: Vec<&str> = candidates.iter().map(|&at| library.texts[at].as_str()).collect();
    let (mut figures, mut order) = (Vec::new(), Vec::new());
    for setting in settings() {
        if setting.diverse {
            let pool = options.pool.min(order.len());
            let choice = (options.lambda, SHOWN);
            engine.diversify(&mut order[..pool], &texts, choice, query, || {
                Ok::<(), QueryError>(())
            })?;
        } else {
            let liked = &reader.liked[..setting.several.map_or(1, |_| reader.liked.len())];
            let likes = Likes {
                strategy: setting.several.unwrap_or_default(),
                ..Likes::any_of(liked.iter().map(|&at| &*library.texts[at]))
            };
            let question = Question::new(likes, *query);
            let go_on = || Ok::<_, QueryError>(());
            let mut made = engine.rank_pages(&question, &Candidates::new(&texts), go_on)?;
            order = made.pages.remove(0).ranking.results;
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

/// The mean score over all pairs of the texts; 0 for fewer than two.
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
    let of = |(place, setting): (usize, Setting)| {
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
    settings().enumerate().map(of).collect()
}

impl RecommendReport {
    pub fn json(&self) -> String {
        json(self)
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
    let of_method = || file.results.iter().filter(|result| result.method == method);
    let one = of_method().next().map_or(0.0, |result| result.map);
    let row = |result: &RecommendResult| {
        let significant = result.p.is_some_and(|p| p < SIGNIFICANT);
        let cells = vec![
            Cell::fine(result.map, Mark::from_difference(significant, result.map - one)),
            Cell::chance(result.p),
            Cell::fine(result.ndcg_at_10, Mark::None),
            Cell::fine(result.precision_at_10, Mark::None),
            Cell::share(result.alike_at_10, Mark::None),
        ];
        (result.setting.clone(), cells)
    };
    let readers = match report.clicks {
        true => format!("{} readers of the log", file.topics),
        false => format!("{} topics, {} readers each{of}", file.topics, report.draws),
    };
    let texts = HumanCount(file.texts as u64);
    Table {
        title: format!("{}, {method}: {readers}, {texts} texts", file.name),
        stub: "setting",
        columns: vec![
            Column::new("MAP", Better::Higher),
            Column::new("p", Better::Neither),
            Column::new("NDCG@10", Better::Higher),
            Column::new("P@10", Better::Higher),
            Column::new("alike@10", Better::Lower),
        ],
        rows: of_method().map(row).collect(),
        notes: vec![
            format!(
                "p: Fisher's paired randomisation test of average precision over {}, against 1 liked.",
                if report.clicks { "readers" } else { "topics" }
            ),
            "alike@10: the mean score of the pairs of the first ten.".to_owned(),
        ],
    }
}

/// The distinct texts of a file, and the readers drawn from its topics.
struct Library {
    texts: Vec<String>,
    topics: usize,
    readers: Vec<Reader>,
}

struct Reader {
    topic: usize,
    /// The liked texts, in the order in which they were drawn.
    liked: Vec<usize>,
    /// All texts that the reader knows, which are not recommended.
    known: BTreeSet<usize>,
    /// The other relevant texts of the topics, with their grades.
    wanted: BTreeMap<usize, u32>,
}

/// What the readers of a log opened, in the order of time.
type Opened = BTreeMap<String, Vec<(i64, String)>>;

impl Library {
    /// Draws readers for every topic with more relevant texts than a reader likes; the further
    /// topics of a reader are random.
    fn draw(set: &RankingSet, judged: &Judged, options: &RecommendOptions) -> Self {
        let (mut texts, mut places) = (Vec::new(), BTreeMap::new());
        let most = options.liked.div_ceil(options.topics);
        let mut grades_of = Vec::new();
        for topic in &set.topics {
            let asked = topic.texts.iter().map(|text| (!is_blank(text)).then_some(text));
            let asked: Vec<Option<usize>> = asked
                .map(|text| {
                    let text = text?;
                    Some(*places.entry(text.clone()).or_insert_with(|| {
                        texts.push(text.clone());
                        texts.len() - 1
                    }))
                })
                .collect();
            let relevant = judged.relevant(topic).into_iter();
            let grades = merged(relevant.filter_map(|(at, grade)| Some((asked[at]?, grade))));
            if grades.len() > most {
                grades_of.push(grades);
            }
        }
        let mut library = Self { texts, topics: grades_of.len(), readers: Vec::new() };
        if grades_of.len() < options.topics {
            return library;
        }
        let mut random = Random::seeded(options.seed);
        for topic in 0..grades_of.len() {
            for _ in 0..options.draws {
                let mut others: Vec<usize> = (0..grades_of.len()).collect();
                others.swap_remove(topic);
                random.shuffle(&mut others);
                let topics = std::iter::once(topic).chain(others).take(options.topics);
                let topics: Vec<&BTreeMap<usize, u32>> =
                    topics.map(|topic| &grades_of[topic]).collect();
                library.readers.push(reader(topic, &topics, options.liked, &mut random));
            }
        }
        library
    }

    /// The readers of a log, each a topic of its own. An item that is opened again counts once; what is no
    /// item does not count.
    fn of_clicks(items: &Path, opened: &Opened, liked: usize) -> Result<Self, ReadError> {
        let (mut texts, mut places) = (Vec::new(), BTreeMap::new());
        each(items, ["id", "text"], |[id, text]| {
            if !is_blank(&text) {
                places.insert(id, texts.len());
                texts.push(text);
            }
            Ok(())
        })?;
        let mut readers = Vec::new();
        for history in opened.values() {
            let mut known = BTreeSet::new();
            let items = history.iter().filter_map(|(_, item)| places.get(item).copied());
            let items: Vec<usize> = items.filter(|item| known.insert(*item)).collect();
            let &[_, .., wanted] = &*items else { continue };
            known.remove(&wanted);
            let topic = readers.len();
            let liked = items.iter().rev().skip(1).take(liked).copied().collect();
            readers.push(Reader { topic, liked, known, wanted: BTreeMap::from([(wanted, 1)]) });
        }
        Ok(Self { texts, topics: readers.len(), readers })
    }
}

fn opened(clicks: &Path) -> Result<Opened, ReadError> {
    let mut opened = Opened::new();
    each(clicks, ["reader", "item", "time"], |[reader, item, time]| {
        let wrong =
            || format!("`time`: expected {}, found {}", instant::FORMS, shown(time.as_bytes()));
        let time = instant::milliseconds(&time).ok_or_else(wrong)?;
        opened.entry(reader).or_default().push((time, item));
        Ok(())
    })?;
    opened.values_mut().for_each(|history| history.sort_by_key(|(time, _)| *time));
    Ok(opened)
}

/// Takes the fields of these names of every record of a file.
fn each<const N: usize>(
    path: &Path,
    names: [&str; N],
    mut take: impl FnMut([String; N]) -> Result<(), String>,
) -> Result<(), ReadError> {
    let mut records = Records::open(path, Default::default())?;
    let columns =
        names.map(|name| records.column(name)).into_iter().collect::<Result<Vec<_>, _>>()?;
    loop {
        let taken = match records.read()? {
            None => return Ok(()),
            Some(record) => {
                let fields = columns.iter().map(|column| Ok(record.needed(column)?.into_owned()));
                fields.collect::<Result<Vec<_>, String>>().map(<[String; N]>::try_from)
            }
        };
        // There are as many fields as columns.
        let taken = taken.and_then(|fields| fields.map_or(Ok(()), &mut take));
        taken.map_err(|problem| records.wrong(problem))?;
    }
}

/// A reader of these topics; liked texts are drawn from each topic in turn.
fn reader(
    topic: usize,
    topics: &[&BTreeMap<usize, u32>],
    liked: usize,
    random: &mut Random,
) -> Reader {
    let mut shuffled: Vec<Vec<usize>> = Vec::with_capacity(topics.len());
    for grades in topics {
        let mut texts: Vec<usize> = grades.keys().copied().collect();
        random.shuffle(&mut texts);
        shuffled.push(texts);
    }
    let mut drawn: Vec<usize> = Vec::with_capacity(liked);
    for turn in 0..liked {
        let texts = &mut shuffled[turn % topics.len()];
        // A text that belongs to two topics can be liked only once.
        while let Some(text) = texts.pop() {
            if !drawn.contains(&text) {
                drawn.push(text);
                break;
            }
        }
    }
    let all = topics.iter().flat_map(|grades| grades.iter().map(|(&text, &grade)| (text, grade)));
    let mut wanted = merged(all);
    wanted.retain(|text, _| !drawn.contains(text));
    Reader { topic, known: drawn.iter().copied().collect(), liked: drawn, wanted }
}

/// Texts with their grades; a text with two grades keeps the better grade.
fn merged(texts: impl Iterator<Item = (usize, u32)>) -> BTreeMap<usize, u32> {
    let mut grades = BTreeMap::new();
    for (text, grade) in texts {
        let known = grades.entry(text).or_insert(grade);
        *known = grade.max(*known);
    }
    grades
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::Topic;

    #[test]
    fn a_reader_waits_for_what_was_not_drawn_and_a_text_stands_once() {
        let topic = |id: &str, rows: &[(&str, u32)]| Topic {
            id: id.to_owned(),
            texts: rows.iter().map(|row| row.0.to_owned()).collect(),
            grades: rows.iter().map(|row| row.1).collect(),
            documents: (0..rows.len()).map(|row| row.to_string()).collect(),
            ..Topic::default()
        };
        let set = RankingSet {
            name: "made".to_owned(),
            topics: vec![
                topic("full", &[("a", 1), ("b", 1), ("c", 2), ("b", 2), ("x", 0), (" ", 1)]),
                topic("too few", &[("a", 1), ("d", 1)]),
            ],
        };
        let judged = Judged::read(&[]).unwrap();
        let options =
            RecommendOptions { liked: 2, topics: 1, draws: 20, seed: 7, ..Default::default() };
        let library = Library::draw(&set, &judged, &options);
        assert_eq!(library.texts, ["a", "b", "c", "x", "d"]);
        assert_eq!((library.topics, library.readers.len()), (1, 20));
        let mut seen = std::collections::BTreeSet::new();
        for reader in &library.readers {
            assert_eq!(reader.liked.len(), 2);
            let mut all: Vec<usize> = reader.liked.clone();
            all.extend(reader.wanted.keys());
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2]);
            let grades = BTreeMap::from([(0, 1), (1, 2), (2, 2)]);
            assert!(reader.wanted.iter().all(|(text, grade)| grades[text] == *grade));
            seen.insert(reader.liked.clone());
        }
        assert!(seen.len() > 3);
        let again = Library::draw(&set, &judged, &options);
        let liked = |library: &Library| library.readers[19].liked.clone();
        assert_eq!(liked(&library), liked(&again));
    }

    #[test]
    fn a_reader_of_two_topics_likes_texts_of_both() {
        let topic = |id: &str, texts: [&str; 3]| Topic {
            id: id.to_owned(),
            texts: texts.map(str::to_owned).to_vec(),
            grades: vec![1; 3],
            documents: texts.map(str::to_owned).to_vec(),
            ..Topic::default()
        };
        let topics = vec![topic("one", ["a", "b", "c"]), topic("other", ["d", "e", "f"])];
        let set = RankingSet { name: "made".to_owned(), topics };
        let options =
            RecommendOptions { liked: 3, topics: 2, draws: 10, seed: 7, ..Default::default() };
        let library = Library::draw(&set, &Judged::read(&[]).unwrap(), &options);
        assert_eq!(library.readers.len(), 20);
        for reader in &library.readers {
            let of_first = reader.liked.iter().filter(|&&text| text < 3).count();
            assert_eq!((reader.liked.len(), of_first), (3, if reader.topic == 0 { 2 } else { 1 }));
            assert_eq!(reader.wanted.len(), 3);
        }
        let three = RecommendOptions { topics: 3, ..options };
        assert!(Library::draw(&set, &Judged::read(&[]).unwrap(), &three).readers.is_empty());
    }
}
