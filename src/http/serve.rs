//! Placeholder.
use crate::http::keys::KeysError;

/// Why.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Keys.
    #[error("{0}")]
    Keys(#[from] KeysError),
    /// Threads.
    #[error("the compute threads could not be started: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// Counters.
    #[error("the counters could not be set up: {0}")]
    Counters(#[from] metrics_exporter_prometheus::BuildError),
}
impl ServeError {
    /// Code.
    pub fn exit_code(&self) -> u8 {
        1
    }
}
/// Serve.
pub fn serve(_: crate::http::Settings) -> Result<(), ServeError> {
    Ok(())
}
