//! Labelled data sets in files: pairs with labels (`PairSet`), queries with candidates
//! (`RankingSet`) and pairs with gold scores (`Subtask`). How methods score them is not known here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cognate::engine::{Place as TextPlace, QueryError, TextLimits};
use cognate_files::records::Records;
use cognate_files::rows::{Pairs, Rows, exactly, number};
use cognate_files::topics::Judgements;
pub(crate) use cognate_files::topics::Topic;
use cognate_files::{ReadError, topics};

use crate::{EvalError, Result};

/// Endings of data files in a folder. A file given by its own path may have any name.
const ENDINGS: [&str; 3] = [".tsv", ".tsv.gz", ".tsv.zst"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// The file's name without folder and extension; if names repeat, with the extension and as
    /// many folders as distinguish the files. Reports are shown to others, to whom the rest means
    /// nothing.
    pub(super) name: String,
}

/// All data files: those given by path, and those in the given folders, sorted by path. Judgements
/// (`*.qrels.tsv`) in a folder are skipped.
pub(super) fn sources(paths: &[PathBuf]) -> Result<Vec<Source>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = files.len();
            walk(path, &mut files)?;
            if files.len() == before {
                let endings = ENDINGS.join(", ");
                let problem = format!("the folder holds no file ending in {endings}");
                return Err(EvalError::Data { file: path.display().to_string(), problem });
            }
        } else {
            files.push(path.clone());
        }
    }
    let mut unique = std::collections::BTreeSet::new();
    files.retain(|file| unique.insert(file.clone()));
    let name = |file: &PathBuf| {
        let alike = |other: &&PathBuf| *other != file && stem(other) == stem(file);
        let others: Vec<&PathBuf> = files.iter().filter(alike).collect();
        if others.is_empty() {
            return stem(file);
        }
        let alone =
            |parts: &usize| others.iter().all(|other| end(other, *parts) != end(file, *parts));
        // Paths differ, so at the latest the whole paths do.
        let parts = (1..file.components().count()).find(alone).unwrap_or(usize::MAX);
        end(file, parts).display().to_string()
    };
    let named: Vec<String> = files.iter().map(name).collect();
    Ok(files.into_iter().zip(named).map(|(path, name)| Source { path, name }).collect())
}

pub(super) fn read_all<T>(
    paths: &[PathBuf],
    read: impl Fn(&Source) -> Result<T, ReadError>,
) -> Result<Vec<T>> {
    Ok(sources(paths)?.iter().map(read).collect::<Result<_, _>>()?)
}

fn end(path: &Path, parts: usize) -> PathBuf {
    let all = path.components();
    all.clone().skip(all.count().saturating_sub(parts)).collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let failed = |source| EvalError::Folder { path: folder.to_owned(), source };
    let mut entries = std::fs::read_dir(folder)
        .and_then(|entries| entries.collect::<Result<Vec<_>, _>>())
        .map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        // Links to folders are not followed: they could form a cycle.
        if entry.file_type().map_err(failed)?.is_dir() {
            walk(&path, files)?;
        } else if ENDINGS.iter().any(|ending| name.ends_with(ending)) && !name.contains(".qrels.") {
            files.push(path);
        }
    }
    Ok(())
}

fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let mut stem = name.as_str();
    for ending in [".gz", ".zst", ".tsv", ".txt"] {
        stem = stem.strip_suffix(ending).unwrap_or(stem);
    }
    if stem.is_empty() { name } else { stem.to_owned() }
}

/// Refuses a text that the engine would refuse. Blank texts pass; they count as unscored later.
fn text<'r>(field: &'r str, name: &str) -> Result<&'r str, String> {
    match TextLimits::DEFAULT.check_text(field, TextPlace::Query) {
        Err(QueryError::TextTooLong { unit, limit, actual, .. }) => {
            Err(format!("{name} has {actual} {unit}; the limit is {limit}"))
        }
        _ => Ok(field),
    }
}

