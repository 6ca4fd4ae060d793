//! What goes wrong, as JavaScript's side makes exceptions of it.

use cognate::choice::Unexpected;
use cognate::engine::{Place, QueryError};
use cognate::model::ModelError;
use serde_json::{Value, json};

/// A question that has no answer, or a model that is none.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The bytes are no sound model.
    Model(ModelError),
    /// The engine says so, of texts that are called like this.
    Query(QueryError, fn(Place) -> Named),
    /// A setting got a value that it does not allow.
    Setting(String),
}

impl From<ModelError> for Problem {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

impl From<QueryError> for Problem {
    fn from(error: QueryError) -> Self {
        Self::Query(error, of_lists)
    }
}

impl Problem {
    /// A setting that has another value than it can have.
    pub(crate) fn setting(name: &str, expected: &str, got: &str) -> Self {
        Self::unexpected(name)(Unexpected::new(expected, got))
    }

    /// The same, of a value that was refused by what reads it.
    pub(crate) fn unexpected(name: &str) -> impl Fn(Unexpected) -> Self {
        move |problem| Self::Setting(format!("{name}: {problem}"))
    }

    /// The kind, the message, and the text at fault.
    pub(crate) fn told(self) -> Value {
        match self {
            Self::Model(error) => json!({ "kind": "model", "message": error.to_string() }),
            Self::Setting(message) => json!({ "kind": "setting", "message": message }),
            Self::Query(error, named) => match error.place() {
                Some(place) => {
                    let Named { argument, index, side } = named(place);
                    let places = index.into_iter().chain(side).map(|at| format!("[{at}]"));
                    let name = format!("{argument}{}", places.collect::<String>());
                    let message = format!("{name} {}", error.problem());
                    json!({ "kind": "text", "message": message, "argument": argument, "index": index })
                }
                None => {
                    let kind = match error {
                        QueryError::NonFinite { .. } => "score",
                        _ => "method",
                    };
                    json!({ "kind": kind, "message": error.to_string() })
                }
            },
        }
    }
}

/// How JavaScript calls a text: the argument, and its place in that.
pub(crate) struct Named {
    argument: &'static str,
    index: Option<usize>,
    side: Option<usize>,
}

/// Texts that are arguments by themselves.
pub(crate) fn of_pair(place: Place) -> Named {
    let argument = if matches!(place, Place::Pair(_, 0)) { "a" } else { "b" };
    Named { argument, index: None, side: None }
}

fn of_lists(place: Place) -> Named {
    let (argument, index, side) = match place {
        Place::Pair(row, side) => ("pairs", Some(row), Some(side)),
        Place::Text(row) => ("texts", Some(row), None),
        Place::Candidate(row) => ("candidates", Some(row), None),
        Place::Query => ("query", None, None),
        Place::QueryOf(row) => ("queries", Some(row), None),
        Place::Liked(row) => ("like", Some(row), None),
        Place::Disliked(row) => ("unlike", Some(row), None),
    };
    Named { argument, index, side }
}
