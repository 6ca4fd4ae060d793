//! Files with columns, Parquet and Arrow (IPC, also called Feather): their batches, and their rows
//! as objects for callers that read records. Whether this build can read them is known here.

use std::path::Path;

use cognate_files::ReadError;
use cognate_files::records::{Options, Records};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    Parquet,
    Arrow,
}

impl Layout {
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "parquet" => Some(Self::Parquet),
            "arrow" | "feather" | "ipc" => Some(Self::Arrow),
            _ => None,
        }
    }
}

pub(crate) fn holds_columns(path: &Path) -> bool {
    Layout::of_path(path).is_some()
}

/// The records of a file; the rows of columns are objects, and these `needed` columns must be there.
pub(crate) fn records(
    path: &Path,
    options: Options,
    needed: &[&str],
) -> Result<Records, ReadError> {
    if !holds_columns(path) {
        return Records::open(path, options);
    }
    #[cfg(feature = "columns")]
    return of_columns(path, needed);
    #[cfg(not(feature = "columns"))]
    {
        let _ = needed;
        Err(unreadable(path))
    }
}

/// Why this build cannot read a file with columns.
#[cfg(not(feature = "columns"))]
pub(crate) fn unreadable(path: &Path) -> ReadError {
    let path = path.to_owned();
    match path.metadata() {
        Err(source) => ReadError::Io { path, source },
        Ok(_) => {
            let problem = "this program reads no Parquet and no Arrow: it was built without the \
                           feature `columns`. Released programs and images have it; `cargo install \
                           --locked --path . --features columns` builds one that has";
            ReadError::Unsupported { path, problem: problem.to_owned() }
        }
    }
}

#[cfg(feature = "columns")]
use with_columns::of_columns;
#[cfg(feature = "columns")]
pub(crate) use with_columns::{Batches, Strings, batches, holds_text, unknown_column};

#[cfg(feature = "columns")]
mod with_columns {
    use std::fs::File;
    use std::io;
    use std::io::{BufReader, Read};
    use std::path::Path;
    use std::sync::Arc;

    use arrow_array::cast::AsArray;
    use arrow_array::types::{
        Date32Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
        TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
        TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
    };
    use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
    use arrow_ipc::reader::FileReader;
    use arrow_schema::{DataType, Schema, TimeUnit};
    use cognate_files::input::Input;
    use cognate_files::records::{Format, Options, Records};
    use cognate_files::{ReadError, instant};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use serde_json::Value;

    use crate::columnar::Layout;

    const ROWS: usize = 8192;

    pub(crate) type Batches = Box<dyn RecordBatchReader + Send>;

    /// The batches of a file, and the number of its rows if the file states it.
    pub(crate) fn batches(
        path: &Path,
        layout: Layout,
    ) -> Result<(Batches, Option<u64>), ReadError> {
        let failed = |source| ReadError::Io { path: path.to_owned(), source };
        let malformed = |problem: String| ReadError::Unsupported { path: path.to_owned(), problem };
        if !path.metadata().map_err(failed)?.is_file() {
            let problem = "not a regular file; folders, pipes and devices are not read";
            return Err(malformed(problem.to_owned()));
        }
        let file = File::open(path).map_err(failed)?;
        match layout {
            Layout::Parquet => {
                let built = ParquetRecordBatchReaderBuilder::try_new(file)
                    .and_then(|builder| {
                        let rows = builder.metadata().file_metadata().num_rows();
                        Ok((builder.with_batch_size(ROWS).build()?, rows))
                    })
                    .map_err(|error| malformed(format!("not a Parquet file: {error}")))?;
                Ok((Box::new(built.0), u64::try_from(built.1).ok()))
            }
            Layout::Arrow => {
                let reader = FileReader::try_new(BufReader::new(file), None);
                let reader =
                    reader.map_err(|error| malformed(format!("not an Arrow file: {error}")))?;
                Ok((Box::new(reader), None))
            }
        }
    }

    pub(crate) fn unknown_column(path: &Path, name: &str, schema: &Schema) -> ReadError {
        let known: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let problem = format!("expected a column `{name}`; the columns are {}", known.join(", "));
        ReadError::Unsupported { path: path.to_owned(), problem }
    }

    pub(super) fn of_columns(path: &Path, needed: &[&str]) -> Result<Records, ReadError> {
        let layout = Layout::of_path(path).unwrap_or(Layout::Parquet);
        let (batches, _) = batches(path, layout)?;
        let schema = batches.schema();
        if let Some(name) = needed.iter().find(|name| schema.column_with_name(name).is_none()) {
            return Err(unknown_column(path, name, &schema));
        }
        let lines = Lines { batches, text: Vec::new(), read: 0 };
        let input = Input::from_stream(path, Box::new(lines))?;
        Records::new(input, Options { format: Some(Format::Ndjson), headless: false })
    }

