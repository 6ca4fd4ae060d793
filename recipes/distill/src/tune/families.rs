//! Families of texts: a text and seven variants of it, some similar and some not.
//!
//! Words are replaced by similar or random ones, left out, moved and swapped; a text is negated,
//! cut, or joined with another. How this changes the meaning is decided by the teacher.

use std::collections::{HashMap, HashSet};

use cognate::text;
use cognate::text::Tokens;
use cognate_kernels::random::Random;
use cognate_kernels::vector;
use cognate_train::sampling;
use rayon::prelude::*;

use crate::generated::Wanted;
use crate::generated::lists::FUNCTION_WORDS;
use crate::texts::{EDGES, Texts};
use crate::{sources, space};

const FAMILIES: u64 = 16;
/// Texts of a family.
pub(super) const MEMBERS: usize = 8;
/// Number of words of a family's original text.
const WORDS: std::ops::RangeInclusive<usize> = 4..=20;
/// Maximum words of a clause to append.
const SHORT: usize = 5;
/// Number of most frequent words that are replaced by similar ones among themselves, and number of
/// similar words for each.
const FREQUENT: usize = 20_000;
const NEAR: usize = 11;
/// Words whose neighbours a thread searches at a time.
const STRIPE: usize = 64;
/// Mean index of a random replacement.
const FAR: f64 = 4000.0;
/// Number of ways to change a text.
const WAYS: usize = 15;
/// Words that "not" follows, and words that negate.
const AUXILIARIES: &str =
    "is,are,was,were,can,could,will,would,has,have,had,does,did,should,may,must";
const DENIALS: &str = "not,no,never";
const NUMBERS: &str = "one,two,three,four,five,six,seven,eight,nine,ten,twelve,twenty,hundred";

/// The families of texts, one after another, [`MEMBERS`] texts each.
pub(super) fn families(
    texts: &Texts,
    words: &[String],
    (rows, dims): (&[f32], usize),
    wanted: &Wanted<'_>,
) -> Vec<String> {
    let mut random = sampling::generator(wanted.seed, FAMILIES, [0, 0]);
    let length = |text: &str| text.split(' ').count();
    let kinds = [&texts.sentences, &texts.clauses, &texts.generated, &texts.whole];
    let fits = |text: &&String| WORDS.contains(&length(text));
    let mut seeds: Vec<&String> = kinds.into_iter().flatten().filter(fits).collect();
    random.shuffle(&mut seeds);
    let is_short = |text: &&String| length(text) <= SHORT;
    let short = texts.clauses.iter().filter(is_short).map(String::as_str).collect();
    let near = Near::of(words, rows, dims);
    let mut maker = Maker { random, near, words, short };
    let (mut found, mut tokens) = (Vec::new(), Tokens::new());
    let mut order: Vec<usize> = (0..WAYS).collect();
    for seed in seeds {
        if found.len() == wanted.most * MEMBERS {
            break;
        }
        let mut family = vec![seed.clone()];
        let mut seen = HashSet::from([seed.to_lowercase()]);
        let cut: Vec<&str> = seed.split(' ').collect();
        maker.random.shuffle(&mut order);
        for &way in &order {
            let Some(changed) = maker.changed(way, &cut) else { continue };
            let text = changed.join(" ");
            text::tokenise(wanted.rules, &text, &mut tokens);
            let known = changed.len() < 2 || !seen.insert(text.to_lowercase());
            if !known && !wanted.apart.shares(&sources::joined(tokens.texts())) {
                family.push(text);
            }
            if family.len() == MEMBERS {
                found.append(&mut family);
                break;
            }
        }
    }
    found
}

/// The most similar words of frequent words.
struct Near<'w> {
    places: HashMap<&'w str, usize>,
    near: Vec<Vec<u32>>,
}

