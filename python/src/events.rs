//! A stream of texts, each joined to its event as it comes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cognate::Engine;
use cognate::engine::QueryError;
use cognate::methods::Method;
use cognate::window::events::Decision;
use cognate::window::options::{MAX_LAST, NO_SECOND, OptionError, OptionProblem, Options};
use cognate::window::stream::{Item, Settings};
use cognate_files::instant;
use cognate_rows::events::{NamedStream, Names};
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::column::Column;
use crate::error::Problem;
use crate::model::{Cutoff, NativeModel};

/// Texts that are followed before Ctrl-C is listened for.
const PER_PART: usize = 1024;
/// What stands for the nearest of a text that has none.
const NOTHING: i64 = -1;

/// A stream at work.
#[pyclass(frozen, name = "EventDetector", module = "cognate_text._native")]
pub(crate) struct NativeDetector {
    stream: Mutex<NamedStream<Arc<Engine>>>,
    settings: Settings,
}

/// How a stream is followed, as Python passes it: preset, method, second method where one is said (which
/// may be none), the span in milliseconds.
#[derive(FromPyObject)]
pub(crate) struct Followed(String, String, Option<(Option<String>,)>, Option<i64>);

/// How a text finds its event: number of preceding texts, nearest, votes, weight of the centre, threshold.
#[derive(FromPyObject)]
pub(crate) struct Ruled(i64, i64, i64, f64, Option<Cutoff>);

/// Events, nearest, scores and whether each began one.
type Told<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<bool>>,
);

/// The same by ids, a row a text.
type Named = Vec<(Option<String>, Option<String>, Option<f32>, bool)>;

fn settings(engine: &Engine, followed: &Followed, ruled: &Ruled) -> Result<Settings, Problem> {
    let Followed(preset, method, second, within) = followed;
    let &Ruled(last, nearest, votes, centre, ref threshold) = ruled;
    let threshold = threshold.as_ref().map(|threshold| threshold.least("threshold"));
    // What is below 0 is as far out of range as 0.
    let count = |number: i64| Some(usize::try_from(number).unwrap_or(0));
    let options = Options {
        preset: Some(preset.parse().map_err(Problem::unexpected("preset"))?),
        method: Some(method),
        second: second.as_ref().map(|(second,)| second.as_deref().unwrap_or(NO_SECOND)),
        last: count(last),
        within: *within,
        threshold: threshold.transpose()?,
        nearest: count(nearest),
        votes: count(votes),
        centre: Some(centre),
        duplicate_score: None,
        drop_opposed: false,
        opposites: None,
    };
    options.resolve(engine, MAX_LAST).map_err(|OptionError { option, problem }| match problem {
        OptionProblem::Query(error) => error.into(),
        OptionProblem::OutOfRange { .. } | OptionProblem::NoneDropped => {
            Problem::Setting(format!("{option}: {problem}"))
        }
        problem => Problem::NotCalibrated(problem.to_string()),
    })
}

/// Questions of a stream name no place.
fn raised(py: Python<'_>, problem: Problem) -> PyErr {
    problem.raise(py, |_| ("texts", None))
}

#[pymethods]
impl NativeDetector {
    #[new]
    #[pyo3(signature = (model, followed, ruled, saved=None))]
    fn new(
        py: Python<'_>,
        model: &Bound<'_, NativeModel>,
        followed: Followed,
        ruled: Ruled,
        saved: Option<&[u8]>,
    ) -> PyResult<Self> {
        let engine = model.get().shared();
        let made = || -> Result<_, Problem> {
            let settings = settings(&engine, &followed, &ruled)?;
            let stream = match saved {
                Some(saved) => {
                    NamedStream::restored(Arc::clone(&engine), settings, saved.to_vec())?
                }
                None => NamedStream::new(Arc::clone(&engine), settings)?,
            };
            Ok((stream, settings))
        };
        let (stream, settings) = py.detach(made).map_err(|problem| raised(py, problem))?;
        Ok(Self { stream: Mutex::new(stream), settings })
    }

    #[getter]
    fn threshold(&self) -> f32 {
        self.settings.rule.threshold
    }

