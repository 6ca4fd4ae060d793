//! The spans of a document that match the query, as in Cohere's `relevant_spans`: from the words'
//! shares of the score, as in `/explain`.

use cognate::engine::{ExplainedWord, Explanation};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::compatible::input::Whole;

/// The least share of a span by default, as in Cohere's dialect.
const THRESHOLD: f32 = 0.1;

/// Whether and which spans are wanted.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
pub(super) struct RelevantSpans {
    /// `enabled`, or `disabled`.
    mode: Mode,
    /// The least share of a span; 0.1 without one.
    threshold: Option<f32>,
    /// Maximum number of spans for each document.
    max_spans: Option<Whole>,
}

/// Whether spans are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Mode {
    /// Spans are returned.
    Enabled,
    /// No spans are returned.
    Disabled,
}

/// A stretch of a document.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub(super) struct Span {
    /// The index of the first character.
    start: usize,
    /// The index after the last character.
    end: usize,
    /// The part of the document's score that the words of this span add.
    score: f32,
}

impl RelevantSpans {
    pub(super) fn enabled(&self) -> bool {
        self.mode == Mode::Enabled
    }

    /// The spans of a document whose score was explained, the largest share first.
    pub(super) fn of(&self, explained: &Explanation, document: &str) -> Vec<Span> {
        let least = self.threshold.unwrap_or(THRESHOLD);
        let most = self.max_spans.map_or(usize::MAX, |Whole(most)| most);
        spans(&explained.other, document, least, most)
    }
}

/// Spans of neighbouring words that each add an even share or the requested share: at most `most`
/// spans, each with at least `least` of the document's share.
fn spans(words: &[ExplainedWord], document: &str, least: f32, most: usize) -> Vec<Span> {
    let shares: Vec<f32> = words.iter().map(|word| word.share.unwrap_or(0.0).max(0.0)).collect();
    let sum: f32 = shares.iter().sum();
    if sum <= 0.0 {
        return Vec::new();
    }
    // Equal words must not fall short of their own mean by a rounding.
    let even = sum / words.len() as f32 * (1.0 - f32::EPSILON * words.len() as f32);
    let telling = even.min(least * sum);
    let mut found: Vec<(usize, Span)> = Vec::new();
    for (place, (word, &share)) in words.iter().zip(&shares).enumerate() {
        if share < telling || share <= 0.0 {
            continue;
        }
        let [start, end] = word.span.map(|at| at as usize);
        match found.last_mut() {
            Some((last, span)) if *last + 1 == place => {
                *last = place;
                span.end = span.end.max(end);
                span.score += share;
            }
            _ => found.push((place, Span { start, end, score: share })),
        }
    }
    let mut spans: Vec<Span> = found.into_iter().map(|(_, span)| span).collect();
    spans.iter_mut().for_each(|span| span.score = (span.score / sum).min(1.0));
    spans.retain(|span| span.score >= least);
    spans.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.start.cmp(&other.start)));
    spans.truncate(most);
    in_characters(&mut spans, document);
    spans
}

/// Converts byte offsets to character offsets, in one pass.
fn in_characters(spans: &mut [Span], document: &str) {
    let mut ends: Vec<&mut usize> =
        spans.iter_mut().flat_map(|span| [&mut span.start, &mut span.end]).collect();
    ends.sort_unstable();
    let mut characters = document.char_indices().map(|(at, _)| at).peekable();
    let mut passed = 0;
    for end in ends {
        while characters.next_if(|&at| at < *end).is_some() {
            passed += 1;
        }
        *end = passed;
    }
}

#[cfg(test)]
mod tests {
    use cognate::model::phrase::Found;

    use super::*;

    fn word(token: &str, start: u32, share: f32) -> ExplainedWord {
        ExplainedWord {
            token: token.to_owned(),
            span: [start, start + token.len() as u32],
            word: None,
            found: Found::Listed,
            pieces: Vec::new(),
            idf: None,
            norm: 1.0,
            share: Some(share),
        }
    }

    #[test]
    fn telling_neighbours_are_one_span_counted_in_characters() {
        let document = "Über den Dächern bebt die Erde";
        let words = [
            word("Über", 0, 0.01),
            word("den", 6, 0.02),
            word("Dächern", 10, -0.02),
            word("bebt", 19, 0.2),
            word("die", 24, 0.17),
            word("Erde", 28, 0.1),
        ];
        let found = spans(&words, document, 0.1, 9);
        assert_eq!(found.len(), 1);
        let text: String =
            document.chars().skip(found[0].start).take(found[0].end - found[0].start).collect();
        assert_eq!(text, "bebt die Erde");
        assert!((found[0].score - 0.94).abs() < 1e-6, "{}", found[0].score);
    }

    #[test]
    fn words_that_add_nothing_have_no_spans_and_equal_ones_are_one() {
        assert!(spans(&[word("a", 0, 0.0), word("b", 2, -0.1)], "a b", 0.0, 9).is_empty());
        let all =
            spans(&[word("a", 0, 0.1), word("b", 2, 0.1), word("c", 4, 0.1)], "a b c", 0.1, 9);
        assert_eq!((all.len(), all[0].start, all[0].end), (1, 0, 5));
    }
}
