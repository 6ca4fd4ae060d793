//! What stands around a headline and is not part of it: who publishes it, behind its last dash or bar, and a
//! label in capitals before its first colon. How both are set is known here, not one name of them.

use std::ops::Range;

use unicode_normalization::char::is_combining_mark;

use super::classes::looked;
use super::normalisation::{Bylines, Normalisation, Urls};

/// The fewest words of a headline: of fewer nothing is left out.
const MIN: usize = 3;
/// The most words of a byline, and of a label.
const BYLINE: usize = 4;
const LABEL: usize = 2;
/// The most letters of a small word between those of a name: Times *of* India.
const JOINER: usize = 3;

/// The part of a text that is read.
pub(super) fn headline(rules: &Normalisation, text: &str) -> Range<usize> {
    if rules.bylines == Bylines::Keep {
        return 0..text.len();
    }
    let start = label(text).unwrap_or(0);
    let Some(least) = behind_words(&text[start..]) else { return 0..text.len() };
    let least = text.len() - least.len();
    let mut end = text.len();
    while let Some(cut) = byline(rules, &text[..end]).filter(|&cut| cut >= least) {
        end = cut;
    }
    start..end
}

/// What stands behind the words that a headline needs at least.
fn behind_words(text: &str) -> Option<&str> {
    looked(text.len());
    (0..MIN).try_fold(text, |rest, _| {
        let word = &rest[rest.find(char::is_alphanumeric)?..];
        Some(word.trim_start_matches(|c: char| !c.is_whitespace()))
    })
}

/// The end of the label that a text begins with; a text all in capitals has none.
fn label(text: &str) -> Option<usize> {
    looked(text.len());
    let (name, rest) = text.split_once(':')?;
    let is_set = |word: &str| {
        letters(word) > 1 && word.chars().all(|c| c.is_uppercase() || is_combining_mark(c))
    };
    let mut words = name.split_whitespace();
    let is_label = (1..=LABEL).contains(&words.clone().count()) && words.all(is_set);
    let is_before = rest.starts_with(char::is_whitespace) && rest.contains(char::is_lowercase);
    (is_label && is_before).then_some(name.len() + 1)
}

/// Where a text ends before the byline that it ends with. Addresses behind that are left aside.
fn byline(rules: &Normalisation, text: &str) -> Option<usize> {
    let is_address = |word: &str| word.starts_with("http") || word.starts_with("www.");
    let (mut rest, mut count, mut is_set, mut begins_small) = (text, 0, true, true);
    while count <= BYLINE {
        let (before, word) = rest.trim_end().rsplit_once(char::is_whitespace)?;
        looked(rest.len() - before.len());
        rest = before;
        match word {
            "|" => return (count > 0).then_some(before.len()),
            "-" | "–" | "—" => return (is_set && !begins_small).then_some(before.len()),
            _ if count == 0 && rules.urls == Urls::Drop && is_address(word) => continue,
            _ => {}
        }
        let small = !is_name(word);
        // The last word of a byline is not a small word.
        is_set &= !small || count > 0 && letters(word) <= JOINER;
        (begins_small, count) = (small, count + 1);
    }
    None
}

/// Whether a word is set as a name is: with a capital, or as the address of a site.
fn is_name(word: &str) -> bool {
    let is_site = |(name, zone): (&str, &str)| {
        name.ends_with(char::is_alphanumeric) && zone.starts_with(char::is_alphabetic)
    };
    word.starts_with(|c: char| c.is_uppercase() || c == '@')
        || word.split_once('.').is_some_and(is_site)
}

fn letters(word: &str) -> usize {
    word.chars().filter(|&c| !is_combining_mark(c)).count()
}
