//! Lines scored by a job on the pool: as many as it gets done in half its time, so that costly lines
//! take as many jobs as they need.

use crate::engine;
use crate::engine::Counts;
use crate::engine::Reason;
use crate::http::api::similarity_stream::Stream;
use crate::http::api::similarity_stream::line::Scored;
use crate::http::api::similarity_stream::line::fail;
use crate::http::api::similarity_stream::line::parse;
use crate::http::api::similarity_stream::lines::Line;
use crate::http::error::ApiError;
use crate::http::request::cost::estimate;
use crate::http::request::fields::Text;
use crate::http::work::pool::JobContext;
use crate::http::work::pool::items_per_part;

/// The answers to some lines.
#[derive(Default)]
pub(super) struct Scores {
    /// A line each.
    pub(super) answer: Vec<u8>,
    /// How many.
    pub(super) lines: usize,
    /// Those among them that have a score.
    pub(super) scored: usize,
    /// What was read for them.
    pub(super) counts: Counts,
}

/// A line read: both texts, or what is wrong with it.
type Parsed<'b> = Result<(Text<'b>, Text<'b>), ApiError>;

impl Stream {
    /// The answers to the first of the lines, at least one.
    pub(super) fn score(&self, lines: &[Line], work: &JobContext) -> Result<Scores, ApiError> {
        work.check()?;
        let parsed: Vec<Parsed<'_>> = lines.iter().map(parse).collect();
        let estimates = parsed.iter().flatten().map(|(a, b)| {
            let multiplications = self.resolved.multiplications(a.as_ref(), b.as_ref());
            estimate(a.as_ref().len() + b.as_ref().len(), multiplications)
        });
        let per_part = items_per_part(lines.len(), estimates.sum());
        let answer = Vec::with_capacity(lines.len() * 24);
        let mut scores = Scores { answer, ..Scores::default() };
        for (lines, parsed) in lines.chunks(per_part).zip(parsed.chunks(per_part)) {
            if scores.lines > 0 && work.is_half_over() {
                break;
            }
            self.score_part(lines, parsed, work, &mut scores)?;
        }
        Ok(scores)
    }

    /// Adds the answers to some lines that were parsed.
    fn score_part(
        &self,
        lines: &[Line],
        parsed: &[Parsed<'_>],
        work: &JobContext,
        scores: &mut Scores,
    ) -> Result<(), ApiError> {
        let engine = &self.resolved.model.engine;
        let pairs: Vec<(&Text<'_>, &Text<'_>)> =
            parsed.iter().filter_map(|pair| pair.as_ref().ok()).map(|(a, b)| (a, b)).collect();
        // Mostly all pairs are sound; one that is not spoils the batch, which is then scored singly.
        let together = engine.similarity(&pairs, &self.resolved.query).ok();
        let mut place = 0;
        for (line, pair) in lines.iter().zip(parsed) {
            let (a, b) = match pair {
                Ok(pair) => pair,
                Err(error) => {
                    fail(&mut scores.answer, line.number, error);
                    continue;
                }
            };
            let scored = match &together {
                Some(all) => Ok(Scored {
                    score: all.scores.get(place).copied().unwrap_or(0.0),
                    unscored: all.unscored.binary_search(&place).is_ok(),
                    reason: reason_of(all, place),
                    truncated: all.truncated.binary_search(&place).is_ok(),
                    related: None,
                }),
                None => {
                    work.check()?;
                    engine.similarity(&[(a, b)], &self.resolved.query).map(|one| {
                        scores.counts.add(one.counts);
                        Scored {
                            score: one.scores.first().copied().unwrap_or(0.0),
                            unscored: !one.unscored.is_empty(),
                            reason: reason_of(&one, 0),
                            truncated: !one.truncated.is_empty(),
                            related: None,
                        }
                    })
                }
            };
            place += 1;
            match scored {
                Ok(mut scored) => {
                    scored.related = self.cutoff.map(|cutoff| cutoff.is_reached_by(scored.score));
                    scored.write(&mut scores.answer);
                    scores.scored += 1;
                }
                Err(error) => {
                    fail(&mut scores.answer, line.number, &ApiError::from(error).of_one_pair());
                }
            }
        }
        scores.counts.add(together.map_or(Counts::default(), |all| all.counts));
        scores.lines += lines.len();
        Ok(())
    }
}

/// Why the pair in this place has no score.
fn reason_of(scores: &engine::Scores, place: usize) -> Option<Reason> {
    let at = scores.unscored.binary_search(&place).ok()?;
    scores.reasons.get(at).copied()
}
