//! How a word falls into pieces that have scores: of all ways to cut it, the one whose scores add up to
//! most (Kudo 2018, "Subword Regularization", section 3.1, by Viterbi's algorithm), with ties as the
//! tokenizers library breaks them.
//!
//! The word is cut with [`WORD_MARK`] before it, as SentencePiece writes the space that stood there.
//! Entries that begin with the mark begin a word. In a vocabulary they stand without it, so that a word
//! is found as it stands in a text; how all entries are named there is said by [`name`].

use std::borrow::Cow;

use crate::model::subword::LONGEST_WORD_BYTES;

/// The mark for the space before a word.
pub const WORD_MARK: char = '▁';
/// Prefix of entries that do not begin a word.
pub const INNER: &str = "##";
/// Bytes of the longest word with its mark.
const LONGEST_MARKED: usize = LONGEST_WORD_BYTES + WORD_MARK.len_utf8();
/// A character that is no entry costs this much more than the entry of the least score.
pub const UNKNOWN_PENALTY: f64 = 10.0;

/// Constants of the segmentation beside the entries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    /// Score of a character that is no entry.
    pub unknown: f64,
    /// Bytes of the longest entry.
    pub longest: usize,
}

/// Returns the name of an entry in the vocabulary. `whole`: the entry, as a word, is a single piece.
///
/// An entry that begins a word but would be cut keeps its mark: a word that is looked up must not be
/// found as such an entry.
pub fn name(entry: &str, whole: bool) -> Cow<'_, str> {
    match entry.strip_prefix(WORD_MARK) {
        Some(word) if whole && is_word(word) => Cow::Borrowed(word),
        Some(_) => Cow::Borrowed(entry),
        None => Cow::Owned(format!("{INNER}{entry}")),
    }
}

/// Finds an entry by its possible names.
pub fn find<T>(entry: &str, buffer: &mut String, look_up: impl Fn(&str) -> Option<T>) -> Option<T> {
    match entry.strip_prefix(WORD_MARK) {
        Some(word) if is_word(word) => look_up(word).or_else(|| look_up(entry)),
        Some(_) => look_up(entry),
        None => {
            buffer.clear();
            buffer.push_str(INNER);
            buffer.push_str(entry);
            look_up(buffer)
        }
    }
}

/// Whether an entry behind the mark cannot be confused with an entry within words.
fn is_word(word: &str) -> bool {
    !word.is_empty() && !word.starts_with(INNER) && !word.starts_with(WORD_MARK)
}

/// The best way to cut the word up to some byte.
#[derive(Clone, Copy)]
struct Node {
    score: f64,
    /// The beginning of its last piece; none if no segmentation reaches this byte yet.
    start: Option<usize>,
    /// The last piece; nothing for a character that is no entry.
    piece: Option<u32>,
}

/// Appends the pieces of a word to `out`; characters that are no entry are left out. `known` says the
/// number and the score of an entry. Nothing for a word of more than [`LONGEST_WORD_BYTES`].
pub fn pieces(
    word: &str,
    scale: Scale,
    mut known: impl FnMut(&str) -> Option<(u32, f64)>,
    out: &mut Vec<u32>,
) {
    if word.len() > LONGEST_WORD_BYTES {
        return;
    }
    let mut marked = String::with_capacity(LONGEST_MARKED);
    marked.push(WORD_MARK);
    marked.push_str(word);
    let mut nodes = [Node { score: 0.0, start: None, piece: None }; LONGEST_MARKED + 1];
    for (start, first) in marked.char_indices() {
        let before = nodes.get(start).map_or(0.0, |node| node.score);
        let mut reach = |end: usize, piece: Option<u32>, score: f64| {
            let score = before + score;
            if let Some(node) = nodes.get_mut(end)
                && (node.start.is_none() || score > node.score)
            {
                *node = Node { score, start: Some(start), piece };
            }
        };
        let rest = marked.split_at(start).1;
        let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8());
        let mut alone = false;
        for length in ends.take_while(|&length| length <= scale.longest) {
            if let Some((piece, score)) = known(rest.split_at(length).0) {
                reach(start + length, Some(piece), score);
                alone |= length == first.len_utf8();
            }
        }
        if !alone {
            reach(start + first.len_utf8(), None, scale.unknown);
        }
    }
    let before = out.len();
    let mut end = marked.len();
    while let Some(&Node { start: Some(start), piece, .. }) = nodes.get(end).filter(|_| end > 0) {
        out.extend(piece);
        end = start;
    }
    out.get_mut(before..).unwrap_or_default().reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRIES: [(&str, f64); 8] = [
        ("▁", -5.0),
        ("▁un", -3.0),
        ("able", -4.0),
        ("▁una", -4.0),
        ("b", -6.0),
        ("le", -3.0),
        ("▁unable", -9.5),
        ("a", -2.0),
    ];

    fn cut(word: &str) -> Vec<&'static str> {
        let known = |entry: &str| {
            let place = ENTRIES.iter().position(|(known, _)| *known == entry)?;
            Some((place as u32, ENTRIES[place].1))
        };
        let mut out = vec![7];
        pieces(word, Scale { unknown: -19.5, longest: 9 }, known, &mut out);
        out.iter().skip(1).map(|&piece| ENTRIES[piece as usize].0).collect()
    }

    #[test]
    fn the_pieces_whose_scores_add_up_to_most_are_taken() {
        assert_eq!(cut("unable"), ["▁un", "able"], "better than the whole word and than una b le");
        assert_eq!(cut("unäable"), ["▁un", "able"], "a character that is no entry is left out");
        assert_eq!(cut("a"), ["▁", "a"]);
        assert_eq!(cut("xyz"), ["▁"]);
        assert_eq!(cut(&"a".repeat(LONGEST_WORD_BYTES + 1)), [""; 0]);
        assert_eq!(cut(&"a".repeat(LONGEST_WORD_BYTES)).len(), LONGEST_WORD_BYTES + 1);
    }

    #[test]
    fn every_entry_is_found_by_its_name_and_words_only_where_they_are_whole() {
        let named = [("▁cat", true), ("s", false), ("▁", false), ("▁un", false), ("▁##x", true)];
        let names: Vec<_> = named.iter().map(|&(entry, whole)| name(entry, whole)).collect();
        assert_eq!(names, ["cat", "##s", "▁", "▁un", "▁##x"]);
        for (place, (entry, _)) in named.iter().enumerate() {
            let look_up = |name: &str| names.iter().position(|known| known == name);
            assert_eq!(find(entry, &mut String::new(), look_up), Some(place), "{entry}");
        }
    }
}
