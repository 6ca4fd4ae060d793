//! A model opened as an engine, with every method that it can serve.

#[cfg(unix)]
use std::path::Path;

use crate::engine::fuse::Fusions;
use crate::engine::{Calibrations, Engine, EventRules, TextLimits};
use crate::methods::{Auto, Method, Scorer, polarity};
#[cfg(unix)]
use crate::model::OpenOptions;
use crate::model::{Model, ModelError};

/// # Open
impl Engine {
    /// Opens a model file and loads every method.
    ///
    /// ```
    /// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))?;
    /// let file = "models/default.safetensors";
    /// let engine = cognate::Engine::open(file.as_ref(), &Default::default())?;
    /// assert_eq!(engine.method("cosine")?.name(), "avg-cos");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(unix)]
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, ModelError> {
        Self::new(Model::open(path, options)?)
    }

    /// Loads every method for an opened model. A method whose section is missing stays listed, as
    /// unavailable; one whose section is broken is an error.
    pub fn new(model: Model) -> Result<Self, ModelError> {
        let loaded = Method::ALL.iter().map(|method| method.load(&model));
        let scorers = loaded.collect::<Result<Vec<_>, _>>()?;
        let counting = scorers.iter().flatten().find_map(Scorer::polarity);
        let without_names = polarity::without_names(&model, counting)?;
        let auto = Auto::from_model(&model).method;
        let calibrations = Calibrations::read(&model)?;
        let fusions = Fusions::read(&model)?;
        let (event_rules, limits) = (EventRules::read(&model)?, TextLimits::DEFAULT);
        Ok(Self { model, scorers, without_names, auto, limits, calibrations, event_rules, fusions })
    }

    /// The engine with other limits of texts.
    pub fn with_limits(self, limits: TextLimits) -> Self {
        Self { limits, ..self }
    }
}
