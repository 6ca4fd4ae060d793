//! Every setting of the service: one list, from which the struct, the defaults, flags, names of
//! variables, keys of the file, help and checks are all read.
//!
//! Values come in as text through [`Layers`]; the environment and files are never read here.

mod checks;
mod effective;
mod example;
mod file;
mod layers;
mod list;
mod rule;
mod value;

pub use checks::Environment;
pub use example::example;
pub use layers::FILE_VARIABLE;
pub use layers::Layers;
pub use layers::Loaded;
pub use layers::Origin;
pub use layers::Problem;
pub use layers::SettingsFile;
pub use list::LIST;
pub use list::Setting;
pub use list::Settings;
pub use rule::RawValue;
pub use rule::Rule;
pub use rule::ValueShape;
pub use value::NamedModel;

use crate::engine::TextLimits;
use crate::model::OpenOptions;
use crate::model::format::Limits;

impl Settings {
    /// How model files are opened under these settings.
    pub(crate) fn open_options(&self) -> OpenOptions {
        let limits = Limits { model_bytes: self.model_bytes, ..Limits::DEFAULT };
        OpenOptions { verify: self.verify, storage: self.model_storage, limits }
    }

    /// How many streams of lines there may be at once.
    pub(crate) fn most_streams(&self) -> usize {
        self.max_streams.unwrap_or(self.max_connections / 4).max(1)
    }

    /// How long texts may be under these settings.
    pub fn text_limits(&self) -> TextLimits {
        TextLimits { bytes: self.text_bytes, chars: self.text_chars, tokens: self.tokens_per_text }
    }
}
