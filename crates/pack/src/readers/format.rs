//! Which format a file is in, and the one place where it is opened by it.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::header::{HEADER_BYTES, is_header};
use super::input::Input;
use super::text::{count_numbers, line_bytes};
use super::{Budget, FIRST_BYTES, Format, Lines, Mark, Opened, Place, ReadError};

impl Format {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        self.info().name
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A format that nobody here knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a format; known are {known}", known = known())]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let named = Self::ALL.iter().find(|format| format.name() == name);
        named.copied().ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// The names of all formats.
fn known() -> String {
    Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ")
}

/// Opens word vectors of any format.
pub fn open(source: &Source) -> Opened {
    match source.format {
        Some(format) => format.open(source),
        None => detect(&source.path)?.open(source),
    }
}

/// Finds out the format of a file or folder.
pub(crate) fn detect(path: &Path) -> Result<Format, ReadError> {
    if path.is_dir()
        && let Some(format) = marked(|mark| matches!(mark, Mark::Folder))
    {
        return Ok(format);
    }
    recognise(&mut Input::open(path)?)
}

/// The format by its first bytes, and only where they leave a choice by its lines and its name.
pub fn recognise(input: &mut Input) -> Result<Format, ReadError> {
    let size = input.bytes_left();
    let first = input.peek(FIRST_BYTES)?;
    let by_bytes = |mark: &Mark| matches!(mark, Mark::Bytes(is) if is(first, size));
    if let Some(format) = marked(by_bytes) {
        return Ok(format);
    }
    match *first {
        [] => return Err(input.malformed(Place::Byte(0), "the file is empty")),
        [b'P', b'K', 0x03, 0x04, ..] => {
            return Err(input.unsupported("a zip archive (.zip or .npz); unpack it first"));
        }
        [0x80, 0x02..=0x05, ..] => {
            return Err(input.unsupported(
                "a Python pickle; store the vectors with gensim's save_word2vec_format",
            ));
        }
        _ => {}
    }
    let lines = Lines::of(input)?;
    let by_lines = |mark: &Mark| matches!(mark, Mark::Lines(are) if are(&lines));
    marked(by_lines).ok_or_else(|| {
        let old = ". A fastText .bin from before 2017 has no magic number and is not read";
        let binary = input.path().extension().is_some_and(|end| end.eq_ignore_ascii_case("bin"));
        let old = if binary { old } else { "" };
        input.unsupported(format!("of no known format; known are {}{old}", known()))
    })
}

/// The first format with such a mark.
fn marked(is: impl Fn(&Mark) -> bool) -> Option<Format> {
    Format::ALL.iter().copied().find(|format| is(&format.info().mark))
}

impl Lines {
    /// Looks at the lines of a file from its beginning.
    fn of(input: &mut Input) -> Result<Self, ReadError> {
        input.skip_byte_order_mark()?;
        let header = input.peek_line(HEADER_BYTES)?.is_some_and(is_header);
        if header {
            input.read_line_bounded(HEADER_BYTES)?;
        }
        Ok(Self { header, rows: is_row(input)? || named_text(input.path()) })
    }
}

/// Whether the next line is a word and numbers.
fn is_row(input: &mut Input) -> Result<bool, ReadError> {
    let limit = line_bytes(Budget::DEFAULT.dims, Budget::DEFAULT);
    Ok(input.peek_line(limit)?.is_some_and(|line| count_numbers(line) > 0))
}

/// Whether the name, without the ending of a packer, is that of a text file.
fn named_text(path: &Path) -> bool {
    let packed = ["gz", "zst"].map(Some).contains(&path.extension().and_then(OsStr::to_str));
    let path = if packed { Path::new(path.file_stem().unwrap_or_default()) } else { path };
    ["txt", "vec", "glove"].map(Some).contains(&path.extension().and_then(OsStr::to_str))
}

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