impl<'w> Near<'w> {
    fn of(words: &'w [String], rows: &[f32], dims: usize) -> Self {
        let count = words.len().min(FREQUENT);
        let mut units = rows[..count * dims].to_vec();
        units.par_chunks_mut(dims).for_each(space::unit);
        let places = words[..count].iter().enumerate();
        let places = places.map(|(place, word)| (word.as_str(), place)).collect();
        let of_stripe = |(stripe, some): (usize, &[f32])| {
            let mut cosines = Vec::new();
            vector::products(some, &units, dims, &mut cosines);
            let of_word = |(at, cosines): (usize, &[f32])| {
                let own = stripe * STRIPE + at;
                let mut order: Vec<u32> =
                    (0..count as u32).filter(|&w| w as usize != own).collect();
                let most = NEAR.min(order.len());
                let nearer = |a: &u32, b: &u32| {
                    let [one, other] = [a, b].map(|&word| cosines[word as usize]);
                    other.total_cmp(&one).then(a.cmp(b))
                };
                if most > 0 && most < order.len() {
                    order.select_nth_unstable_by(most - 1, nearer);
                }
                order.truncate(most);
                order.sort_unstable_by(nearer);
                order
            };
            cosines.chunks_exact(count).enumerate().map(of_word).collect::<Vec<_>>()
        };
        let stripes = units.par_chunks(STRIPE * dims).enumerate().map(of_stripe);
        let near = stripes.collect::<Vec<_>>().concat();
        Self { places, near }
    }
}

/// Changes texts at random.
struct Maker<'w> {
    random: Random,
    near: Near<'w>,
    words: &'w [String],
    short: Vec<&'w str>,
}

type Changed = Option<Vec<String>>;

impl Maker<'_> {
    /// A text changed in one of [`WAYS`]; `None` if that is impossible.
    fn changed(&mut self, way: usize, text: &[&str]) -> Changed {
        let own: Vec<String> = text.iter().map(|&word| word.to_owned()).collect();
        match way {
            0 => self.near(own),
            1 => self.near(own).and_then(|text| self.near(text)),
            2 => {
                let twice = self.near(own).and_then(|text| self.near(text));
                twice.and_then(|text| self.near(text))
            }
            3 => self.far(own),
            4 => Some(self.without(own, 1)),
            5 => Some(self.without(own, 3)),
            6 => negated(own),
            7 => telegram(own),
            8 => Some(self.turned(own)),
            9 => self.swapped(own),
            10 => self.cut(own),
            11 => Some(self.joined(own)),
            12 => self.cut(own).and_then(|text| self.near(text)),
            13 => self.near(own).and_then(|text| self.far(text)),
            _ => self.cut(own).map(|text| self.joined(text)),
        }
    }

    /// Replaces a word by a similar one.
    fn near(&mut self, mut text: Vec<String>) -> Changed {
        let place = self.content(&text)?;
        let word = bare(&text[place]);
        text[place] = self.like(&word)?;
        Some(text)
    }

    /// Replaces a word by a random one, frequent ones more often.
    fn far(&mut self, mut text: Vec<String>) -> Changed {
        let place = self.content(&text)?;
        let far = -(1.0 - sampling::share(&mut self.random)).ln() * FAR;
        let last = self.near.near.len().checked_sub(1)?;
        text[place] = self.words[(far as usize).min(last)].clone();
        Some(text)
    }

    /// The index of a known content word.
    fn content(&mut self, text: &[String]) -> Option<usize> {
        let fits = |place: &usize| {
            let word = bare(&text[*place]);
            !is_in(FUNCTION_WORDS, &word) && self.near.places.contains_key(word.as_str())
        };
        let places: Vec<usize> = (0..text.len()).filter(fits).collect();
        places.get(self.random.below(places.len())).copied()
    }

    /// Returns a similar word; for a number, another number.
    fn like(&mut self, word: &str) -> Option<String> {
        if is_in(NUMBERS, word) {
            let all: Vec<&str> = NUMBERS.split(',').collect();
            return all.get(self.random.below(all.len())).map(|&number| number.to_owned());
        }
        if word.bytes().all(|byte| byte.is_ascii_digit()) {
            return Some((2 + self.random.below(2019)).to_string());
        }
        let near = self.near.near.get(*self.near.places.get(word)?)?;
        let place = *near.get(self.random.below(near.len()))?;
        self.words.get(place as usize).cloned()
    }

    /// Omits `count` words, but keeps two.
    fn without(&mut self, mut text: Vec<String>, count: usize) -> Vec<String> {
        for _ in 0..count {
            if text.len() > 2 {
                text.remove(self.random.below(text.len()));
            }
        }
        text
    }

    /// Moves the last words of the text to its beginning.
    fn turned(&mut self, mut text: Vec<String>) -> Vec<String> {
        if text.len() > 1 {
            let begin = 1 + self.random.below(text.len() - 1);
            text.rotate_left(begin);
        }
        text
    }

    /// Swaps two content words.
    fn swapped(&mut self, mut text: Vec<String>) -> Changed {
        let content = |place: &usize| !is_in(FUNCTION_WORDS, &text[*place].to_lowercase());
        let mut places: Vec<usize> = (0..text.len()).filter(content).collect();
        self.random.shuffle(&mut places);
        let &[one, other, ..] = places.as_slice() else { return None };
        text.swap(one, other);
        Some(text)
    }

    /// Keeps the beginning or the end, at least half of the text.
    fn cut(&mut self, mut text: Vec<String>) -> Changed {
        if text.len() < SHORT {
            return None;
        }
        let half = text.len() / 2;
        let kept = half + self.random.below(text.len() - half);
        if self.random.below(2) == 0 {
            text.truncate(kept);
            return Some(text);
        }
        Some(text.split_off(text.len() - kept))
    }

    /// Appends a short clause to a text.
    fn joined(&mut self, mut text: Vec<String>) -> Vec<String> {
        let clause = self.short.get(self.random.below(self.short.len()));
        text.extend(clause.into_iter().flat_map(|clause| clause.split(' ')).map(str::to_owned));
        text
    }
}

