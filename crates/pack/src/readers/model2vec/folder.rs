//! The reader of a model2vec folder: its settings, tokenizer entries and tensors.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use cognate::model::unigram;
use cognate::model::unigram::Scale;
use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde::de::IgnoredAny;
use tokenizers::models::unigram::Unigram;
use tokenizers::{ModelWrapper, Tokenizer};

use crate::readers::positioned::Source;
use crate::readers::{Budget, Place, Result, STATIC_FOLDER, Subword, VectorReader};

#[derive(Debug)]
pub struct Model2VecReader {
    tensors: Source,
    embeddings: Tensor,
    weights: Option<Tensor>,
    mapping: Option<Tensor>,
    words: Vec<Entry>,
    subword: Option<Subword>,
    settings: Settings,
    score: Option<f64>,
    next: usize,
    place: u64,
    bytes: Vec<u8>,
}

impl Model2VecReader {
    pub fn open(folder: &Path, budget: Budget) -> Result<Self> {
        let Layout { config, tokenizer, tensors } = Layout::new(folder);
        let config = config.map(|path| Source::open(&path)).transpose()?;
        let tokenizer = Source::open(&tokenizer)?;
        let tensors = Source::open(&tensors)?;
        Self::over(tensors, &tokenizer, config.as_ref(), budget)
    }

    pub fn over(
        tensors: Source,
        tokenizer: &Source,
        config: Option<&Source>,
        budget: Budget,
    ) -> Result<Self> {
        let settings = config.map_or(Ok(Settings::USUAL), Settings::read)?;
        let Entries { entries: words, subword } = Entries::read(tokenizer, budget)?;
        let Header { embeddings, weights, mapping } = Header::read(&tensors, budget)?;

        let entries = weights.or(mapping).map_or(embeddings.rows, |tensor| tensor.rows);
        for (name, tensor) in [("weights", weights), ("mapping", mapping)] {
            if tensor.is_some_and(|tensor| tensor.rows != entries) {
                let problem = format!("expected {entries} {name}, one for each entry");
                return Err(tensors.malformed(0, problem));
            }
        }
        if mapping.is_none() && entries != embeddings.rows {
            let problem = format!("expected {} weights, found {entries}", embeddings.rows);
            return Err(tensors.malformed(0, problem));
        }
        if let Some(Entry { id, name: word, .. }) = words.last()
            && u64::from(*id) >= entries
        {
            let problem = format!("token {word:?} has id {id}, but there are {entries} vectors");
            return Err(tokenizer.malformed(0, problem));
        }
        Ok(Self {
            tensors,
            embeddings,
            weights,
            mapping,
            words,
            subword,
            settings,
            score: None,
            next: 0,
            place: 0,
            bytes: Vec::new(),
        })
    }

    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The index of an entry's row in the embeddings.
    fn row_of(&self, id: u32) -> Result<u64> {
        let Some(mapping) = self.mapping else {
            return Ok(u64::from(id));
        };
        let at = mapping.at(u64::from(id), 1);
        let mut bytes = [0; 8];
        let found = match mapping.dtype {
            Dtype::I32 => {
                self.tensors.read_at(at, &mut bytes[..4])?;
                i64::from(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            }
            _ => {
                self.tensors.read_at(at, &mut bytes)?;
                i64::from_le_bytes(bytes)
            }
        };
        u64::try_from(found).ok().filter(|&row| row < self.embeddings.rows).ok_or_else(|| {
            let rows = self.embeddings.rows;
            self.tensors.malformed(at, format!("expected a row below {rows}, found {found}"))
        })
    }

    fn numbers(&mut self, tensor: Tensor, row: u64, out: &mut [f32]) -> Result<()> {
        self.place = tensor.at(row, out.len() as u64);
        // A row has at most `Budget::dims` numbers of a few bytes each.
        self.bytes.resize(out.len() * tensor.number_bytes() as usize, 0);
        self.tensors.read_at(self.place, &mut self.bytes)?;
        match tensor.dtype {
            Dtype::F16 => fill(out, &self.bytes, |b| half::f16::from_le_bytes(b).to_f32()),
            Dtype::F32 => fill(out, &self.bytes, f32::from_le_bytes),
            Dtype::F64 => fill(out, &self.bytes, |b| f64::from_le_bytes(b) as f32),
            _ => fill(out, &self.bytes, |[b]| f32::from(b.cast_signed())),
        }
        Ok(())
    }
}

fn fill<const N: usize>(out: &mut [f32], bytes: &[u8], number: impl Fn([u8; N]) -> f32) {
    for (value, &bytes) in out.iter_mut().zip(bytes.as_chunks::<N>().0) {
        *value = number(bytes);
    }
}

impl VectorReader for Model2VecReader {
    fn dims(&self) -> usize {
        self.embeddings.dims
    }

