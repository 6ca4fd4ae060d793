//! How a word is written as a token: case, accents, apostrophes, digits, last letters. It works
//! on the end of the arena, where the word has just been put, and knows no other words.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{decompose_canonical, is_combining_mark};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory};

use super::normalisation::{Accents, Case, Contractions, Elongations, Normalisation, Numbers};

const DOT_ABOVE: char = '\u{307}';

/// Appends a clean word, with case, accents, apostrophes and digits changed as the rules say.
pub(super) fn spell(rules: &Normalisation, word: &str, arena: &mut String, scratch: &mut String) {
    let at = arena.len();
    fold(rules, word, arena);
    let drops_marks = rules.contractions == Contractions::DropMark && arena[at..].contains('\'');
    let hides_digits = rules.numbers == Numbers::Hashes && arena[at..].contains(char::is_numeric);
    if !drops_marks && !hides_digits {
        return;
    }
    scratch.clear();
    scratch.push_str(&arena[at..]);
    arena.truncate(at);
    // Letters that lose the apostrophe between them can compose, as Korean ones do.
    let kept = scratch.chars().filter(|&c| !(drops_marks && c == '\'')).nfc();
    if hides_digits { hide_digits(kept, arena) } else { arena.extend(kept) }
}

/// Appends text in the case and with the accents that the rules want.
pub(super) fn fold(rules: &Normalisation, text: &str, arena: &mut String) {
    let at = arena.len();
    let (lower, strip) = (rules.case == Case::Lower, rules.accents == Accents::Strip);
    if text.is_ascii() {
        arena.push_str(text);
        if lower {
            arena[at..].make_ascii_lowercase();
        }
        return;
    }
    if !strip && (!lower || text.chars().all(is_lower)) {
        arena.push_str(text);
        return;
    }
    // Decomposed letters are lower-cased and composed again, so that a letter with marks comes
    // out the same however it was written.
    let mut on_i = false;
    let kept = |c: &char| {
        on_i = *c == 'i' || (on_i && is_combining_mark(*c));
        let is_dot = lower && on_i && *c == DOT_ABOVE;
        let is_accent = strip && c.general_category() == GeneralCategory::NonspacingMark;
        !is_dot && !is_accent
    };
    if lower {
        arena.extend(text.nfd().flat_map(char::to_lowercase).filter(kept).nfc());
    } else {
        arena.extend(text.nfd().filter(kept).nfc());
    }
}

/// Whether a character stays as it is when its word is lower-cased.
fn is_lower(c: char) -> bool {
    if c.is_ascii() {
        return !c.is_ascii_uppercase();
    }
    let mut lower = c != DOT_ABOVE && is_own_lower(c);
    // A letter without a lower case of its own can have one under its marks.
    decompose_canonical(c, |c| lower &= is_own_lower(c));
    lower
}

fn is_own_lower(c: char) -> bool {
    c.to_lowercase().eq([c])
}

/// Whether a letter is a capital that has a lower-case form.
pub(super) fn is_capital(c: char) -> bool {
    c.is_uppercase() && !is_own_lower(c)
}

/// Replaces runs of two or more digits by `#`. A `#` in a word is such a run already.
fn hide_digits(word: impl Iterator<Item = char>, arena: &mut String) {
    let mut single = None;
    let mut run = 0;
    for c in word {
        if c.is_numeric() || c == '#' {
            run += 1;
            match run {
                1 => single = Some(c),
                _ => arena.push_str(if single.take().is_some() { "##" } else { "#" }),
            }
        } else {
            run = 0;
            arena.extend(single.take());
            arena.push(c);
        }
    }
    arena.extend(single);
}

/// Finishes a spelled word, the part of `arena` from `from` on: cuts an elongated end to one letter and
/// writes a last sigma as `ς`, where the rules want it. Says whether the word was elongated.
pub(super) fn finish(rules: &Normalisation, arena: &mut String, from: usize) -> bool {
    let tagged = rules.elongations == Elongations::Tag;
    let cut = tagged.then(|| elongation_end(&arena[from..])).flatten();
    if let Some(cut) = cut {
        arena.truncate(from + cut);
    }
    if rules.case == Case::Lower {
        end_sigma(arena, from);
    }
    cut.is_some()
}