/// Returns a word in lower case without surrounding punctuation.
fn bare(word: &str) -> String {
    word.to_lowercase().trim_matches(EDGES).to_owned()
}

fn is_in(list: &str, word: &str) -> bool {
    list.split(',').any(|other| other == word)
}

/// Negates the text, or removes a negation; `None` if there is no place for either.
fn negated(mut text: Vec<String>) -> Changed {
    let place = |list: &str| text.iter().position(|word| is_in(list, &word.to_lowercase()));
    if let Some(denial) = place(DENIALS) {
        text.remove(denial);
        return Some(text);
    }
    let behind = place(AUXILIARIES)?;
    text.insert(behind + 1, "not".to_owned());
    Some(text)
}

/// Omits function words; `None` if one word is left.
fn telegram(mut text: Vec<String>) -> Changed {
    text.retain(|word| !is_in(FUNCTION_WORDS, &word.to_lowercase()));
    (text.len() > 1).then_some(text)
}

#[cfg(test)]
mod tests {
    use crate::generated::Grammar;
    use cognate::text::Normalisation;

    use super::*;
    use crate::sources::ExcludedTexts;

    fn split(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn texts_are_denied_and_shortened() {
        let denied = |text| negated(split(text)).map(|words| words.join(" "));
        assert_eq!(denied("The town Is old").as_deref(), Some("The town Is not old"));
        assert_eq!(denied("it is not old").as_deref(), Some("it is old"));
        assert_eq!(denied("old towns"), None);
        let short = telegram(split("The walls of the town")).unwrap();
        assert_eq!(short, ["walls", "town"]);
        assert_eq!(telegram(split("the town")), None);
    }

    #[test]
    fn near_words_are_the_nearest_by_cosine() {
        let words = ["a", "b", "c", "d"].map(str::to_owned);
        let near = Near::of(&words, &[1.0, 0.0, 0.0, 1.0, 9.0, 1.0, 1.0, 1.0], 2);
        assert_eq!(near.near, [vec![2, 3, 1], vec![3, 2, 0], vec![0, 3, 1], vec![2, 0, 1]]);
    }

    #[test]
    fn families_have_members_that_differ_and_are_the_same_for_a_seed() {
        let words: Vec<String> = "town,wall,stone,road,river,hill,city,lake,fire,rain,old,large"
            .split(',')
            .map(str::to_owned)
            .collect();
        let mut random = Random::seeded(2);
        let rows: Vec<f32> = (0..words.len() * 5).map(|_| random.below(100) as f32).collect();
        let sentence = |at: usize| {
            let word = |place: usize| &words[(at * place + place) % words.len()];
            format!("The {} is on the {} {} near a {}, {at}", word(1), word(2), word(5), word(7))
        };
        let texts = Texts {
            sentences: (0..30).map(sentence).collect(),
            clauses: vec!["the large fire".to_owned()],
            ..Texts::default()
        };
        let rules = Normalisation::preset("plain").unwrap();
        let apart = ExcludedTexts::default();
        let make = |seed| {
            let grammar = Grammar::English;
            let wanted = Wanted { most: 20, rules: &rules, apart: &apart, seed, grammar };
            families(&texts, &words, (&rows, 5), &wanted)
        };
        let found = make(1);
        assert_eq!(found.len(), 20 * MEMBERS);
        for family in found.chunks_exact(MEMBERS) {
            assert!(texts.sentences.contains(&family[0]));
            let different: HashSet<&String> = family.iter().collect();
            assert_eq!(different.len(), MEMBERS, "{family:?}");
        }
        assert_eq!(make(1), found);
        assert_ne!(make(2), found);
    }
}
