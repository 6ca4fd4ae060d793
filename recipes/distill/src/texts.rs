//! Prepares texts for a teacher from running text: sentences, clauses, random spans, bags of random
//! words, generated texts, and texts used unchanged.
//!
//! Sentences teach the meaning of texts, clauses and spans that of their parts; bags and single
//! words ensure that a word keeps its meaning outside its usual context. One seed fixes all random
//! choices. The teacher's vectors are not known here.

use std::collections::HashSet;

use cognate_kernels::random::Random;
use cognate_train::sampling;
use cognate_train::sampling::Draw;
use serde::Serialize;

use crate::generated;
use crate::generated::Wanted;
use crate::sources::Line;

const TEXTS: u64 = 10;
const SENTENCE: std::ops::RangeInclusive<usize> = 3..=36;
/// Number of words of a clause, and minimum tokens of a line to extract clauses from.
const CLAUSE: std::ops::RangeInclusive<usize> = 3..=14;
const CLAUSE_FROM: usize = 8;
/// Span lengths to sample from (repeats raise the odds), and minimum words of a source line.
const SPANS: [usize; 12] = [2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 10, 12];
const SPAN_FROM: usize = 4;
/// Draws for each wanted span, because many hit short lines or repeat a span.
const SPAN_DRAWS: usize = 3;
/// Bag sizes to sample from, and the number of words to draw from.
const BAGS: [usize; 5] = [2, 2, 3, 4, 5];
const BAG_WORDS: usize = 60_000;
/// Characters that end a clause.
const BREAKS: &[char] = &[',', ';', ':', '(', ')', '–', '—', '“', '”', '"'];
/// Characters removed from both ends of a clause or span.
pub(super) const EDGES: &[char] =
    &[' ', ',', '.', ';', ':', '-', '"', '\'', '(', ')', '“', '”', '‘', '’', '–', '—'];

/// Number of kinds of texts, and the indexes of some kinds.
pub const KINDS: usize = 6;
pub const SENTENCES_AT: usize = 0;
pub const SPANS_AT: usize = 2;
pub const WHOLE_AT: usize = 4;

/// Maximum number of texts of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Numbers {
    pub sentences: usize,
    pub clauses: usize,
    /// Random spans; at most three a line.
    pub spans: usize,
    /// Bags of words; at most one a line.
    pub bags: usize,
    pub generated: usize,
}

impl Numbers {
    /// The numbers for each of some languages.
    pub fn among(self, languages: usize) -> Self {
        let part = |number: usize| number / languages.max(1);
        Self {
            sentences: part(self.sentences),
            clauses: part(self.clauses),
            spans: part(self.spans),
            bags: part(self.bags),
            generated: part(self.generated),
        }
    }
}

impl Default for Numbers {
    /// The numbers of the default model, but without generated texts: those help general models,
    /// and not those for texts of one kind.
    fn default() -> Self {
        Self { sentences: 144_000, clauses: 130_000, spans: 380_000, bags: 60_000, generated: 0 }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    pub sentences: Vec<String>,
    /// Text between two punctuation marks of a line.
    pub clauses: Vec<String>,
    /// Consecutive words of a line.
    pub spans: Vec<String>,
    /// Random words.
    pub bags: Vec<String>,
    /// Texts used unchanged.
    pub whole: Vec<String>,
    pub generated: Vec<String>,
}

impl Texts {
    /// Prepares texts from lines, from words (drawn by the root of their probability), and by rule.
    pub fn make(
        lines: &[Line],
        whole: Vec<String>,
        words: (&[String], &[f64]),
        numbers: &Numbers,
        wanted: &Wanted<'_>,
    ) -> Self {
        let seed = wanted.seed;
        let generator = |kind| sampling::generator(seed, TEXTS, [kind, 0]);
        let clauses = clauses(lines, numbers.clauses, &mut generator(1));
        let spans = spans(lines, numbers.spans.min(3 * lines.len()), &clauses, &mut generator(2));
        Self {
            generated: generated::texts(wanted, &clauses),
            sentences: sentences(lines, numbers.sentences, &mut generator(0)),
            clauses,
            spans,
            bags: bags(words, numbers.bags.min(lines.len()), &mut generator(3)),
            whole,
        }
    }

    /// All kinds, in the order in which they are embedded.
    pub fn kinds(&self) -> [&[String]; KINDS] {
        let Self { sentences, clauses, spans, bags, whole, generated } = self;
        [sentences, clauses, spans, bags, whole, generated]
    }

