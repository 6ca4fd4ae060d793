//! Texts made by rule, free of anybody's terms: everyday scenes and questions, headlines, and clauses
//! of the running text without their function words.
//!
//! Running text of books and articles hardly ever says that a dog is chasing a ball, and never in the
//! five words of a caption. Grammars draw from the lists of [`lists`]; every text is made once.

pub(super) mod lists;

use std::collections::HashSet;

use cognate::text;
use cognate::text::{Normalisation, Tokens};
use cognate_kernels::random::Random;
use cognate_train::sampling;

use crate::sources;
use crate::sources::Apart;

/// What random choices are for.
const GENERATED: u64 = 15;
/// Parts of each kind among twenty generated texts: plain scenes, other scenes and questions,
/// headlines, and at last clauses without function words.
const PARTS: [usize; 4] = [6, 4, 4, 6];
/// Draws for each text that is wanted, as some were drawn before.
const DRAWS: usize = 3;
/// Fewest words that a clause must keep.
const TELEGRAM: usize = 3;

/// How many texts are made, and what they must not be.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'w> {
    pub most: usize,
    /// Rules that turn texts into words.
    pub rules: &'w Normalisation,
    /// Texts that must not be learned from.
    pub apart: &'w Apart,
    /// What fixes random choices.
    pub seed: u64,
}

/// Texts by rule, each kind after the other, and some of the clauses without their function words.
pub fn texts(wanted: &Wanted<'_>, clauses: &[String]) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    let mut tokens = Tokens::new();
    let mut keep = |text: String, found: &mut Vec<String>| {
        text::tokenise(wanted.rules, &text, &mut tokens);
        if !wanted.apart.shares(&sources::joined(tokens.texts())) && seen.insert(text.clone()) {
            found.push(text);
        }
    };
    let all: usize = PARTS.iter().sum();
    let share = |kind: usize| wanted.most * PARTS[kind] / all;
    let kinds: [fn(&mut Random) -> String; 3] = [scene, question, headline];
    for (kind, make) in kinds.into_iter().enumerate() {
        let mut random = sampling::generator(wanted.seed, GENERATED, [kind as u64, 0]);
        let end = found.len() + share(kind);
        for _ in 0..DRAWS * share(kind) {
            if found.len() == end {
                break;
            }
            keep(make(&mut random), &mut found);
        }
    }
    let end = found.len() + share(3);
    for clause in clauses {
        if found.len() == end {
            break;
        }
        if let Some(text) = telegram(clause) {
            keep(text, &mut found);
        }
    }
    found
}

/// A clause without its function words, as headlines have it; nothing where little is left or
/// nothing goes.
fn telegram(clause: &str) -> Option<String> {
    let is_content = |word: &&str| {
        let word = word.to_lowercase();
        !lists::FUNCTION_WORDS.split(',').any(|other| other == word)
    };
    let kept: Vec<&str> = clause.split(' ').filter(is_content).collect();
    let fits = kept.len() >= TELEGRAM && kept.len() < clause.split(' ').count();
    fits.then(|| kept.join(" "))
}

fn one<'l>(list: &'l str, random: &mut Random) -> &'l str {
    list.split(',').nth(random.below(1 + list.matches(',').count())).unwrap_or_default()
}

fn chance(share: f64, random: &mut Random) -> bool {
    sampling::share(random) < share
}

/// A noun with its article, now and then with an adjective.
fn noun(list: &str, adjective: f64, random: &mut Random) -> String {
    let mut words = one(list, random).to_owned();
    if chance(adjective, random) {
        words = format!("{} {words}", one(lists::ADJECTIVES, random));
    }
    if chance(1.0 / 3.0, random) {
        return format!("the {words}");
    }
    let article = if words.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {words}")
}

fn plural(noun: &str) -> String {
    let irregular = [
        ("man", "men"),
        ("woman", "women"),
        ("child", "children"),
        ("person", "people"),
        ("policeman", "policemen"),
        ("sheep", "sheep"),
    ];
    let found = irregular.into_iter().find(|(one, _)| *one == noun);
    match (found, noun.strip_suffix('y')) {
        (Some((_, many)), _) => many.to_owned(),
        (None, Some(stem)) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        (None, _) => format!("{noun}s"),
    }
}

