//! What SQL can call.

use std::error::Error;

use cognate::choice::Unexpected;
use cognate::engine::{Least, QueryError};
use cognate::{Engine, Query};
use duckdb::core::{DataChunkHandle, LogicalTypeHandle, LogicalTypeId};
use duckdb::vscalar::{ScalarFunctionSignature, VScalar};
use duckdb::vtab::arrow::WritableVector;

use crate::opened::Opened;
use crate::rows;

/// The method if a call names none.
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

/// The query of a method, by any of its names, and of what opposites do, where that is said.
fn query(engine: &Engine, said: &[String]) -> Result<Query, Box<dyn Error>> {
    let method = said.first().map_or(AUTO, String::as_str);
    let opposites = said.get(1).map(|name| name.parse()).transpose();
    let opposites =
        opposites.map_err(|wrong: Unexpected| format!("cognate: opposites: {wrong}"))?;
    let query = Query::new(engine.method(method).map_err(refused)?);
    let query = query.with_opposites(opposites);
    engine.check(&query).map_err(refused)?;
    Ok(query)
}

/// Rows of which the same is asked, behind the texts of each: their places and texts.
type Run = (Vec<String>, Vec<(usize, Vec<String>)>);

/// Rows that have all their cells, in runs of which the same is asked.
fn runs(
    input: &DataChunkHandle,
    columns: impl Iterator<Item = usize>,
    texts_of: usize,
) -> Vec<Run> {
    let mut columns: Vec<Vec<Option<String>>> =
        columns.map(|column| rows::texts(input, column)).collect();
    let mut runs: Vec<Run> = Vec::new();
    for row in 0..input.len() {
        let cells = columns.iter_mut().map(|column| column.get_mut(row).and_then(Option::take));
        let Some(mut cells) = cells.collect::<Option<Vec<String>>>() else { continue };
        let said = cells.split_off(texts_of.min(cells.len()));
        match runs.last_mut() {
            Some((known, rows)) if *known == said => rows.push((row, cells)),
            _ => runs.push((said, vec![(row, cells)])),
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

/// `cognate_similarity(a, b[, method[, opposites]])`: how alike two texts are; 0 for a text that cannot be scored.
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
        for (said, asked) in runs(input, 0..input.num_columns(), 2) {
            let query = query(&engine, &said)?;
            let found = engine.similarity(&pairs(&asked), &query).map_err(refused)?;
            for ((row, _), score) in asked.iter().zip(found.scores) {
                if let Some(place) = scores.get_mut(*row) {
                    *place = Some(score);
                }
            }
        }
        rows::values(&scores, output);
        Ok(())
    }

    fn signatures() -> Vec<ScalarFunctionSignature> {
        (2..=4).map(|texts| signature(texts, float())).collect()
    }
}

/// `cognate_related(a, b[, threshold[, method[, opposites]]])`: whether two texts are related by a threshold, or by
/// the one that the model has for the method.
pub(crate) struct Related;

/// The column of the threshold.
const THRESHOLD: usize = 2;

impl VScalar for Related {
    type State = Opened;

    fn invoke(
        opened: &Opened,
        input: &mut DataChunkHandle,
        output: &mut dyn WritableVector,
    ) -> Outcome {
        let engine = opened.engine()?;
        let columns = input.num_columns();
        let thresholds = (columns > THRESHOLD).then(|| rows::doubles(input, THRESHOLD));
        let threshold = |row: &usize| thresholds.as_ref().and_then(|all| *all.get(*row)?);
        let mut related: Vec<Option<bool>> = vec![None; input.len()];
        for (said, asked) in runs(input, (0..columns).filter(|column| *column != THRESHOLD), 2) {
            let query = query(&engine, &said)?;
            for asked in asked.chunk_by(|(one, _), (next, _)| threshold(one) == threshold(next)) {
                let least = match thresholds {
                    None => Some(Least::Calibrated),
                    Some(_) => asked.first().and_then(|(row, _)| threshold(row)).map(Least::Number),
                };
                let cutoff = least.map(|least| least.resolve(&engine, &query)).transpose();
                let least = cutoff.map_err(refused)?.map(|cutoff| cutoff.least);
                let query = Query { threshold: least, ..query };
                let found = engine.similarity(&pairs(asked), &query).map_err(refused)?;
                // Without a threshold, which is NULL, there is no verdict.
                for ((row, _), told) in asked.iter().zip(found.related) {
                    if let Some(place) = related.get_mut(*row) {
                        *place = Some(told);
                    }
                }
            }
        }
        rows::values(&related, output);
        Ok(())
    }

    fn signatures() -> Vec<ScalarFunctionSignature> {
        let boolean = || LogicalTypeHandle::from(LogicalTypeId::Boolean);
        let more = [LogicalTypeId::Double, LogicalTypeId::Varchar, LogicalTypeId::Varchar];
        let signature = |more: &[LogicalTypeId]| {
            let texts = [LogicalTypeId::Varchar, LogicalTypeId::Varchar];
            let types = texts.iter().chain(more).map(|id| LogicalTypeHandle::from(*id));
            ScalarFunctionSignature::exact(types.collect(), boolean())
        };
        (0..=more.len()).map(|given| signature(&more[..given])).collect()
    }
}

/// Returns each row's two texts as a pair.
fn pairs(rows: &[(usize, Vec<String>)]) -> Vec<(&str, &str)> {
    let pairs = rows.iter().filter_map(|(_, cells)| match cells.as_slice() {
        [a, b] => Some((a.as_str(), b.as_str())),
        _ => None,
    });
    pairs.collect()
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
        for (said, asked) in runs(input, 0..input.num_columns(), 1) {
            let mut query = query(&engine, &said)?;
            let method = said.first().map_or(AUTO, String::as_str);
            query.method = engine.embedding_method(method).map_err(refused)?;
            let texts: Vec<&str> =
                asked.iter().flat_map(|(_, cells)| cells).map(String::as_str).collect();
            let found = engine.embed(&texts, &query).map_err(refused)?;
            for ((row, _), vector) in asked.iter().zip(found.iter()) {
                if let Some(place) = vectors.get_mut(*row) {
                    *place = vector.map(<[f32]>::to_vec);
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
        for (said, asked) in runs(input, 0..input.num_columns(), 2) {
            let query = query(&engine, &said)?;
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
