//! The model that a database asks: opened once, shared by all functions and threads.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use cognate::Engine;

/// The variable that names the model.
const VARIABLE: &str = "COGNATE_MODEL";

/// The model, once it is opened.
#[derive(Clone, Default)]
pub(crate) struct Opened {
    engine: Arc<RwLock<Option<Arc<Engine>>>>,
}

impl Opened {
    /// Opens a file for all that is asked from now on.
    pub(crate) fn open(&self, path: &str) -> Result<Arc<Engine>, String> {
        let opened = Engine::open(Path::new(path), &Default::default());
        let engine = Arc::new(opened.map_err(|error| format!("cognate: {error}"))?);
        let mut kept = self.engine.write().unwrap_or_else(PoisonError::into_inner);
        *kept = Some(Arc::clone(&engine));
        Ok(engine)
    }

    /// Returns the opened model, or opens the model that the environment variable names.
    #[expect(clippy::disallowed_methods, reason = "an extension has no command line")]
    pub(crate) fn engine(&self) -> Result<Arc<Engine>, String> {
        let known = self.engine.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(engine) = known {
            return Ok(engine);
        }
        match std::env::var(VARIABLE) {
            Ok(path) if !path.is_empty() => self.open(&path),
            _ => Err(format!(
                "cognate: no model is open: SELECT cognate_open('model.safetensors'), or name the file in \
                 {VARIABLE} before DuckDB starts"
            )),
        }
    }
}
