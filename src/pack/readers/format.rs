//! The foreign formats by name, how to tell them apart, and the one place where they are opened.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::path::PathBuf;
use std::str::FromStr;

use super::Budget;
use super::Place;
use super::ReadError;
use super::VectorReader;
use super::fasttext_bin::FastTextReader;
use super::finalfusion::FinalfusionReader;
use super::glove_text::GloveTextReader;
use super::header::HEADER_BYTES;
use super::header::is_header;
use super::input::Input;
use super::matrix::MatrixReader;
#[cfg(feature = "model2vec")]
use super::model2vec::Model2VecReader;
use super::npy;
use super::safetensors;
use super::text_rows::count_numbers;
use super::text_rows::line_bytes;
use super::word2vec_bin::Word2VecBinReader;
use super::word2vec_text::Word2VecTextReader;

/// A foreign format of word vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// word2vec and fastText `.vec`: a header line, then a row a line.
    Word2VecText,
    /// word2vec binary: a header line, then words and little-endian floats.
    Word2VecBin,
    /// GloVe: a row a line, no header.
    Glove,
    /// fastText `.bin`, with its table of character n-grams.
    FastText,
    /// NumPy matrix with a vocabulary beside it.
    Npy,
    /// safetensors matrix with a vocabulary beside it.
    Safetensors,
    /// model2vec folder.
    Model2Vec,
    /// finalfusion.
    Finalfusion,
}

impl Format {
    /// Every format, in the order in which help lists them.
    pub const ALL: [Self; 8] = [
        Self::Word2VecText,
        Self::Word2VecBin,
        Self::Glove,
        Self::FastText,
        Self::Npy,
        Self::Safetensors,
        Self::Model2Vec,
        Self::Finalfusion,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Word2VecText => "word2vec-text",
            Self::Word2VecBin => "word2vec-bin",
            Self::Glove => "glove",
            Self::FastText => "fasttext",
            Self::Npy => "npy",
            Self::Safetensors => "safetensors",
            Self::Model2Vec => "model2vec",
            Self::Finalfusion => "finalfusion",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A format that nobody here knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a format; known are {known}", known = Format::ALL.map(Format::name).join(", "))]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let named = Self::ALL.into_iter().find(|format| format.name() == name);
        named.ok_or_else(|| UnknownFormat(name.to_owned()))
    }
}

/// What is read of a model2vec folder: settings, words, rows.
pub(super) const FOLDER_FILES: [&str; 3] = ["config.json", "tokenizer.json", "model.safetensors"];

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
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.path.clone()];
        match &self.vocabulary {
            Some(vocabulary) => files.push(vocabulary.clone()),
            None => files.extend(self.vocabularies()),
        }
        files.extend(FOLDER_FILES.map(|name| self.path.join(name)));
        files
    }

    /// Where the words of a matrix are looked for, in this order.
    fn vocabularies(&self) -> [PathBuf; 2] {
        [self.path.with_extension("vocab.txt"), self.path.with_file_name("vocab.txt")]
    }

    /// The words that belong to a matrix.
    fn words(&self) -> Result<Input, ReadError> {
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

/// Opens word vectors of any format.
pub fn open(source: &Source) -> Result<Box<dyn VectorReader>, ReadError> {
    let path = &source.path;
    let budget = source.budget;
    let format = match source.format {
        Some(format) => format,
        None => detect(path)?,
    };
    match format {
        Format::Word2VecText | Format::Glove => text(Input::open(path)?, budget),
        Format::Word2VecBin => Ok(Box::new(Word2VecBinReader::new(Input::open(path)?, budget)?)),
        Format::Npy => {
            let mut input = Input::open(path)?;
            let shape = npy::find_matrix(&mut input)?;
            Ok(Box::new(MatrixReader::new(input, source.words()?, shape, budget)?))
        }
        Format::Safetensors => {
            let mut input = Input::open(path)?;
            let shape = safetensors::find_matrix(&mut input, source.tensor.as_deref())?;
            Ok(Box::new(MatrixReader::new(input, source.words()?, shape, budget)?))
        }
        Format::FastText => Ok(Box::new(FastTextReader::open(path, budget)?)),
        Format::Finalfusion => Ok(Box::new(FinalfusionReader::open(path, budget)?)),
        #[cfg(feature = "model2vec")]
        Format::Model2Vec => Ok(Box::new(Model2VecReader::open(path, budget)?)),
        #[cfg(not(feature = "model2vec"))]
        Format::Model2Vec => Err(ReadError::Unsupported {
            path: path.clone(),
            problem: "model2vec folders are read by a build with `--features model2vec`".to_owned(),
        }),
    }
}

/// Opens text with or without header, whichever of the two names it came under.
pub fn text(mut input: Input, budget: Budget) -> Result<Box<dyn VectorReader>, ReadError> {
    input.skip_byte_order_mark()?;
    let with_header = input.peek_line(HEADER_BYTES)?.is_some_and(is_header);
    Ok(match with_header {
        true => Box::new(Word2VecTextReader::new(input, budget)?),
        false => Box::new(GloveTextReader::new(input, budget)?),
    })
}

/// Finds out the format of a file or folder.
pub fn detect(path: &Path) -> Result<Format, ReadError> {
    if path.is_dir() {
        return Ok(Format::Model2Vec);
    }
    recognise(&mut Input::open(path)?)
}

/// The format by its first bytes, and only where they leave a choice by the file's name.
pub fn recognise(input: &mut Input) -> Result<Format, ReadError> {
    let left = input.bytes_left();
    match *input.peek(9)? {
        [] => return Err(input.malformed(Place::Byte(0), "the file is empty")),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => return Ok(Format::Npy),
        [b'F', b'i', b'F', b'u', ..] => return Ok(Format::Finalfusion),
        // 793712314 as a little-endian number.
        [0xba, 0x16, 0x4f, 0x2f, ..] => return Ok(Format::FastText),
        [b'P', b'K', 0x03, 0x04, ..] => {
            return Err(input.unsupported("a zip archive (.zip or .npz); unpack it first"));
        }
        [0x80, 0x02..=0x05, ..] => {
            return Err(input.unsupported(
                "a Python pickle; store the vectors with gensim's save_word2vec_format",
            ));
        }
        [a, b, c, d, e, f, g, h, b'{']
            if left.is_some_and(|left| u64::from_le_bytes([a, b, c, d, e, f, g, h]) < left) =>
        {
            return Ok(Format::Safetensors);
        }
        _ => {}
    }
    input.skip_byte_order_mark()?;
    if input.peek_line(HEADER_BYTES)?.is_some_and(is_header) {
        input.read_line_bounded(HEADER_BYTES)?;
        return Ok(match is_row(input)? || named_text(input.path()) {
            true => Format::Word2VecText,
            false => Format::Word2VecBin,
        });
    }
    if is_row(input)? || named_text(input.path()) {
        return Ok(Format::Glove);
    }
    let known = Format::ALL.map(Format::name).join(", ");
    Err(input.unsupported(format!(
        "of no known format; known are {known}. A fastText .bin from before 2017 has no magic \
         number and is not read"
    )))
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
