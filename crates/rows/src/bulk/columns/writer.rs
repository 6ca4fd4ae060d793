//! Batches written with the answer's columns behind their own.

use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, FixedSizeListArray, Float32Array, RecordBatch, UInt64Array};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, Schema};
use cognate::model::growing::Growing;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::bulk::columns::Layout;
use crate::bulk::columns::reader::{Kept, Reader, as_io};
use crate::bulk::pipeline::Sink;
use crate::bulk::question::{Answer, Cell, Kind, Question};
use crate::bulk::{BulkError, Options, rows, unwritten};

enum Out {
    Parquet(Box<ArrowWriter<Growing>>),
    Arrow(Box<FileWriter<Growing>>),
}

/// Writes rows with their answers.
pub(in crate::bulk) struct Writer {
    path: PathBuf,
    out: Out,
    before: Arc<Schema>,
    schema: Arc<Schema>,
    kinds: Vec<Kind>,
    dims: i32,
}

impl Writer {
    /// Begins a file with the columns of those that `reader` reads.
    pub(in crate::bulk) fn create(
        path: &Path,
        layout: Layout,
        reader: &Reader,
        question: &Question<'_>,
        options: &Options,
    ) -> Result<Self, BulkError> {
        let kinds: Vec<Kind> = question.added().iter().map(|(_, kind)| *kind).collect();
        let dims = match kinds.contains(&Kind::Vector) {
            true => {
                question.engine.embedding_dims(question.query.method).map_err(BulkError::Query)?
            }
            false => 0,
        };
        let dims = i32::try_from(dims).unwrap_or(i32::MAX);
        let before = reader.schema();
        let mut fields: Vec<Arc<Field>> = before.fields().iter().cloned().collect();
        for (name, kind) in rows::names(question, options).into_iter().zip(&kinds) {
            let kind = match kind {
                Kind::Score => DataType::Float32,
                Kind::Count => DataType::UInt64,
                Kind::Vector => DataType::new_fixed_size_list(DataType::Float32, dims, true),
            };
            fields.push(Arc::new(Field::new(name, kind, true)));
        }
        let schema = Arc::new(Schema::new_with_metadata(fields, before.metadata().clone()));
        let file = Growing::create(path).map_err(unwritten(path))?;
        let out = match layout {
            Layout::Parquet => {
                let how = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let writer = ArrowWriter::try_new(file, Arc::clone(&schema), Some(how));
                Out::Parquet(Box::new(writer.map_err(|error| unwritten(path)(of_parquet(error)))?))
            }
            Layout::Arrow => {
                let writer = FileWriter::try_new(file, &schema);
                Out::Arrow(Box::new(writer.map_err(|error| unwritten(path)(as_io(error)))?))
            }
        };
        Ok(Self { path: path.to_owned(), out, before, schema, kinds, dims })
    }

    /// Whether a file has the columns that this one began with.
    pub(in crate::bulk) fn takes(&self, reader: &Reader) -> bool {
        reader.schema().fields() == self.before.fields()
    }

    /// Makes the rows last and gives the file its name. Gives back its size.
    pub(in crate::bulk) fn finish(self) -> Result<u64, BulkError> {
        let file = match self.out {
            Out::Parquet(writer) => writer.into_inner().map_err(of_parquet),
            Out::Arrow(mut writer) => {
                writer.finish().and_then(|()| writer.into_inner()).map_err(as_io)
            }
        };
        file.and_then(|mut file| {
            file.flush()?;
            file.finish()
        })
        .map_err(unwritten(&self.path))
    }

    fn column(&self, at: usize, kind: Kind, answers: &[Answer]) -> ArrayRef {
        let cells = answers.iter().map(|answer| answer.as_ref().ok()?.get(at));
        match kind {
            Kind::Score => Arc::new(Float32Array::from_iter(cells.map(|cell| match cell {
                Some(Cell::Score(score)) => Some(*score),
                _ => None,
            }))),
            Kind::Count => Arc::new(UInt64Array::from_iter(cells.map(|cell| match cell {
                Some(Cell::Count(count)) => Some(*count),
                _ => None,
            }))),
            Kind::Vector => {
                let rows = cells.map(|cell| match cell {
                    Some(Cell::Vector(vector)) => Some(vector.iter().map(|&x| Some(x))),
                    _ => None,
                });
                let rows =
                    FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(rows, self.dims);
                Arc::new(rows)
            }
        }
    }
}

impl Sink<Kept> for Writer {
    fn write(&mut self, kept: Kept, answers: &[Answer]) -> Result<bool, BulkError> {
        let mut columns = kept.batch.columns().to_vec();
        for (at, &kind) in self.kinds.iter().enumerate() {
            columns.push(self.column(at, kind, answers));
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns).map_err(as_io);
        let written = batch.and_then(|batch| match &mut self.out {
            Out::Parquet(writer) => writer.write(&batch).map_err(of_parquet),
            Out::Arrow(writer) => writer.write(&batch).map_err(as_io),
        });
        written.map(|()| true).map_err(unwritten(&self.path))
    }
}

/// What a failure of Parquet is to the system, where it is one.
fn of_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
