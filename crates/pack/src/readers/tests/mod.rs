//! What the readers promise, shown by small files made on the spot.
//!
//! The cases are those that broke other importers; `shared` reads real files where they are at hand.

use super::input::Input;
use super::{Place, ReadError, VectorReader};

mod damage;
mod format;
mod matrix;
mod npy;
mod safetensors;
mod shared;
mod text;
mod word2vec_bin;

/// A row as a test writes it down.
type Row = (String, Vec<f32>);

fn bytes(bytes: impl AsRef<[u8]>) -> Input {
    Input::from_bytes("memory", bytes.as_ref().to_vec()).unwrap()
}

/// Every row to the end of the file, or the first fault. Words that are not UTF-8 are escaped.
fn all<R: VectorReader>(reader: Result<R, ReadError>) -> Result<Vec<Row>, ReadError> {
    let mut reader = reader?;
    let (mut word, mut row) = (Vec::new(), vec![0.0; reader.dims()]);
    let mut rows = Vec::new();
    while reader.next_row(&mut word, &mut row)? {
        let word = match std::str::from_utf8(&word) {
            Ok(word) => word.to_owned(),
            Err(_) => word.escape_ascii().to_string(),
        };
        rows.push((word, row.clone()));
    }
    Ok(rows)
}

/// The message of the fault that reading must end in.
fn fault<R: VectorReader>(reader: Result<R, ReadError>) -> String {
    all(reader).expect_err("a fault").to_string()
}

fn row(word: &str, numbers: &[f32]) -> Row {
    (word.to_owned(), numbers.to_vec())
}

#[track_caller]
fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
}

/// So that [`all`] takes what `open` returns.
impl VectorReader for Box<dyn VectorReader> {
    fn dims(&self) -> usize {
        self.as_ref().dims()
    }
    fn rows_hint(&self) -> Option<u64> {
        self.as_ref().rows_hint()
    }
    fn next_row(&mut self, word: &mut Vec<u8>, row: &mut [f32]) -> Result<bool, ReadError> {
        self.as_mut().next_row(word, row)
    }
    fn place(&self) -> Place {
        self.as_ref().place()
    }
    fn digest(&mut self) -> Result<String, ReadError> {
        self.as_mut().digest()
    }
    fn progress(&self) -> (u64, u64) {
        self.as_ref().progress()
    }
}