pub(super) fn is_blank(text: &str) -> bool {
    TextLimits::DEFAULT.check_text(text, TextPlace::Query).is_err()
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PairSet {
    pub(crate) name: String,
    pub(crate) labels: Vec<bool>,
    pub(crate) texts: Vec<(String, String)>,
}

pub(crate) fn read_pairs(source: &Source) -> Result<PairSet, ReadError> {
    pairs_of(Pairs::open(&source.path)?, source.name.clone())
}

fn pairs_of(mut rows: Records, name: String) -> Result<PairSet, ReadError> {
    let pairs = Pairs::read(&mut rows, text)?;
    let related = pairs.related();
    if related < 2 || pairs.labels.len() - related < 2 {
        return Err(rows.wrong(format!(
            "expected at least 2 pairs of either label, found {related} with 1 and {} with 0",
            pairs.labels.len() - related
        )));
    }
    Ok(PairSet { name, labels: pairs.labels, texts: pairs.texts })
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankingSet {
    pub(crate) name: String,
    pub(crate) topics: Vec<Topic>,
}

/// The source of relevance: judgements, or `None` for the labels of the rows.
pub(crate) struct Judged(Option<Judgements>);

impl Judged {
    pub(crate) fn read(files: &[PathBuf]) -> Result<Self, ReadError> {
        let mut judgements = None;
        for path in files {
            topics::add_judgements(&mut Rows::open(path)?, judgements.get_or_insert_default())?;
        }
        Ok(Self(judgements))
    }

    pub(crate) fn name(&self) -> &'static str {
        if self.0.is_some() { "qrels" } else { "labels" }
    }

    /// The grades of a topic's documents; `None` if the topic does not count.
    pub(crate) fn grades(&self, topic: &Topic) -> Option<BTreeMap<String, u32>> {
        if let Some(judgements) = &self.0 {
            return judgements.get(&topic.id).cloned();
        }
        let relevant = topic.grades.iter().filter(|&&grade| grade > 0).count();
        if relevant == 0 || relevant == topic.grades.len() {
            return None;
        }
        Some(topic.documents.iter().cloned().zip(topic.grades.iter().copied()).collect())
    }

    /// The indices and grades of a topic's relevant candidates. With labels, topics count here even
    /// if all their candidates are relevant.
    pub(crate) fn relevant(&self, topic: &Topic) -> Vec<(usize, u32)> {
        let judged = self.0.as_ref().map(|judgements| judgements.get(&topic.id));
        let grade = |place: usize| match judged {
            None => topic.grades[place],
            Some(grades) => {
                let grade = grades.and_then(|grades| grades.get(&topic.documents[place]));
                grade.copied().unwrap_or(0)
            }
        };
        let graded = (0..topic.texts.len()).map(|place| (place, grade(place)));
        graded.filter(|&(_, grade)| grade > 0).collect()
    }

    pub(crate) fn none_counts(&self) -> &'static str {
        match self.0 {
            Some(_) => "the judgements list none of its queries",
            None => "no query has both relevant candidates and others",
        }
    }
}

pub(crate) fn read_ranking(source: &Source, columns: &[String]) -> Result<RankingSet, ReadError> {
    ranking_of(Rows::open(&source.path)?, source.name.clone(), columns)
}

