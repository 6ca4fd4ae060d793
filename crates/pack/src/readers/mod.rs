//! Foreign formats of word vectors, one file a format, all behind [`VectorReader`].
//!
//! A reader streams: it holds one row and its input buffer, never the whole table, and it never
//! reserves memory for a number it has read in a file. What to do with duplicate words, words that
//! are not UTF-8, rows of zeros or rows with NaN is not decided here: the readers hand over what
//! stands in the file, `pack` applies the user's policy to all formats alike.

/// Declares [`Format`] from the list of modules; each holds `INFO` and `open`.
macro_rules! formats {
    ($($variant:ident => $module:ident,)+) => {
        /// A foreign format of word vectors.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Format {
            $(#[doc = concat!("See [`", stringify!($module), "`].")] $variant,)+
        }

        impl Format {
            /// Every format, in the order in which help lists them.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// Its name and how it is recognised.
            pub(crate) fn info(self) -> &'static Info {
                match self { $(Self::$variant => &$module::INFO,)+ }
            }

            /// Opens vectors that are in this format.
            fn open(self, source: &Source) -> Opened {
                match self { $(Self::$variant => $module::open(source),)+ }
            }
        }
    };
}

pub mod fasttext_bin;
pub mod finalfusion;
pub mod format;
pub mod glove_text;
mod header;
pub mod matrix;
pub mod model2vec;
pub mod npy;
pub mod positioned;
pub mod safetensors;
pub mod text;
pub mod word2vec_bin;
pub mod word2vec_text;

use cognate::model::format::Limits;
pub use cognate::model::unlisted::SubwordRule as Subword;
pub use cognate_files::{Place, ReadError, input};

use crate::readers::format::Source;

formats! {
    Word2VecText => word2vec_text,
    Word2VecBin => word2vec_bin,
    Glove => glove_text,
    FastText => fasttext_bin,
    Npy => npy,
    Safetensors => safetensors,
    Model2Vec => model2vec,
    Finalfusion => finalfusion,
}

/// What is known of a format before a file is opened.
#[derive(Debug)]
pub(crate) struct Info {
    /// The name on the command line.
    pub name: &'static str,
    /// How its files are recognised.
    pub mark: Mark,
}

/// How files of a format are recognised.
#[derive(Debug)]
pub(crate) enum Mark {
    /// By their first [`FIRST_BYTES`] bytes, or fewer where the file ends, and its size, which is
    /// not known of a compressed file.
    Bytes(fn(&[u8], Option<u64>) -> bool),
    /// By their first lines, asked only where no format is recognised by its bytes.
    Lines(fn(&Lines) -> bool),
    Folder,
}

/// Bytes that [`Mark::Bytes`] is shown.
pub(crate) const FIRST_BYTES: usize = 9;

/// What the first lines of a file look like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    /// The first line is two whole numbers, as word2vec's header is.
    pub header: bool,
    /// The line after it, or else the first, is a word and numbers; or it is not, but the file's
    /// name is that of a text.
    pub rows: bool,
}

/// Vectors ready to be read.
pub(crate) type Opened = Result<Box<dyn VectorReader>, ReadError>;

/// Upper bounds that hold for every format, whatever its header says.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    pub words: u64,
    /// Most dimensions of a row.
    pub dims: usize,
    /// Longest word, in bytes.
    pub word_bytes: usize,
}

impl Budget {
    /// As much as a model file may hold.
    pub const DEFAULT: Self = Self {
        words: Limits::DEFAULT.words,
        dims: Limits::DEFAULT.dims as usize,
        word_bytes: 1024,
    };
}

/// A stream of words and their vectors.
pub trait VectorReader {
    /// Dimensions of every row.
    fn dims(&self) -> usize;

    /// Rows the file promises, if its header was checked against the file's size.
    fn rows_hint(&self) -> Option<u64>;

    /// Reads the next row into `word` (raw bytes, cleared first) and `row` (`dims()` long).
    /// `false` at the end of the input. Values are handed over as they stand, NaN included.
    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool, ReadError>;

    /// Where the row last read began.
    fn place(&self) -> Place;

    /// BLAKE3 of the file that the rows stand in, in hexadecimal. What was not read yet is read for
    /// it, so that no row can be asked for afterwards.
    fn digest(&mut self) -> Result<String, ReadError>;

    /// Bytes consumed so far and in all, for the progress bar.
    fn progress(&self) -> (u64, u64);

    /// How often the word last read occurred in the corpus the vectors were trained on.
    fn count(&self) -> Option<u64> {
        None
    }

    /// The score of the word last read, where words are pieces that have scores.
    fn score(&self) -> Option<f64> {
        None
    }

    /// The rule by which this format builds vectors for words it does not list.
    fn subword(&self) -> Option<Subword> {
        None
    }

    /// The buckets that have rows, in the order of the rows, where not all of them have one.
    fn kept_buckets(&self) -> Option<&[u32]> {
        None
    }

    /// Reads the next row of the n-gram bucket table, once all words are read; `false` at its end.
    fn next_bucket(&mut self, _row: &mut [f32]) -> Result<bool, ReadError> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
