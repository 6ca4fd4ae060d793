//! Ranks the same candidates for several texts: each candidate is looked up once, and its vector is
//! made once if the method has vectors.

use crate::engine::rank::Boosts;
use crate::engine::rank::best::best_of_bounded;
use crate::engine::rank::panel::Panel;
use crate::engine::rank::session::Reader;
use crate::engine::workspace::Workspace;
use crate::engine::{
    Engine, Place, Query, QueryError, RankOptions, Ranked, Ranking, Reason, finite,
};
use crate::methods::{Parts, Posts};
use crate::model::Phrase;

/// Bytes of the candidates that are looked up at once. A text is prepared once for them, and no
/// more than these keep the vectors of unlisted words in memory, which may be a kilobyte each.
const BLOCK_BYTES: usize = 64 << 10;

pub(super) struct AskedText<'e> {
    pub(super) phrase: Phrase<'e>,
    /// Whether it has what the method needs.
    pub(super) known: bool,
    pub(super) truncated: bool,
}

impl Engine {
    /// Rankings of the same candidates for each of several texts, each as [`Engine::rank_best`]
    /// answers, bit for bit. `go_on` is called before each text and block of candidates; once it
    /// returns false, the answer is incomplete.
    pub(super) fn rank_each<T: AsRef<str>>(
        &self,
        asked: &[AskedText<'_>],
        candidates: &[T],
        boosts: &Boosts<'_>,
        options: &RankOptions,
        mut go_on: impl FnMut() -> bool,
    ) -> Result<Vec<Ranking>, QueryError> {
        let query = &options.query;
        let mut panel = Panel::new(self, query)?;
        let start = |one: &AskedText<'_>| Ranking {
            measure: panel.measure,
            query_truncated: one.truncated,
            query_known: query.told_share(&one.phrase),
            ..Ranking::default()
        };
        let mut rankings: Vec<Ranking> = asked.iter().map(start).collect();
        let known = asked.iter().filter(|one| one.known).count();
        let mut workspace = Workspace::with_memory(&self.model);
        let mut reader = Reader::new(self, query, panel.info);
        // For methods that score candidates as a list, only the tokens are stored.
        let (mut posts, mut places) = (Posts::default(), Vec::new());
        for (first, block) in blocks(candidates) {
            let mut read = Ranking::default();
            reader.read_block(block, first, true, &mut workspace, &mut read)?;
            let (phrases, indexes) = reader.read_last();
            if panel.scores_lists() {
                phrases.iter().for_each(|phrase| posts.push(phrase));
                places.extend_from_slice(indexes);
            } else {
                panel.fill(phrases);
            }
            let parts = panel.prepared_parts(phrases, known, workspace.scratch());
            for (one, ranking) in asked.iter().zip(&mut rankings) {
                if !go_on() {
                    return Ok(rankings);
                }
                ranking.note(&read, first..first + block.len(), one.known);
                if one.known && !panel.scores_lists() {
                    let scores =
                        RankedBlock { panel: &panel, parts: parts.as_ref(), options, boosts };
                    scores.add(&one.phrase, (phrases, indexes), ranking, &mut workspace)?;
                }
            }
            if let Some(parts) = parts {
                parts.give_back(workspace.scratch());
            }
        }
        reader.end(&mut workspace);
        let known = asked.iter().zip(&mut rankings).filter(|(one, _)| one.known);
        for (one, ranking) in known.filter(|_| !places.is_empty()) {
            if !go_on() {
                break;
            }
            let scored = RankedBlock { panel: &panel, parts: None, options, boosts };
            scored.add_list(&one.phrase, (&posts, &places), ranking, &mut workspace)?;
        }
        Ok(rankings)
    }

    pub(super) fn read_asked<Q: AsRef<str>>(
        &self,
        texts: &[Q],
        query: &Query,
        place: impl Fn(usize) -> Place,
    ) -> Result<Vec<AskedText<'_>>, QueryError> {
        let read = |(index, text): (usize, &Q)| {
            let mut phrase = Phrase::new(&self.model);
            let truncated = self.read(&mut phrase, text.as_ref(), query, place(index))?;
            let known = query.ranks_for(&phrase, query.method.info());
            if !known {
                query.accepts_unknown(place(index))?;
            }
            Ok(AskedText { phrase, known, truncated })
        };
        texts.iter().enumerate().map(read).collect()
    }
}

/// Candidates in blocks that are looked up at once, each with the index of its first.
pub(super) fn blocks<T: AsRef<str>>(candidates: &[T]) -> impl Iterator<Item = (usize, &[T])> {
    let mut first = 0;
    std::iter::from_fn(move || {
        let rest = candidates.get(first..).filter(|rest| !rest.is_empty())?;
        let mut bytes = 0;
        let fits = rest.iter().take_while(|candidate| {
            let before = bytes;
            bytes += candidate.as_ref().len();
            before == 0 || bytes <= BLOCK_BYTES
        });
        let length = fits.count().max(1);
        let begun = first;
        first += length;
        Some((begun, rest.get(..length)?))
    })
}

