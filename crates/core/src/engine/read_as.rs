//! A query of misspelt words, read as words of the vocabulary that the texts to be ranked have. Only where
//! the model lists none of its words: one that it lists says what is meant better than any guess.

use std::cmp::Reverse;
use std::collections::HashSet;

use crate::engine::Engine;
use crate::engine::workspace::Workspace;
use crate::model::unlisted::UnlistedWords;
use crate::model::{Phrase, WordId};

/// Most words of a query that is read as others.
const MOST_WORDS: usize = 6;
/// Letters of the shortest word that a letter was doubled in, or should be.
const SHORTEST: usize = 3;
/// Letters of the shortest word with another mistake: of shorter ones too many are one letter apart.
const LONG: usize = 5;

impl Engine {
    /// Whether the model lists none of a query's few words, so that it may be read as others.
    pub(super) fn is_unknown(&self, query: &str) -> bool {
        // Where vectors are made out of a word's letters, as fastText's are, misspelt words have fair ones.
        if matches!(self.model.unlisted(), UnlistedWords::NGrams { .. }) {
            return false;
        }
        let mut workspace = Workspace::of(&self.model);
        let mut phrase = workspace.phrase();
        phrase.read_up_to(query, MOST_WORDS + 1);
        let is_short = (1..=MOST_WORDS).contains(&phrase.tokens_read());
        let is_unknown = is_short && phrase.known_share() == 0.0;
        workspace.take_back([phrase]);
        is_unknown
    }

    /// How a query was probably meant of whose words the model lists none: each as the
    /// listed word that some of the texts have, and that differs by a doubled letter, or in a word of five
    /// letters or more by a letter that is left out, put in, exchanged or swapped with its neighbour.
    /// Nothing where no word is read as another, or a text has one of the words, which then is no mistake.
    pub fn read_as<'t>(
        &self,
        query: &str,
        texts: impl IntoIterator<Item = &'t str>,
    ) -> Option<String> {
        if !self.is_unknown(query) {
            return None;
        }
        let mut phrase = Phrase::new(&self.model);
        phrase.read(query);
        let tokens = phrase.tokens();
        let mut words: Vec<(&str, Vec<Near<'_>>)> = tokens
            .iter()
            .filter(|(_, token)| !token.is_punctuation())
            .map(|(text, token)| {
                let near = if token.is_word() { self.near(text) } else { Vec::new() };
                (text, near)
            })
            .collect();
        let listed = words.iter().flat_map(|(_, near)| near).map(|near| near.word);
        let listed: HashSet<&str> = listed.collect();
        if listed.is_empty() {
            return None;
        }
        let mistakes = words.iter().filter(|(_, near)| !near.is_empty()).map(|(text, _)| *text);
        let mistakes: HashSet<&str> = mistakes.collect();
        let mut there: HashSet<&str> = HashSet::new();
        for text in texts {
            let text = text.to_lowercase();
            for word in text.split(|letter: char| !letter.is_alphanumeric()) {
                if mistakes.contains(word) {
                    return None;
                }
                there.extend(listed.get(word).copied());
            }
        }
        for (text, near) in &mut words {
            let near = near.iter().filter(|near| there.contains(near.word)).min();
            *text = near.map_or(*text, |near| near.word);
        }
        let words: Vec<&str> = words.into_iter().map(|(text, _)| text).collect();
        words.iter().any(|word| there.contains(word)).then(|| words.join(" "))
    }

    /// The listed words that one that is not may be a misspelling of.
    fn near(&self, word: &str) -> Vec<Near<'_>> {
        let letters: Vec<char> = word.chars().collect();
        let is_word = letters.len() >= SHORTEST && letters.iter().all(|one| one.is_alphabetic());
        if !is_word {
            return Vec::new();
        }
        let vocabulary = self.model.vocabulary();
        let single = without_doubles(&letters);
        let mut other = Vec::new();
        let listed = (0..).zip(vocabulary.words());
        let near = listed.filter_map(|(id, word): (WordId, _)| {
            other.clear();
            other.extend(word.chars());
            let is_doubled = without_doubles(&other) == single;
            let is_near = is_doubled || (letters.len() >= LONG && is_one_apart(&letters, &other));
            (is_near && other.len() >= SHORTEST).then(|| Near {
                order: (!is_doubled, other.first() != letters.first()),
                common: Reverse(vocabulary.probability(id).to_bits()),
                word,
            })
        });
        near.collect()
    }
}

/// A listed word that may be meant: rather where a doubled letter is all that is wrong, then where the first
/// letter is right, then the more common one.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Near<'m> {
    order: (bool, bool),
    common: Reverse<u64>,
    word: &'m str,
}

fn without_doubles(letters: &[char]) -> Vec<char> {
    let mut single = letters.to_vec();
    single.dedup();
    single
}

