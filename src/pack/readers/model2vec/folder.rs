//! The reader of a model2vec folder.

use std::fmt::Display;
use std::path::Path;

use safetensors::Dtype;
use serde::de::IgnoredAny;
use tokenizers::ModelWrapper;
use tokenizers::Tokenizer;

use crate::pack::readers::Budget;
use crate::pack::readers::Place;
use crate::pack::readers::ReadError;
use crate::pack::readers::Subword;
use crate::pack::readers::VectorReader;
use crate::pack::readers::model2vec::tensors::Header;
use crate::pack::readers::model2vec::tensors::Tensor;
use crate::pack::readers::positioned::Source;
use crate::pack::readers::source::MODEL2VEC_FILES;

const MOST_CONFIG_BYTES: u64 = 1 << 20;
/// The largest in use has half a million entries in 20 MB.
const MOST_TOKENIZER_BYTES: u64 = 256 << 20;
/// What begins a word in the vocabulary of a Unigram tokenizer.
const WORD_MARK: char = '▁';

/// A stream over the words of a model2vec folder.
#[derive(Debug)]
pub struct Model2VecReader {
    tensors: Source,
    embeddings: Tensor,
    weights: Option<Tensor>,
    mapping: Option<Tensor>,
    /// Entries that are words, in the order of their ids.
    words: Vec<(u32, String)>,
    subword: Option<Subword>,
    left_out: usize,
    normalised: bool,
    next: usize,
    place: u64,
    bytes: Vec<u8>,
}

impl Model2VecReader {
    /// Opens a folder and checks all of it but the numbers in its tensors.
    pub fn open(folder: &Path, budget: Budget) -> Result<Self, ReadError> {
        let [config, tokenizer, tensors] = MODEL2VEC_FILES.map(|name| folder.join(name));
        let config = Source::open(&config)?;
        let tokenizer = Source::open(&tokenizer)?;
        let tensors = Source::open(&tensors)?;
        Self::over(tensors, &tokenizer, &config, budget)
    }

    /// As [`open`](Self::open), for the three files from anywhere.
    pub fn over(
        tensors: Source,
        tokenizer: &Source,
        config: &Source,
        budget: Budget,
    ) -> Result<Self, ReadError> {
        let normalised = read_config(config)?;
        let Entries { words, subword, left_out } = read_entries(tokenizer, budget)?;
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
        if let Some((id, word)) = words.last()
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
            left_out,
            normalised,
            next: 0,
            place: 0,
            bytes: Vec::new(),
        })
    }

    /// Whether the model scales the mean vector of a text to unit length.
    pub fn normalised(&self) -> bool {
        self.normalised
    }

    /// How many entries the stream leaves out although they are neither special nor unknown: those
    /// of a Unigram tokenizer that continue a word.
    pub fn left_out(&self) -> usize {
        self.left_out
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
        let Some((id, text)) = self.words.get(self.next) else {
            return Ok(false);
        };
        word.clear();
        word.extend_from_slice(text.as_bytes());
        let id = *id;
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

    fn subword(&self) -> Option<Subword> {
        self.subword.clone()
    }
}

/// Reads whether texts are scaled to unit length: the default of model2vec where nothing is said.
fn read_config(source: &Source) -> Result<bool, ReadError> {
    #[derive(serde::Deserialize)]
    struct Config {
        normalize: Option<bool>,
    }
    let bytes = whole(source, MOST_CONFIG_BYTES)?;
    let config: Config = serde_json::from_slice(&bytes)
        .map_err(|error| source.malformed(0, format!("expected a model2vec config: {error}")))?;
    Ok(config.normalize.unwrap_or(true))
}

/// The library panics on JSON that breaks off inside some parts and on some faulty normalisers. A
/// panic must not be reachable from a file, so the syntax is checked first and the rest is caught.
fn parse_tokenizer(source: &Source) -> Result<Tokenizer, ReadError> {
    let bytes = whole(source, MOST_TOKENIZER_BYTES)?;
    let refuse =
        |why: &dyn Display| source.malformed(0, format!("expected a tokenizer, found: {why}"));
    serde_json::from_slice::<IgnoredAny>(&bytes).map_err(|error| refuse(&error))?;
    std::panic::catch_unwind(move || Tokenizer::from_bytes(bytes))
        .map_err(|_| refuse(&"parts that the tokenizers library gives up on"))?
        .map_err(|error| refuse(&error))
}

struct Entries {
    words: Vec<(u32, String)>,
    subword: Option<Subword>,
    left_out: usize,
}

fn read_entries(source: &Source, budget: Budget) -> Result<Entries, ReadError> {
    let tokenizer = parse_tokenizer(source)?;
    let (unknown, subword, marked) = match tokenizer.get_model() {
        ModelWrapper::WordPiece(model) => {
            let prefix = model.continuing_subword_prefix.clone();
            (Some(model.unk_token.as_str()), Some(Subword::WordPiece { prefix }), false)
        }
        ModelWrapper::WordLevel(model) => (Some(model.unk_token.as_str()), None, false),
        // What stands for unknown text does not begin with the mark, so it is left out anyway.
        ModelWrapper::Unigram(_) => (None, None, true),
        ModelWrapper::BPE(_) => {
            return Err(source.unsupported(
                "a BPE tokenizer: its entries are byte sequences, not words; distil the model \
                 again with a WordPiece tokenizer or pack the vectors of a word list",
            ));
        }
    };
    let special = tokenizer.get_added_tokens_decoder();
    let is_special = |id: &u32| special.get(id).is_some_and(|token| token.special);
    let mut words = Vec::new();
    let mut left_out = 0;
    for (entry, id) in tokenizer.get_vocab(true) {
        if is_special(&id) || Some(entry.as_str()) == unknown {
            continue;
        }
        if !marked {
            words.push((id, entry));
            continue;
        }
        match entry.strip_prefix(WORD_MARK) {
            Some(word) if !word.is_empty() && !word.contains(WORD_MARK) => {
                words.push((id, word.to_owned()));
            }
            _ => left_out += 1,
        }
    }
    words.sort_unstable();
    if words.len() as u64 > budget.words {
        let problem = format!("{} words, at most {} are taken", words.len(), budget.words);
        return Err(source.unsupported(problem));
    }
    if let Some((id, _)) = words.iter().find(|(_, word)| word.len() > budget.word_bytes) {
        let most = budget.word_bytes;
        return Err(source.malformed(0, format!("token {id} is longer than {most} bytes")));
    }
    if words.is_empty() {
        return Err(source.unsupported("a tokenizer without any entry that is a whole word"));
    }
    Ok(Entries { words, subword, left_out })
}

fn whole(source: &Source, most: u64) -> Result<Vec<u8>, ReadError> {
    if source.len() > most {
        let problem = format!("{} bytes, at most {most} are taken", source.len());
        return Err(source.unsupported(problem));
    }
    // At most a few hundred megabytes, and as many as the file really has.
    let mut bytes = vec![0; source.len() as usize];
    source.read_at(0, &mut bytes)?;
    Ok(bytes)
}