    /// The rows of batches as lines of JSON.
    struct Lines {
        batches: Batches,
        text: Vec<u8>,
        read: usize,
    }

    impl Read for Lines {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            while self.read == self.text.len() {
                let Some(batch) = self.batches.next().transpose().map_err(io::Error::other)? else {
                    return Ok(0);
                };
                self.text.clear();
                self.read = 0;
                self.write(&batch)?;
            }
            let count = self.text.get(self.read..).unwrap_or_default().read(out)?;
            self.read += count;
            Ok(count)
        }
    }

    impl Lines {
        fn write(&mut self, batch: &RecordBatch) -> io::Result<()> {
            let (schema, mut columns) = (batch.schema(), Vec::new());
            for (field, column) in schema.fields().iter().zip(batch.columns()) {
                columns.push((Value::from(field.name().as_str()).to_string(), values(column)?));
            }
            for at in 0..batch.num_rows() {
                for (place, (name, values)) in columns.iter().enumerate() {
                    let before = if place == 0 { '{' } else { ',' };
                    let value = values.get(at).unwrap_or(&Value::Null);
                    self.text.extend_from_slice(format!("{before}{name}:{value}").as_bytes());
                }
                let end = if columns.is_empty() { "{}\n" } else { "}\n" };
                self.text.extend_from_slice(end.as_bytes());
            }
            Ok(())
        }
    }

    /// The values of a column as JSON: times as text, lists as lists.
    fn values(column: &ArrayRef) -> io::Result<Vec<Value>> {
        macro_rules! numbers {
            ($type:ty, $value:expr) => {
                column.as_primitive::<$type>().iter().map(|value| value.map($value)).collect()
            };
        }
        let time = |milliseconds: i64| Value::from(instant::written_exactly(milliseconds));
        let values: Vec<Option<Value>> = match column.data_type() {
            kind if holds_text(kind) => {
                let strings = Strings::new(column);
                (0..column.len()).map(|at| strings.get(at).map(Value::from)).collect()
            }
            DataType::Null => vec![None; column.len()],
            DataType::Boolean => {
                column.as_boolean().iter().map(|value| value.map(Value::from)).collect()
            }
            DataType::Int8 => numbers!(Int8Type, Value::from),
            DataType::Int16 => numbers!(Int16Type, Value::from),
            DataType::Int32 => numbers!(Int32Type, Value::from),
            DataType::Int64 => numbers!(Int64Type, Value::from),
            DataType::UInt8 => numbers!(UInt8Type, Value::from),
            DataType::UInt16 => numbers!(UInt16Type, Value::from),
            DataType::UInt32 => numbers!(UInt32Type, Value::from),
            DataType::UInt64 => numbers!(UInt64Type, Value::from),
            DataType::Float32 => numbers!(Float32Type, Value::from),
            DataType::Float64 => numbers!(Float64Type, Value::from),
            DataType::Date32 => numbers!(Date32Type, |days| time(i64::from(days) * 86_400_000)),
            DataType::Timestamp(TimeUnit::Second, _) => {
                numbers!(TimestampSecondType, |seconds| time(seconds.saturating_mul(1000)))
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                numbers!(TimestampMillisecondType, time)
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                numbers!(TimestampMicrosecondType, |micros| time(micros.div_euclid(1000)))
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => {
                numbers!(TimestampNanosecondType, |nanos| time(nanos.div_euclid(1_000_000)))
            }
            DataType::List(_) => lists(column.as_list::<i32>().iter())?,
            DataType::LargeList(_) => lists(column.as_list::<i64>().iter())?,
            DataType::FixedSizeList(..) => lists(column.as_fixed_size_list().iter())?,
            kind => {
                let problem = format!("values of type {kind} are not read as rows");
                return Err(io::Error::other(problem));
            }
        };
        Ok(values.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn lists(rows: impl Iterator<Item = Option<ArrayRef>>) -> io::Result<Vec<Option<Value>>> {
        rows.map(|row| row.map(|row| values(&row).map(Value::from)).transpose()).collect()
    }

    pub(crate) fn holds_text(kind: &DataType) -> bool {
        match kind {
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
            DataType::Dictionary(_, values) => holds_text(values),
            _ => false,
        }
    }

    /// A column of strings in any of Arrow's encodings.
    pub(crate) struct Strings {
        values: ArrayRef,
        /// For a dictionary, the index of each row's value.
        keys: Option<Vec<Option<usize>>>,
    }

    impl Strings {
        pub(crate) fn new(column: &ArrayRef) -> Self {
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

        pub(crate) fn get(&self, at: usize) -> Option<&str> {
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
}