    fn rows_hint(&self) -> Option<u64> {
        Some(self.words.len() as u64)
    }

    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool> {
        let Some(&Entry { id, ref name, score }) = self.words.get(self.next) else {
            return Ok(false);
        };
        word.clear();
        word.extend_from_slice(name.as_bytes());
        self.score = score;
        let mut weight = [1.0];
        if let Some(weights) = self.weights {
            self.numbers(weights, u64::from(id), &mut weight)?;
        }
        let index = self.row_of(id)?;
        self.numbers(self.embeddings, index, row)?;
        for value in row.iter_mut() {
            *value *= weight[0];
        }
        self.next += 1;
        Ok(true)
    }

    fn place(&self) -> Place {
        Place::Byte(self.place)
    }

    fn digest(&mut self) -> Result<String> {
        self.tensors.digest()
    }

    fn progress(&self) -> (u64, u64) {
        let row = self.embeddings.dims as u64 * self.embeddings.number_bytes();
        (self.next as u64 * row, self.words.len() as u64 * row)
    }

    fn score(&self) -> Option<f64> {
        self.score
    }

    fn subword(&self) -> Option<Subword> {
        self.subword.clone()
    }
}

pub(super) fn whole(source: &Source, most: u64) -> Result<Vec<u8>> {
    if source.len() > most {
        let problem = format!("{} bytes, at most {most} are taken", source.len());
        return Err(source.unsupported(problem));
    }
    // A few hundred megabytes at most, and never more than the file's real size.
    let mut bytes = vec![0; source.len() as usize];
    source.read_at(0, &mut bytes)?;
    Ok(bytes)
}

const MAX_CONFIG_BYTES: u64 = 1 << 20;
const CONFIGS: [&str; 2] = ["config.json", "config_sentence_transformers.json"];
const USUAL_MAX_LENGTH: u64 = 512;

pub(super) struct Layout {
    pub(super) tokenizer: PathBuf,
    pub(super) tensors: PathBuf,
    pub(super) config: Option<PathBuf>,
}

impl Layout {
    /// Finds the files. A file that is missing gets the path where model2vec expects it.
    pub(super) fn new(folder: &Path) -> Self {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub normalize: bool,
    /// Maximum tokens of a text; `None` for no limit.
    pub max_length: Option<u64>,
}

impl Settings {
    pub(super) const USUAL: Self = Self { normalize: false, max_length: Some(USUAL_MAX_LENGTH) };

    pub(super) fn read(source: &Source) -> Result<Self> {
        #[derive(serde::Deserialize)]
        struct Config {
            normalize: Option<bool>,
            #[serde(default = "usual")]
            max_length: Option<u64>,
        }
        fn usual() -> Option<u64> {
            Some(USUAL_MAX_LENGTH)
        }
        let bytes = whole(source, MAX_CONFIG_BYTES)?;
        let config: Config = serde_json::from_slice(&bytes).map_err(|error| {
            source.malformed(0, format!("expected a model2vec config: {error}"))
        })?;
        let normalize = config.normalize.unwrap_or(Self::USUAL.normalize);
        Ok(Self { normalize, max_length: config.max_length })
    }
}

/// Maximum size of a tokenizer: the largest in use has half a million entries in 20 MB.
const MAX_TOKENIZER_BYTES: u64 = 256 << 20;

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: u32,
    pub(super) name: String,
    pub(super) score: Option<f64>,
}

pub(super) struct Entries {
    pub(super) entries: Vec<Entry>,
    pub(super) subword: Option<Subword>,
}

impl Entries {
    pub(super) fn read(source: &Source, budget: Budget) -> Result<Self> {
        let tokenizer = parse(source)?;
        let special = tokenizer.get_added_tokens_decoder();
        let special: Vec<_> =
            special.iter().filter(|(_, token)| token.special).map(|(&id, _)| id).collect();
        let read = match tokenizer.get_model() {
            ModelWrapper::WordPiece(model) => {
                let prefix = model.continuing_subword_prefix.clone();
                let subword = Some(Subword::WordPiece { prefix });
                Self { entries: listed(&tokenizer, &special, &model.unk_token), subword }
            }
            ModelWrapper::WordLevel(model) => {
                Self { entries: listed(&tokenizer, &special, &model.unk_token), subword: None }
            }
            ModelWrapper::Unigram(model) => {
                if model.byte_fallback() {
                    return Err(source.unsupported(
                        "a Unigram tokenizer with byte_fallback: its entries for bytes are no text",
                    ));
                }
                if !marks_words(&tokenizer) {
                    return Err(source.unsupported(
                        "a Unigram tokenizer without Metaspace: its entries do not say where words \
                         begin",
                    ));
                }
                if let Some((entry, _)) = model.iter().find(|(entry, _)| spans_words(entry)) {
                    return Err(source.unsupported(format!(
                        "a Unigram tokenizer with entries over several words ({entry:?}): words are \
                         cut one by one here"
                    )));
                }
                scored(model, &special)
            }
            ModelWrapper::BPE(_) => {
                return Err(source.unsupported(
                    "a BPE tokenizer: its entries are byte sequences, not words; distil the model \
                     again with a WordPiece tokenizer or pack the vectors of a word list",
                ));
            }
        };
        read.check(source, budget)
    }