    pub fn len(&self) -> usize {
        self.kinds().iter().map(|texts| texts.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// How many texts of each kind there are.
pub fn numbers(texts: &[Texts]) -> [usize; KINDS] {
    let mut numbers = [0; KINDS];
    for (number, kind) in texts.iter().flat_map(|texts| (0..).zip(texts.kinds())) {
        numbers[number] += kind.len();
    }
    numbers
}

fn sentences(lines: &[Line], most: usize, random: &mut Random) -> Vec<String> {
    let fits = lines.iter().filter(|line| SENTENCE.contains(&line.tokens));
    let mut found: Vec<&str> = fits.map(|line| line.text.as_str()).collect();
    random.shuffle(&mut found);
    found.truncate(most);
    found.into_iter().map(str::to_owned).collect()
}

fn clauses(lines: &[Line], most: usize, random: &mut Random) -> Vec<String> {
    let mut long: Vec<&str> = lines
        .iter()
        .filter(|line| line.tokens >= CLAUSE_FROM)
        .map(|line| line.text.as_str())
        .collect();
    random.shuffle(&mut long);
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for clause in long.into_iter().flat_map(cut) {
        if found.len() == most {
            break;
        }
        if seen.insert(clause) {
            found.push(clause.to_owned());
        }
    }
    found
}

fn cut(line: &str) -> impl Iterator<Item = &str> {
    line.split(BREAKS).flat_map(|part| part.split(" -- ")).filter_map(|part| {
        let clause = part.trim_matches(EDGES);
        CLAUSE.contains(&clause.split(' ').count()).then_some(clause)
    })
}

fn spans(lines: &[Line], most: usize, clauses: &[String], random: &mut Random) -> Vec<String> {
    let long: Vec<Vec<&str>> = lines
        .iter()
        .filter(|line| line.tokens >= SPAN_FROM)
        .map(|line| line.text.split(' ').collect())
        .collect();
    let mut seen: HashSet<String> = clauses.iter().cloned().collect();
    let mut found = Vec::new();
    if long.is_empty() {
        return found;
    }
    for _ in 0..SPAN_DRAWS.saturating_mul(most) {
        if found.len() == most {
            break;
        }
        let words = &long[random.below(long.len())];
        let length = SPANS[random.below(SPANS.len())];
        if words.len() < length {
            continue;
        }
        let from = random.below(words.len() - length + 1);
        let span = words[from..from + length].join(" ");
        let span = span.trim_matches(EDGES);
        if span.contains(' ') && seen.insert(span.to_owned()) {
            found.push(span.to_owned());
        }
    }
    found
}

fn bags((words, shares): (&[String], &[f64]), most: usize, random: &mut Random) -> Vec<String> {
    let frequent = words.len().min(BAG_WORDS);
    let draw = Draw::by(shares[..frequent].iter().map(|share| share.sqrt()));
    let bag = |_| {
        let length = BAGS[random.below(BAGS.len())];
        let drawn: Vec<&str> =
            (0..length).map(|_| words[draw.next(random) as usize].as_str()).collect();
        drawn.join(" ")
    };
    (0..most).map(bag).collect()
}

#[cfg(test)]
mod tests {
    use cognate::text::Normalisation;

    use super::*;
    use crate::generated::Grammar;
    use crate::sources::ExcludedTexts;

    fn line(text: &str) -> Line {
        Line { text: text.to_owned(), tokens: text.split(' ').count() }
    }

    #[test]
    fn lines_are_cut_into_clauses() {
        let found: Vec<&str> =
            cut("In 1990, the old town (its walls, too) was rebuilt -- at great cost to all; why?")
                .collect();
        assert_eq!(found, ["the old town", "at great cost to all"]);
    }

    #[test]
    fn texts_are_of_their_kind_and_the_same_for_the_same_seed() {
        let lines: Vec<Line> = (0..200)
            .map(|at| {
                line(&format!("the road number {at} leads to the town, past a hill of stone"))
            })
            .collect();
        let words = ["the", "road", "town", "stone"].map(str::to_owned);
        let shares = [0.7, 0.2, 0.1, 0.0];
        let numbers = Numbers { sentences: 50, clauses: 30, spans: 100, bags: 40, generated: 60 };
        let rules = Normalisation::preset("plain").unwrap();
        let apart = ExcludedTexts::default();
        let make = |seed| {
            let grammar = Grammar::English;
            let most = numbers.generated;
            let wanted = Wanted { most, rules: &rules, apart: &apart, seed, grammar };
            Texts::make(&lines, Vec::new(), (&words, &shares), &numbers, &wanted)
        };
        let texts = make(1);
        assert_eq!(texts.kinds().map(<[String]>::len), [50, 30, 100, 40, 0, 60]);
        let all: HashSet<&str> = lines.iter().map(|line| line.text.as_str()).collect();
        assert!(texts.sentences.iter().all(|sentence| all.contains(sentence.as_str())));
        for span in texts.spans.iter().chain(&texts.clauses) {
            assert!(all.iter().any(|line| line.contains(span)), "{span}");
            assert!((2..=14).contains(&span.split(' ').count()), "{span}");
        }
        let different: HashSet<&String> = texts.spans.iter().chain(&texts.clauses).collect();
        assert_eq!(different.len(), 130);
        assert!(texts.bags.iter().all(|bag| (2..=5).contains(&bag.split(' ').count())));
        assert!(!texts.bags.iter().any(|bag| bag.contains("stone")), "a word of no probability");
        assert_eq!(make(1), texts);
        assert_ne!(make(2).spans, texts.spans);
    }
}
