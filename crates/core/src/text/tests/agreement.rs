//! `plain` against the rule that the default vectors were made with, written down once more in
//! the plainest way: on ASCII text of any kind, and on real sentences where they are at hand.

use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use proptest::prelude::*;
use unicode_normalization::UnicodeNormalization;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use super::{preset, texts};
use crate::text::{Initials, Normalisation};

/// `[^\W_]+(?:['’][^\W_]+)*` on lower-cased text, `’` written `'`.
fn naive(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.to_lowercase().chars().collect();
    let is_word = |at: usize| chars.get(at).is_some_and(|c| is_letter_or_number(*c));
    let mut tokens = vec![String::new()];
    for (at, &c) in chars.iter().enumerate() {
        if is_letter_or_number(c) {
            tokens.last_mut().expect("it is never empty").push(c);
        } else if matches!(c, '\'' | '’') && at > 0 && is_word(at - 1) && is_word(at + 1) {
            tokens.last_mut().expect("it is never empty").push('\'');
        } else {
            tokens.push(String::new());
        }
    }
    tokens.retain(|token| !token.is_empty());
    tokens
}

fn is_letter_or_number(c: char) -> bool {
    let group = c.general_category_group();
    matches!(group, GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number)
}

/// `plain`, but for what it does to initials.
fn rules() -> Normalisation {
    Normalisation { initials: Initials::Apart, ..preset("plain") }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn plain_is_the_rule_on_ascii_without_names_addresses_and_hashtags(
        input in "[ -~\n]{0,60}".prop_map(|text| text.replace(['@', '#', '&', '/'], " "))
    ) {
        prop_assume!(!input.to_lowercase().contains("www."));
        prop_assert_eq!(texts(&rules(), &input), naive(&input));
    }
}

#[test]
fn plain_is_the_rule_on_the_sentences_of_the_reference_scores() {
    let shared = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data"));
    if !shared.is_dir() {
        eprintln!("skipped: there is no ../shared/data");
        return;
    }
    let mut tables = vec![fs::read_to_string(shared.join("vectors/default/oracle.tsv")).unwrap()];
    for entry in fs::read_dir(shared.join("oracle")).unwrap() {
        let path = entry.unwrap().path();
        if path.to_string_lossy().ends_with(".tsv.gz") {
            let mut table = String::new();
            GzDecoder::new(fs::File::open(path).unwrap()).read_to_string(&mut table).unwrap();
            tables.push(table);
        }
    }
    let sentences: BTreeSet<&str> = tables
        .iter()
        .flat_map(|table| table.lines().skip(1))
        .flat_map(|line| line.split('\t').take(2))
        .collect();
    let rules = rules();
    let differing: Vec<_> =
        sentences.iter().filter(|text| texts(&rules, text) != naive(text)).collect();
    eprintln!("{} of {} sentences differ: {differing:#?}", differing.len(), sentences.len());
    assert!(sentences.len() > 1000, "only {} sentences", sentences.len());
    // What `plain` means to cut differently has one of these in it.
    let meant = |text: &str| {
        ["#", "@", "http", "www.", "&"].iter().any(|mark| text.contains(mark))
            || text.nfkc().ne(text.chars())
    };
    assert!(differing.iter().all(|text| meant(text)), "{differing:#?}");
}
