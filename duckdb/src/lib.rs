//! cognate in DuckDB: `LOAD 'cognate.duckdb_extension'`, and SQL has `cognate_similarity`,
//! `cognate_related`, `cognate_embed`, `cognate_explain` and `cognate_open`.
//!
//! DuckDB calls a function for some thousand rows at a time, on as many threads as it likes; a row of
//! which an argument is NULL is NULL. Scores are computed by the library, with the same bits as
//! everywhere. What rows are as DuckDB has them is known in `rows` alone.

mod functions;
mod opened;
mod rows;

use duckdb::{Connection, duckdb_entrypoint_c_api};

use crate::functions::{Embed, Explain, Open, Related, Similarity};
use crate::opened::Opened;

/// Called by DuckDB when the extension is loaded.
// The oldest interface that has all that is called: files for it load into every later version.
#[duckdb_entrypoint_c_api(ext_name = "cognate", min_duckdb_version = "v1.2.0")]
fn load(database: Connection) -> Result<(), Box<dyn std::error::Error>> {
    let model = Opened::default();
    database.register_scalar_function_with_state::<Open>("cognate_open", &model)?;
    database.register_scalar_function_with_state::<Similarity>("cognate_similarity", &model)?;
    database.register_scalar_function_with_state::<Related>("cognate_related", &model)?;
    database.register_scalar_function_with_state::<Embed>("cognate_embed", &model)?;
    database.register_scalar_function_with_state::<Explain>("cognate_explain", &model)?;
    Ok(())
}
