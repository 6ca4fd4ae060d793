//! What SQL can call.

use std::error::Error;

use cognate::engine::QueryError;
use cognate::{Engine, Query};
use duckdb::core::{DataChunkHandle, LogicalTypeHandle, LogicalTypeId};
use duckdb::vscalar::{ScalarFunctionSignature, VScalar};
use duckdb::vtab::arrow::WritableVector;

use crate::opened::Opened;
use crate::rows;

/// What is asked where no method is named.
const AUTO: &str = "auto";

type Outcome = Result<(), Box<dyn Error>>;

fn signature(texts: usize, answer: LogicalTypeHandle) -> ScalarFunctionSignature {
    let text = || LogicalTypeHandle::from(LogicalTypeId::Varchar);
    ScalarFunctionSignature::exact((0..texts).map(|_| text()).collect(), answer)
}

fn float() -> LogicalTypeHandle {
    LogicalTypeHandle::from(LogicalTypeId::Float)
}

fn refused(error: QueryError) -> Box<dyn Error> {
    format!("cognate: {error}").into()
}

/// The query of a method, by any of its names.
fn query(engine: &Engine, method: &str) -> Result<Query, Box<dyn Error>> {
    let query = Query::new(engine.method(method).map_err(refused)?);
    engine.check(&query).map_err(refused)?;
    Ok(query)
}

/// Rows asked by one method: their places and texts.
type Run = (String, Vec<(usize, Vec<String>)>);

/// Rows that have all their texts, in runs of the same method: that of the column behind the texts, or
/// the model's choice where there is none.
fn runs(input: &DataChunkHandle, texts_of: usize) -> Vec<Run> {
    let mut columns: Vec<Vec<Option<String>>> =
        (0..input.num_columns()).map(|column| rows::texts(input, column)).collect();
    let mut runs: Vec<Run> = Vec::new();
    for row in 0..input.len() {
        let cells = columns.iter_mut().map(|column| column.get_mut(row).and_then(Option::take));
        let Some(mut cells) = cells.collect::<Option<Vec<String>>>() else { continue };
        let method = if cells.len() > texts_of { cells.pop() } else { None };
        let method = method.unwrap_or_else(|| AUTO.to_owned());
        match runs.last_mut() {
            Some((known, rows)) if *known == method => rows.push((row, cells)),
            _ => runs.push((method, vec![(row, cells)])),
        }
    }
    runs
}

/// `cognate_open(path)`: opens a model for this database, and tells its fingerprint.
pub(crate) struct Open;

impl VScalar for Open {
    type State = Opened;

    fn invoke(
        opened: &Opened,
        input: &mut DataChunkHandle,
        output: &mut dyn WritableVector,
    ) -> Outcome {
        let open = |path: Option<String>| {
            let opened = path.map(|path| opened.open(&path)).transpose()?;
            Ok(opened.map(|engine| engine.model().fingerprint().to_owned()))
        };
        let told: Result<Vec<Option<String>>, String> =
            rows::texts(input, 0).into_iter().map(open).collect();
        rows::sentences(&told?, output);
        Ok(())
    }

    fn signatures() -> Vec<ScalarFunctionSignature> {
        vec![signature(1, LogicalTypeId::Varchar.into())]
    }

    // It must not be asked while a query is planned, and again whenever it is asked.
    fn volatile() -> bool {
        true
    }
}

/// `cognate_similarity(a, b[, method])`: how alike two texts are; 0 for a text that cannot be scored.
pub(crate) struct Similarity;

impl VScalar for Similarity {
    type State = Opened;

    fn invoke(
        opened: &Opened,
        input: &mut DataChunkHandle,
        output: &mut dyn WritableVector,
    ) -> Outcome {
        let engine = opened.engine()?;
        let mut scores: Vec<Option<f32>> = vec![None; input.len()];
        for (method, asked) in runs(input, 2) {
            let query = query(&engine, &method)?;
            let pairs: Vec<(&str, &str)> = asked
                .iter()
                .filter_map(|(_, cells)| match cells.as_slice() {
                    [a, b] => Some((a.as_str(), b.as_str())),
                    _ => None,
                })
                .collect();
            let found = engine.similarity(&pairs, &query).map_err(refused)?;
            for ((row, _), score) in asked.iter().zip(found.scores) {
                if let Some(place) = scores.get_mut(*row) {
                    *place = Some(score);
                }
            }
        }
        rows::numbers(&scores, output);
        Ok(())
    }

    fn signatures() -> Vec<ScalarFunctionSignature> {
        vec![signature(2, float()), signature(3, float())]
    }
}

/// `cognate_embed(text[, method])`: the vector of a text as a list; NULL for a text that has none.
pub(crate) struct Embed;

impl VScalar for Embed {
    type State = Opened;

    fn invoke(
        opened: &Opened,
        input: &mut DataChunkHandle,
        output: &mut dyn WritableVector,
    ) -> Outcome {
        let engine = opened.engine()?;
        let mut vectors: Vec<Option<Vec<f32>>> = vec![None; input.len()];
        for (method, asked) in runs(input, 1) {
            let mut query = query(&engine, &method)?;
            if method.trim().eq_ignore_ascii_case(AUTO) {
                query.method = engine.auto_embedding();
            }
            let texts: Vec<&str> =
                asked.iter().flat_map(|(_, cells)| cells).map(String::as_str).collect();
            let found = engine.embed(&texts, &query).map_err(refused)?;
            for ((row, _), vector) in asked.iter().zip(found.vectors) {
                if let Some(place) = vectors.get_mut(*row) {
                    *place = vector;
                }
            }
        }
        rows::lists(&vectors, output)
    }

    fn signatures() -> Vec<ScalarFunctionSignature> {
        let list = || LogicalTypeHandle::list(&float());
        vec![signature(1, list()), signature(2, list())]
    }
}

/// `cognate_explain(a, b[, method])`: why two texts score as they do, in a sentence.
pub(crate) struct Explain;

impl VScalar for Explain {
    type State = Opened;

    fn invoke(
        opened: &Opened,
        input: &mut DataChunkHandle,
        output: &mut dyn WritableVector,
    ) -> Outcome {
        let engine = opened.engine()?;
        let mut sentences: Vec<Option<String>> = vec![None; input.len()];
        for (method, asked) in runs(input, 2) {
            let query = query(&engine, &method)?;
            for (row, cells) in asked {
                let [a, b] = cells.as_slice() else { continue };
                let explained = engine.explain(a, b, &query).map_err(refused)?;
                if let Some(place) = sentences.get_mut(row) {
                    *place = Some(explained.sentence(query.method.name()));
                }
            }
        }
        rows::sentences(&sentences, output);
        Ok(())
    }

    fn signatures() -> Vec<ScalarFunctionSignature> {
        let text = || LogicalTypeHandle::from(LogicalTypeId::Varchar);
        vec![signature(2, text()), signature(3, text())]
    }
}