    /// Returns how texts are followed: the method, the second method, the number of preceding texts to compare
    /// with, and the maximum time difference in milliseconds.
    #[getter]
    fn followed(&self) -> (&'static str, Option<&'static str>, usize, Option<i64>) {
        let Settings { method, second, limits, .. } = self.settings;
        (method.name(), second.map(Method::name), limits.last, limits.within)
    }

    fn __len__(&self) -> usize {
        usize::try_from(self.locked().stream().next()).unwrap_or(usize::MAX)
    }

    /// What it got to, from which another goes on.
    fn save<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let saved = py.detach(|| self.locked().save());
        PyBytes::new(py, saved.as_bytes())
    }

    /// Decides what texts belong to, in order, as if each had come alone.
    fn follow<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        times: Vec<i64>,
    ) -> PyResult<Told<'py>> {
        let mut decisions: Vec<Decision> = Vec::with_capacity(times.len());
        self.decide(py, texts, &times, None, |decision, _| decisions.push(*decision))?;
        let nearest = |decision: &Decision| {
            decision.nearest.map_or(NOTHING, |near| i64::try_from(near.number).unwrap_or(NOTHING))
        };
        let event = |decision: &Decision| i64::try_from(decision.event).unwrap_or(NOTHING);
        let score = |decision: &Decision| decision.score.unwrap_or(f32::NAN);
        Ok((
            PyArray1::from_iter(py, decisions.iter().map(event)),
            PyArray1::from_iter(py, decisions.iter().map(nearest)),
            PyArray1::from_iter(py, decisions.iter().map(score)),
            PyArray1::from_iter(py, decisions.iter().map(|decision| decision.new)),
        ))
    }
    /// The same of texts that have ids, told by these.
    fn follow_named(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        times: Vec<i64>,
        ids: &Bound<'_, PyAny>,
    ) -> PyResult<Named> {
        let mut found = Vec::with_capacity(times.len());
        self.decide(py, texts, &times, Some(ids), |decision, names| {
            let event = names.of_event(decision.event).map(str::to_owned);
            let nearest = decision.nearest.and_then(|near| names.of_text(near.number));
            found.push((event, nearest.map(str::to_owned), decision.score, decision.new));
        })?;
        Ok(found)
    }
}

impl NativeDetector {
    fn locked(&self) -> MutexGuard<'_, NamedStream<Arc<Engine>>> {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Follows texts, part by part, and tells what was decided of each.
    fn decide(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        times: &[i64],
        ids: Option<&Bound<'_, PyAny>>,
        mut tell: impl FnMut(&Decision, &Names) + Send,
    ) -> PyResult<()> {
        let column = Column::new(texts, "texts")?;
        let texts = column.texts()?;
        let named = ids.map(|ids| Column::new(ids, "ids")).transpose()?;
        let ids = named.as_ref().map_or(Ok(vec![None; texts.len()]), Column::texts)?;
        for (other, called) in [(times.len(), "times"), (ids.len(), "ids")] {
            if texts.len() != other {
                let one = texts.len();
                let message =
                    format!("there are {one} texts and {other} {called}; each text needs one");
                return Err(PyValueError::new_err(message));
            }
        }
        let items = texts.iter().zip(times).zip(&ids);
        let items =
            items.map(|((text, &time), id)| (Item { time, text: text.unwrap_or_default() }, *id));
        let items: Vec<(Item<'_>, Option<&str>)> = items.collect();
        for part in items.chunks(PER_PART) {
            let followed = py.detach(|| self.locked().follow(part, &mut tell));
            followed.map_err(|error: QueryError| raised(py, error.into()))?;
            py.check_signals()?;
        }
        Ok(())
    }
}

/// Milliseconds since 1970 of a time as it is written in any of the forms that streams have.
#[pyfunction(name = "instant")]
pub(crate) fn milliseconds(text: &str) -> Option<i64> {
    instant::milliseconds(text)
}

/// A span of time in milliseconds, as `30s`, `15m`, `24h` or `7d`.
#[pyfunction]
pub(crate) fn span(text: &str) -> Option<i64> {
    instant::span(text)
}
