//! Rows as DuckDB has them, as texts; the only file that reads memory of DuckDB.

use duckdb::core::DataChunkHandle;
use duckdb::ffi::duckdb_string_t;
use duckdb::types::DuckString;

/// The texts of a column of a chunk; nothing where one is NULL.
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
