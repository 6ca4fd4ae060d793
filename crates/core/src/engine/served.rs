//! What an engine can serve with its model, for people: what `auto` is, and what is missing.

use std::fmt;

use serde::Serialize;

use crate::engine::{Engine, QueryError};
use crate::methods::{Auto, Kind, Method, Unavailable};

/// The method that `auto` chooses, and the methods that the model cannot serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Served {
    /// The method that `auto` chooses.
    pub auto: &'static str,
    /// Why `auto` chooses this method.
    pub auto_because: &'static str,
    /// Why it cannot be served, if it cannot.
    pub auto_unavailable: Option<String>,
    /// Methods that lack something in the model, grouped by what they lack.
    pub missing: Vec<Missing>,
}

/// Methods that lack the same section of the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Their names.
    pub methods: Vec<&'static str>,
    /// What the model lacks, and the command that adds it.
    pub reason: String,
}

/// The canonical name of a method that `auto` may choose.
pub fn auto_method(name: &str) -> Result<&'static str, String> {
    let Some(method) = Method::named(name) else {
        return Err(QueryError::unknown_method(name).to_string());
    };
    match method.info().kind {
        Kind::Similarity => Ok(method.name()),
        Kind::Ranker => Err("a ranker; `auto` has to score pairs of texts, too".to_owned()),
    }
}

impl Engine {
    /// The method that `auto` chooses, and the methods that the model cannot serve.
    pub fn served(&self) -> Served {
        let Auto { method, because } = Auto::from_model(self.model());
        let mut missing: Vec<(&Unavailable, Missing)> = Vec::new();
        for &method in Method::ALL {
            let Some(reason) = self.unavailable(method) else { continue };
            match missing.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, group)) => group.methods.push(method.name()),
                None => {
                    let group =
                        Missing { methods: vec![method.name()], reason: reason.to_string() };
                    missing.push((reason, group));
                }
            }
        }
        Served {
            auto: method.name(),
            auto_because: because,
            auto_unavailable: self.unavailable(method).map(Unavailable::to_string),
            missing: missing.into_iter().map(|(_, group)| group).collect(),
        }
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  auto is {}: {}", self.auto, self.auto_because)?;
        if let Some(reason) = &self.auto_unavailable {
            write!(f, ", but it cannot be used yet: {reason}")?;
        }
        for Missing { methods, reason } in &self.missing {
            write!(f, "\n  not available: {}: {reason}", methods.join(", "))?;
        }
        Ok(())
    }
}
