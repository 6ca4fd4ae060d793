//! Batches of a file's rows, and the texts in them.

use std::fs::File;
use std::io;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_ipc::reader::FileReader;
use arrow_schema::{ArrowError, DataType, Schema};
use arrow_select::concat::concat_batches;
use cognate_files::ReadError;
use cognate_files::progress::Progress;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::bulk::columns::Layout;
use crate::bulk::pipeline::{Batch, MOST_TOGETHER, ROWS, Source};
use crate::bulk::question::{Question, Texts};
use crate::bulk::{BulkError, Options, rows};

/// Some rows and the number of the first, from 1.
pub(in crate::bulk) struct Kept {
    pub(in crate::bulk) batch: RecordBatch,
    first: u64,
}

/// Rows of one file.
pub(in crate::bulk) struct Reader {
    name: String,
    batches: Box<dyn RecordBatchReader + Send>,
    /// Places and names of the columns of texts.
    columns: Vec<(usize, String)>,
    /// Rows that were read and not handed over.
    held: Option<(RecordBatch, Vec<Texts>)>,
    next: u64,
    /// Rows of the file, where it says so.
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
        let failed = |source| ReadError::Io { path: path.to_owned(), source };
        let malformed = |problem: String| ReadError::Unsupported { path: path.to_owned(), problem };
        if !path.metadata().map_err(failed)?.is_file() {
            let problem = "not a regular file; folders, pipes and devices are not read";
            return Err(malformed(problem.to_owned()).into());
        }
        let file = File::open(path).map_err(failed)?;
        let (batches, rows): (Box<dyn RecordBatchReader + Send>, _) = match layout {
            Layout::Parquet => {
                let built = ParquetRecordBatchReaderBuilder::try_new(file)
                    .and_then(|builder| {
                        let rows = builder.metadata().file_metadata().num_rows();
                        Ok((builder.with_batch_size(ROWS).build()?, rows))
                    })
                    .map_err(|error| malformed(format!("not a Parquet file: {error}")))?;
                (Box::new(built.0), u64::try_from(built.1).ok())
            }
            Layout::Arrow => {
                let reader = FileReader::try_new(BufReader::new(file), None);
                let reader =
                    reader.map_err(|error| malformed(format!("not an Arrow file: {error}")))?;
                (Box::new(reader), None)
            }
        };
        let schema = batches.schema();
        let mut columns = Vec::new();
        for name in question.columns() {
            let found = column(&schema, name).ok_or_else(|| {
                let known: Vec<&str> =
                    schema.fields().iter().map(|field| field.name().as_str()).collect();
                malformed(format!(
                    "expected a column `{name}`; the columns are {}",
                    known.join(", ")
                ))
            })?;
            if !holds_text(schema.field(found).data_type()) {
                let kind = schema.field(found).data_type();
                return Err(
                    malformed(format!("column `{name}`: expected strings, found {kind}")).into()
                );
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

    /// The texts of each row.
    fn texts(&self, batch: &RecordBatch) -> Vec<Texts> {
        let mut rows: Vec<Texts> = vec![Ok(Vec::new()); batch.num_rows()];
        for (place, name) in &self.columns {
            let strings = Strings::of(batch.column(*place));
            for (at, row) in rows.iter_mut().enumerate() {
                match (strings.get(at), row.as_mut()) {
                    (Some(text), Ok(texts)) => texts.push(text.to_owned()),
                    (None, Ok(_)) => *row = Err(format!("expected a field `{name}`")),
                    (_, Err(_)) => {}
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

fn holds_text(kind: &DataType) -> bool {
    match kind {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => holds_text(values),
        _ => false,
    }
}

/// The strings of a column in whatever way it holds them.
struct Strings {
    values: ArrayRef,
    /// For a dictionary, the value of each row.
    keys: Option<Vec<Option<usize>>>,
}

impl Strings {
    fn of(column: &ArrayRef) -> Self {
        let Some(dictionary) = column.as_any_dictionary_opt() else {
            return Self { values: Arc::clone(column), keys: None };
        };
        let keys = if dictionary.values().is_empty() {
            vec![None; column.len()]
        } else {
            let keys = dictionary.normalized_keys().into_iter().enumerate();
            keys.map(|(at, key)| column.is_valid(at).then_some(key)).collect()
        };
        Self { values: Arc::clone(dictionary.values()), keys: Some(keys) }
    }

    fn get(&self, at: usize) -> Option<&str> {
        let at = match &self.keys {
            Some(keys) => (*keys.get(at)?)?,
            None => at,
        };
        if self.values.is_null(at) {
            return None;
        }
        match self.values.data_type() {
            DataType::LargeUtf8 => Some(self.values.as_string::<i64>().value(at)),
            DataType::Utf8View => Some(self.values.as_string_view().value(at)),
            DataType::Utf8 => Some(self.values.as_string::<i32>().value(at)),
            _ => None,
        }
    }
}

impl Source for Reader {
    type Kept = Kept;

    fn next(&mut self, question: &Question<'_>) -> Result<Option<Batch<Kept>>, BulkError> {
        loop {
            let read = self.batches.next().transpose().map_err(|error| self.failed(&error))?;
            let ended = read.is_none();
            let (batch, texts) = match (self.held.take(), read) {
                (None, None) => return Ok(None),
                (Some(held), None) => held,
                (None, Some(batch)) => {
                    let texts = self.texts(&batch);
                    (batch, texts)
                }
                (Some((held, mut texts)), Some(batch)) => {
                    texts.extend(self.texts(&batch));
                    let joined = concat_batches(&held.schema(), [&held, &batch]);
                    (joined.map_err(|error| self.failed(&error))?, texts)
                }
            };
            // The last rows may belong together with those of the next batch.
            let mut cut = texts.len();
            if !ended && question.has_groups() {
                let parted = texts.windows(2).rposition(|two| !question.together(&two[0], &two[1]));
                cut = parted.map_or(0, |at| at + 1);
            }
            if texts.len() - cut > MOST_TOGETHER {
                let problem = format!("more than {MOST_TOGETHER} rows have the same query");
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
            return Ok(Some(Batch { texts, kept: Kept { batch: batch.slice(0, cut), first } }));
        }
    }

    fn place(&self, kept: &Kept, at: usize) -> String {
        format!("{}, row {}", self.name, kept.first + at as u64)
    }
}

/// What a failure of Arrow is to the system, where it is one.
pub(super) fn as_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}
