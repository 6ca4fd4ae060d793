//! Pairs of sentences with a gold score: `score`, `sentence 1`, `sentence 2`.

use cognate_files::ReadError;
use cognate_files::rows::{Rows, exactly, number};

use crate::datasets::{Source, text};

/// The pairs of one file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Subtask {
    pub(crate) name: String,
    /// The year that the name begins with, `2012.MSRpar`.
    pub(crate) year: Option<u16>,
    pub(crate) gold: Vec<f64>,
    pub(crate) texts: Vec<(String, String)>,
}

/// Reads the pairs of a file.
pub(crate) fn read(source: &Source) -> Result<Subtask, ReadError> {
    of(Rows::open(&source.path)?, source.name.clone())
}

pub(super) fn of(mut rows: Rows, name: String) -> Result<Subtask, ReadError> {
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

/// One set a year, of all pairs of its files in their order; sets without a year stay as they are.
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

/// The year of `2014.images`; file names without one stand alone.
fn year(name: &str) -> Option<u16> {
    let (year, rest) = name.rsplit('/').next()?.split_once('.')?;
    let four_digits = year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit());
    (four_digits && !rest.is_empty()).then(|| year.parse().ok()).flatten()
}