/// Whether a word becomes the other by one letter that is left out, put in or exchanged, or by two that
/// change places.
fn is_one_apart(one: &[char], other: &[char]) -> bool {
    if one.len().abs_diff(other.len()) > 1 {
        return false;
    }
    let same = |(a, b): &(&char, &char)| a == b;
    let front = one.iter().zip(other).take_while(same).count();
    let [one, other] = [one, other].map(|word| word.get(front..).unwrap_or_default());
    let back = one.iter().rev().zip(other.iter().rev()).take_while(same).count();
    let [one, other] = [one, other].map(|word| word.get(..word.len() - back).unwrap_or_default());
    match (one, other) {
        ([], [_]) | ([_], []) | ([_], [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use cognate_kernels::random::Random;
    use proptest::prelude::*;

    use super::*;

    fn engine() -> Engine {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/default.safetensors");
        Engine::open(Path::new(path), &Default::default()).unwrap()
    }

    /// Every word that one change makes of a word.
    fn changed(word: &[char]) -> HashSet<Vec<char>> {
        let mut all = HashSet::new();
        for at in 0..=word.len() {
            let (front, back) = word.split_at(at);
            let mut put = |parts: &[&[char]]| {
                all.insert(parts.concat());
            };
            for letter in ['a', 'b', 'c'] {
                put(&[front, &[letter], back]);
                if !back.is_empty() {
                    put(&[front, &[letter], &back[1..]]);
                }
            }
            if !back.is_empty() {
                put(&[front, &back[1..]]);
            }
            if back.len() > 1 {
                put(&[front, &[back[1], back[0]], &back[2..]]);
            }
        }
        all.remove(word);
        all
    }

    proptest! {
        #[test]
        fn words_are_one_apart_if_one_change_makes_them_the_same(
            one in "[abc]{0,5}", other in "[abc]{0,5}",
        ) {
            let [one, other] = [one, other].map(|word| word.chars().collect::<Vec<char>>());
            prop_assert_eq!(is_one_apart(&one, &other), changed(&one).contains(&other));
        }
    }

    #[test]
    fn only_what_is_not_known_at_all_is_read_as_something_else() {
        let engine = engine();
        let texts = ["A jazz PIANIST", "strong earthquake in Lima", "is it my jar?"];
        let read = |query: &str| engine.read_as(query, texts);
        assert_eq!(read("jaz pianst").as_deref(), Some("jazz pianist"));
        assert_eq!(read("Eartquake!").as_deref(), Some("earthquake"));
        assert_eq!(read("qxzvkj eartquake").as_deref(), Some("qxzvkj earthquake"));
        assert_eq!(read("jaz pianist"), None, "a word is known");
        assert_eq!(read("earthquake"), None);
        for query in ["", "zzzzz qqqqq", "12345678901", "!!", "jarr pinst", "xq"] {
            let expected = if query.starts_with("jarr") { Some("jar pinst") } else { None };
            assert_eq!(read(query).as_deref(), expected, "{query}");
        }
        assert_eq!(read(&"pianst ".repeat(MOST_WORDS + 1)), None);
        // Nothing has the word that may be meant, or somebody else writes it like that.
        assert_eq!(engine.read_as("jaz pianst", ["a cat"]), None);
        assert_eq!(engine.read_as("jaz pianst", [texts[0], "the Pianst of the town"]), None);
    }

    /// Of common words with a letter left out, put in, exchanged or swapped nearly all are read as they were
    /// meant, if the texts have them.
    #[test]
    fn misspelt_words_are_found() {
        let engine = engine();
        let vocabulary = engine.model().vocabulary();
        let is_plain = |word: &str| word.bytes().all(|byte| byte.is_ascii_lowercase());
        let mut words: Vec<(u64, &str)> = (0..)
            .zip(vocabulary.words())
            .filter(|(_, word)| word.len() > LONG && is_plain(word))
            .map(|(id, word)| (vocabulary.probability(id).to_bits(), word))
            .collect();
        words.sort_unstable_by_key(|(probability, word)| (Reverse(*probability), *word));
        let words: Vec<&str> = words.iter().take(5000).step_by(10).map(|(_, word)| *word).collect();
        let texts: Vec<String> = words.chunks(10).map(|words| words.join(" ")).collect();
        let (mut random, mut asked, mut found) = (Random::seeded(1), 0, 0);
        for (place, word) in words.iter().enumerate() {
            let mut letters: Vec<char> = word.chars().collect();
            let at = random.below(letters.len() - 1);
            match place % 4 {
                0 => drop(letters.remove(at)),
                1 => letters.insert(at, 'e'),
                2 => letters[at] = 'o',
                _ => letters.swap(at, at + 1),
            }
            let misspelt: String = letters.into_iter().collect();
            if engine.is_unknown(&misspelt) {
                asked += 1;
                let read = engine.read_as(&misspelt, texts.iter().map(String::as_str));
                found += usize::from(read.as_deref() == Some(*word));
            }
        }
        println!("{found} of {asked}");
        assert!(asked > 200 && found * 100 > asked * 90, "{found} of {asked}");
    }
}
