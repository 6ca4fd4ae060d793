//! Words that pieces are fitted to in addition to the trained ones: rare words from a file, and
//! misspellings and compounds of frequent words, which most unlisted words are.

use std::collections::HashSet;
use std::path::PathBuf;

use cognate::text;
use cognate::text::{Accents, Normalisation, Tokens};
use cognate_kernels::random::Random;
use cognate_train::{TrainError, sampling};

use crate::words::WordList;

const MISSPELL: u64 = 13;
const COMPOUND: u64 = 14;
/// Maximum number of misspellings and compounds, and maximum for each original word.
const MISSPELLINGS: usize = 50_000;
const COMPOUNDS: usize = 10_000;
const EACH: usize = 3;
/// Draws of the second word of a compound until it is of the language of the first.
const COMPOUND_DRAWS: usize = 100;
/// Index of the first word to misspell: words before are mostly function words, which have no
/// typical misspellings. For a short list, a tenth of it is skipped.
const FROM: usize = 300;
/// Words up to this index are frequent enough to be misspelt or compounded.
const MISSPELT_TO: usize = 16_000;
const COMPOUNDED_TO: usize = 6000;
/// Minimum letters of a word to misspell; range of letters of words to compound.
const MISSPELT: usize = 5;
const COMPOUNDED: std::ops::RangeInclusive<usize> = 3..=7;

/// The neighbours of each letter from a to z on a keyboard.
const BESIDE: [&str; 26] = [
    "s", "vn", "xv", "sf", "wr", "dg", "fh", "gj", "uo", "hk", "jl", "k", "n", "bm", "ip", "o",
    "wa", "et", "ad", "ry", "yi", "cb", "qe", "zc", "tu", "x",
];

/// Distinct words that are not listed: those of the files, misspellings, compounds. `home` tells the
/// language of every listed word, if there are several: compounds are of one language.
pub fn words(
    files: &[PathBuf],
    (listed, home): (&[String], &[usize]),
    rules: &Normalisation,
    seed: u64,
) -> Result<Vec<String>, TrainError> {
    let mut seen: HashSet<String> = listed.iter().cloned().collect();
    let mut found = Vec::new();
    for file in files {
        let plain = |word: &String| !word.chars().any(char::is_numeric);
        for word in WordList::read(file, rules)?.words.into_iter().filter(plain) {
            if seen.insert(word.clone()) {
                found.push(word);
            }
        }
    }
    let mut add = |count: usize, draw: &mut dyn FnMut() -> String| {
        let before = found.len();
        for _ in 0..EACH * count {
            let word = draw();
            if seen.insert(word.clone()) {
                found.push(word);
            }
            if found.len() == before + count {
                break;
            }
        }
    };
    let frequent = |to: usize, fits: fn(usize) -> bool| -> Vec<usize> {
        let from = FROM.min(listed.len() / 10);
        let letters = |word: &String| word.bytes().all(|byte| byte.is_ascii_lowercase());
        let fits = |&place: &usize| letters(&listed[place]) && fits(listed[place].len());
        (from..listed.len().min(to)).filter(fits).collect()
    };
    let words = frequent(MISSPELT_TO, |length| length >= MISSPELT);
    let mut random = sampling::generator(seed, MISSPELL, [0, 0]);
    if !words.is_empty() {
        add(MISSPELLINGS.min(EACH * words.len()), &mut || {
            misspelt(&listed[words[random.below(words.len())]], &mut random)
        });
    }
    let words = frequent(COMPOUNDED_TO, |length| COMPOUNDED.contains(&length));
    let mut random = sampling::generator(seed, COMPOUND, [0, 0]);
    if !words.is_empty() {
        add(COMPOUNDS.min(EACH * words.len()), &mut || {
            let mut word = || words[random.below(words.len())];
            let first = word();
            let same = |other: usize| home.get(first) == home.get(other);
            let other = (0..COMPOUND_DRAWS).map(|_| word()).find(|&other| same(other));
            let other = other.unwrap_or(first);
            [listed[first].as_str(), &listed[other]].concat()
        });
    }
    Ok(found)
}

