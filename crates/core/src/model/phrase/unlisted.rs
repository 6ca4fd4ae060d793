//! What a token that is not listed becomes: the model's rules, tried one after another.

use cognate_kernels::vector;

use crate::model::phrase::met::{Met, Outcome};
use crate::model::phrase::{Found, Origin, Phrase, TOKEN_BYTES};
use crate::model::pieces::{PieceTable, Pieces};
use crate::model::subword::NGrams;
use crate::model::unigram::Scale;
use crate::model::unknown::Fallback;
use crate::model::unlisted::UnlistedWords;
use crate::model::{Vectors, subword, unigram, unknown};
use crate::text;
use crate::text::Elongations;

#[derive(Clone, Copy)]
pub(super) struct Unlisted<'t> {
    pub(super) token: u32,
    pub(super) text: &'t str,
    pub(super) key: u64,
}

impl Unlisted<'_> {
    fn found(&self, found: Found) -> Origin {
        Origin { token: self.token, found }
    }
}

impl Phrase<'_> {
    /// Adds the words for a token that is not listed: those that the thread found before, else those
    /// that the model's rules find; none if no rule finds any.
    pub(super) fn read_unlisted(&mut self, unlisted: Unlisted<'_>, met: &mut Met) {
        match met.find(unlisted.text, unlisted.key) {
            Some((found, Outcome::Words(words))) => {
                words.iter().for_each(|&id| self.push(unlisted.found(found), id));
            }
            Some((found, Outcome::Made(bytes, scale))) => {
                self.memory.made.bytes.extend_from_slice(bytes);
                self.memory.made.scales.push(scale);
                self.push_made(unlisted.found(found), unlisted.key);
            }
            None => {
                let before = self.memory.words.len();
                self.resolve(unlisted);
                self.remember(unlisted, before, met);
            }
        }
    }

    /// Remembers the words from `before` on.
    fn remember(&self, unlisted: Unlisted<'_>, before: usize, met: &mut Met) {
        let (words, made) = (&self.memory.words[before..], &self.memory.made);
        let (Some(origin), Some(&first)) = (self.memory.resolved.last(), words.first()) else {
            return;
        };
        let outcome = match (self.made_at(first), made.scales.last()) {
            (None, _) => Outcome::Words(words),
            (Some(at), Some(&scale)) => {
                Outcome::Made(&made.bytes[at * self.vectors.dims()..], scale)
            }
            // Rows that are not of bytes are large, and models that make them are rare.
            (Some(_), None) => return,
        };
        met.remember(unlisted.text, unlisted.key, origin.found, outcome);
    }

    fn resolve(&mut self, unlisted: Unlisted<'_>) {
        let token = unlisted.text;
        if token.len() > TOKEN_BYTES {
            return;
        }
        if self.model.normalisation().elongations == Elongations::Shorten {
            for run in [2, 1] {
                if !text::shortened(token, run, &mut self.memory.buffer) {
                    break;
                }
                if let Some(id) = self.vocabulary.lookup(&self.memory.buffer) {
                    return self.push(unlisted.found(Found::Shortened), id);
                }
            }
        }
        match self.model.unlisted() {
            UnlistedWords::None => {}
            UnlistedWords::Fallback(rules, pieces) => {
                self.fall_back(rules, pieces.as_ref(), unlisted);
            }
            UnlistedWords::NGrams { rule, dtype, rows, scales, kept } => {
                let (rows, scales) = (self.model.slice(rows), self.model.slice(scales));
                if let Some(table) = Vectors::new(*dtype, rows, scales, self.vectors.dims()) {
                    let kept = kept.as_ref().map(|kept| self.model.table(kept));
                    self.make_from_ngrams(rule, &table, kept, unlisted);
                }
            }
            UnlistedWords::WordPiece { prefix } => {
                let vocabulary = self.vocabulary;
                let mut pieces = std::mem::take(&mut self.memory.pieces);
                pieces.clear();
                if subword::wordpieces(token, prefix, |p| vocabulary.lookup(p), &mut pieces) {
                    for &id in &pieces {
                        self.push(unlisted.found(Found::Part), id);
                    }
                }
                self.memory.pieces = pieces;
            }
            UnlistedWords::Unigram { scale, scores } => {
                let scores: &[u64] = self.model.table(scores);
                self.push_scored_pieces(*scale, scores, unlisted);
            }
        }
    }

    fn push_scored_pieces(&mut self, scale: Scale, scores: &[u64], unlisted: Unlisted<'_>) {
        let vocabulary = self.vocabulary;
        let mut pieces = std::mem::take(&mut self.memory.pieces);
        let mut buffer = std::mem::take(&mut self.memory.buffer);
        pieces.clear();
        let known = |entry: &str| {
            let id = unigram::find(entry, &mut buffer, |name| vocabulary.lookup(name))?;
            Some((id, f64::from_bits(*scores.get(id as usize)?)))
        };
        unigram::pieces(unlisted.text, scale, known, &mut pieces);
        for &id in &pieces {
            self.push(unlisted.found(Found::Part), id);
        }
        (self.memory.pieces, self.memory.buffer) = (pieces, buffer);
    }

    fn fall_back(&mut self, rules: &Fallback, pieces: Option<&PieceTable>, unlisted: Unlisted<'_>) {
        let (vocabulary, token) = (self.vocabulary, unlisted.text);
        let known = |word: &str| vocabulary.lookup(word);
        if let Some(id) = rules.stem(token, &mut self.memory.buffer, known) {
            return self.push(unlisted.found(Found::Stem), id);
        }
        if rules.parts && token.contains('\'') {
            let before = self.memory.words.len();
            for id in token.split('\'').filter_map(|part| vocabulary.lookup(part)) {
                self.push(unlisted.found(Found::Part), id);
            }
            if self.memory.words.len() > before {
                return;
            }
        }
        if let (Some(norm), Some(table)) = (rules.piece_norm, pieces)
            && self.make_from_pieces(&table.pieces(self.model), norm, unlisted)
        {
            return;
        }
        if let Some(norm) = rules.hash_norm {
            self.make(unlisted.found(Found::Hash), unlisted.key, |row| {
                unknown::hash_vector(token, norm, row);
                true
            });
        }
    }

    /// Whether the token has pieces that its vector could be made of.
    fn make_from_pieces(&mut self, pieces: &Pieces<'_>, norm: f32, unlisted: Unlisted<'_>) -> bool {
        let mut cut = std::mem::take(&mut self.memory.pieces);
        cut.clear();
        pieces.cut(unlisted.text, &mut cut);
        let fill = |row: &mut [f32]| pieces.sum(&cut, norm, row);
        let made = !cut.is_empty() && self.make(unlisted.found(Found::Pieces), unlisted.key, fill);
        self.memory.pieces = cut;
        made
    }

    fn make_from_ngrams(
        &mut self,
        rule: &NGrams,
        table: &Vectors<'_>,
        kept: Option<&[u32]>,
        unlisted: Unlisted<'_>,
    ) {
        let row_of = |bucket: u64| match kept {
            None => Some(bucket as u32),
            Some(kept) => kept.binary_search(&(bucket as u32)).ok().map(|row| row as u32),
        };
        let rows = || rule.ids(unlisted.text.as_bytes()).filter_map(row_of);
        let count = rows().count();
        if count == 0 {
            return;
        }
        self.make(unlisted.found(Found::NGrams), unlisted.key, |made| {
            for row in rows().filter_map(|row| table.row(row)) {
                vector::add_scaled(made, 1.0, row);
            }
            made.iter_mut().for_each(|value| *value /= count as f32);
            true
        });
    }
}
