//! A model file to be: what it says of itself, and its tables. How it is written is `writer`'s part.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::io::Write;

use crate::model::Model;
use crate::model::format::Dtype;
use crate::model::vocabulary::VocabularyTables;

/// Writes a tensor's bytes, all of them, in order.
pub type Stream<'a> = Box<dyn FnMut(&mut dyn Write) -> io::Result<()> + 'a>;

/// The source of a tensor's bytes.
pub enum Source<'a> {
    /// From memory.
    Bytes(Cow<'a, [u8]>),
    /// From a function, so that a table larger than the memory can be written.
    Stream(Stream<'a>),
}

/// A tensor to be written.
pub struct Table<'a> {
    /// The tensor's name.
    pub name: String,
    /// The tensor's element type.
    pub dtype: Dtype,
    /// The tensor's shape.
    pub shape: Vec<u64>,
    /// The tensor's bytes.
    pub source: Source<'a>,
}

impl<'a> Table<'a> {
    /// A tensor over numbers in memory.
    pub fn new<T: bytemuck::NoUninit>(
        name: impl Into<String>,
        dtype: Dtype,
        shape: &[usize],
        numbers: &'a [T],
    ) -> Self {
        Self {
            name: name.into(),
            dtype,
            shape: shape.iter().map(|&n| n as u64).collect(),
            source: Source::Bytes(Cow::Borrowed(bytemuck::cast_slice(numbers))),
        }
    }

    #[cfg(unix)]
    pub(super) fn bytes(&self) -> u64 {
        self.shape.iter().fold(self.dtype.bytes(), |bytes, &d| bytes.saturating_mul(d))
    }
}

/// A model file to be: metadata and tensors in the order of `format.rs`.
#[derive(Default)]
pub struct Draft<'a> {
    /// Metadata strings; format and digests are added when writing.
    pub metadata: BTreeMap<String, String>,
    /// Tensors; sections may come in any order.
    pub tables: Vec<Table<'a>>,
}

impl<'a> Draft<'a> {
    /// Everything that `model` holds, to be written again with changes.
    pub fn from_model(model: &'a Model) -> Self {
        let metadata = model
            .metadata()
            .iter()
            .filter(|(key, _)| *key != "format" && !key.starts_with("b3."))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let tables = model.tensors().map(|(tensor, bytes)| Table {
            name: tensor.name.clone(),
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            source: Source::Bytes(Cow::Borrowed(bytes)),
        });
        Self { metadata, tables: tables.collect() }
    }

    /// Adds the vocabulary's tables and metadata; the vectors must be there.
    pub fn push_vocabulary(&mut self, tables: &'a VocabularyTables) {
        let words = tables.offsets.len().saturating_sub(1);
        let index = &[tables.index.len(), 2];
        self.metadata.insert("vocab".to_owned(), words.to_string());
        self.metadata.insert("max_probe".to_owned(), tables.max_probe.to_string());
        self.tables.extend([
            Table::new("vocab_bytes", Dtype::U8, &[tables.bytes.len()], &tables.bytes),
            Table::new("vocab_offsets", Dtype::U64, &[words + 1], &tables.offsets),
            Table::new("vocab_index", Dtype::U32, index, &tables.index),
        ]);
    }

    /// Puts a section into the draft in place of one of the same name. `tables` bear the names
    /// they have within the section.
    pub fn set_section(&mut self, name: &str, settings: String, tables: Vec<Table<'a>>) {
        let prefix = format!("section.{name}.");
        self.tables.retain(|table| !table.name.starts_with(&prefix));
        self.metadata.insert(format!("section.{name}"), settings);
        self.tables.extend(
            tables
                .into_iter()
                .map(|table| Table { name: format!("{prefix}{}", table.name), ..table }),
        );
    }
}
