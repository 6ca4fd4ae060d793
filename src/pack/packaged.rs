//! Rows as the model will hold them, changed and quantised, in a nameless file.
//!
//! Their scales and lengths must be known before the first byte of the model is written, and rows
//! must not be held in memory, so they are made once and copied.

use std::fs::File;
use std::io;
use std::io::BufWriter;
use std::io::Read;
use std::io::Seek;
use std::io::SeekFrom;
use std::io::Write;
use std::path::Path;

use crate::kernels::vector;
use crate::kernels::vector::Row;
use crate::model::disk;
use crate::model::format::Dtype;
use crate::model::writer::Source;
use crate::model::writer::Table;
use crate::pack::quantise::Quantiser;
use crate::pack::transform::Transform;

/// A table of finished rows.
#[derive(Debug)]
pub(crate) struct Packaged<'t> {
    out: BufWriter<File>,
    transform: &'t Transform,
    quantiser: Quantiser,
    norms: Vec<f32>,
    before: Vec<f32>,
    after: Vec<f32>,
}

impl<'t> Packaged<'t> {
    /// An empty table, its file in `directory`.
    pub(crate) fn create(
        transform: &'t Transform,
        dtype: Dtype,
        directory: &Path,
    ) -> io::Result<Self> {
        let file = disk::nameless(directory)?;
        Ok(Self {
            out: BufWriter::with_capacity(1 << 20, file),
            transform,
            quantiser: Quantiser::new(dtype),
            norms: Vec::new(),
            before: Vec::new(),
            after: vec![0.0; transform.dims()],
        })
    }

    /// Adds a row as it was read.
    pub(crate) fn push(&mut self, row: &[f32]) -> io::Result<()> {
        self.before.clear();
        self.before.extend_from_slice(row);
        self.transform.apply(&mut self.before, &mut self.after);
        self.norms.push(vector::norm(Row::F32(&self.after)));
        self.quantiser.write(&self.after, &mut self.out)
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.norms.len()
    }

    /// What the length of hash vectors should be: the median length in the rarer half of the words,
    /// because a word that is not listed is a rare one.
    pub(crate) fn median_norm_of_rarer_half(&self) -> f32 {
        let mut rarer = self.norms.get(self.norms.len() / 2..).unwrap_or_default().to_vec();
        rarer.sort_unstable_by(f32::total_cmp);
        rarer.get(rarer.len() / 2).copied().unwrap_or(1.0)
    }

    /// The rows as a tensor of that name, and their scales where they have any.
    pub(crate) fn tables(&mut self, name: &str, scales: &str) -> io::Result<Vec<Table<'_>>> {
        self.out.flush()?;
        let rows = self.norms.len();
        let dtype = self.quantiser.dtype();
        let shape = vec![rows as u64, self.transform.dims() as u64];
        let bytes = shape.iter().fold(dtype.bytes(), |bytes, &d| bytes.saturating_mul(d));
        let mut file = self.out.get_ref();
        let stream = Source::Stream(Box::new(move |out: &mut dyn Write| {
            file.seek(SeekFrom::Start(0))?;
            io::copy(&mut file.take(bytes), out).map(|_| ())
        }));
        let mut tables = vec![Table { name: name.to_owned(), dtype, shape, source: stream }];
        if dtype == Dtype::I8 {
            tables.push(Table::of(scales, Dtype::F32, &[rows], &self.quantiser.scales));
        }
        Ok(tables)
    }
}
