//! A model: word vectors, their vocabulary and counts, and what trained methods added, in one file
//! that is mapped and used as it lies.
//!
//! [`Model::open`] checks a file before it believes it; everything after that borrows from the
//! mapping. How texts are compared is not known here.

pub mod bytes;
mod check;
mod counts;
#[cfg(unix)]
pub mod disk;
pub mod draft;
mod error;
pub mod format;
#[cfg(unix)]
pub mod freed;
mod header;
mod lines;
#[cfg(unix)]
pub mod mapped;
mod options;
#[cfg(unix)]
mod origin;
pub mod phrase;
pub mod pieces;
mod profile;
pub mod provenance;
mod section;
#[cfg(unix)]
pub mod sigbus;
pub mod subword;
#[cfg(unix)]
mod target;
pub mod unigram;
pub mod unknown;
pub mod unlisted;
#[cfg(unix)]
pub mod update;
pub mod vectors;
pub mod vocabulary;
#[cfg(unix)]
pub mod whole_folder;
#[cfg(unix)]
pub mod writer;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

pub use check::Verify;
pub use counts::Counts;
pub use error::{FormatError, IoCause, ModelError};
pub use options::{LONGEST, Storage};
#[cfg(unix)]
pub use origin::{FileIdentity, FileState};
pub use phrase::Phrase;
pub use section::Section;
pub use unknown::Unknown;
pub use vectors::{Frequency, Vectors};
pub use vocabulary::{Vocabulary, WordId};

use crate::choice::Unexpected;
use crate::model::bytes::{AlignedBytes, Bytes, in_memory, numbers};
use crate::model::format::{Dtype, Header, LANGUAGES, Limits, Tensor};
use crate::model::lines::Lines;
#[cfg(unix)]
use crate::model::mapped::Mapping;
#[cfg(unix)]
use crate::model::origin::Origin;
use crate::model::pieces::PIECES_SECTION;
use crate::model::unlisted::UnlistedWords;
use crate::model::vocabulary::Corpus;
use crate::text;
use crate::text::Normalisation;

/// How a model file is opened.
#[derive(Debug, Clone, Copy)]
pub struct OpenOptions {
    /// How much is checked.
    pub verify: Verify,
    /// How the bytes are stored.
    pub storage: Storage,
    /// What the file may claim.
    pub limits: Limits,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self { verify: Verify::Full, storage: Storage::Map, limits: Limits::DEFAULT }
    }
}

/// Models that were opened, and one more.
static MODELS: AtomicU64 = AtomicU64::new(1);

/// An opened model, shared between threads by reference.
#[derive(Debug)]
pub struct Model {
    /// Tells the models of a process apart.
    number: u64,
    path: PathBuf,
    bytes: Bytes,
    header: Header,
    /// BLAKE3 of the bytes that belong to no tensor.
    #[cfg(unix)]
    between: blake3::Hash,
    places: Places,
    max_probe: u32,
    /// The short words, where lines can be made of them.
    lines: Option<Lines>,
    corpus: Corpus,
    normalisation: Normalisation,
    unknown: Unknown,
    unlisted: UnlistedWords,
    frequency: Frequency,
    verified: Verify,
}

/// The extents of the tensors that every request reads.
#[derive(Debug, Default)]
struct Places {
    dtype: Option<Dtype>,
    vectors: Range<usize>,
    scales: Range<usize>,
    vocab_bytes: Range<usize>,
    vocab_offsets: Range<usize>,
    vocab_index: Range<usize>,
    counts: Option<Range<usize>>,
    df: Option<Range<usize>>,
    idf: Option<Range<usize>>,
}

impl Places {
    fn from_header(header: &Header) -> Self {
        let range = |name| header.tensor(name).map(|tensor| tensor.range.clone());
        Self {
            dtype: header.tensor("vectors").map(|tensor| tensor.dtype),
            vectors: range("vectors").unwrap_or_default(),
            scales: range("scales").unwrap_or_default(),
            vocab_bytes: range("vocab_bytes").unwrap_or_default(),
            vocab_offsets: range("vocab_offsets").unwrap_or_default(),
            vocab_index: range("vocab_index").unwrap_or_default(),
            counts: range("counts"),
            df: range("df"),
            idf: range("idf"),
        }
    }

    /// From the first vocabulary table to the last word statistics: the tables of look-ups.
    fn vocabulary(&self) -> Range<usize> {
        let last = [&self.counts, &self.df, &self.idf].into_iter().flatten().map(|r| r.end).max();
        self.vocab_bytes.start..last.unwrap_or(self.vocab_index.end)
    }
}

impl Model {
    /// A model whose bytes never were a file.
    pub fn from_bytes(bytes: &[u8], options: &OpenOptions) -> Result<Self, ModelError> {
        Self::from_aligned(bytes.into(), options)
    }

    /// Opens a model in aligned bytes, which are not copied.
    pub fn from_aligned(bytes: AlignedBytes, options: &OpenOptions) -> Result<Self, ModelError> {
        Self::in_memory(Bytes::Memory(bytes), options)
    }

