//! Rows on their way: while some are answered on every core, those before them are written and those
//! after them read.

use rayon::prelude::*;

use crate::bulk::question::{Answer, Question, Texts};
use crate::bulk::{BulkError, OnError, Tally};

/// Rows read at a time.
pub(super) const ROWS: usize = 8192;
/// Bytes of rows read at a time.
pub(super) const BYTES: usize = 8 << 20;
/// Most rows that must be answered together.
pub(super) const MOST_TOGETHER: usize = 1 << 20;

/// Rows with what is kept of them until they are written.
pub(super) struct Batch<K> {
    pub(super) texts: Vec<Texts>,
    pub(super) kept: K,
}

/// Where rows come from.
pub(super) trait Source: Send {
    type Kept: Send;

    /// The next rows, none of which must be answered together with a later one; nothing at the end.
    fn next(&mut self, question: &Question<'_>) -> Result<Option<Batch<Self::Kept>>, BulkError>;

    /// Which row that is, for people.
    fn place(&self, kept: &Self::Kept, at: usize) -> String;
}

pub(super) trait Sink<K>: Send {
    /// Writes rows with their answers; whether anybody still reads them.
    fn write(&mut self, kept: K, answers: &[Answer]) -> Result<bool, BulkError>;
}

/// Answers all rows of a source.
pub(super) fn run<S: Source>(
    source: &mut S,
    sink: &mut impl Sink<S::Kept>,
    question: &Question<'_>,
    on_error: OnError,
    tally: &mut Tally,
) -> Result<(), BulkError> {
    let mut batch = source.next(question)?;
    let mut done: Option<(S::Kept, Vec<Answer>)> = None;
    while let Some(Batch { texts, kept }) = batch {
        let (answers, moved) = rayon::join(
            || answered(question, &texts),
            || {
                let read = match done.take() {
                    Some((kept, answers)) => sink.write(kept, &answers)?,
                    None => true,
                };
                Ok::<_, BulkError>((read, source.next(question)?))
            },
        );
        // What is wrong with a row comes before what is wrong behind it.
        let answers = answers.map_err(BulkError::Query)?;
        count(&answers, tally);
        if on_error == OnError::Fail
            && let Some((at, problem)) = first_wrong(&answers)
        {
            return Err(BulkError::Row { place: source.place(&kept, at), problem });
        }
        let (still_read, next) = moved?;
        if !still_read {
            return Ok(());
        }
        done = Some((kept, answers));
        batch = next;
    }
    if let Some((kept, answers)) = done {
        sink.write(kept, &answers)?;
    }
    Ok(())
}

fn answered(
    question: &Question<'_>,
    texts: &[Texts],
) -> Result<Vec<Answer>, cognate::engine::QueryError> {
    let parts = question.parts(texts);
    let parts: Result<Vec<_>, _> =
        parts.par_iter().with_max_len(1).map(|part| question.answer(part)).collect();
    Ok(parts?.into_iter().flatten().collect())
}

fn count(answers: &[Answer], tally: &mut Tally) {
    tally.rows += answers.len() as u64;
    for problem in answers.iter().filter_map(|answer| answer.as_ref().err()) {
        tally.without(problem);
    }
}

fn first_wrong(answers: &[Answer]) -> Option<(usize, String)> {
    let wrong = |(at, answer): (usize, &Answer)| Some((at, answer.as_ref().err()?.clone()));
    answers.iter().enumerate().find_map(wrong)
}
