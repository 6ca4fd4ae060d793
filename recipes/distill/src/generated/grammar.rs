//! Grammars of languages, read from files.
//!
//! A line is a list of phrases, `name = phrase, phrase`, or a pattern, `: name word name`: each
//! name in it stands for a phrase of its list, other words for themselves. Empty lines and those
//! that begin with `#` say nothing.

use std::collections::HashMap;
use std::path::Path;

use cognate_files::Place;
use cognate_files::input::Input;
use cognate_kernels::random::Random;
use cognate_train::TrainError;

/// Maximum bytes of a line.
const LINE_BYTES: usize = 1 << 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patterns {
    lists: Vec<Vec<String>>,
    patterns: Vec<Vec<Part>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Word(String),
    /// The place of a list.
    List(usize),
}

impl Patterns {
    /// Reads a file. Lists stand before the patterns that name them.
    pub fn read(path: &Path) -> Result<Self, TrainError> {
        let mut input = Input::open(path)?;
        input.skip_byte_order_mark()?;
        let mut found = Self { lists: Vec::new(), patterns: Vec::new() };
        let mut places: HashMap<String, usize> = HashMap::new();
        while let Some(line) = input.read_line_bounded(LINE_BYTES)? {
            let line = String::from_utf8_lossy(line).trim().to_owned();
            let place = Place::Line(input.lines());
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(pattern) = line.strip_prefix(':') {
                let part = |word: &str| match places.get(word) {
                    Some(&list) => Part::List(list),
                    None => Part::Word(word.to_owned()),
                };
                let pattern: Vec<Part> = pattern.split_whitespace().map(part).collect();
                if !pattern.iter().any(|part| matches!(part, Part::List(_))) {
                    return Err(input.malformed(place, "a pattern that names no list").into());
                }
                found.patterns.push(pattern);
                continue;
            }
            let Some((name, phrases)) = line.split_once('=') else {
                let problem = "expected `name = phrase, phrase` or `: pattern`";
                return Err(input.malformed(place, problem).into());
            };
            let phrases = phrases.split(',').map(str::trim).filter(|phrase| !phrase.is_empty());
            let phrases: Vec<String> = phrases.map(str::to_owned).collect();
            if phrases.is_empty() {
                return Err(input.malformed(place, "a list without phrases").into());
            }
            places.insert(name.trim().to_owned(), found.lists.len());
            found.lists.push(phrases);
        }
        if found.patterns.is_empty() {
            let problem = "no pattern: expected lines that begin with a colon".to_owned();
            return Err(TrainError::Data { file: path.display().to_string(), problem });
        }
        Ok(found)
    }

    /// A text of one of the patterns. After an apostrophe no space follows.
    pub(super) fn draw(&self, random: &mut Random) -> String {
        let mut text = String::new();
        for part in &self.patterns[random.below(self.patterns.len())] {
            let phrase = match part {
                Part::Word(word) => word,
                Part::List(list) => {
                    let list = &self.lists[*list];
                    &list[random.below(list.len())]
                }
            };
            if !text.is_empty() && !text.ends_with('\'') {
                text.push(' ');
            }
            text.push_str(phrase);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &str) -> Result<Patterns, TrainError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("grammar.conf");
        std::fs::write(&file, content).unwrap();
        Patterns::read(&file)
    }

    #[test]
    fn patterns_draw_phrases_of_their_lists() {
        let file =
            "# scenes\nwho = l'homme, une fille\nnear = près d'\n\n: who attend near un arbre\n";
        let patterns = read(file).unwrap();
        let mut random = Random::seeded(1);
        let mut drawn: Vec<String> = (0..50).map(|_| patterns.draw(&mut random)).collect();
        drawn.sort();
        drawn.dedup();
        let expected = ["l'homme attend près d'un arbre", "une fille attend près d'un arbre"];
        assert_eq!(drawn, expected);
    }

    #[test]
    fn files_that_make_no_sense_are_refused_by_line() {
        for (content, part) in [
            ("who = a\nwhat\n", "line 2: expected"),
            ("who = ,\n", "line 1: a list without"),
            (": who\nwho = a\n", "line 1: a pattern that names"),
            ("who = a\n", "no pattern"),
        ] {
            let said = read(content).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }
}
