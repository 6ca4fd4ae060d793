//! The HTTP service: requests in, the engine's answers out. How texts are compared is not known
//! here.

pub mod keys;
pub mod quota;
mod serve;
pub mod settings;

pub use serve::serve;
pub use settings::NamedModel;
pub use settings::Settings;
