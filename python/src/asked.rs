//! How a question is asked: method, measure, and what becomes of texts that cannot be scored.

use cognate::{Engine, Method, Query};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::column::unfit;
use crate::error::Problem;

/// What becomes of a text that is there and cannot be scored: one that is empty, too long, or
/// without a known word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unscored {
    /// It scores 0, as the command line and the service have it.
    Zero,
    /// It is taken for a missing text.
    Missing,
    /// It is an error.
    Error,
}

/// A question's settings as Python passes them, in this order.
#[derive(Debug)]
pub(crate) struct Asked(String, Option<String>, String, bool, Option<String>);

impl<'py> FromPyObject<'_, 'py> for Asked {
    type Error = PyErr;

    fn extract(asked: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        fn setting<'py, T: for<'a> FromPyObject<'a, 'py>>(
            asked: &Bound<'py, PyTuple>,
            (at, name, expected): (usize, &str, &str),
        ) -> PyResult<T> {
            let given = asked.get_item(at)?;
            given.extract().map_err(|_| unfit(name, expected, &given.get_type()))
        }
        let asked = asked.cast::<PyTuple>()?.to_owned();
        Ok(Self(
            setting(&asked, (0, "method", "str"))?,
            setting(&asked, (1, "measure", "str or None"))?,
            setting(&asked, (2, "unscored", "str"))?,
            setting(&asked, (3, "truncate", "bool"))?,
            setting(&asked, (4, "opposites", "str or None"))?,
        ))
    }
}

/// A question's settings, resolved for a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    pub query: Query,
    pub unscored: Unscored,
}

impl Asked {
    /// What it comes to for a model; `auto` is the model's choice for scores.
    pub(crate) fn of(&self, engine: &Engine) -> Result<Question, Problem> {
        let Self(method, measure, unscored, truncate, opposites) = self;
        let unscored = match unscored.as_str() {
            "zero" => Unscored::Zero,
            "missing" => Unscored::Missing,
            "error" => Unscored::Error,
            other => return Err(Problem::setting("unscored", "zero, missing or error", other)),
        };
        let measure = measure.as_deref().map(str::parse).transpose();
        let opposites = opposites.as_deref().map(str::parse).transpose();
        let query = Query {
            measure: measure.map_err(Problem::unexpected("measure"))?,
            refuse_unscored: unscored == Unscored::Error,
            truncate: *truncate,
            ..Query::new(engine.method(method)?)
        };
        let opposites = opposites.map_err(Problem::unexpected("opposites"))?;
        let query = query.with_opposites(opposites);
        engine.check(&query)?;
        Ok(Question { query, unscored })
    }

    /// Whether the choice of a method is left to the model.
    pub(crate) fn is_auto(&self) -> bool {
        Method::is_auto(&self.0)
    }

    /// The same for vectors: there `auto` is the model's choice among the methods that have them.
    pub(crate) fn of_vectors(&self, engine: &Engine) -> Result<Question, Problem> {
        let mut question = self.of(engine)?;
        question.query.method = engine.embedding_method(&self.0)?;
        Ok(question)
    }
}