impl Ranking {
    /// Notes what was read of these candidates; if the query has no known word, none of them can be
    /// scored.
    pub(super) fn note(&mut self, read: &Self, indexes: std::ops::Range<usize>, known: bool) {
        self.truncated.extend(&read.truncated);
        self.known.extend(&read.known);
        self.counts.add(read.counts);
        if known {
            self.unscored.extend(&read.unscored);
            self.reasons.extend(&read.reasons);
            return;
        }
        let mut reasons = read.unscored.iter().zip(&read.reasons).peekable();
        for index in indexes {
            let own = reasons.next_if(|(unscored, _)| **unscored == index);
            self.unscored.push(index);
            self.reasons.push(own.map_or(Reason::Unknown, |(_, &reason)| reason));
        }
    }
}

/// A block of candidates that is ranked for one text.
struct RankedBlock<'b, 'e> {
    panel: &'b Panel<'e>,
    /// Data made from its candidates once, if they are compared with several texts.
    parts: Option<&'b Parts<'b>>,
    options: &'b RankOptions,
    boosts: &'b Boosts<'b>,
}

impl RankedBlock<'_, '_> {
    /// Adds the wanted candidates of the block to a ranking. If only the best are wanted and the method
    /// knows bounds of its scores, skips candidates that cannot be among the best.
    fn add(
        &self,
        one: &Phrase<'_>,
        (phrases, indexes): (&[Phrase<'_>], &[usize]),
        ranking: &mut Ranking,
        workspace: &mut Workspace<'_>,
    ) -> Result<(), QueryError> {
        let (panel, scratch) = (self.panel, workspace.scratch());
        let top_k = self.options.top_k.unwrap_or(usize::MAX);
        let full = ranking.results.len() >= top_k;
        let selective = full || top_k < phrases.len() || self.options.min_score.is_some();
        let mut scores = Vec::new();
        let mut visitor = panel.visitor(one, scratch);
        let score_of = |index: usize, score: f32| {
            finite(self.boosts.apply(index, finite(score, panel.info)?), panel.info)
        };
        if selective && visitor.bounds(panel, phrases, &mut scores, scratch)? {
            let bounds = indexes.iter().zip(&scores).enumerate();
            let bounds = bounds.map(|(place, (&index, &bound))| {
                Ok(Ranked { index: place, score: score_of(index, bound)? })
            });
            let mut bounds = bounds.collect::<Result<Vec<_>, QueryError>>()?;
            bounds.sort_unstable_by(Ranked::order);
            // Scores below the last of the best so far are not needed.
            let last = ranking.results.last().filter(|_| full).map(|last| last.score);
            let options =
                RankOptions { min_score: last.or(self.options.min_score), ..*self.options };
            let (best, scored) = best_of_bounded(&bounds, &options, |place| {
                let (Some(phrase), Some(&index)) = (phrases.get(place), indexes.get(place)) else {
                    return Ok(0.0);
                };
                score_of(index, visitor.score_one(panel, phrase, scratch)?)
            })?;
            let index = |place: usize| indexes.get(place).copied().unwrap_or_default();
            let found = best.into_iter().map(|one| Ranked { index: index(one.index), ..one });
            ranking.results.extend(found);
            ranking.scored += scored;
        } else {
            visitor.score_prepared(panel, phrases, self.parts, &mut scores, scratch)?;
            for (&index, &score) in indexes.iter().zip(&scores) {
                ranking.results.push(Ranked { index, score: score_of(index, score)? });
            }
            ranking.scored += scores.len();
        }
        visitor.leave(scratch);
        ranking.order(self.options);
        Ok(())
    }

    /// Adds the results of candidates scored as a list; `indexes` are in the same order.
    fn add_list(
        &self,
        one: &Phrase<'_>,
        (posts, indexes): (&Posts, &[usize]),
        ranking: &mut Ranking,
        workspace: &mut Workspace<'_>,
    ) -> Result<(), QueryError> {
        let (scratch, mut scores) = (workspace.scratch(), Vec::new());
        let mut visitor = self.panel.visitor(one, scratch);
        visitor.score_list(self.panel, posts, &mut scores)?;
        for (&index, &score) in indexes.iter().zip(&scores) {
            let score = finite(self.boosts.apply(index, score), self.panel.info)?;
            ranking.results.push(Ranked { index, score });
        }
        ranking.scored += scores.len();
        visitor.leave(scratch);
        ranking.order(self.options);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_bounded_by_bytes_and_leave_nothing_out() {
        let long = "x".repeat(BLOCK_BYTES);
        for texts in [vec![], vec!["a"; 10], vec![long.as_str(); 3], vec!["a", &long, "", "b"]] {
            let found: Vec<(usize, &[&str])> = blocks(&texts).collect();
            let joined: Vec<&str> = found.iter().flat_map(|(_, block)| *block).copied().collect();
            assert_eq!(joined, texts);
            let mut next = 0;
            for (first, block) in found {
                assert_eq!(first, next);
                next += block.len();
                let bytes: usize = block.iter().map(|text| text.len()).sum();
                assert!(block.len() == 1 || bytes <= 2 * BLOCK_BYTES);
            }
        }
    }
}