    fn check(self, source: &Source, budget: Budget) -> Result<Self> {
        let entries = &self.entries;
        if entries.len() as u64 > budget.words {
            let problem = format!("{} words, at most {} are taken", entries.len(), budget.words);
            return Err(source.unsupported(problem));
        }
        if let Some(entry) = entries.iter().find(|entry| entry.name.len() > budget.word_bytes) {
            let (id, most) = (entry.id, budget.word_bytes);
            return Err(source.malformed(0, format!("token {id} is longer than {most} bytes")));
        }
        if let Some(entry) =
            entries.iter().find(|entry| entry.score.is_some_and(|s| !s.is_finite()))
        {
            return Err(source.malformed(0, format!("token {} has no finite score", entry.id)));
        }
        if entries.is_empty() {
            return Err(
                source.unsupported("a tokenizer without any entry that is no special token")
            );
        }
        Ok(self)
    }
}

/// Parses a tokenizer. The library panics on some truncated JSON and some invalid normalisers. A
/// file must never cause a panic, so the syntax is checked first and panics are caught.
fn parse(source: &Source) -> Result<Tokenizer> {
    let bytes = whole(source, MAX_TOKENIZER_BYTES)?;
    let refuse =
        |why: &dyn Display| source.malformed(0, format!("expected a tokenizer, found: {why}"));
    serde_json::from_slice::<IgnoredAny>(&bytes).map_err(|error| refuse(&error))?;
    std::panic::catch_unwind(move || Tokenizer::from_bytes(bytes))
        .map_err(|_| refuse(&"parts that the tokenizers library gives up on"))?
        .map_err(|error| refuse(&error))
}

fn listed(tokenizer: &Tokenizer, special: &[u32], unknown: &str) -> Vec<Entry> {
    let named = tokenizer.get_vocab(true).into_iter();
    let mut entries: Vec<_> = named
        .filter(|(name, id)| !special.contains(id) && name != unknown)
        .map(|(name, id)| Entry { id, name, score: None })
        .collect();
    entries.sort_unstable_by_key(|entry| entry.id);
    entries
}

/// Whether spaces are replaced by the mark that words begin with, by the pre-tokenizer Metaspace or
/// by a normaliser.
fn marks_words(tokenizer: &Tokenizer) -> bool {
    let splits = serde_json::to_string(&tokenizer.get_pre_tokenizer()).unwrap_or_default();
    let normalises = serde_json::to_string(&tokenizer.get_normalizer()).unwrap_or_default();
    splits.contains("\"Metaspace\"") || normalises.contains(unigram::WORD_MARK)
}

/// Whether the mark occurs after the beginning of an entry.
fn spans_words(entry: &str) -> bool {
    entry.trim_start_matches(unigram::WORD_MARK).contains(unigram::WORD_MARK)
}

/// Every entry with its score. An entry that begins a word is named after the word if the word is
/// split into this entry alone.
fn scored(model: &Unigram, special: &[u32]) -> Entries {
    let ids: HashMap<&str, (u32, f64)> = (0..)
        .zip(model.iter())
        .map(|(id, (entry, score))| (entry.as_str(), (id, *score)))
        .collect();
    let longest = ids.keys().map(|entry| entry.len()).max().unwrap_or(0);
    let scale = Scale { unknown: model.min_score - unigram::UNKNOWN_PENALTY, longest };
    let unknown = serde_json::to_value(model).ok().and_then(|model| model["unk_id"].as_u64());
    let mut cut = Vec::new();
    let mut entries = Vec::new();
    for (id, (entry, score)) in (0..).zip(model.iter()) {
        if special.contains(&id) || unknown == Some(u64::from(id)) || entry.is_empty() {
            continue;
        }
        cut.clear();
        if let Some(word) = entry.strip_prefix(unigram::WORD_MARK) {
            unigram::pieces(word, scale, |piece| ids.get(piece).copied(), &mut cut);
        }
        let name = unigram::name(entry, cut == [id]).into_owned();
        entries.push(Entry { id, name, score: Some(*score) });
    }
    let longest = u32::try_from(longest).unwrap_or(u32::MAX);
    let subword = Some(Subword::Unigram { unknown_score: scale.unknown, longest });
    Entries { entries, subword }
}

const MAX_HEADER_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, Copy)]
pub(super) struct Tensor {
    pub(super) dtype: Dtype,
    pub(super) begin: u64,
    pub(super) rows: u64,
    pub(super) dims: usize,
}

