//! Rows cut into cells: at tabs, or as comma-separated values with quotation marks.

use csv_core::{ReadRecordResult, Reader};

use crate::records::Format;

/// The cells of one row under the names of all columns.
#[derive(Debug, Default)]
pub(super) struct Cells {
    pub(super) names: Vec<String>,
    text: String,
    ends: Vec<usize>,
}

impl Cells {
    pub(super) fn get(&self, at: usize) -> Option<&str> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        self.text.get(start.unwrap_or(0)..end)
    }

    /// Where the column of a name stands; of several the first.
    pub(super) fn named(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| known == name)
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.len()).filter_map(|at| self.get(at))
    }

    /// Cuts a row that lies between tabs.
    fn cut_at_tabs(&mut self, row: &str) {
        self.text.clear();
        self.ends.clear();
        for cell in row.split('\t') {
            self.text.push_str(cell);
            self.ends.push(self.text.len());
        }
    }
}

/// What cutting comma-separated values works in: it goes on from line to line while a quotation
/// mark is open.
pub(super) struct Cutter {
    reader: Reader,
    text: Vec<u8>,
    ends: Vec<usize>,
    used: (usize, usize),
}

impl Cutter {
    pub(super) fn new() -> Self {
        Self { reader: Reader::new(), text: vec![0; 256], ends: vec![0; 16], used: (0, 0) }
    }

    /// Takes in one more line with its end; whether the row ends with it.
    pub(super) fn take(&mut self, line: &[u8]) -> bool {
        // To the library, no bytes at all are the end of the file.
        (!line.is_empty() && self.feed(line)) || self.feed(b"\n")
    }

    fn feed(&mut self, mut line: &[u8]) -> bool {
        loop {
            let (text, ends) = (&mut self.text[self.used.0..], &mut self.ends[self.used.1..]);
            let (result, read, written, ended) = self.reader.read_record(line, text, ends);
            self.used = (self.used.0 + written, self.used.1 + ended);
            line = &line[read..];
            match result {
                ReadRecordResult::OutputFull => self.text.resize(2 * self.text.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                ReadRecordResult::InputEmpty => return false,
                ReadRecordResult::Record | ReadRecordResult::End => return true,
            }
        }
    }

    /// Hands the cells of the row over, and begins another.
    pub(super) fn finish(&mut self, cells: &mut Cells) -> Result<(), String> {
        let (text, ends) = (&self.text[..self.used.0], &self.ends[..self.used.1]);
        cells.text.clear();
        cells.text.push_str(std::str::from_utf8(text).map_err(|_| "the row is not UTF-8")?);
        cells.ends.clear();
        cells.ends.extend_from_slice(ends);
        self.used = (0, 0);
        self.reader.reset();
        Ok(())
    }
}

/// Cuts a row that is known to be whole.
pub(super) fn cut(
    row: &str,
    format: Format,
    cutter: &mut Cutter,
    cells: &mut Cells,
) -> Result<(), String> {
    match format {
        Format::Csv => cutter.finish(cells),
        Format::Tsv | Format::Ndjson => {
            cells.cut_at_tabs(row);
            Ok(())
        }
    }
}
