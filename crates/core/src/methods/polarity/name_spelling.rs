//! Whether the letters of two words say that they name one thing: Turkey and Turkish, Zurich and Zürich. What the
//! words mean is not known here.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use crate::methods::polarity::name_list::{flag, kind};
use crate::methods::polarity::name_text::Token;

/// Whether the letters of two words say that they name one thing.
pub(super) fn are_spelled_alike(
    [name, vowel, _]: &[Vec<Box<str>>; 3],
    (short, x): (&Token, &str),
    (long, y): (&Token, &str),
) -> bool {
    let ends =
        |endings: &[Box<str>], rest: &[u8]| endings.iter().any(|ending| ending.as_bytes() == rest);
    let is_within = || x.len() >= 5 && y.len() >= 10 || x.len() >= 4 && (short.tag || long.tag);
    if is_within() && y.contains(x) {
        return true;
    }
    let texts = [x, y];
    let (x, y) = (x.as_bytes(), y.as_bytes());
    if x.len() < 4 || x.first() != y.first() {
        return false;
    }
    let people = short.kinds & long.kinds & kind::PERSON != 0;
    if let Some(rest) = y.strip_prefix(x)
        && (ends(name, rest) && !people
            || matches!(rest, b"s" | b"es")
            || short.id.is_none() && !long.is(flag::NONE))
    {
        return true;
    }
    if x.len() < 5 {
        return false;
    }
    if let [stem @ .., b'a' | b'e' | b'y' | b'o'] = x
        && let Some(rest) = y.strip_prefix(stem)
        && !people
        && ends(vowel, rest)
    {
        return true;
    }
    if short.id.is_some() && long.id.is_some() {
        return false;
    }
    let most = if x.len() >= 9 { 2 } else { 1 };
    strsim::osa_distance(texts[0], texts[1]) <= most
        || y.split_at_checked(x.len()).is_some_and(|(y, rest)| is_swap(x, y) && ends(name, rest))
}

/// Whether two words are the same without marks on their letters, or with two letters for one that
/// has them.
pub(super) fn are_plainly_same(one: &str, other: &str) -> bool {
    if one.is_ascii() && other.is_ascii() {
        return false;
    }
    let other = plain(other);
    plain(one).iter().any(|one| other.contains(one))
}

/// A word without marks on its letters, and with two letters for one that has them.
fn plain(word: &str) -> [String; 2] {
    let base: String = word.nfd().filter(|c| !is_combining_mark(*c)).collect();
    let base = base.replace('ß', "ss").replace('ø', "o").replace('æ', "ae");
    let pairs = [('ä', "ae"), ('ö', "oe"), ('ü', "ue"), ('ß', "ss"), ('ø', "oe")];
    [base, pairs.iter().fold(word.to_owned(), |word, (from, to)| word.replace(*from, to))]
}

/// Whether two neighbours in `x` have changed places in `y`.
fn is_swap(x: &[u8], y: &[u8]) -> bool {
    let mut differ = (0..x.len().min(y.len())).filter(|at| x[*at] != y[*at]);
    let (Some(a), Some(b), None) = (differ.next(), differ.next(), differ.next()) else {
        return false;
    };
    x.len() == y.len() && b == a + 1 && x[a] == y[b] && x[b] == y[a]
}
