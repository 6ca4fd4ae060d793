//! `model.safetensors` of the exported folder: the rows, and what says which entry has which.
//!
//! | tensor | type and shape | what |
//! |---|---|---|
//! | `embeddings` or `embedding.weight` | F32, F16 or I8, rows × dims | a row of zeros, then the words' |
//! | `mapping` | I32, entries | the row of each entry, where inflected forms share their word's |
//! | `weights` | F32, entries | the scale of each entry's row, for I8 alone |
//!
//! model2vec takes the mean of `weights[entry] * embeddings[mapping[entry]]`, and sentence-transformers
//! from version 6 on makes one table of the three. A table called `embedding.weight` stands alone.

use std::io;
use std::io::Write;

use cognate::model::format::Dtype;
use cognate::model::vectors::Quantiser;
use cognate::model::{Model, WordId};
use serde_json::json;

use crate::export::entries::Entries;
use crate::export::{ExportOptions, Library};

/// The header is padded to this many bytes, so that numbers lie where they can be used in place.
const ALIGNMENT: usize = 8;

/// Which tensors there are.
pub(super) struct Layout {
    dtype: Dtype,
    rows: usize,
    entries: usize,
    /// Whether a table of its own leads from entries to rows.
    mapped: bool,
    name: &'static str,
}

impl Layout {
    /// The tensors that the library reads.
    pub(super) fn of(options: &ExportOptions, entries: &Entries) -> Self {
        let alone = options.library == Library::SentenceTransformers && options.dtype != Dtype::I8;
        let mapped = entries.inflections() > 0 && !alone;
        let rows = if mapped { entries.words().saturating_add(1) } else { entries.len() };
        let name = if alone { "embedding.weight" } else { "embeddings" };
        Self { dtype: options.dtype, rows, entries: entries.len(), mapped, name }
    }

    /// What NumPy calls the numbers.
    pub(super) fn number_name(&self) -> &'static str {
        match self.dtype {
            Dtype::F16 => "float16",
            Dtype::I8 => "int8",
            _ => "float32",
        }
    }

    /// How many rows there are, where entries are mapped to them.
    pub(super) fn mapped_rows(&self) -> Option<usize> {
        self.mapped.then_some(self.rows)
    }

    fn header(&self, dims: usize) -> String {
        let mut end = 0_u64;
        let mut tensors = serde_json::Map::new();
        let mut add = |name: &str, dtype: &str, bytes: u64, shape: &[usize]| {
            let size = shape.iter().fold(bytes, |size, &n| size.saturating_mul(n as u64));
            let begin = end;
            end = end.saturating_add(size);
            let tensor = json!({ "dtype": dtype, "shape": shape, "data_offsets": [begin, end] });
            tensors.insert(name.to_owned(), tensor);
        };
        add(self.name, self.dtype.name(), self.dtype.bytes(), &[self.rows, dims]);
        if self.dtype == Dtype::I8 {
            add("weights", "F32", 4, &[self.entries]);
        }
        if self.mapped {
            add("mapping", "I32", 4, &[self.entries]);
        }
        let mut header = serde_json::Value::Object(tensors).to_string();
        let padding = header.len().next_multiple_of(ALIGNMENT) - header.len();
        header.extend(std::iter::repeat_n(' ', padding));
        header
    }
}

pub(super) fn write(
    model: &Model,
    entries: &Entries,
    layout: &Layout,
    out: &mut dyn Write,
) -> io::Result<()> {
    let vectors = model.vectors();
    let header = layout.header(vectors.dims());
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    let mut quantiser = Quantiser::new(layout.dtype);
    let mut row = vec![0.0; vectors.dims()];
    for word in entries.word_ids().take(layout.rows) {
        row.fill(0.0);
        if let Some(found) = word.and_then(|word| vectors.row(word)) {
            found.copy_to(&mut row);
        }
        quantiser.write(&row, out)?;
    }
    let row_of = |place: usize, word: Option<WordId>| match layout.mapped {
        true => word.map_or(0, |word| word as usize + 1),
        false => place,
    };
    if layout.dtype == Dtype::I8 {
        for (place, word) in entries.word_ids().enumerate() {
            let scale = quantiser.scales.get(row_of(place, word)).copied().unwrap_or(1.0);
            out.write_all(&scale.to_le_bytes())?;
        }
    }
    if layout.mapped {
        for (place, word) in entries.word_ids().enumerate() {
            // Ids of words are below the most words that a model file may hold.
            out.write_all(&(row_of(place, word) as i32).to_le_bytes())?;
        }
    }
    Ok(())
}
