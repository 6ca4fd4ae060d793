//! Rows of text files: JSON objects, or cells separated by tabs or commas. They are written back
//! byte for byte with the answer's fields added at the end.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use cognate_files::progress::Progress;
use cognate_files::records::{Added, Appender, Column, Format, Records};

use crate::bad_rows::BadRows;
use crate::bulk::question::{Answer, Cell, Question, Texts};
use crate::bulk::{
    BYTES, Batch, BulkError, MAX_TOGETHER, Options, ROWS, Report, Sink, Source, answer_all,
    unwritten,
};
use crate::growing::Destination;
use crate::{STANDARD, appender};

pub(super) fn into_one(
    question: &Question<'_>,
    options: &Options,
    inputs: &[PathBuf],
    output: Option<&Path>,
    (report, bad): (&mut Report, &mut BadRows),
) -> Result<u64, BulkError> {
    let name = output.unwrap_or(Path::new("standard output"));
    let mut destination = Destination::create(output).map_err(unwritten(name))?;
    let mut writer = Writer::new(name, &mut destination);
    let mut asked = HashSet::new();
    for input in inputs {
        let mut reader = Reader::open(input, question, options, bad)?;
        writer.begin(&reader, question, options)?;
        answer_all(&mut reader, &mut writer, question, options.on_error, (report, &mut asked))?;
    }
    destination.finish().map_err(unwritten(name))
}

pub(super) type Raw = Vec<(String, u64)>;

/// A row's texts, and the row as read with its line number.
type Row = (Texts, (String, u64));

pub(super) struct Reader<'b> {
    name: String,
    records: Records,
    columns: Vec<Column>,
    /// Names of the fields that will be added; no row may have them already.
    added: Vec<String>,
    /// The first row that was read but not yet returned.
    ahead: Option<Row>,
    bad: &'b mut BadRows,
    progress: Progress,
}

impl<'b> Reader<'b> {
    pub(super) fn open(
        path: &Path,
        question: &Question<'_>,
        options: &Options,
        bad: &'b mut BadRows,
    ) -> Result<Self, BulkError> {
        let records = Records::open(path, options.records)?;
        let columns: Result<Vec<_>, _> =
            question.columns().into_iter().map(|name| records.column(name)).collect();
        let name = match path.as_os_str() == STANDARD {
            true => "standard input".to_owned(),
            false => path.display().to_string(),
        };
        let added = names(question, options);
        let taken = added.iter().find(|name| records.names().contains(name));
        if let Some(taken) = taken {
            return Err(BulkError::Options(format!("{name}: {}", is_taken(taken))));
        }
        let progress = Progress::bytes("rows");
        Ok(Self { name, records, columns: columns?, added, ahead: None, bad, progress })
    }

    fn read(&mut self, question: &Question<'_>) -> Result<Option<Row>, BulkError> {
        if let Some(row) = self.ahead.take() {
            return Ok(Some(row));
        }
        self.records.follow(&self.progress);
        let read = self.bad.next(&mut self.records, |record| {
            if let Some(taken) = self.added.iter().find(|name| record.has(name)) {
                return Err(is_taken(taken));
            }
            let text = |(at, column): (usize, &Column)| match record.field(column)? {
                Some(text) => Ok(text.into_owned()),
                None => question.missing(at, column.name()),
            };
            let texts: Texts = self.columns.iter().enumerate().map(text).collect();
            Ok((texts, record.raw().to_owned()))
        })?;
        Ok(read.map(|(texts, raw)| (texts, (raw, self.records.line()))))
    }
}

pub(super) fn is_taken(name: &str) -> String {
    format!(
        "there is a field `{name}` already; --prefix puts something before the names of added ones"
    )
}

pub(super) fn names(question: &Question<'_>, options: &Options) -> Vec<String> {
    question.added().iter().map(|(name, _)| format!("{}{name}", options.prefix)).collect()
}

impl Source for Reader<'_> {
    type RowData = Raw;

    fn next(&mut self, question: &Question<'_>) -> Result<Option<Batch<Raw>>, BulkError> {
        let mut batch = Batch { texts: Vec::new(), kept: Vec::new() };
        let mut bytes = 0;
        while let Some((texts, raw)) = self.read(question)? {
            let full = batch.texts.len() >= ROWS || bytes >= BYTES;
            if full && !question.goes_on(&batch.texts, &texts) {
                self.ahead = Some((texts, raw));
                break;
            }
            if batch.texts.len() > MAX_TOGETHER {
                let problem = format!("more than {MAX_TOGETHER} rows have the same query");
                return Err(self.records.wrong(problem).into());
            }
            bytes += raw.0.len();
            batch.texts.push(texts);
            batch.kept.push(raw);
        }
        Ok((!batch.texts.is_empty()).then_some(batch))
    }

    fn place(&self, kept: &Raw, at: usize) -> String {
        let line = kept.get(at).map_or(0, |(_, line)| *line);
        format!("{}, line {line}", self.name)
    }
}

pub(super) struct Writer<'d> {
    name: &'d Path,
    destination: &'d mut Destination,
    /// Once a file has begun: how fields are added, the format, and the header.
    begun: Option<(Appender, Format, Option<String>)>,
    text: String,
}

impl<'d> Writer<'d> {
    pub(super) fn new(name: &'d Path, destination: &'d mut Destination) -> Self {
        Self { name, destination, begun: None, text: String::new() }
    }

    /// Starts on the rows of the next file; files that go into one output must have the same format and
    /// header.
    pub(super) fn begin(
        &mut self,
        reader: &Reader<'_>,
        question: &Question<'_>,
        options: &Options,
    ) -> Result<(), BulkError> {
        let (format, header) = (reader.records.format(), reader.records.header());
        if let Some((_, known, before)) = &self.begun {
            if *known == format && before.as_deref() == header {
                return Ok(());
            }
            let problem = "its format or its header differs from that of the file before it; a \
                           folder as -o takes a file for each";
            return Err(BulkError::Options(format!("{}: {problem}", reader.name)));
        }
        let added = names(question, options);
        let output = Some(self.name).filter(|_| options.output.is_some());
        let mut appender = appender(&reader.records, added, &options.columns, output)?;
        appender.header(header, &mut self.text);
        self.begun = Some((appender, format, header.map(str::to_owned)));
        self.put().map(drop)
    }

    fn put(&mut self) -> Result<bool, BulkError> {
        let written = self.destination.put(self.text.as_bytes()).map_err(unwritten(self.name));
        self.text.clear();
        written
    }
}

impl Sink<Raw> for Writer<'_> {
    fn write(
        &mut self,
        question: &Question<'_>,
        kept: Raw,
        answers: &[Answer],
    ) -> Result<bool, BulkError> {
        let Some((appender, ..)) = &mut self.begun else { return Ok(true) };
        let rows = kept.iter().zip(answers).filter(|(_, answer)| question.writes(answer));
        for ((raw, _), answer) in rows {
            match answer {
                Ok(cells) => {
                    let added: Vec<Added<'_>> = cells.iter().map(Cell::added).collect();
                    appender.record(raw, &added, &mut self.text);
                }
                Err(_) => {
                    let added = vec![Added::Nothing; appender.names().len()];
                    appender.record(raw, &added, &mut self.text);
                }
            }
        }
        self.put()
    }
}

impl Cell {
    fn added(&self) -> Added<'_> {
        match self {
            Self::Score(score) => Added::Score(*score),
            Self::Count(count) => Added::Count(*count),
            Self::Vector(vector) => Added::Row(vector),
        }
    }
}