impl Tensor {
    pub(super) fn number_bytes(self) -> u64 {
        self.dtype.bitsize() as u64 / 8
    }

    /// Byte offset of a row of `dims` numbers; cannot overflow for an existing row.
    pub(super) fn at(self, row: u64, dims: u64) -> u64 {
        self.begin + row * dims * self.number_bytes()
    }
}

pub(super) struct Header {
    pub(super) embeddings: Tensor,
    pub(super) weights: Option<Tensor>,
    pub(super) mapping: Option<Tensor>,
}

impl Header {
    pub(super) fn read(source: &Source, budget: Budget) -> Result<Self> {
        let mut length = [0; 8];
        source.read_at(0, &mut length)?;
        let length = u64::from_le_bytes(length);
        // Eight bytes were read, so the source has at least eight.
        if length > MAX_HEADER_BYTES.min(source.len() - 8) {
            let problem = format!("a header of {length} bytes does not fit");
            return Err(source.malformed(0, problem));
        }
        let mut json = vec![0; length as usize];
        source.read_at(8, &mut json)?;
        let metadata: Metadata = serde_json::from_slice(&json)
            .map_err(|error| source.malformed(8, format!("expected a header: {error}")))?;
        let begin = 8 + length;
        let data = source.len() - begin;
        if metadata.data_len() as u64 != data {
            let problem = format!("expected {} bytes of data, found {data}", metadata.data_len());
            return Err(source.malformed(begin, problem));
        }
        let embeddings = ["embeddings", "0", "embedding.weight"]
            .iter()
            .find_map(|&name| metadata.info(name).map(|info| (name, info)));
        let Some((name, info)) = embeddings else {
            return Err(source.malformed(8, "expected a tensor `embeddings`, found none"));
        };
        let [rows, dims] = info.shape[..] else {
            let problem = format!("expected `{name}` with two dimensions, found {:?}", info.shape);
            return Err(source.malformed(8, problem));
        };
        if dims == 0 || dims > budget.dims {
            let problem = format!("expected vectors of 1 to {} numbers, found {dims}", budget.dims);
            return Err(source.malformed(8, problem));
        }
        check_dtype(source, name, info.dtype, &[Dtype::F32, Dtype::F16, Dtype::I8])?;
        let at = begin + info.data_offsets.0 as u64;
        let embeddings = Tensor { dtype: info.dtype, begin: at, rows: rows as u64, dims };
        let column = |name: &str, dtypes: &[Dtype]| {
            let Some(info) = metadata.info(name) else {
                return Ok(None);
            };
            let [rows] = info.shape[..] else {
                let problem = format!("expected `{name}` in one row, found {:?}", info.shape);
                return Err(source.malformed(8, problem));
            };
            check_dtype(source, name, info.dtype, dtypes)?;
            let begin = begin + info.data_offsets.0 as u64;
            Ok(Some(Tensor { dtype: info.dtype, begin, rows: rows as u64, dims: 1 }))
        };
        let weights = column("weights", &[Dtype::F64, Dtype::F32, Dtype::F16])?;
        let mapping = column("mapping", &[Dtype::I32, Dtype::I64])?;
        Ok(Self { embeddings, weights, mapping })
    }
}

fn check_dtype(source: &Source, name: &str, found: Dtype, taken: &[Dtype]) -> Result<()> {
    if taken.contains(&found) {
        return Ok(());
    }
    Err(source.unsupported(format!("`{name}` of type {found}; one of {taken:?} is taken")))
}
