//! Placeholder.
#[derive(Debug, thiserror::Error)]
#[error("this build cannot serve")]
pub struct ServeError;
impl ServeError {
    pub fn exit_code(&self) -> u8 {
        1
    }
}
pub fn serve(_: crate::http::Settings) -> Result<(), ServeError> {
    Err(ServeError)
}
