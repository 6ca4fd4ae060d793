//! The scores of every text with every candidate: each is looked up and prepared once.

use ndarray::Array2;

use crate::engine::rank::many::blocks;
use crate::engine::rank::panel::Panel;
use crate::engine::rank::session::Reader;
use crate::engine::workspace::Workspace;
use crate::engine::{Engine, Place, Query, QueryError, Ranking, Reason};
use crate::methods::Posts;
use crate::model::Phrase;

/// Texts whose vectors are multiplied with a block's at once: their products stay in the cache.
const ROWS: usize = 64;

/// The scores of every text with every candidate.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Matrix {
    /// A row for each text, with a score for each candidate; NaN if one of the two cannot be scored.
    pub scores: Array2<f32>,
    /// The texts that cannot be scored, and why.
    pub texts: Vec<(usize, Reason)>,
    /// The candidates that cannot be scored, and why.
    pub candidates: Vec<(usize, Reason)>,
}

impl Engine {
    /// The score of each of several texts with each candidate, as [`Engine::rank_best`] scores it,
    /// bit for bit. A text that cannot be scored has none, unless the query wants it refused.
    /// `go_on` is called between parts of the work; once it returns false, the answer is
    /// incomplete.
    pub fn score_matrix<Q: AsRef<str>, T: AsRef<str>>(
        &self,
        texts: &[Q],
        candidates: &[T],
        query: &Query,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Matrix, QueryError> {
        let mut panel = Panel::new(self, query)?;
        let shape = (texts.len(), candidates.len());
        let mut matrix = Matrix { scores: Array2::from_elem(shape, f32::NAN), ..Matrix::default() };
        let (mut rows, mut asked) = (Vec::new(), Vec::new());
        for (row, text) in texts.iter().enumerate() {
            let (mut phrase, place) = (Phrase::new(&self.model), Place::QueryOf(row));
            let item = self.read_item(&mut phrase, text.as_ref(), query, place)?;
            match item.reason(query.ranks_for(&phrase, panel.info)) {
                None => {
                    rows.push(row);
                    asked.push(phrase);
                }
                Some(reason) => {
                    query.accepts_unknown(place)?;
                    matrix.texts.push((row, reason));
                }
            }
        }
        let mut own = Panel::new(self, query)?;
        own.fill(&asked);
        let mut workspace = Workspace::with_memory(&self.model);
        let mut reader = Reader::new(self, query, panel.info);
        let mut read = Ranking::default();
        let (mut posts, mut places) = (Posts::default(), Vec::new());
        let (mut scores, mut of_one) = (Vec::new(), Vec::new());
        let mut put = |row: usize, indexes: &[usize], scores: &[f32]| {
            let mut row = matrix.scores.row_mut(row);
            indexes.iter().zip(scores).for_each(|(&index, &score)| row[index] = score);
        };
        for (first, block) in blocks(candidates) {
            reader.read_block(block, first, true, &mut workspace, &mut read)?;
            let (phrases, indexes) = reader.read_last();
            if panel.scores_lists() {
                phrases.iter().for_each(|phrase| posts.push(phrase));
                places.extend_from_slice(indexes);
                continue;
            }
            panel.fill(phrases);
            let parts = panel.prepared_parts(phrases, asked.len(), workspace.scratch());
            for (part, (rows, asked)) in rows.chunks(ROWS).zip(asked.chunks(ROWS)).enumerate() {
                let texts = (&own, part * ROWS, asked);
                if !panel.score_vectors(texts, phrases, &mut scores)? {
                    scores.clear();
                    for phrase in asked {
                        if !go_on() {
                            return Ok(matrix);
                        }
                        let scratch = workspace.scratch();
                        let mut visitor = panel.visitor(phrase, scratch);
                        let parts = parts.as_ref();
                        visitor.score_prepared(&panel, phrases, parts, &mut of_one, scratch)?;
                        visitor.leave(scratch);
                        scores.extend_from_slice(&of_one);
                    }
                }
                let scores = scores.chunks(phrases.len().max(1));
                rows.iter().zip(scores).for_each(|(&row, scores)| put(row, indexes, scores));
                if !go_on() {
                    return Ok(matrix);
                }
            }
            if let Some(parts) = parts {
                parts.give_back(workspace.scratch());
            }
        }
        reader.end(&mut workspace);
        for (&row, phrase) in rows.iter().zip(&asked).filter(|_| !places.is_empty()) {
            if !go_on() {
                return Ok(matrix);
            }
            let mut visitor = panel.visitor(phrase, workspace.scratch());
            visitor.score_list(&panel, &posts, &mut scores)?;
            visitor.leave(workspace.scratch());
            put(row, &places, &scores);
        }
        matrix.candidates = read.unscored.into_iter().zip(read.reasons).collect();
        Ok(matrix)
    }
}
