//! Where the files of a static model lie, and its settings. model2vec writes them side by side;
//! sentence-transformers writes rows and entries into `0_StaticEmbedding` or beside its own settings,
//! and older versions of it no settings at all.

use std::path::{Path, PathBuf};

use crate::readers::ReadError;
use crate::readers::model2vec::folder::whole;
use crate::readers::positioned::Source;
use crate::readers::source::STATIC_FOLDER;

const MOST_CONFIG_BYTES: u64 = 1 << 20;
/// The settings' names, the likelier first.
const CONFIGS: [&str; 2] = ["config.json", "config_sentence_transformers.json"];
/// Tokens of a text that model2vec reads where nothing is said.
const USUAL_MAX_LENGTH: u64 = 512;

/// The files of a folder.
pub(super) struct Layout {
    pub(super) tokenizer: PathBuf,
    pub(super) tensors: PathBuf,
    pub(super) config: Option<PathBuf>,
}

impl Layout {
    /// Looks where the files are. One that is nowhere is named where model2vec has it.
    pub(super) fn of(folder: &Path) -> Self {
        let inner = folder.join(STATIC_FOLDER);
        let nested = !folder.join("model.safetensors").exists() && inner.is_dir();
        let rows = if nested { &inner } else { folder };
        let configs = CONFIGS.iter().map(|name| folder.join(name));
        Self {
            tokenizer: rows.join("tokenizer.json"),
            tensors: rows.join("model.safetensors"),
            config: configs.into_iter().find(|path| path.exists()),
        }
    }
}

/// What model2vec for Python takes from the settings; what is missing there has its defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Whether the mean vector of a text is scaled to unit length.
    pub normalize: bool,
    /// Tokens of a text that are read; all of them where there is no bound.
    pub max_length: Option<u64>,
}

impl Settings {
    /// Where there are none.
    pub(super) const USUAL: Self = Self { normalize: false, max_length: Some(USUAL_MAX_LENGTH) };

    pub(super) fn read(source: &Source) -> Result<Self, ReadError> {
        #[derive(serde::Deserialize)]
        struct Config {
            normalize: Option<bool>,
            #[serde(default = "usual")]
            max_length: Option<u64>,
        }
        fn usual() -> Option<u64> {
            Some(USUAL_MAX_LENGTH)
        }
        let bytes = whole(source, MOST_CONFIG_BYTES)?;
        let config: Config = serde_json::from_slice(&bytes).map_err(|error| {
            source.malformed(0, format!("expected a model2vec config: {error}"))
        })?;
        let normalize = config.normalize.unwrap_or(Self::USUAL.normalize);
        Ok(Self { normalize, max_length: config.max_length })
    }
}
