//! `cognate embed`: the vectors of texts, or of the text in every row of files.

use std::sync::Arc;

use clap::Args;
use cognate_rows::bulk::Task;

use crate::cli::ask::bulk::Files;
use crate::cli::ask::{Asked, refused, texts};
use crate::cli::{Failure, print};
use crate::http::api::embed::{EmbedResponse, Encoding};
use crate::http::request::query::Resolved;

#[derive(Debug, Args)]
pub(in crate::cli) struct EmbedArgs {
    /// Texts; `-` alone reads them from standard input, one a line
    #[arg(required_unless_present = "input", conflicts_with = "input")]
    texts: Vec<String>,
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    files: Files,
    /// Column of texts, by name or number [default: text, or 1 without a header]
    #[arg(long = "text", value_name = "COLUMN", help_heading = "Rows of files")]
    column: Option<String>,
}

pub(in crate::cli) fn run(args: EmbedArgs) -> Result<(), Failure> {
    let model = args.asked.chosen.open()?;
    let engine = &model.engine;
    let query = args.asked.chosen.vectors(engine)?;
    if args.files.are_given(&[("--text", &args.column)])? {
        let text = args.files.column(args.column, "text", 1);
        return args.files.run(engine, query, Task::Embed { text }, args.asked.json);
    }
    let texts = texts(args.texts)?;
    let embedded = engine.embed(&texts, &query).map_err(refused)?;
    if args.asked.json {
        let resolved = Resolved { model: Arc::clone(&model), query, fused: None };
        let response = EmbedResponse::new(&embedded, Encoding::Float, &resolved);
        return print(&serde_json::to_string(&response)?);
    }
    let line = |vector: Option<&[f32]>| match vector {
        Some(vector) => vector.iter().map(f32::to_string).collect::<Vec<_>>().join(" ") + "\n",
        None => "-\n".to_owned(),
    };
    print(&embedded.iter().map(line).collect::<String>())
}