    /// A model that is part of the program, whose pages processes share. It is copied unless its address is
    /// a multiple of 64.
    pub fn from_program(bytes: &'static [u8], options: &OpenOptions) -> Result<Self, ModelError> {
        match bytes.as_ptr().addr().is_multiple_of(format::ALIGNMENT as usize) {
            true => Self::in_memory(Bytes::Program(bytes), options),
            false => Self::from_bytes(bytes, options),
        }
    }

    fn in_memory(bytes: Bytes, options: &OpenOptions) -> Result<Self, ModelError> {
        let path = in_memory();
        Self::read(&path, bytes, options).map_err(ModelError::format(&path))
    }

    fn read(path: &Path, bytes: Bytes, options: &OpenOptions) -> Result<Self, FormatError> {
        let header = Header::read(bytes.as_slice(), &options.limits)?;
        let places = Places::from_header(&header);
        let first = match options.verify {
            Verify::Full => 0..bytes.as_slice().len(),
            Verify::Structure => places.vocabulary(),
        };
        populate(&bytes, first)?;
        let corpus = Corpus {
            tokens: header.number("tokens")?,
            documents: header.number("documents")?,
            idf_unknown: header.number("idf_unknown")?.filter(|idf: &f32| idf.is_finite()),
        };
        let mut model = Self {
            number: MODELS.fetch_add(1, Ordering::Relaxed),
            path: path.to_owned(),
            max_probe: header.number("max_probe")?.unwrap_or(0),
            normalisation: json(&header, "normalisation")?,
            unknown: json(&header, "unknown")?,
            unlisted: UnlistedWords::None,
            frequency: word(&header, "frequency")?,
            verified: options.verify,
            #[cfg(unix)]
            between: check::digest_between(bytes.as_slice(), &header),
            bytes,
            header,
            places,
            lines: None,
            corpus,
        };
        let (file, header) = (model.bytes.as_slice(), &model.header);
        let is_full = options.verify == Verify::Full;
        let (unlisted, lines) = thread::scope(|scope| {
            // Digests take as long as all else together; without threads they are made last.
            let digests = is_full.then(|| {
                thread::Builder::new().spawn_scoped(scope, || check::digests(file, header))
            });
            let unlisted = UnlistedWords::from_model(&model)?;
            check::structure(file, header, &model.vocabulary())?;
            let lines = Lines::new(model.vocabulary().all_bytes());
            if let Some(digests) = digests {
                let checked = model.check_numbers(&unlisted);
                let digests = digests.ok().and_then(|thread| thread.join().ok());
                digests.unwrap_or_else(|| check::digests(file, header))?;
                checked?;
            }
            Ok((unlisted, lines))
        })?;
        (model.unlisted, model.lines) = (unlisted, lines);
        Ok(model)
    }

    /// Checks every number, and that every word and piece is found.
    fn check_numbers(&self, unlisted: &UnlistedWords) -> Result<(), FormatError> {
        check::full(self.bytes.as_slice(), &self.header, &self.vocabulary())?;
        match unlisted {
            UnlistedWords::Fallback(_, Some(pieces)) => {
                check::found_by_look_up(PIECES_SECTION, &pieces.strings(self))
            }
            _ => Ok(()),
        }
    }

    /// Brings part of the file into memory, so that what the disk cannot give is an error here and
    /// not a fault later.
    fn populate(&self, range: &Range<usize>) -> Result<(), FormatError> {
        populate(&self.bytes, range.clone())
    }

    fn slice(&self, range: &Range<usize>) -> &[u8] {
        self.bytes.as_slice().get(range.clone()).unwrap_or(&[])
    }

    fn table<T: bytemuck::AnyBitPattern>(&self, range: &Range<usize>) -> &[T] {
        numbers(self.slice(range)).unwrap_or(&[])
    }

