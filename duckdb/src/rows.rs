//! Rows as DuckDB has them: texts taken from them, answers put into them. The only file that touches memory
//! of DuckDB.

use std::error::Error;

use duckdb::core::{DataChunkHandle, Inserter};
use duckdb::ffi::duckdb_string_t;
use duckdb::types::DuckString;
use duckdb::vtab::arrow::WritableVector;

/// Returns the texts of a column of a chunk; `None` for each NULL.
pub(crate) fn texts(chunk: &DataChunkHandle, column: usize) -> Vec<Option<String>> {
    let vector = chunk.flat_vector(column);
    // SAFETY: the functions take nothing but VARCHAR, of which DuckDB gives as many as the chunk has rows,
    // flat, and they stay where they are during the call.
    let strings = unsafe { vector.as_slice_with_len::<duckdb_string_t>(chunk.len()) };
    let rows = strings.iter().enumerate().map(|(row, string)| {
        // The bytes of a NULL are anything.
        let is_null = vector.row_is_null(row as u64);
        // A short string lies in the value itself, so the copy is what its bytes are read from.
        let mut string = *string;
        (!is_null).then(|| DuckString::new(&mut string).as_str().into_owned())
    });
    rows.collect()
}

/// The numbers of a column of DOUBLE of a chunk; nothing where one is NULL.
pub(crate) fn doubles(chunk: &DataChunkHandle, column: usize) -> Vec<Option<f64>> {
    let vector = chunk.flat_vector(column);
    // SAFETY: the one function that calls this takes DOUBLE there, of which DuckDB gives as many as the chunk
    // has rows, flat.
    let numbers = unsafe { vector.as_slice_with_len::<f64>(chunk.len()) };
    let rows = numbers.iter().enumerate();
    rows.map(|(row, number)| (!vector.row_is_null(row as u64)).then_some(*number)).collect()
}

/// What a type of SQL is in memory.
pub(crate) trait Plain: Copy + Default {}

/// FLOAT.
impl Plain for f32 {}

/// BOOLEAN.
impl Plain for bool {}

/// Answers FLOAT or BOOLEAN: a value a row; NULL where there is none.
pub(crate) fn values<T: Plain>(values: &[Option<T>], output: &mut dyn WritableVector) {
    let mut answers = output.flat_vector();
    {
        // SAFETY: a function calls this with values of the type that it answers, as many as its chunk has rows.
        let room = unsafe { answers.as_mut_slice_with_len::<T>(values.len()) };
        for (place, value) in room.iter_mut().zip(values) {
            *place = value.unwrap_or_default();
        }
    }
    for (row, value) in values.iter().enumerate() {
        if value.is_none() {
            answers.set_null(row);
        }
    }
}

/// Answers FLOAT[]: a list a row; NULL where there is none.
pub(crate) fn lists(
    rows: &[Option<Vec<f32>>],
    output: &mut dyn WritableVector,
) -> Result<(), Box<dyn Error>> {
    let numbers: Vec<f32> = rows.iter().flatten().flatten().copied().collect();
    let mut answers = output.list_vector();
    answers.try_set_len(numbers.len())?;
    let mut child = answers.child(numbers.len());
    // SAFETY: only functions that answer FLOAT[] call this, and room for so many was just made.
    unsafe { child.as_mut_slice_with_len::<f32>(numbers.len()) }.copy_from_slice(&numbers);
    let mut from = 0;
    for (row, list) in rows.iter().enumerate() {
        match list {
            Some(list) => {
                answers.set_entry(row, from, list.len());
                from += list.len();
            }
            None => answers.set_null(row),
        }
    }
    Ok(())
}

/// Answers VARCHAR: a text a row; NULL where there is none.
pub(crate) fn sentences(rows: &[Option<String>], output: &mut dyn WritableVector) {
    let mut answers = output.flat_vector();
    for (row, sentence) in rows.iter().enumerate() {
        match sentence {
            Some(sentence) => answers.insert(row, sentence.as_str()),
            None => answers.set_null(row),
        }
    }
}
