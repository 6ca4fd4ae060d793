//! The reader of a model2vec folder.

use std::path::Path;

use safetensors::Dtype;

use crate::readers::model2vec::entries::{Entries, Entry};
use crate::readers::model2vec::layout::{Layout, Settings};
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
