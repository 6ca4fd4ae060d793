//! Contractions as the Penn Treebank splits them: `n't` and the six endings that begin with an
//! apostrophe. Byte strings in, positions out.

const ENDINGS: [&[u8]; 6] = [b"'s", b"'m", b"'d", b"'re", b"'ve", b"'ll"];
const NOT: &[u8] = b"n't";

/// Where the stem of a word ends: `do` in `don't`, `should` in `shouldn't've`. The stem is never
/// empty and never ends in an apostrophe.
pub(super) fn stem_end(word: &[u8]) -> usize {
    let mut end = word.len();
    while let Some(shorter) = without_ending(&word[..end]) {
        end = shorter;
    }
    end
}

/// The length of the ending at the beginning of `rest`, which `stem_end` cut off.
pub(super) fn ending_len(rest: &[u8]) -> usize {
    let endings = ENDINGS.iter().copied().chain([NOT]);
    let known = endings.filter(|ending| begins(rest, ending)).map(<[u8]>::len).max();
    known.unwrap_or(rest.len())
}

/// The length of an ending at the beginning of `text`, apostrophe first.
pub(super) fn lone_ending(text: &[u8]) -> Option<usize> {
    ENDINGS.iter().find(|ending| begins(text, ending)).map(|ending| ending.len())
}

fn without_ending(word: &[u8]) -> Option<usize> {
    if let Some(end) = cut(word, NOT) {
        return (end > 0 && word[end - 1] != b'\'').then_some(end);
    }
    ENDINGS.iter().find_map(|ending| cut(word, ending)).filter(|&end| end > 0)
}

fn cut(word: &[u8], ending: &[u8]) -> Option<usize> {
    let end = word.len().checked_sub(ending.len())?;
    word[end..].eq_ignore_ascii_case(ending).then_some(end)
}

fn begins(text: &[u8], ending: &[u8]) -> bool {
    text.get(..ending.len()).is_some_and(|start| start.eq_ignore_ascii_case(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(word: &str) -> Vec<&str> {
        let mut at = stem_end(word.as_bytes());
        let mut pieces = vec![&word[..at]];
        while at < word.len() {
            let next = at + ending_len(&word.as_bytes()[at..]);
            pieces.push(&word[at..next]);
            at = next;
        }
        pieces
    }

    #[test]
    fn contractions_split_from_the_end() {
        assert_eq!(split("don't"), ["do", "n't"]);
        assert_eq!(split("WE'LL"), ["WE", "'LL"]);
        assert_eq!(split("shouldn't've"), ["should", "n't", "'ve"]);
        assert_eq!(split("y'all'd've"), ["y'all", "'d", "'ve"]);
        assert_eq!(split("x'sn't"), ["x", "'s", "n't"]);
        for whole in ["n't", "o'neill", "rock'n'roll", "x'n't", "s"] {
            assert_eq!(split(whole), [whole]);
        }
    }
}
