//! The question for each row, and how the engine answers it for a batch of rows.

use std::collections::HashSet;

use cognate::engine::{Engine, Query, QueryError, RankOptions, Reason};
use serde::Serialize;
use xxhash_rust::xxh3::xxh3_64;

const PART: usize = 256;
/// Most broken rows in a row that a query goes on behind.
const BROKEN: usize = 1000;

/// What to compute for a row, with the names of its text columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    Similarity {
        a: String,
        b: String,
    },
    Embed {
        text: String,
    },
    Rank {
        query: String,
        text: String,
        /// At most this many of the best of each query are written.
        #[serde(skip_serializing_if = "Option::is_none")]
        top_k: Option<usize>,
    },
}

pub struct Question<'e> {
    pub engine: &'e Engine,
    /// Method, measure, and handling of overlong texts.
    pub query: Query,
    pub task: Task,
}

/// The texts of a row in the order of the task's columns, or why they are missing.
pub(super) type Texts = Result<Vec<String>, String>;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Cell {
    Score(f32),
    Count(u64),
    Vector(Vec<f32>),
}

/// The values added to a row, or why there are none. A row that is not among the best of its query has no
/// values.
pub(super) type Answer = Result<Vec<Cell>, String>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Score,
    Count,
    Vector,
}

impl Question<'_> {
    pub(super) fn columns(&self) -> Vec<&str> {
        match &self.task {
            Task::Similarity { a, b } => vec![a, b],
            Task::Embed { text } => vec![text],
            Task::Rank { query, text, .. } => vec![query, text],
        }
    }

    pub(super) fn top_k(&self) -> Option<usize> {
        match self.task {
            Task::Rank { top_k, .. } => top_k,
            Task::Similarity { .. } | Task::Embed { .. } => None,
        }
    }

    /// The text of a row that lacks it. A row without a candidate still belongs to its query.
    pub(super) fn missing(&self, place: usize, name: &str) -> Result<String, String> {
        match self.task {
            Task::Rank { .. } if place == 1 => Ok(String::new()),
            _ => Err(format!("expected a field `{name}`")),
        }
    }

    /// The first row whose query came before those of other queries. `asked` holds the digests of all
    /// queries so far.
    pub(super) fn asked_again(&self, rows: &[Texts], asked: &mut HashSet<u64>) -> Option<usize> {
        let Task::Rank { .. } = self.task else { return None };
        let mut at = 0;
        for part in self.parts(rows) {
            let query = part.first().and_then(|row| row.as_ref().ok()?.first());
            if query.is_some_and(|query| !asked.insert(xxh3_64(query.as_bytes()))) {
                return Some(at);
            }
            at += part.len();
        }
        None
    }

    pub(super) fn writes(&self, answer: &Answer) -> bool {
        self.top_k().is_none() || answer.as_ref().is_ok_and(|cells| !cells.is_empty())
    }

    pub(super) fn added(&self) -> &'static [(&'static str, Kind)] {
        match self.task {
            Task::Similarity { .. } => &[("score", Kind::Score)],
            Task::Embed { .. } => &[("vector", Kind::Vector)],
            Task::Rank { .. } => &[("score", Kind::Score), ("rank", Kind::Count)],
        }
    }

    /// Validates the query with the engine before a file is read.
    pub(super) fn check(&self) -> Result<(), QueryError> {
        match self.task {
            Task::Similarity { .. } => self.engine.similarity(&[("a", "a")], &self.query).map(drop),
            Task::Embed { .. } => self.engine.embed(&["a"], &self.query).map(drop),
            Task::Rank { .. } => self.engine.rank("a", &["a"], &self.query).map(drop),
        }
    }

    #[cfg(feature = "columns")]
    pub(super) fn has_groups(&self) -> bool {
        matches!(self.task, Task::Rank { .. })
    }

    /// Whether the next row belongs to the query of those before it. A broken row does, so that the query goes
    /// on behind it; more of them in a row than [`BROKEN`] belong to none.
    pub(super) fn goes_on(&self, before: &[Texts], next: &Texts) -> bool {
        let Task::Rank { .. } = self.task else { return false };
        let last = before.iter().rev().take(BROKEN + 1).find_map(|row| row.as_ref().ok());
        let same = |row: &Vec<String>| last.is_some_and(|last| last.first() == row.first());
        next.as_ref().map_or(last.is_some(), same)
    }

    /// Splits rows into parts that can be answered on different threads.
    pub(super) fn parts<'t>(&self, rows: &'t [Texts]) -> Vec<&'t [Texts]> {
        match self.task {
            Task::Rank { .. } => {
                let (mut parts, mut rest) = (Vec::new(), rows);
                while !rest.is_empty() {
                    let ends = |at: &usize| !self.goes_on(&rest[..*at], &rest[*at]);
                    let length = (1..rest.len()).find(ends).unwrap_or(rest.len());
                    let (part, others) = rest.split_at(length);
                    parts.push(part);
                    rest = others;
                }
                parts
            }
            _ => rows.chunks(PART).collect(),
        }
    }

    pub(super) fn answer(&self, rows: &[Texts]) -> Result<Vec<Answer>, QueryError> {
        let there: Vec<&Vec<String>> = rows.iter().filter_map(|row| row.as_ref().ok()).collect();
        let text = |row: &Vec<String>, at: usize| row.get(at).cloned().unwrap_or_default();
        let mut answers = match self.task {
            Task::Similarity { .. } => {
                let pairs: Vec<_> =
                    there.iter().filter_map(|row| Some((row.first()?, row.get(1)?))).collect();
                let scored = self.engine.similarity(&pairs, &self.query)?;
                let cells = scored.scores.iter().map(|&score| Ok(vec![Cell::Score(score)]));
                without(cells.collect(), &scored.unscored, &scored.reasons)
            }
            Task::Embed { .. } => {
                let texts: Vec<_> = there.iter().filter_map(|row| row.first()).collect();
                let embedded = self.engine.embed(&texts, &self.query)?;
                let cells = embedded.iter().map(Option::unwrap_or_default);
                let cells = cells.map(|vector| Ok(vec![Cell::Vector(vector.to_vec())]));
                without(cells.collect(), &embedded.unscored, &embedded.reasons)
            }
            Task::Rank { .. } => {
                let query = there.first().map_or(String::new(), |row| text(row, 0));
                let texts: Vec<String> = there.iter().map(|row| text(row, 1)).collect();
                self.ranked(&query, &texts)?
            }
        }
        .into_iter();
        let of_row = |row: &Texts| match row {
            Ok(_) => answers.next().unwrap_or_else(|| Err("the row was not answered".to_owned())),
            Err(problem) => Err(problem.clone()),
        };
        Ok(rows.iter().map(of_row).collect())
    }

    fn ranked(&self, query: &str, texts: &[String]) -> Result<Vec<Answer>, QueryError> {
        if texts.is_empty() {
            return Ok(Vec::new());
        }
        let options = RankOptions { top_k: self.top_k(), ..RankOptions::all(self.query) };
        let ranking = match self.engine.rank_best(query, texts, &options) {
            Ok(ranking) => ranking,
            Err(error) if error.place().is_some() => {
                return Ok(vec![Err(error.to_string()); texts.len()]);
            }
            Err(error) => return Err(error),
        };
        let mut answers = vec![Ok(Vec::new()); texts.len()];
        for (rank, result) in (1..).zip(&ranking.results) {
            if let Some(answer) = answers.get_mut(result.index) {
                *answer = Ok(vec![Cell::Score(result.score), Cell::Count(rank)]);
            }
        }
        Ok(without(answers, &ranking.unscored, &ranking.reasons))
    }
}

fn without(mut answers: Vec<Answer>, unscored: &[usize], reasons: &[Reason]) -> Vec<Answer> {
    for (&at, reason) in unscored.iter().zip(reasons) {
        if let Some(answer) = answers.get_mut(at) {
            *answer = Err(reason.to_string());
        }
    }
    answers
}