/// Listed words as phones write them, without accents, unless that is a listed word, too; with
/// their places in the list.
pub fn unaccented(listed: &[String], rules: &Normalisation) -> Vec<(String, usize)> {
    let rules = Normalisation { accents: Accents::Strip, ..rules.clone() };
    let mut seen: HashSet<String> = listed.iter().cloned().collect();
    let (mut found, mut tokens) = (Vec::new(), Tokens::new());
    for (place, word) in listed.iter().enumerate().filter(|(_, word)| !word.is_ascii()) {
        text::tokenise(&rules, word, &mut tokens);
        if tokens.len() == 1 && seen.insert(tokens.text(0).to_owned()) {
            found.push((tokens.text(0).to_owned(), place));
        }
    }
    found
}

/// A lower-case word with one mistake after its first letter: a letter omitted, swapped, doubled,
/// or replaced by a keyboard neighbour, another vowel, or any letter.
fn misspelt(word: &str, random: &mut Random) -> String {
    let mut letters = word.as_bytes().to_vec();
    let at = 1 + random.below(letters.len() - 1);
    let chance = sampling::share(random);
    let vowels: Vec<usize> =
        (1..letters.len()).filter(|&place| b"aeiou".contains(&letters[place])).collect();
    let any = |random: &mut Random| b'a' + random.below(26) as u8;
    if chance < 0.25 {
        letters.remove(at);
    } else if chance < 0.45 && at + 1 < letters.len() {
        letters.swap(at, at + 1);
    } else if chance < 0.6 {
        letters.insert(at, letters[at]);
    } else if chance < 0.75 {
        let beside = BESIDE[usize::from(letters[at] - b'a')].as_bytes();
        letters[at] = beside[random.below(beside.len())];
    } else if chance < 0.9 && !vowels.is_empty() {
        letters[vowels[random.below(vowels.len())]] = b"aeiou"[random.below(5)];
    } else {
        letters[at] = any(random);
    }
    letters.into_iter().map(char::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_made_of_others_are_new_and_near_them() {
        let listed: Vec<String> =
            "the of tomato kitchen garden window river bread house2 träume table stone"
                .split(' ')
                .map(str::to_owned)
                .collect();
        let rules = Normalisation::preset("plain").unwrap();
        let found = words(&[], (&listed, &[]), &rules, 1).unwrap();
        assert!(found.len() > 20 && found.iter().all(|word| !listed.contains(word)));
        let different: HashSet<&String> = found.iter().collect();
        assert_eq!(different.len(), found.len());
        for word in &found {
            let near = |other: &String| strsim::damerau_levenshtein(word, other) == 1;
            let joined = |a: &String| {
                word.strip_prefix(a.as_str()).is_some_and(|b| listed.iter().any(|c| c == b))
            };
            assert!(listed.iter().any(near) || listed.iter().any(joined), "{word}");
        }
        assert_eq!(words(&[], (&listed, &[]), &rules, 1).unwrap(), found);
        assert_ne!(words(&[], (&listed, &[]), &rules, 2).unwrap(), found);
    }

    #[test]
    fn words_without_accents_are_those_that_are_not_listed() {
        let listed = ["él", "también", "el", "niño", "ninó", "casa"].map(str::to_owned);
        let rules = Normalisation::preset("plain").unwrap();
        let found = unaccented(&listed, &rules);
        assert_eq!(found, [("tambien".to_owned(), 1), ("nino".to_owned(), 3)]);
    }

    #[test]
    fn rare_words_of_a_file_come_first_and_without_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rare.txt");
        std::fs::write(&file, "frisbee\nthe\ncovid19\nfrisbee\ntrampoline\n").unwrap();
        let rules = Normalisation::preset("plain").unwrap();
        let found = words(&[file], (&["the".to_owned()], &[]), &rules, 1).unwrap();
        assert_eq!(found, ["frisbee", "trampoline", "thethe"]);
    }
}
