//! Queries with their candidates, and what says which of them are relevant.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cognate_files::rows::Rows;
use cognate_files::topics::Judgements;
pub(crate) use cognate_files::topics::Topic;
use cognate_files::{ReadError, topics};

use crate::datasets::{Source, text};

/// The topics of one file, in its order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RankingSet {
    pub(crate) name: String,
    pub(crate) topics: Vec<Topic>,
}

/// What says which candidates are relevant: judgements, or without any the labels of the rows.
pub(crate) struct Judged(Option<Judgements>);

impl Judged {
    /// The judgements of these files, if there are any.
    pub(crate) fn read(files: &[PathBuf]) -> Result<Self, ReadError> {
        let mut judgements = None;
        for path in files {
            let source = Source { path: path.clone(), name: path.display().to_string() };
            read_judgements(&source, judgements.get_or_insert_default())?;
        }
        Ok(Self(judgements))
    }

    /// What it is called in a report.
    pub(crate) fn name(&self) -> &'static str {
        if self.0.is_some() { "qrels" } else { "labels" }
    }

    /// The grades of a topic's documents, or nothing if it does not count.
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

    /// The candidates of a topic that are relevant, by their places, with their grades: by their labels
    /// also where all are.
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

    /// Why no query of a file counts.
    pub(crate) fn none_counts(&self) -> &'static str {
        match self.0 {
            Some(_) => "the judgements list none of its queries",
            None => "no query has both relevant candidates and others",
        }
    }
}

/// Reads the topics of a file, and the numbers of the columns named.
pub(crate) fn read(source: &Source, columns: &[String]) -> Result<RankingSet, ReadError> {
    of(Rows::open(&source.path)?, source.name.clone(), columns)
}

pub(super) fn of(mut rows: Rows, name: String, wanted: &[String]) -> Result<RankingSet, ReadError> {
    Ok(RankingSet { name, topics: topics::read(&mut rows, wanted, text)? })
}

/// Reads judgements into those already there.
fn read_judgements(source: &Source, judgements: &mut Judgements) -> Result<(), ReadError> {
    topics::add_judgements(&mut Rows::open(&source.path)?, judgements)
}
