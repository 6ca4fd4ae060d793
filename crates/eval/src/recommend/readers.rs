//! Readers made of a labelled file: each likes a few texts of some topics and waits for the others.

use std::collections::BTreeMap;

use cognate_kernels::random::Random;

use crate::datasets::is_blank;
use crate::datasets::ranking::{Judged, RankingSet};

/// The texts of a file, each once, and who would read them.
pub(super) struct Library {
    pub(super) texts: Vec<String>,
    /// Topics that readers are made of.
    pub(super) topics: usize,
    pub(super) readers: Vec<Reader>,
}

/// How readers are drawn.
#[derive(Debug, Clone, Copy)]
pub(super) struct Draws {
    /// Texts that a reader likes.
    pub(super) liked: usize,
    /// Topics that they are of, as many texts of each as of any other, or one more.
    pub(super) topics: usize,
    /// Readers of each topic.
    pub(super) readers: usize,
    /// Fixes all that is random.
    pub(super) seed: u64,
}

/// Somebody who likes some texts of some topics.
pub(super) struct Reader {
    /// The topic that the reader is counted under, by its place among those counted.
    pub(super) topic: usize,
    /// The texts liked, in the order in which they were drawn.
    pub(super) liked: Vec<usize>,
    /// The other texts of the topics, with their grades.
    pub(super) wanted: BTreeMap<usize, u32>,
}

impl Library {
    /// Draws readers of every topic with more relevant texts than anybody likes of it; further topics
    /// of a reader are drawn.
    pub(super) fn of(set: &RankingSet, judged: &Judged, draws: Draws) -> Self {
        let (mut texts, mut places) = (Vec::new(), BTreeMap::new());
        let most = draws.liked.div_ceil(draws.topics);
        let mut grades_of = Vec::new();
        for topic in &set.topics {
            let asked = topic.texts.iter().map(|text| (!is_blank(text)).then_some(text));
            let asked: Vec<Option<usize>> = asked
                .map(|text| {
                    let text = text?;
                    Some(*places.entry(text.clone()).or_insert_with(|| {
                        texts.push(text.clone());
                        texts.len() - 1
                    }))
                })
                .collect();
            let relevant = judged.relevant(topic).into_iter();
            let grades = merged(relevant.filter_map(|(at, grade)| Some((asked[at]?, grade))));
            if grades.len() > most {
                grades_of.push(grades);
            }
        }
        let mut library = Self { texts, topics: grades_of.len(), readers: Vec::new() };
        if grades_of.len() < draws.topics {
            return library;
        }
        let mut random = Random::seeded(draws.seed);
        for topic in 0..grades_of.len() {
            for _ in 0..draws.readers {
                let mut others: Vec<usize> = (0..grades_of.len()).collect();
                others.swap_remove(topic);
                random.shuffle(&mut others);
                let topics = std::iter::once(topic).chain(others).take(draws.topics);
                let topics: Vec<&BTreeMap<usize, u32>> =
                    topics.map(|topic| &grades_of[topic]).collect();
                library.readers.push(reader(topic, &topics, draws.liked, &mut random));
            }
        }
        library
    }
}

/// A reader of topics, whose liked texts are drawn from each in turn.
fn reader(
    topic: usize,
    topics: &[&BTreeMap<usize, u32>],
    liked: usize,
    random: &mut Random,
) -> Reader {
    let mut shuffled: Vec<Vec<usize>> = Vec::with_capacity(topics.len());
    for grades in topics {
        let mut texts: Vec<usize> = grades.keys().copied().collect();
        random.shuffle(&mut texts);
        shuffled.push(texts);
    }
    let mut drawn: Vec<usize> = Vec::with_capacity(liked);
    for turn in 0..liked {
        let texts = &mut shuffled[turn % topics.len()];
        // A text of two topics is liked once.
        while let Some(text) = texts.pop() {
            if !drawn.contains(&text) {
                drawn.push(text);
                break;
            }
        }
    }
    let all = topics.iter().flat_map(|grades| grades.iter().map(|(&text, &grade)| (text, grade)));
    let mut wanted = merged(all);
    wanted.retain(|text, _| !drawn.contains(text));
    Reader { topic, liked: drawn, wanted }
}

/// Texts with their grades; one that stands twice has its better grade.
fn merged(texts: impl Iterator<Item = (usize, u32)>) -> BTreeMap<usize, u32> {
    let mut grades = BTreeMap::new();
    for (text, grade) in texts {
        let known = grades.entry(text).or_insert(grade);
        *known = grade.max(*known);
    }
    grades
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datasets::ranking::Topic;

    #[test]
    fn a_reader_waits_for_what_was_not_drawn_and_a_text_stands_once() {
        let topic = |id: &str, rows: &[(&str, u32)]| Topic {
            id: id.to_owned(),
            texts: rows.iter().map(|row| row.0.to_owned()).collect(),
            grades: rows.iter().map(|row| row.1).collect(),
            documents: (0..rows.len()).map(|row| row.to_string()).collect(),
            ..Topic::default()
        };
        let set = RankingSet {
            name: "made".to_owned(),
            topics: vec![
                topic("full", &[("a", 1), ("b", 1), ("c", 2), ("b", 2), ("x", 0), (" ", 1)]),
                topic("too few", &[("a", 1), ("d", 1)]),
            ],
        };
        let judged = Judged::read(&[]).unwrap();
        let draws = Draws { liked: 2, topics: 1, readers: 20, seed: 7 };
        let library = Library::of(&set, &judged, draws);
        assert_eq!(library.texts, ["a", "b", "c", "x", "d"]);
        assert_eq!((library.topics, library.readers.len()), (1, 20));
        let mut seen = std::collections::BTreeSet::new();
        for reader in &library.readers {
            assert_eq!(reader.liked.len(), 2);
            let mut all: Vec<usize> = reader.liked.clone();
            all.extend(reader.wanted.keys());
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2]);
            let grades = BTreeMap::from([(0, 1), (1, 2), (2, 2)]);
            assert!(reader.wanted.iter().all(|(text, grade)| grades[text] == *grade));
            seen.insert(reader.liked.clone());
        }
        assert!(seen.len() > 3);
        let again = Library::of(&set, &judged, draws);
        let liked = |library: &Library| library.readers[19].liked.clone();
        assert_eq!(liked(&library), liked(&again));
    }

    #[test]
    fn a_reader_of_two_topics_likes_texts_of_both() {
        let topic = |id: &str, texts: [&str; 3]| Topic {
            id: id.to_owned(),
            texts: texts.map(str::to_owned).to_vec(),
            grades: vec![1; 3],
            documents: texts.map(str::to_owned).to_vec(),
            ..Topic::default()
        };
        let topics = vec![topic("one", ["a", "b", "c"]), topic("other", ["d", "e", "f"])];
        let set = RankingSet { name: "made".to_owned(), topics };
        let draws = Draws { liked: 3, topics: 2, readers: 10, seed: 7 };
        let library = Library::of(&set, &Judged::read(&[]).unwrap(), draws);
        assert_eq!(library.readers.len(), 20);
        for reader in &library.readers {
            let of_first = reader.liked.iter().filter(|&&text| text < 3).count();
            assert_eq!((reader.liked.len(), of_first), (3, if reader.topic == 0 { 2 } else { 1 }));
            assert_eq!(reader.wanted.len(), 3);
        }
        let three = Draws { topics: 3, ..draws };
        assert!(Library::of(&set, &Judged::read(&[]).unwrap(), three).readers.is_empty());
    }
}
