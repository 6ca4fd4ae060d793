//! A stream of texts, each joined to its event as it comes.

use std::sync::{Arc, Mutex, PoisonError};

use cognate::Engine;
use cognate::engine::QueryError;
use cognate::window::events::{Decision, Rule};
use cognate::window::stream::{Item, Settings, Stream};
use cognate::window::{Limits, usual};
use cognate_files::instant;
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::column::Column;
use crate::error::Problem;
use crate::model::NativeModel;

/// Texts that are followed before Ctrl-C is listened for.
const PER_PART: usize = 1024;
/// What stands for the nearest of a text that has none.
const NOTHING: i64 = -1;

/// A stream at work.
#[pyclass(frozen, name = "EventDetector", module = "cognate._native")]
pub(crate) struct NativeDetector {
    stream: Mutex<Stream<Arc<Engine>>>,
    threshold: f32,
}

/// How a stream is followed, as Python passes it: method, second method, the span in milliseconds.
#[derive(FromPyObject)]
pub(crate) struct Followed(String, Option<String>, Option<i64>);

/// How a text finds its event: texts looked back at, nearest, votes, share of the centre, threshold.
#[derive(FromPyObject)]
pub(crate) struct Ruled(usize, usize, usize, f64, Option<f64>);

/// Events, nearest, scores and whether each began one.
type Told<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f32>>,
    Bound<'py, PyArray1<bool>>,
);

fn settings(engine: &Engine, followed: &Followed, ruled: &Ruled) -> Result<Settings, Problem> {
    let Followed(method, second, within) = followed;
    let &Ruled(last, nearest, votes, centre, threshold) = ruled;
    let method = engine.method(method)?;
    let second = second.as_deref().map(|name| engine.method(name)).transpose()?;
    let scoring = second.unwrap_or(method);
    let share = |name: &str, number: f64| match (0.0..=1.0).contains(&number) {
        true => Ok(number as f32),
        false => Err(Problem::setting(name, "a number from 0 to 1", &number.to_string())),
    };
    let threshold = threshold.map(|threshold| share("threshold", threshold)).transpose()?;
    let threshold = threshold.or_else(|| usual::threshold(scoring)).ok_or_else(|| {
        Problem::NotCalibrated(format!(
            "no threshold is known for {}: give one as threshold; `cognate eval events` finds it on a \
             labelled stream",
            scoring.name()
        ))
    })?;
    Ok(Settings {
        method,
        second,
        nearest,
        floor: usual::FLOOR,
        drop_opposed: false,
        rule: Rule {
            threshold,
            votes,
            centre: share("centre", centre)?,
            duplicate: usual::duplicate(scoring),
        },
        limits: Limits { last, within: *within },
    })
}

/// Questions of a stream name no place.
fn raised(py: Python<'_>, problem: Problem) -> PyErr {
    problem.raise(py, |_| ("texts", None))
}

#[pymethods]
impl NativeDetector {
    #[new]
    fn new(
        py: Python<'_>,
        model: &Bound<'_, NativeModel>,
        followed: Followed,
        ruled: Ruled,
    ) -> PyResult<Self> {
        let engine = model.get().shared();
        let made = || {
            let settings = settings(&engine, &followed, &ruled)?;
            let threshold = settings.rule.threshold;
            Ok((Stream::new(Arc::clone(&engine), settings)?, threshold))
        };
        let (stream, threshold) = made().map_err(|problem: Problem| raised(py, problem))?;
        Ok(Self { stream: Mutex::new(stream), threshold })
    }

    /// What is taken where nothing else is said: last, second method, nearest, votes, centre.
    #[staticmethod]
    fn usual() -> (usize, &'static str, usize, usize, f32) {
        (usual::LAST, usual::SECOND, usual::NEAREST, usual::VOTES, usual::CENTRE)
    }

    #[getter]
    fn threshold(&self) -> f32 {
        self.threshold
    }

    fn __len__(&self) -> usize {
        let stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        usize::try_from(stream.next()).unwrap_or(usize::MAX)
    }

    /// Decides what texts belong to, in order, as if each had come alone.
    fn follow<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        times: Vec<i64>,
    ) -> PyResult<Told<'py>> {
        let column = Column::of(texts, "texts")?;
        let texts = column.texts()?;
        if texts.len() != times.len() {
            let (one, other) = (texts.len(), times.len());
            let message = format!("there are {one} texts and {other} times; each text needs one");
            return Err(PyValueError::new_err(message));
        }
        let items = texts.iter().zip(&times);
        let items = items.map(|(text, &time)| Item { time, text: text.unwrap_or_default() });
        let items: Vec<Item<'_>> = items.collect();
        let mut decisions: Vec<Decision> = Vec::with_capacity(items.len());
        for part in items.chunks(PER_PART) {
            let followed = py.detach(|| {
                let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
                stream.follow(part)
            });
            decisions.extend(followed.map_err(|error: QueryError| raised(py, error.into()))?);
            py.check_signals()?;
        }
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

/// What is read as a time, for messages.
#[pyfunction]
pub(crate) fn instant_forms() -> &'static str {
    instant::FORMS
}