/// The end of an elongated word without its repetition: after the first of three or more equal last
/// letters.
fn elongation_end(word: &str) -> Option<usize> {
    let last = word.chars().next_back().filter(|c| c.is_alphabetic())?;
    let is_sigma = |c| matches!(c, 'σ' | 'ς');
    let stem = word.trim_end_matches(|c| c == last || (is_sigma(c) && is_sigma(last)));
    let run = word.len() - stem.len();
    (run >= 3 * last.len_utf8() && !word.contains('\'')).then(|| stem.len() + last.len_utf8())
}

/// Writes the last sigma of a lower-cased word, the part of `arena` from `from` on, as `ς`. A
/// letter must stand before it: `σ` alone is the name of the letter.
fn end_sigma(arena: &mut String, from: usize) {
    if arena[from..].strip_suffix('σ').is_some_and(|stem| stem.contains(char::is_alphabetic)) {
        arena.pop();
        arena.push('ς');
    }
}

/// Writes `word` into `out` with every run of three or more of a letter cut to `run` letters, and
/// says whether there was such a run to cut.
///
/// For the look-up of unknown words: `sooo` is tried as `soo`, then as `so`.
///
/// ```
/// let mut out = String::new();
/// assert!(cognate::text::shortened("goooaaal", 1, &mut out));
/// assert_eq!(out, "goal");
/// assert!(!cognate::text::shortened("good", 1, &mut out));
/// ```
pub fn shortened(word: &str, run: usize, out: &mut String) -> bool {
    out.clear();
    let bytes = word.as_bytes();
    if word.is_ascii()
        && !bytes.windows(3).any(|three| three[0] == three[1] && three[1] == three[2])
    {
        return false;
    }
    let mut rest = word;
    while let Some(c) = rest.chars().next() {
        let after = rest.trim_start_matches(c);
        let bytes = rest.len() - after.len();
        let len = bytes / c.len_utf8();
        let kept = if len >= 3 && c.is_alphabetic() { len.min(run) } else { len };
        out.push_str(&rest[..kept * c.len_utf8()]);
        rest = after;
    }
    out.len() != word.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortening_cuts_runs_of_letters_only() {
        let mut out = String::new();
        let mut short = |word, run| shortened(word, run, &mut out).then(|| out.clone());
        assert_eq!(short("sooo", 2).as_deref(), Some("soo"));
        assert_eq!(short("sooo", 1).as_deref(), Some("so"));
        assert_eq!(short("yeeesss", 1).as_deref(), Some("yes"));
        assert_eq!(short("ñññam", 2).as_deref(), Some("ññam"));
        assert_eq!(short("1000", 1), None, "digits are not letters");
        assert_eq!(short("committee", 1), None, "two in a row are how words are written");
        assert_eq!(short("sooo", 3), None);
        assert_eq!(short("", 1), None);
    }

    #[test]
    fn every_character_is_folded_once_and_for_all() {
        let rules = Normalisation::preset("plain").unwrap();
        let bert = Normalisation::preset("bert").unwrap();
        let (mut once, mut twice) = (String::new(), String::new());
        for c in '\u{80}'..=char::MAX {
            let clean: String = std::iter::once(c).nfkc().collect();
            for rules in [&rules, &bert] {
                once.clear();
                twice.clear();
                fold(rules, &clean, &mut once);
                assert!(clean.len() > 4 * c.len_utf8() || once.len() <= 4 * c.len_utf8());
                assert!(once.nfkc().eq(once.chars()), "{c:?} gives {once:?}");
                fold(rules, &once, &mut twice);
                assert_eq!(once, twice, "{c:?}");
            }
        }
    }
}
