//! What is to be read: a file or folder, and what is known of it before it is opened.

use std::path::PathBuf;

use super::input::Input;
use super::{Budget, Format, ReadError};

/// What is read of a folder of model2vec or sentence-transformers: settings, words, rows.
const FOLDER_FILES: [&str; 4] =
    ["config.json", "config_sentence_transformers.json", "tokenizer.json", "model.safetensors"];
/// The folder in it that sentence-transformers writes words and rows into.
pub(super) const STATIC_FOLDER: &str = "0_StaticEmbedding";

/// Word vectors to read: where they are and what is known about them.
#[derive(Debug, Clone)]
pub struct Source {
    /// The file, or for model2vec the folder.
    pub path: PathBuf,
    /// The format; found out from the file if not given.
    pub format: Option<Format>,
    /// The words of a matrix, one a line; looked for beside it if not given.
    pub vocabulary: Option<PathBuf>,
    /// The matrix of a safetensors file that holds several.
    pub tensor: Option<String>,
    /// What is read at most.
    pub budget: Budget,
}

impl Source {
    /// A source of which only the path is known.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { path, format: None, vocabulary: None, tensor: None, budget: Budget::DEFAULT }
    }

    /// Every file that may be read for it, of whatever format it is.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.path.clone()];
        match &self.vocabulary {
            Some(vocabulary) => files.push(vocabulary.clone()),
            None => files.extend(self.vocabularies()),
        }
        for folder in [self.path.clone(), self.path.join(STATIC_FOLDER)] {
            files.extend(FOLDER_FILES.map(|name| folder.join(name)));
        }
        files
    }

    /// Where the words of a matrix are looked for, in this order.
    fn vocabularies(&self) -> [PathBuf; 2] {
        [self.path.with_extension("vocab.txt"), self.path.with_file_name("vocab.txt")]
    }

    /// The words that belong to a matrix.
    pub(super) fn words(&self) -> Result<Input, ReadError> {
        if let Some(vocabulary) = &self.vocabulary {
            return Input::open(vocabulary);
        }
        let places = self.vocabularies();
        match places.iter().find(|path| path.exists()) {
            Some(path) => Input::open(path),
            None => {
                let [own, shared] = places.each_ref().map(|path| path.display());
                let problem = format!(
                    "a matrix without words: neither {own} nor {shared} exists; name the vocabulary"
                );
                Err(ReadError::Unsupported { path: self.path.clone(), problem })
            }
        }
    }
}
