//! Rows of Parquet and Arrow files (IPC, also called Feather): read in batches, and written back
//! with the answer's columns after all others.

use std::collections::HashSet;
use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{
    ArrayRef, BooleanArray, FixedSizeListArray, Float32Array, RecordBatch, RecordBatchReader,
    UInt64Array,
};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use arrow_select::concat::concat_batches;
use arrow_select::filter::filter_record_batch;
use cognate_files::ReadError;
use cognate_files::progress::Progress;
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::bulk::question::{Answer, Cell, Kind, Question, Texts};
use crate::bulk::{
    Batch, BulkError, MAX_TOGETHER, Options, Report, Sink, Source, answer_all, rows, unwritten,
};
use crate::columnar::{Batches, Layout, Strings, batches, holds_text, unknown_column};
use crate::growing::Growing;

/// Answers the rows of several files into one file and returns its size. The files have the layout
/// `read`, the output has `written`.
pub(super) fn into_one(
    question: &Question<'_>,
    options: &Options,
    inputs: &[PathBuf],
    (read, written): (Layout, Layout),
    output: Option<&Path>,
    report: &mut Report,
) -> Result<u64, BulkError> {
    let path = output.unwrap_or(Path::new("standard output"));
    let (mut writer, mut asked) = (None::<Writer>, HashSet::new());
    for input in inputs {
        let mut reader = Reader::open(input, read, question, options)?;
        let writer = match &mut writer {
            Some(writer) if !writer.takes(&reader) => {
                let problem = "its columns differ from those of the file before it; a folder as -o \
                               takes a file for each";
                return Err(BulkError::Options(format!("{}: {problem}", input.display())));
            }
            Some(writer) => writer,
            none => none.insert(Writer::create(path, written, &reader, question, options)?),
        };
        answer_all(&mut reader, writer, question, options.on_error, (report, &mut asked))?;
    }
    writer.map_or(Ok(0), Writer::finish)
}

pub(in crate::bulk) struct RowRange {
    pub(in crate::bulk) batch: RecordBatch,
    first: u64,
}

pub(in crate::bulk) struct Reader {
    name: String,
    batches: Batches,
    columns: Vec<(usize, String)>,
    /// Rows that were read but not yet returned.
    held: Option<(RecordBatch, Vec<Texts>)>,
    next: u64,
    /// Number of rows in the file, if it is stated there.
    rows: Option<u64>,
    progress: Progress,
}

impl Reader {
    pub(in crate::bulk) fn open(
        path: &Path,
        layout: Layout,
        question: &Question<'_>,
        options: &Options,
    ) -> Result<Self, BulkError> {
        let (batches, rows) = batches(path, layout)?;
        let schema = batches.schema();
        let mut columns = Vec::new();
        for name in question.columns() {
            let found = column(&schema, name).ok_or_else(|| unknown_column(path, name, &schema))?;
            if !holds_text(schema.field(found).data_type()) {
                let kind = schema.field(found).data_type();
                let problem = format!("column `{name}`: expected strings, found {kind}");
                return Err(ReadError::Unsupported { path: path.to_owned(), problem }.into());
            }
            columns.push((found, name.to_owned()));
        }
        for name in rows::names(question, options) {
            if schema.column_with_name(&name).is_some() {
                let problem = format!("{}: {}", path.display(), rows::is_taken(&name));
                return Err(BulkError::Options(problem));
            }
        }
        let (name, progress) = (path.display().to_string(), Progress::count("rows"));
        Ok(Self { name, batches, columns, held: None, next: 1, rows, progress })
    }

    pub(in crate::bulk) fn schema(&self) -> Arc<Schema> {
        self.batches.schema()
    }

    fn failed(&self, error: &ArrowError) -> BulkError {
        let problem = format!("damaged: {error}");
        ReadError::Unsupported { path: self.name.clone().into(), problem }.into()
    }

    fn texts(&self, batch: &RecordBatch, question: &Question<'_>) -> Vec<Texts> {
        let mut rows: Vec<Texts> = vec![Ok(Vec::new()); batch.num_rows()];
        for (number, (place, name)) in self.columns.iter().enumerate() {
            let strings = Strings::new(batch.column(*place));
            for (at, row) in rows.iter_mut().enumerate() {
                let Ok(texts) = row else { continue };
                match strings
                    .get(at)
                    .map_or_else(|| question.missing(number, name), |text| Ok(text.to_owned()))
                {
                    Ok(text) => texts.push(text),
                    Err(problem) => *row = Err(problem),
                }
            }
        }
        rows
    }
}

fn column(schema: &Schema, name: &str) -> Option<usize> {
    let by_number = || {
        let number: usize = name.parse().ok()?;
        number.checked_sub(1).filter(|&at| at < schema.fields().len())
    };
    schema.column_with_name(name).map(|(at, _)| at).or_else(by_number)
}

impl Source for Reader {
    type RowData = RowRange;