/// Words joined, empty ones left out.
fn joined(words: &[&str]) -> String {
    let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// "a young man is slicing an onion in the kitchen"
fn scene(random: &mut Random) -> String {
    let (who, be) = if chance(0.15, random) {
        let count = one(lists::COUNTS, random);
        (joined(&[count, &plural(one(lists::WHO, random))]), "are")
    } else {
        (noun(lists::WHO, 0.3, random), "is")
    };
    let be = match sampling::share(random) {
        part if part < 0.05 => format!("{be} not"),
        part if part < 0.68 => be.to_owned(),
        _ => String::new(),
    };
    let (does, what) = (one(lists::DOES, random), noun(lists::WHAT, 0.3, random));
    let place = if chance(0.4, random) { one(lists::WHERE, random) } else { "" };
    joined(&[&who, &be, does, &what, place])
}

/// What is done to things, what several do, what there is, and what people ask.
fn question(random: &mut Random) -> String {
    let place = if chance(0.5, random) { one(lists::WHERE, random) } else { "" };
    let anywhere = one(lists::WHERE, random);
    match random.below(20) {
        0..5 => {
            let by = match random.below(3) {
                0 => format!("by {}", noun(lists::WHO, 0.3, random)),
                1 => anywhere.to_owned(),
                _ => String::new(),
            };
            let done = one(lists::DONE, random);
            joined(&[&noun(lists::WHAT, 0.3, random), "is being", done, &by])
        }
        5..9 => {
            let [one_of, other] = [0, 1].map(|_| noun(lists::WHO, 0.3, random));
            let does = one(lists::DOES, random);
            let what = noun(lists::WHAT, 0.3, random);
            joined(&[&one_of, "and", &other, "are", does, &what, place])
        }
        9..11 => joined(&["there is", &who_or_what(0.6, random), anywhere]),
        11..14 => {
            let who = noun(lists::WHO, 0.6, random);
            let does = one(lists::DOES, random);
            joined(&[&who, anywhere, does, &noun(lists::WHAT, 0.6, random)])
        }
        14..17 => joined(&[&who_or_what(0.8, random), one(lists::STANDS, random), anywhere]),
        _ => {
            let asks = one(lists::ASKS, random);
            let act = one(lists::ACTS, random);
            joined(&[asks, act, &noun(lists::WHAT, 0.3, random), place])
        }
    }
}

fn who_or_what(adjective: f64, random: &mut Random) -> String {
    let list = if chance(0.5, random) { lists::WHO } else { lists::WHAT };
    noun(list, adjective, random)
}

/// "Greek parliament approves budget"
fn headline(random: &mut Random) -> String {
    let country = one(lists::COUNTRIES, random);
    let (people, event) = (one(lists::PEOPLE, random), one(lists::EVENTS, random));
    let says = one(lists::SAYS, random);
    match random.below(20) {
        0..7 => joined(&[country, people, says, event]),
        7..10 => joined(&[country, says, one(lists::COUNTRIES, random), event]),
        10..14 => {
            let count = if chance(0.5, random) { one(lists::MANY, random) } else { "" };
            joined(&[count, one(lists::HARMED, random), "in", country, event])
        }
        14..16 => joined(&[event, one(lists::HITS, random), country]),
        16..18 => {
            let (market, moves) = (one(lists::MARKETS, random), one(lists::MOVES, random));
            joined(&[market, moves, one(lists::BECAUSE, random), country, event])
        }
        _ => {
            let when = match random.below(5) {
                0 => "on Monday".to_owned(),
                1 => "on Friday".to_owned(),
                2 => "this week".to_owned(),
                3 => format!("after {}", one(lists::EVENTS, random)),
                _ => format!("over {}", one(lists::EVENTS, random)),
            };
            joined(&[people, "in", country, says, event, &when])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::Reader;

    #[test]
    fn texts_are_made_once_the_same_for_a_seed_and_none_that_is_kept_apart() {
        let rules = Normalisation::preset("plain").unwrap();
        let clauses: Vec<String> = ["the old town and its walls of stone stand", "to be in it"]
            .iter()
            .cycle()
            .take(40)
            .enumerate()
            .map(|(at, clause)| format!("{clause} number {at}"))
            .collect();
        let make = |seed, apart: &Apart, most| {
            texts(&Wanted { most, rules: &rules, apart, seed }, &clauses)
        };
        let none = Apart::default();
        let found = make(1, &none, 2000);
        let different: HashSet<&String> = found.iter().collect();
        assert_eq!(different.len(), found.len());
        assert!((1400..=1440).contains(&found.len()), "{}", found.len());
        assert!(found.contains(&"old town walls stone stand number 0".to_owned()));
        assert!(!found.iter().any(|text| text.contains("  ") || text.trim() != text));
        assert_eq!(make(1, &none, 2000), found);
        assert_ne!(make(2, &none, 2000)[..100], found[..100]);
        assert!(make(1, &none, 0).is_empty());

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("apart.tsv");
        std::fs::write(&file, format!("5\t{}!\t{}\n", found[3], found[1000])).unwrap();
        let apart = Reader::new(&rules, "text").apart(&[file]).unwrap();
        let without = make(1, &apart, 2000);
        assert!(!without.contains(&found[3]) && !without.contains(&found[1000]));
        assert!(without.contains(&found[4]));
    }

    #[test]
    fn nouns_have_their_articles_and_plurals() {
        let several = ["men", "babies", "boys", "sheep", "dogs", "families"];
        assert_eq!(["man", "baby", "boy", "sheep", "dog", "family"].map(plural), several);
        let mut random = Random::seeded(1);
        for _ in 0..2000 {
            let text = scene(&mut random);
            for (article, next) in text.split(' ').zip(text.split(' ').skip(1)) {
                let vowel = next.starts_with(['a', 'e', 'i', 'o', 'u']);
                assert!(article != "a" || !vowel, "{text}");
                assert!(article != "an" || vowel, "{text}");
            }
        }
    }
}