    /// The vocabulary.
    pub fn vocabulary(&self) -> Vocabulary<'_> {
        let places = &self.places;
        let mut vocabulary = Vocabulary::new(
            self.slice(&places.vocab_bytes),
            self.table(&places.vocab_offsets),
            self.table(&places.vocab_index),
            self.max_probe,
        );
        vocabulary.counts = places.counts.as_ref().map(|range| self.table(range));
        vocabulary.document_frequencies = places.df.as_ref().map(|range| self.table(range));
        vocabulary.idf = places.idf.as_ref().map(|range| self.table(range));
        vocabulary.corpus = self.corpus;
        vocabulary.lines = self.lines.as_ref();
        vocabulary
    }

    /// Number of dimensions of the word vectors.
    #[inline]
    pub fn dims(&self) -> usize {
        self.header.dims as usize
    }

    /// The word vectors.
    pub fn vectors(&self) -> Vectors<'_> {
        let places = &self.places;
        let dtype = places.dtype.unwrap_or(Dtype::F32);
        let dims = self.dims();
        let (vectors, scales) = (self.slice(&places.vectors), self.slice(&places.scales));
        // The header's shapes were checked against these bytes, and the mapping is aligned.
        Vectors::new(dtype, vectors, scales, dims).unwrap_or(Vectors::empty(dims))
    }

    /// A text looked up.
    pub fn phrase(&self, text: &str) -> Phrase<'_> {
        let mut phrase = Phrase::new(self);
        phrase.read(text);
        phrase
    }

    /// A number that no other model of the process has.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The file this model was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Size of the file.
    pub fn bytes(&self) -> u64 {
        self.bytes.as_slice().len() as u64
    }

    /// BLAKE3 of the whole file, in hexadecimal digits.
    pub fn digest(&self) -> String {
        blake3::hash(self.bytes.as_slice()).to_hex().to_string()
    }

    /// Sixteen hexadecimal digits that change with every byte of the model.
    pub fn fingerprint(&self) -> &str {
        self.header.fingerprint()
    }

    /// The rules that turn a text into this vocabulary's words.
    pub fn normalisation(&self) -> &Normalisation {
        &self.normalisation
    }

    /// About how many tokens a text has.
    pub fn about_tokens(&self, text: &str) -> usize {
        text::about(&self.normalisation, text)
    }

    /// The policy for words that are not listed.
    pub fn unknown(&self) -> &Unknown {
        &self.unknown
    }

    pub(crate) fn unlisted(&self) -> &UnlistedWords {
        &self.unlisted
    }

    /// The length of the vectors that are made for unlisted words, if it is the same for all.
    pub(crate) fn length_of_unlisted(&self) -> Option<f32> {
        match &self.unlisted {
            UnlistedWords::Fallback(rules, _) => rules.hash_norm,
            _ => None,
        }
    }

    /// Returns whether the length of a vector is the weight of its word.
    pub fn frequency(&self) -> Frequency {
        self.frequency
    }

    /// The codes of the languages it is for, in ISO 639-1; none if the file does not state them.
    pub fn languages(&self) -> impl Iterator<Item = &str> {
        self.metadata().get(LANGUAGES).map_or("", String::as_str).split_whitespace()
    }

    /// How much of the file was checked when it was opened.
    pub fn verified(&self) -> Verify {
        self.verified
    }

    /// Element type of the vectors.
    pub fn dtype(&self) -> Dtype {
        self.places.dtype.unwrap_or(Dtype::F32)
    }

    /// All metadata strings.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.header.metadata
    }

    /// All tensors with their bytes, padding left out.
    pub fn tensors(&self) -> impl Iterator<Item = (&Tensor, &[u8])> {
        self.header.tensors.iter().map(|tensor| (tensor, self.slice(&tensor.range)))
    }
}

/// Methods about the file that a model was read from.
#[cfg(unix)]
impl Model {
    /// Opens and checks a model file.
    pub fn open(path: &Path, options: &OpenOptions) -> Result<Self, ModelError> {
        let mapping = Mapping::open(path, options.storage, options.limits.model_bytes)?;
        let header_end = mapping.as_slice().len().min(format::ALIGNMENT as usize);
        mapping.populate(0..header_end).map_err(ModelError::io(path, "read"))?;
        let model =
            Self::read(path, Bytes::File(mapping), options).map_err(ModelError::format(path))?;
        if !model.untouched() {
            return Err(ModelError::Changed { path: path.to_owned() });
        }
        Ok(model)
    }

    /// Whether the last check found that the mapped file was cut or written to in place, so that
    /// scores may be wrong.
    pub fn damaged(&self) -> bool {
        self.file_under_map().is_some_and(Origin::damaged)
    }

    /// Looks at the mapped file again. Reads all of it if it was touched since the last look.
    pub fn look_again(&self) -> FileState {
        let Some(file) = self.file_under_map() else { return FileState::Same };
        file.look_again(|bytes| check::same_bytes(bytes, &self.header, self.between))
    }

    /// Whether the file is unchanged since it was opened or last checked.
    pub fn untouched(&self) -> bool {
        match &self.bytes {
            Bytes::File(mapping) => mapping.untouched(),
            Bytes::Memory(_) | Bytes::Program(_) => true,
        }
    }

    fn file_under_map(&self) -> Option<&Origin> {
        match &self.bytes {
            Bytes::File(mapping) => mapping.file_under_map(),
            Bytes::Memory(_) | Bytes::Program(_) => None,
        }
    }
}

fn populate(bytes: &Bytes, range: Range<usize>) -> Result<(), FormatError> {
    bytes.populate(range).map_err(|error| FormatError::Extent {
        name: "file".to_owned(),
        expected: "to be readable to its end".to_owned(),
        got: error.to_string(),
    })
}

fn json<T: serde::de::DeserializeOwned>(header: &Header, key: &str) -> Result<T, FormatError> {
    let text = header.metadata.get(key).map(String::as_str).unwrap_or("nothing");
    serde_json::from_str(text).map_err(|error| FormatError::Metadata {
        key: key.to_owned(),
        expected: format!("settings this version knows ({error})"),
        got: format::shorten(text),
    })
}

fn word<T: FromStr<Err = Unexpected>>(header: &Header, key: &str) -> Result<T, FormatError> {
    let text = header.metadata.get(key).map(String::as_str).unwrap_or("nothing");
    text.parse().map_err(|error: Unexpected| FormatError::Metadata {
        key: key.to_owned(),
        expected: error.expected,
        got: format::shorten(text),
    })
}
