//! Readers made of a labelled file: each likes a few texts of a topic and waits for the others.

use std::collections::BTreeMap;

use crate::eval::datasets::is_blank;
use crate::eval::datasets::ranking::Judged;
use crate::eval::datasets::ranking::RankingSet;
use crate::random::Random;

/// The texts of a file, each once, and who would read them.
pub(super) struct Library {
    pub(super) texts: Vec<String>,
    /// Topics that readers are made of.
    pub(super) topics: usize,
    pub(super) readers: Vec<Reader>,
}

/// Somebody who likes some texts of a topic.
pub(super) struct Reader {
    /// The topic, by its place among those counted.
    pub(super) topic: usize,
    /// The texts liked, in the order in which they were drawn.
    pub(super) liked: Vec<usize>,
    /// The other texts of the topic, with their grades.
    pub(super) wanted: BTreeMap<usize, u32>,
}

impl Library {
    /// Draws readers, `draws` a topic, from every topic with more relevant texts than one likes.
    pub(super) fn of(
        set: &RankingSet,
        judged: &Judged,
        (liked, draws): (usize, usize),
        seed: u64,
    ) -> Self {
        let (mut texts, mut places) = (Vec::new(), BTreeMap::new());
        let mut grades_of = Vec::new();
        for topic in &set.topics {
            let mut of_text = |place: usize| {
                let text: &String = &topic.texts[place];
                *places.entry(text.clone()).or_insert_with(|| {
                    texts.push(text.clone());
                    texts.len() - 1
                })
            };
            let asked = (0..topic.texts.len()).filter(|&at| !is_blank(&topic.texts[at]));
            asked.for_each(|at| {
                of_text(at);
            });
            // A text that stands twice has its better grade.
            let mut grades = BTreeMap::new();
            for (at, grade) in judged.relevant(topic) {
                if !is_blank(&topic.texts[at]) {
                    let known = grades.entry(of_text(at)).or_insert(grade);
                    *known = grade.max(*known);
                }
            }
            if grades.len() > liked {
                grades_of.push(grades);
            }
        }
        let mut random = Random::seeded(seed);
        let mut readers = Vec::new();
        for (topic, grades) in grades_of.iter().enumerate() {
            for _ in 0..draws {
                let mut drawn: Vec<usize> = grades.keys().copied().collect();
                random.shuffle(&mut drawn);
                drawn.truncate(liked);
                let mut wanted = grades.clone();
                wanted.retain(|text, _| !drawn.contains(text));
                readers.push(Reader { topic, liked: drawn, wanted });
            }
        }
        Self { texts, topics: grades_of.len(), readers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::datasets::ranking::Topic;

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
        let library = Library::of(&set, &judged, (2, 20), 7);
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
        let again = Library::of(&set, &judged, (2, 20), 7);
        let liked = |library: &Library| library.readers[19].liked.clone();
        assert_eq!(liked(&library), liked(&again));
    }
}
