//! Word counts: read from a table, or counted in a corpus of the user.
//!
//! Either way the file is streamed; memory grows with the vocabulary, not with the file.

use cognate::model::{Counts, Vocabulary};
use cognate::text;
use cognate::text::{Normalisation, Tokens};
use cognate_files::progress::Progress;

use crate::readers::input::Input;
use crate::{PackError, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Documents {
    Line,
    /// Documents are separated by an empty line.
    Paragraph,
}

/// Reads a table with a word, a tab or spaces, and its count on each line. Lines without a count
/// are skipped and counted; the counts of a repeated word are added up.
pub fn of_table(
    mut input: Input,
    vocabulary: &Vocabulary<'_>,
    progress: &Progress,
) -> Result<Counts> {
    let mut occurrences = vec![0_u64; vocabulary.len()];
    let (mut tokens, mut smallest, mut skipped) = (0_u64, u64::MAX, 0);
    while let Some(line) = input.read_line()? {
        let Some((word, count)) = entry(line) else {
            skipped += 1;
            continue;
        };
        tokens = tokens.saturating_add(count);
        if count > 0 {
            smallest = smallest.min(count);
        }
        let id = vocabulary.lookup_bytes(word);
        if let Some(sum) = id.and_then(|id| occurrences.get_mut(id as usize)) {
            *sum = sum.saturating_add(count);
        }
        progress.follow(&input);
    }
    if tokens == 0 {
        return Err(PackError::NoCounts { path: input.path().to_owned() });
    }
    let mut counts = Counts::of_occurrences(occurrences, tokens, smallest as f64 / 2.0);
    counts.skipped_lines = skipped;
    Ok(counts)
}

/// Counts that the vector file contains. A word's share is relative to the listed words alone.
pub(crate) fn of_format(occurrences: Vec<u64>) -> Option<Counts> {
    let tokens = occurrences.iter().fold(0_u64, |sum, &count| sum.saturating_add(count));
    let smallest = occurrences.iter().copied().filter(|&count| count > 0).min()?;
    Some(Counts::of_occurrences(occurrences, tokens, smallest as f64 / 2.0))
}

/// Counts words in running text, tokenised by the model's own rules. Document frequencies give the
/// smooth idf `ln((1 + N) / (1 + df)) + 1`.
pub fn of_corpus(
    mut input: Input,
    separator: Documents,
    vocabulary: &Vocabulary<'_>,
    rules: &Normalisation,
    progress: &Progress,
) -> Result<Counts> {
    let mut occurrences = vec![0_u64; vocabulary.len()];
    let mut documents = vec![0_u32; vocabulary.len()];
    // The document in which each word last occurred, from 1, so that it counts once a document.
    let mut last_seen = vec![0_u64; vocabulary.len()];
    let (mut tokens_total, mut document, mut open) = (0_u64, 0_u64, false);
    let mut tokens = Tokens::new();
    while let Some(line) = input.read_line()? {
        let text = String::from_utf8_lossy(line);
        if text.trim().is_empty() {
            open = false;
            continue;
        }
        if separator == Documents::Line || !open {
            document = document.saturating_add(1);
            open = true;
        }
        text::tokenise(rules, &text, &mut tokens);
        for (token, _) in tokens.iter() {
            tokens_total = tokens_total.saturating_add(1);
            let Some(id) = vocabulary.lookup(token).map(|id| id as usize) else { continue };
            if let Some(sum) = occurrences.get_mut(id) {
                *sum = sum.saturating_add(1);
            }
            if let (Some(seen), Some(count)) = (last_seen.get_mut(id), documents.get_mut(id))
                && std::mem::replace(seen, document) != document
            {
                *count = count.saturating_add(1);
            }
        }
        progress.follow(&input);
    }
    if tokens_total == 0 {
        return Err(PackError::NoCounts { path: input.path().to_owned() });
    }
    let mut counts = Counts::of_documents(documents, document);
    (counts.occurrences, counts.tokens) = (Some(occurrences), Some(tokens_total));
    Ok(counts)
}

/// The word and count of a line, split at its last tab or space.
fn entry(line: &[u8]) -> Option<(&[u8], u64)> {
    let at = line.iter().rposition(|&byte| byte == b'\t' || byte == b' ')?;
    let (word, count) = (line.get(..at)?, line.get(at + 1..)?);
    let count = std::str::from_utf8(count).ok()?.parse().ok()?;
    let word = word.trim_ascii_end();
    (!word.is_empty()).then_some((word, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_tables() {
        assert_eq!(entry(b"the\t42"), Some((&b"the"[..], 42)));
        assert_eq!(entry(b"new york 7"), Some((&b"new york"[..], 7)));
        assert_eq!(entry("don’t\t1".as_bytes()), Some(("don’t".as_bytes(), 1)));
        for without in ["", "the", "the\t", "the\tx", "the\t-1", "\t5", "the\t1.5"] {
            assert_eq!(entry(without.as_bytes()), None, "{without:?}");
        }
    }
}
