//! What goes wrong, as the exceptions of `cognate_text.errors`.

use cognate::choice::Unexpected;
use cognate::engine::{Place, QueryError};
use cognate::model::ModelError;
use cognate_rows::events::EventsError;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A question that has no answer.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The engine says so.
    Query(QueryError),
    /// A setting has no such value.
    Setting(String),
    /// A method does not support what was asked.
    Method(String),
    /// No usual threshold is known for a method.
    NotCalibrated(String),
    /// Something failed that was asked well.
    Running(String),
    /// Python says so: the user pressed Ctrl-C, or a column cannot be read.
    Python(PyErr),
}

impl From<QueryError> for Problem {
    fn from(error: QueryError) -> Self {
        Self::Query(error)
    }
}

impl From<EventsError> for Problem {
    fn from(error: EventsError) -> Self {
        match error {
            EventsError::Query(error) => Self::Query(error),
            other => Self::Setting(other.to_string()),
        }
    }
}

impl From<PyErr> for Problem {
    fn from(error: PyErr) -> Self {
        Self::Python(error)
    }
}

impl Problem {
    /// Returns the error of a setting that got a value it does not allow.
    pub(crate) fn setting(name: &str, expected: &str, got: &str) -> Self {
        Self::unexpected(name)(Unexpected::new(expected, got))
    }

    /// The same, of a value that was refused by what reads it.
    pub(crate) fn unexpected(name: &str) -> impl Fn(Unexpected) -> Self {
        move |problem| Self::Setting(format!("{name}: {problem}"))
    }

    /// The exception; `named` says how the argument at a place is called in Python.
    pub(crate) fn raise(
        self,
        py: Python<'_>,
        named: impl Fn(Place) -> (&'static str, Option<usize>),
    ) -> PyErr {
        match self {
            Self::Python(error) => error,
            Self::Setting(message) => PyValueError::new_err(message),
            Self::Method(message) => exception(py, "MethodError", (message,)),
            Self::Running(message) => exception(py, "CognateError", (message,)),
            Self::NotCalibrated(message) => exception(py, "NotCalibratedError", (message,)),
            Self::Query(error) => match error.place() {
                Some(place) => {
                    let (argument, index) = named(place);
                    let name = index.map_or(argument.to_owned(), |at| format!("{argument}[{at}]"));
                    let message = format!("{name} {}", error.problem());
                    exception(py, "TextError", (message, argument, index))
                }
                None => {
                    let class = match error {
                        QueryError::NonFinite { .. } => "ScoreError",
                        QueryError::NotCalibrated { .. } => "NotCalibratedError",
                        _ => "MethodError",
                    };
                    exception(py, class, (error.to_string(),))
                }
            },
        }
    }
}

/// A model file that cannot be used.
pub(crate) fn of_model(py: Python<'_>, error: &ModelError) -> PyErr {
    let missing = matches!(
        error,
        ModelError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound
    );
    let class = if missing { "ModelNotFoundError" } else { "ModelError" };
    exception(py, class, (error.to_string(),))
}

/// An exception of the package, by the name of its class.
fn exception<'py>(
    py: Python<'py>,
    class: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyErr {
    let made = py
        .import("cognate_text.errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1(arguments));
    match made {
        Ok(exception) => PyErr::from_value(exception),
        Err(error) => error,
    }
}