    fn next(&mut self, question: &Question<'_>) -> Result<Option<Batch<RowRange>>, BulkError> {
        loop {
            let read = self.batches.next().transpose().map_err(|error| self.failed(&error))?;
            let ended = read.is_none();
            let (batch, texts) = match (self.held.take(), read) {
                (None, None) => return Ok(None),
                (Some(held), None) => held,
                (None, Some(batch)) => {
                    let texts = self.texts(&batch, question);
                    (batch, texts)
                }
                (Some((held, mut texts)), Some(batch)) => {
                    texts.extend(self.texts(&batch, question));
                    let joined = concat_batches(&held.schema(), [&held, &batch]);
                    (joined.map_err(|error| self.failed(&error))?, texts)
                }
            };
            // The last rows may form a group with the first rows of the next batch.
            let mut cut = texts.len();
            if !ended && question.has_groups() {
                cut -= question.parts(&texts).last().map_or(0, |last| last.len());
            }
            if texts.len() - cut > MAX_TOGETHER {
                let problem = format!("more than {MAX_TOGETHER} rows have the same query");
                let path = self.name.clone().into();
                return Err(ReadError::Unsupported { path, problem }.into());
            }
            let mut texts = texts;
            let rest = texts.split_off(cut);
            if !rest.is_empty() {
                self.held = Some((batch.slice(cut, rest.len()), rest));
            }
            if cut == 0 {
                continue;
            }
            let first = self.next;
            self.next += cut as u64;
            self.progress.at(self.next - 1, self.rows.unwrap_or(self.next - 1));
            return Ok(Some(Batch { texts, kept: RowRange { batch: batch.slice(0, cut), first } }));
        }
    }

    fn place(&self, kept: &RowRange, at: usize) -> String {
        format!("{}, row {}", self.name, kept.first + at as u64)
    }
}

/// The I/O error of an Arrow error, if there is one.
fn as_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}

enum Out {
    Parquet(Box<ArrowWriter<Growing>>),
    Arrow(Box<FileWriter<Growing>>),
}

pub(in crate::bulk) struct Writer {
    path: PathBuf,
    out: Out,
    before: Arc<Schema>,
    schema: Arc<Schema>,
    /// Indices of the columns that are written, if not all.
    chosen: Option<Vec<usize>>,
    kinds: Vec<Kind>,
    dims: i32,
}

impl Writer {
    /// Begins a file with the columns of `reader` and those of the answers.
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
        let find = |name: &String| {
            column(&schema, name)
                .ok_or_else(|| unknown_column(Path::new(&reader.name), name, &before))
        };
        let chosen: Vec<usize> =
            options.columns.iter().map(find).collect::<Result<_, ReadError>>()?;
        let chosen = (!chosen.is_empty()).then_some(chosen);
        let written = match &chosen {
            // The indices were found in it.
            Some(chosen) => Arc::new(schema.project(chosen).unwrap_or_else(|_| Schema::empty())),
            None => Arc::clone(&schema),
        };
        let file = Growing::create(path).map_err(unwritten(path))?;
        let out = match layout {
            Layout::Parquet => {
                let how = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                let writer = ArrowWriter::try_new(file, written, Some(how));
                Out::Parquet(Box::new(writer.map_err(|error| unwritten(path)(of_parquet(error)))?))
            }
            Layout::Arrow => {
                let writer = FileWriter::try_new(file, &written);
                Out::Arrow(Box::new(writer.map_err(|error| unwritten(path)(as_io(error)))?))
            }
        };
        Ok(Self { path: path.to_owned(), out, before, schema, chosen, kinds, dims })
    }

    /// Whether a reader's columns are those that this file began with.
    pub(in crate::bulk) fn takes(&self, reader: &Reader) -> bool {
        reader.schema().fields() == self.before.fields()
    }

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

impl Sink<RowRange> for Writer {
    fn write(
        &mut self,
        question: &Question<'_>,
        kept: RowRange,
        answers: &[Answer],
    ) -> Result<bool, BulkError> {
        let mut columns = kept.batch.columns().to_vec();
        for (at, &kind) in self.kinds.iter().enumerate() {
            columns.push(self.column(at, kind, answers));
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        let batch = batch.and_then(|batch| match &self.chosen {
            Some(chosen) => batch.project(chosen),
            None => Ok(batch),
        });
        let batch = batch.and_then(|batch| match question.top_k() {
            Some(_) => {
                let written = answers.iter().map(|answer| Some(question.writes(answer)));
                filter_record_batch(&batch, &BooleanArray::from_iter(written))
            }
            None => Ok(batch),
        });
        let written = batch.map_err(as_io).and_then(|batch| match &mut self.out {
            Out::Parquet(writer) => writer.write(&batch).map_err(of_parquet),
            Out::Arrow(writer) => writer.write(&batch).map_err(as_io),
        });
        written.map(|()| true).map_err(unwritten(&self.path))
    }
}

/// The I/O error of a Parquet error, if there is one.
fn of_parquet(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(other) => io::Error::other(other),
        },
        other => io::Error::other(other),
    }
}
