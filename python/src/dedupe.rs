//! Near-duplicates among the texts of a column, or of them in another.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;

use cognate::Engine;
use cognate_rows::dedupe;
use cognate_rows::dedupe::{DedupeError, Duplicates, SHARE, Search};
use numpy::PyArray1;
use pyo3::prelude::*;

use crate::asked::Asked;
use crate::column::Column;
use crate::error::Problem;
use crate::model::{Cutoff, NativeModel, of_rows};
use crate::work;

/// What is found: for each text the place of the one that stands for it, and their score; then all
/// matches by earlier place, later place and score; then what a check found of what is there.
pub(crate) type Found<'py> = (
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f32>>),
    (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f32>>),
    Option<(usize, usize, usize)>,
);

/// What stands for a text that nothing else stands for.
const NOTHING: i64 = -1;

impl From<DedupeError> for Problem {
    fn from(error: DedupeError) -> Self {
        match error {
            DedupeError::Query(error) => Self::Query(error),
            DedupeError::OnlyTokens { .. } => Self::Method(format!("method: {error}")),
            other => Self::Running(other.to_string()),
        }
    }
}

/// What counts as a duplicate, as Python passes it: the threshold, always a number, and the floor.
#[derive(FromPyObject)]
pub(crate) struct Sought(Cutoff, Option<f64>);

impl Sought {
    pub(crate) fn search(&self, asked: &Asked, engine: &Engine) -> Result<Search, Problem> {
        let share = |name: &str, number: f64| {
            let wrong = || Problem::setting(name, SHARE, &number.to_string());
            dedupe::share(number).ok_or_else(wrong)
        };
        let floor = self.1.map(|floor| share("floor", floor)).transpose()?;
        let threshold = match &self.0 {
            Cutoff::Number(number) => share("threshold", *number)?,
            Cutoff::Word(word) => return Err(Problem::setting("threshold", SHARE, word)),
        };
        let (query, copies) = (asked.of(engine)?.query, asked.is_auto());
        Ok(Search { floor, copies, ..Search::new(query, threshold) })
    }
}

/// Looks for duplicates on threads of their own, and for Ctrl-C meanwhile.
fn among(
    py: Python<'_>,
    (engine, threads): (&Engine, usize),
    texts: &[Option<&str>],
    against: Option<&[Option<&str>]>,
    search: &Search,
) -> Result<Duplicates, Problem> {
    // A pool that ends with the question: one that stayed would not live on in a fork.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    let pool = pool.map_err(|error| Problem::Running(error.to_string()))?;
    let stop: &AtomicBool = &search.stop;
    py.detach(|| {
        thread::scope(|scope| {
            let (tell, told) = channel();
            let asked = scope.spawn(move || {
                // Nobody listens any more only after an interrupt.
                let _ = tell.send(pool.install(|| dedupe::among(engine, texts, against, search)));
            });
            loop {
                match told.recv_timeout(work::LISTENS_EVERY) {
                    Ok(found) => return Ok(found?),
                    Err(RecvTimeoutError::Timeout) => {
                        if let Err(interrupt) = Python::attach(|py| py.check_signals()) {
                            stop.store(true, Ordering::Relaxed);
                            return Err(Problem::Python(interrupt));
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => match asked.join() {
                        Err(panic) => std::panic::resume_unwind(panic),
                        Ok(()) => return Err(Problem::Running("no answer came".to_owned())),
                    },
                }
            }
        })
    })
}

/// The same as arrays.
fn arrays(py: Python<'_>, found: Duplicates) -> Found<'_> {
    let Duplicates { of, matches, report } = found;
    let place = |of: &Option<(u32, f32)>| of.map_or(NOTHING, |(of, _)| i64::from(of));
    let score = |of: &Option<(u32, f32)>| of.map_or(f32::NAN, |(_, score)| score);
    let own = (
        PyArray1::from_iter(py, of.iter().map(place)),
        PyArray1::from_iter(py, of.iter().map(score)),
    );
    let pairs = (
        PyArray1::from_iter(py, matches.iter().map(|found| i64::from(found.earlier))),
        PyArray1::from_iter(py, matches.iter().map(|found| i64::from(found.later))),
        PyArray1::from_iter(py, matches.iter().map(|found| found.score)),
    );
    let recall = report.recall.map(|recall| (recall.texts, recall.matches, recall.found));
    (own, pairs, recall)
}

/// Looks for duplicates among texts, or in others `against` which they are held.
#[pyfunction(name = "dedupe")]
pub(crate) fn near_duplicates<'py>(
    py: Python<'py>,
    model: &Bound<'py, NativeModel>,
    texts: &Bound<'py, PyAny>,
    against: Option<Bound<'py, PyAny>>,
    sought: Sought,
    check: usize,
    asked: Asked,
) -> PyResult<Found<'py>> {
    let texts = Column::new(texts, "texts")?;
    let against = against.map(|against| Column::new(&against, "against")).transpose()?;
    let texts = texts.texts()?;
    let against = against.as_ref().map(Column::texts).transpose()?;
    let (engine, threads) = model.get().workers();
    let found = || {
        let search = Search { check, ..sought.search(&asked, engine)? };
        among(py, (engine, threads), &texts, against.as_deref(), &search)
    };
    let found = found().map_err(|problem: Problem| problem.raise(py, of_rows))?;
    Ok(arrays(py, found))
}
