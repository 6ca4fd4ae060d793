//! What a token that is not listed becomes: the model's rules, tried one after another.

use cognate_kernels::vector;

use crate::model::phrase::{Found, Phrase, TOKEN_BYTES, key_of_unlisted};
use crate::model::pieces::{PieceTable, Pieces};
use crate::model::subword::NGrams;
use crate::model::unigram::Scale;
use crate::model::unknown::Fallback;
use crate::model::unlisted::UnlistedWords;
use crate::model::{Vectors, subword, unigram, unknown};
use crate::text;
use crate::text::Elongations;

impl Phrase<'_> {
    /// Adds the words that stand for a token which is not listed; none where no rule finds any.
    pub(super) fn resolve_unlisted(&mut self, position: u32, token: &str) {
        self.memory.token_keys.push(key_of_unlisted(token));
        if token.len() > TOKEN_BYTES {
            return;
        }
        if self.model.normalisation().elongations == Elongations::Shorten {
            for run in [2, 1] {
                if text::shortened(token, run, &mut self.memory.buffer)
                    && let Some(id) = self.vocabulary.lookup(&self.memory.buffer)
                {
                    return self.push(position, id, Found::Shortened);
                }
            }
        }
        match self.model.unlisted() {
            UnlistedWords::None => {}
            UnlistedWords::Fallback(rules, pieces) => {
                self.fall_back(rules, pieces.as_ref(), position, token);
            }
            UnlistedWords::NGrams { rule, dtype, rows, scales, kept } => {
                let (rows, scales) = (self.model.slice(rows), self.model.slice(scales));
                if let Some(table) = Vectors::new(*dtype, rows, scales, self.vectors.dims()) {
                    let kept = kept.as_ref().map(|kept| self.model.table(kept));
                    self.make_from_ngrams(rule, &table, kept, position, token);
                }
            }
            UnlistedWords::WordPiece { prefix } => {
                let vocabulary = self.vocabulary;
                let mut pieces = std::mem::take(&mut self.memory.pieces);
                pieces.clear();
                if subword::wordpieces(token, prefix, |p| vocabulary.lookup(p), &mut pieces) {
                    for &id in &pieces {
                        self.push(position, id, Found::Part);
                    }
                }
                self.memory.pieces = pieces;
            }
            UnlistedWords::Unigram { scale, scores } => {
                let scores: &[u64] = self.model.table(scores);
                self.push_scored_pieces(*scale, scores, position, token);
            }
        }
    }

    fn push_scored_pieces(&mut self, scale: Scale, scores: &[u64], position: u32, token: &str) {
        let vocabulary = self.vocabulary;
        let mut pieces = std::mem::take(&mut self.memory.pieces);
        let mut buffer = std::mem::take(&mut self.memory.buffer);
        pieces.clear();
        let known = |entry: &str| {
            let id = unigram::find(entry, &mut buffer, |name| vocabulary.lookup(name))?;
            Some((id, f64::from_bits(*scores.get(id as usize)?)))
        };
        unigram::pieces(token, scale, known, &mut pieces);
        for &id in &pieces {
            self.push(position, id, Found::Part);
        }
        (self.memory.pieces, self.memory.buffer) = (pieces, buffer);
    }

    fn fall_back(
        &mut self,
        rules: &Fallback,
        pieces: Option<&PieceTable>,
        position: u32,
        token: &str,
    ) {
        let vocabulary = self.vocabulary;
        let known = |word: &str| vocabulary.lookup(word);
        if let Some(id) = rules.stem(token, &mut self.memory.buffer, known) {
            return self.push(position, id, Found::Stem);
        }
        if rules.parts && token.contains('\'') {
            let before = self.memory.words.len();
            for id in token.split('\'').filter_map(|part| vocabulary.lookup(part)) {
                self.push(position, id, Found::Part);
            }
            if self.memory.words.len() > before {
                return;
            }
        }
        if let (Some(norm), Some(table)) = (rules.piece_norm, pieces)
            && self.make_from_pieces(&table.pieces(self.model), norm, position, token)
        {
            return;
        }
        if let Some(norm) = rules.hash_norm {
            let row = self.make(position, token, Found::Hash);
            unknown::hash_vector(token, norm, row);
        }
    }

    /// Whether the token has pieces that its vector could be made of.
    fn make_from_pieces(
        &mut self,
        pieces: &Pieces<'_>,
        norm: f32,
        position: u32,
        token: &str,
    ) -> bool {
        let mut cut = std::mem::take(&mut self.memory.pieces);
        cut.clear();
        pieces.cut(token, &mut cut);
        let mut made = !cut.is_empty();
        if made {
            let row = self.make(position, token, Found::Pieces);
            made = pieces.sum(&cut, norm, row);
            if !made {
                self.memory.words.pop();
                self.memory.made.truncate(self.memory.made.len() - self.vectors.dims());
            }
        }
        self.memory.pieces = cut;
        made
    }

    fn make_from_ngrams(
        &mut self,
        rule: &NGrams,
        table: &Vectors<'_>,
        kept: Option<&[u32]>,
        position: u32,
        token: &str,
    ) {
        let row_of = |bucket: u64| match kept {
            None => Some(bucket as u32),
            Some(kept) => kept.binary_search(&(bucket as u32)).ok().map(|row| row as u32),
        };
        let rows = || rule.ids(token.as_bytes()).filter_map(row_of);
        let count = rows().count();
        if count == 0 {
            return;
        }
        let made = self.make(position, token, Found::NGrams);
        for row in rows().filter_map(|row| table.row(row)) {
            vector::add_scaled(made, 1.0, row);
        }
        for value in made {
            *value /= count as f32;
        }
    }
}