fn ranking_of(mut rows: Rows, name: String, wanted: &[String]) -> Result<RankingSet, ReadError> {
    Ok(RankingSet { name, topics: topics::read(&mut rows, wanted, text)? })
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Subtask {
    pub(crate) name: String,
    /// The year at the beginning of the name, as in `2012.MSRpar`.
    pub(crate) year: Option<u16>,
    pub(crate) gold: Vec<f64>,
    pub(crate) texts: Vec<(String, String)>,
}

pub(crate) fn read_sts(source: &Source) -> Result<Subtask, ReadError> {
    sts_of(Rows::open(&source.path)?, source.name.clone())
}

fn sts_of(mut rows: Rows, name: String) -> Result<Subtask, ReadError> {
    let (mut gold, mut texts) = (Vec::new(), Vec::new());
    let take = |fields: &[&str]| {
        let [score, one, other] = exactly(fields, "score, sentence, sentence")?;
        let [one, other] = [text(one, "the first sentence")?, text(other, "the second sentence")?];
        Ok((number(score, "score")?, (one.to_owned(), other.to_owned())))
    };
    while let Some((score, pair)) = rows.next(take)? {
        gold.push(score);
        texts.push(pair);
    }
    if gold.len() < 2 {
        return Err(rows.wrong(format!("expected at least 2 pairs, found {}", gold.len())));
    }
    Ok(Subtask { year: year(&name), name, gold, texts })
}

pub(crate) fn joined_by_year(sets: Vec<Subtask>) -> Vec<Subtask> {
    let mut joined: Vec<Subtask> = Vec::new();
    for set in sets {
        let before = joined.iter_mut().find(|before| set.year.is_some() && before.year == set.year);
        match (before, set.year) {
            (Some(before), _) => {
                before.gold.extend(set.gold);
                before.texts.extend(set.texts);
            }
            (None, Some(year)) => joined.push(Subtask { name: year.to_string(), ..set }),
            (None, None) => joined.push(set),
        }
    }
    joined
}

fn year(name: &str) -> Option<u16> {
    let (year, rest) = name.rsplit('/').next()?.split_once('.')?;
    let four_digits = year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit());
    (four_digits && !rest.is_empty()).then(|| year.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use cognate_files::input::Input;
    use cognate_files::records::Options;
    use cognate_files::rows::Rows;
    use cognate_files::topics;
    use cognate_files::topics::Judgements;

    use super::*;

    fn rows(text: &str) -> Rows {
        Rows::new(Input::from_bytes("data.tsv", text.as_bytes().to_vec()).unwrap()).unwrap()
    }

    #[track_caller]
    fn fault<T: std::fmt::Debug>(outcome: Result<T, cognate_files::ReadError>, parts: &[&str]) {
        let said = outcome.expect_err("a fault").to_string();
        for part in ["data.tsv"].iter().chain(parts) {
            assert!(said.contains(part), "`{part}` is missing in: {said}");
        }
    }

    #[test]
    fn gold_scores_are_read_with_quotes_and_years_as_they_stand() {
        let read = |text: &str, name: &str| sts_of(rows(text), name.to_owned());
        let set = read("\u{feff}4.5\t\"a b\tc\r\n0\t \td\n", "2014.deft-news").unwrap();
        assert_eq!(set.gold, [4.5, 0.0]);
        assert_eq!(set.texts[0], ("\"a b".to_owned(), "c".to_owned()), "no quoting");
        assert_eq!(set.year, Some(2014));
        for name in ["stsb-dev", "2014", "2014.", "201.x", "20145.x"] {
            assert_eq!(read("1\ta\tb\n2\ta\tb\n", name).unwrap().year, None, "{name}");
        }

        let long = format!("1\ta\tb\n1\ta\t{}\n", "x".repeat(40_000));
        fault(read("1\ta\tb\n2\ta\n", ""), &["line 2", "expected 3 columns", "found 2"]);
        fault(read("1\ta\tb\n\n", ""), &["line 2", "found 1"]);
        fault(read("good\ta\tb\n", ""), &["line 1", "score: expected a number", "`good`"]);
        fault(read("inf\ta\tb\n", ""), &["line 1", "expected a number"]);
        fault(read(&long, ""), &["line 2", "the second sentence has 40000 bytes", "32768"]);
        fault(read("1\ta\tb\n", ""), &["at least 2 pairs, found 1"]);
        fault(read("", ""), &["at least 2 pairs, found 0"]);
        let latin = Input::from_bytes("data.tsv", b"1\ta\tb\n1\t\xe9\tb\n".to_vec()).unwrap();
        fault(sts_of(Rows::new(latin).unwrap(), String::new()), &["line 2", "not UTF-8"]);
    }

    #[test]
    fn labelled_pairs_are_read_with_and_without_a_header() {
        let read = |text: &str| {
            let input = Input::from_bytes("data.tsv", text.as_bytes().to_vec()).unwrap();
            let options = Options { format: None, headless: true };
            pairs_of(Records::new(input, options).unwrap(), String::new())
        };
        let plain = read("1\ta\tb\n0\tc\td\n1\te\tf\n0\tg\th\n").unwrap();
        assert_eq!(plain.labels, [true, false, true, false]);
        let header = "id\ttext2\tlabel\ttext1\n";
        let named = format!("{header}9\tb\t1\ta\n9\td\t0\tc\n9\tf\t1\te\n9\th\t0\tg\n");
        assert_eq!(read(&named).unwrap(), plain);
        assert_eq!(read("1,a,b\n0,c,\"d\"\n1,e,f\n0,g,h\n").unwrap(), plain);
        let object = |label: &str, [one, other]: [&str; 2]| {
            format!("{{\"label\":{label},\"text1\":\"{one}\",\"text2\":\"{other}\"}}\n")
        };
        let objects =
            [("1", ["a", "b"]), ("false", ["c", "d"]), ("true", ["e", "f"]), ("0", ["g", "h"])];
        let objects: String = objects.map(|(label, texts)| object(label, texts)).concat();
        assert_eq!(read(&objects).unwrap(), plain);

        fault(read("1\ta\tb\tc\n"), &["line 1", "expected 3 columns, found 4", "text1"]);
        fault(read(&format!("{header}1\t2\t3\n")), &["line 2", "expected 4 columns, found 3"]);
        fault(read("1\ta\tb\n2\ta\tb\n"), &["line 2", "label: expected 0 or 1, found `2`"]);
        fault(read("1\ta\tb\n1\ta\tb\n0\ta\tb\n"), &["at least 2", "2 with 1 and 1 with 0"]);
    }

    #[test]
    fn rankings_are_read_in_their_shapes() {
        let read = |text: &str, columns: &[&str]| {
            let columns: Vec<String> = columns.iter().map(|&name| name.to_owned()).collect();
            ranking_of(rows(text), String::new(), &columns)
        };
        let posts = "7\tq\t0\t11\t1\t2.5\ta\n8\tr\t1\t11\t1\t2\tb\n7\tq\t1\t12\t2\t1.5\tc\n";
        let set = read(posts, &["ql_score", "rank"]).unwrap();
        assert_eq!(set.topics.len(), 2);
        assert_eq!(set.topics[0].documents, ["11", "12"]);
        assert_eq!(set.topics[0].grades, [0, 1]);
        assert_eq!(set.topics[0].columns, [[2.5, 1.5], [1.0, 2.0]]);
        let header = "query\tqid\ttext\tlabel\tid\nq\t7\ta\t0\tx\nq\t7\tc\t-2\ty\n";
        let set = read(header, &[]).unwrap();
        assert_eq!(set.topics[0].documents, ["x", "y"]);
        assert_eq!(set.topics[0].grades, [0, 0], "spam is not relevant");
        let questions = read("1.1\tq\t1\ta\n1.1\tq\t0\tb\n", &[]).unwrap();
        let documents = &questions.topics[0].documents;
        assert!(documents[0] > documents[1], "the larger name, and so the earlier row, wins a tie");

        fault(read("a\tb\n", &[]), &["expected 4 columns", "qid, query, label, text", "found 2"]);
        fault(read("1\tq\t0\ta\n1\tq\t0\n", &[]), &["line 2", "expected 4 columns, found 3"]);
        fault(read("1\tq\tno\ta\n", &[]), &["line 1", "label: expected a whole number", "`no`"]);
        fault(read("1\tq\t0\ta\n1\tr\t0\tb\n", &[]), &["line 2", "two different texts"]);
        fault(read(posts, &["bm25"]), &["no column `bm25`", "ql_score"]);
        fault(
            read("1\tq\t0\td\t1\tx\ta\n", &["ql_score"]),
            &["line 1", "ql_score: expected a number"],
        );
        fault(read("1\tq\t0\td\t1\t1\ta\n1\tq\t0\td\t1\t1\ta\n", &[]), &["document `d` twice"]);
        fault(read("", &[]), &["expected 4 columns"]);
    }

    #[test]
    fn judgements_come_in_three_columns_or_four() {
        let add = |text: &str| {
            let mut judgements = Judgements::new();
            topics::add_judgements(&mut rows(text), &mut judgements).map(|()| judgements)
        };
        let three = add("1\td\t2\n1\te\t0\n").unwrap();
        assert_eq!(three, add("1\t0\td\t2\n1\tQ0\te\t-1\n1\t0\td\t2\n").unwrap());
        fault(add("1\td\n"), &["line 1", "found 2"]);
        fault(add("1\td\t1\n1\td\t2\n"), &["line 2", "`d` has grade 1 and 2"]);
        fault(add("1\td\thigh\n"), &["line 1", "grade: expected a whole number"]);
    }

    #[test]
    fn folders_give_their_data_sets_and_names_stay_apart() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("b/empty")).unwrap();
        std::fs::create_dir(root.join("c")).unwrap();
        for name in [
            "a.tsv.zst",
            "b/a.tsv.gz",
            "b/c.d.tsv.zst",
            "b/x.qrels.tsv",
            "b/notes.md",
            "c/a.tsv.gz",
        ] {
            std::fs::write(root.join(name), "").unwrap();
        }
        let found = sources(&[root.to_owned(), root.join("b"), root.join("b/notes.md")]).unwrap();
        let names: Vec<&str> = found.iter().map(|Source { name, .. }| name.as_str()).collect();
        assert_eq!(
            names,
            ["a.tsv.zst", "b/a.tsv.gz", "c.d", "c/a.tsv.gz", "notes.md"],
            "each file once"
        );
        let none = sources(&[root.join("b/empty")]).unwrap_err().to_string();
        assert!(none.contains("empty: the folder holds no file"), "{none}");
    }
}
