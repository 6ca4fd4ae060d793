//! Readers of foreign word vector formats, all behind [`VectorReader`].
//!
//! A reader streams: it holds one row and an input buffer, never the whole table, and never
//! allocates memory for a number that a file states. Readers return what the file contains;
//! duplicate words, words that are not UTF-8, and rows with zeros or NaN are handled by `pack` with
//! the user's policy, in the same way for all formats.

/// Declares [`Format`] from a list of modules, each with its [`Info`] and the function that opens a file.
macro_rules! formats {
    ($($variant:ident => $module:ident($info:ident, $open:ident),)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Format {
            $(#[doc = concat!("See [`", stringify!($module), "`].")] $variant,)+
        }

        impl Format {
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            pub(crate) fn info(self) -> &'static Info {
                match self { $(Self::$variant => &$module::$info,)+ }
            }

            fn open(self, source: &Source) -> Opened {
                match self { $(Self::$variant => $module::$open(source),)+ }
            }
        }
    };
}

pub mod fasttext_bin;
pub mod finalfusion;
pub mod format;
pub mod matrix;
pub mod model2vec;
pub mod npy;
pub mod positioned;
pub mod safetensors;
pub mod text;
pub mod word2vec_bin;

use std::path::PathBuf;

use cognate::model::format::Limits;
pub use cognate::model::unlisted::SubwordRule as Subword;
pub use cognate_files::{Place, ReadError, Result, input};

formats! {
    Word2VecText => text(WORD2VEC, open),
    Word2VecBin => word2vec_bin(INFO, open),
    Glove => text(GLOVE, open),
    FastText => fasttext_bin(INFO, open),
    Npy => npy(INFO, open),
    Safetensors => safetensors(INFO, open),
    Model2Vec => model2vec(INFO, open),
    Finalfusion => finalfusion(INFO, open),
}

const FOLDER_FILES: [&str; 4] =
    ["config.json", "config_sentence_transformers.json", "tokenizer.json", "model.safetensors"];
pub(super) const STATIC_FOLDER: &str = "0_StaticEmbedding";

#[derive(Debug, Clone)]
pub struct Source {
    pub path: PathBuf,
    pub format: Option<Format>,
    pub vocabulary: Option<PathBuf>,
    pub tensor: Option<String>,
    pub budget: Budget,
}

impl Source {
    pub fn at(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { path, format: None, vocabulary: None, tensor: None, budget: Budget::DEFAULT }
    }

    /// Every file that may be read for this source, in any format.
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

    fn vocabularies(&self) -> [PathBuf; 2] {
        [self.path.with_extension("vocab.txt"), self.path.with_file_name("vocab.txt")]
    }

    pub(super) fn words(&self) -> Result<input::Input> {
        if let Some(vocabulary) = &self.vocabulary {
            return input::Input::open(vocabulary);
        }
        let places = self.vocabularies();
        match places.iter().find(|path| path.exists()) {
            Some(path) => input::Input::open(path),
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

/// The name of a format and how to recognise it.
#[derive(Debug)]
pub(crate) struct Info {
    pub name: &'static str,
    pub mark: Mark,
}

#[derive(Debug)]
pub(crate) enum Mark {
    /// By their first [`FIRST_BYTES`] bytes (fewer in a shorter file) and their size, which is
    /// unknown for a compressed file.
    Bytes(fn(&[u8], Option<u64>) -> bool),
    /// By their first lines; used only if no format is recognised by its bytes.
    Lines(fn(&Lines) -> bool),
    Folder,
}

pub(crate) const FIRST_BYTES: usize = 9;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    pub header: bool,
    /// The line after the header, or the first line if there is no header, is a word and numbers;
    /// or the name of the file is that of a text file.
    pub rows: bool,
}

pub(crate) type Opened = Result<Box<dyn VectorReader>>;

#[derive(Debug, Clone, Copy)]
pub struct Budget {
    pub words: u64,
    pub dims: usize,
    pub word_bytes: usize,
}

impl Budget {
    pub const DEFAULT: Self = Self {
        words: Limits::DEFAULT.words,
        dims: Limits::DEFAULT.dims as usize,
        word_bytes: 1024,
    };
}

pub trait VectorReader {
    fn dims(&self) -> usize;

    /// Number of rows in the header, if it was checked against the size of the file.
    fn rows_hint(&self) -> Option<u64>;

    /// Reads the next row into `word` (raw bytes, cleared first) and `row` (of length `dims()`).
    /// Returns `false` at the end of the input. Values are returned unchanged, NaN included.
    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool>;

    /// Where the row last read began.
    fn place(&self) -> Place;

    /// BLAKE3 of the file with the rows, in hexadecimal. Reads the file to its end, so no row can
    /// be read afterwards.
    fn digest(&mut self) -> Result<String>;

    /// Bytes consumed and in total, for the progress bar.
    fn progress(&self) -> (u64, u64);

    /// Occurrences of the last word in the corpus that the vectors were trained on.
    fn count(&self) -> Option<u64> {
        None
    }

    /// Score of the last word, if words are pieces with scores.
    fn score(&self) -> Option<f64> {
        None
    }

    fn subword(&self) -> Option<Subword> {
        None
    }

    /// The buckets that have rows, in the order of the rows, if some buckets have none.
    fn kept_buckets(&self) -> Option<&[u32]> {
        None
    }

    /// Reads the next row of the n-gram bucket table, after all words; `false` at its end.
    fn next_bucket(&mut self, _row: &mut [f32]) -> Result<bool> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
