//! The reader of a model2vec folder.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use cognate::model::unigram;
use cognate::model::unigram::Scale;
use safetensors::Dtype;
use serde::de::IgnoredAny;
use tokenizers::models::unigram::Unigram;
use tokenizers::{ModelWrapper, Tokenizer};

use crate::readers::format::STATIC_FOLDER;
use crate::readers::model2vec::tensors::{Header, Tensor};
use crate::readers::positioned::Source;
use crate::readers::{Budget, Place, ReadError, Subword, VectorReader};

/// A stream over the words of a model2vec folder.
#[derive(Debug)]
pub struct Model2VecReader {
    tensors: Source,
    embeddings: Tensor,
    weights: Option<Tensor>,
    mapping: Option<Tensor>,
    /// Entries that are words, in the order of their ids.
    words: Vec<Entry>,
    subword: Option<Subword>,
    settings: Settings,
    score: Option<f64>,
    next: usize,
    place: u64,
    bytes: Vec<u8>,
}

impl Model2VecReader {
    /// Opens a folder and checks all of it but the numbers in its tensors.
    pub fn open(folder: &Path, budget: Budget) -> Result<Self, ReadError> {
        let Layout { config, tokenizer, tensors } = Layout::of(folder);
        let config = config.map(|path| Source::open(&path)).transpose()?;
        let tokenizer = Source::open(&tokenizer)?;
        let tensors = Source::open(&tensors)?;
        Self::over(tensors, &tokenizer, config.as_ref(), budget)
    }

    /// As [`open`](Self::open), for the files from anywhere; there may be no settings.
    pub fn over(
        tensors: Source,
        tokenizer: &Source,
        config: Option<&Source>,
        budget: Budget,
    ) -> Result<Self, ReadError> {
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

    /// What model2vec does with the mean vector of a text, and with long texts.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// The row of the embeddings that an entry has.
    fn row_of(&self, id: u32) -> Result<u64, ReadError> {
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

    fn numbers(&mut self, tensor: Tensor, row: u64, out: &mut [f32]) -> Result<(), ReadError> {
        self.place = tensor.at(row, out.len() as u64);
        // A row has at most `Budget::dims` numbers, each of a few bytes.
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

    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool, ReadError> {
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

    fn digest(&mut self) -> Result<String, ReadError> {
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

/// All bytes of a file that is not too long.
pub(super) fn whole(source: &Source, most: u64) -> Result<Vec<u8>, ReadError> {
    if source.len() > most {
        let problem = format!("{} bytes, at most {most} are taken", source.len());
        return Err(source.unsupported(problem));
    }
    // At most a few hundred megabytes, and as many as the file really has.
    let mut bytes = vec![0; source.len() as usize];
    source.read_at(0, &mut bytes)?;
    Ok(bytes)
}

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

/// The largest in use has half a million entries in 20 MB.
const MOST_TOKENIZER_BYTES: u64 = 256 << 20;

#[derive(Debug)]
pub(super) struct Entry {
    /// Which row it has.
    pub(super) id: u32,
    /// Its name in the vocabulary.
    pub(super) name: String,
    /// Its score, where entries have scores.
    pub(super) score: Option<f64>,
}

/// The entries of a tokenizer, special tokens and the one for unknown text left out.
pub(super) struct Entries {
    /// In the order of their ids.
    pub(super) entries: Vec<Entry>,
    /// How words that are not listed are cut.
    pub(super) subword: Option<Subword>,
}

impl Entries {
    /// Reads and checks a tokenizer.
    pub(super) fn read(source: &Source, budget: Budget) -> Result<Self, ReadError> {
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

    fn check(self, source: &Source, budget: Budget) -> Result<Self, ReadError> {
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

/// The library panics on JSON that breaks off inside some parts and on some faulty normalisers. A
/// panic must not be reachable from a file, so the syntax is checked first and the rest is caught.
fn parse(source: &Source) -> Result<Tokenizer, ReadError> {
    let bytes = whole(source, MOST_TOKENIZER_BYTES)?;
    let refuse =
        |why: &dyn Display| source.malformed(0, format!("expected a tokenizer, found: {why}"));
    serde_json::from_slice::<IgnoredAny>(&bytes).map_err(|error| refuse(&error))?;
    std::panic::catch_unwind(move || Tokenizer::from_bytes(bytes))
        .map_err(|_| refuse(&"parts that the tokenizers library gives up on"))?
        .map_err(|error| refuse(&error))
}

/// Every entry under its own name.
fn listed(tokenizer: &Tokenizer, special: &[u32], unknown: &str) -> Vec<Entry> {
    let named = tokenizer.get_vocab(true).into_iter();
    let mut entries: Vec<_> = named
        .filter(|(name, id)| !special.contains(id) && name != unknown)
        .map(|(name, id)| Entry { id, name, score: None })
        .collect();
    entries.sort_unstable_by_key(|entry| entry.id);
    entries
}

/// Whether spaces become the mark that words begin with: by the pre-tokenizer Metaspace, or by a
/// normaliser that writes the mark.
fn marks_words(tokenizer: &Tokenizer) -> bool {
    let splits = serde_json::to_string(&tokenizer.get_pre_tokenizer()).unwrap_or_default();
    let normalises = serde_json::to_string(&tokenizer.get_normalizer()).unwrap_or_default();
    splits.contains("\"Metaspace\"") || normalises.contains(unigram::WORD_MARK)
}

/// Whether the mark stands in an entry behind something else.
fn spans_words(entry: &str) -> bool {
    entry.trim_start_matches(unigram::WORD_MARK).contains(unigram::WORD_MARK)
}

/// Every entry with its score. One that begins a word has that word's name if the word is cut into
/// nothing but this entry.
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
