//! The words that get vectors: a list sorted by falling frequency, and the probability of each
//! word.

use std::collections::HashMap;
use std::path::Path;

use cognate::model::format::Limits;
use cognate::text;
use cognate::text::{Elongations, Normalisation, Tokens};
use cognate_files::input::Input;
use cognate_train::TrainError;

/// Maximum bytes of a line of the list.
const LINE_BYTES: usize = 1 << 16;

#[derive(Debug, Clone, Default)]
pub struct WordList {
    pub words: Vec<String>,
    /// Occurrences of each word, if the list has them.
    pub counts: Option<Vec<u64>>,
    /// Number of lines left out: repeated words, and words that the rules change, so that no text
    /// can contain them.
    pub left_out: usize,
}

impl WordList {
    /// Reads a list; each line has a word, or a word, a tab and its count.
    pub fn read(path: &Path, rules: &Normalisation) -> Result<Self, TrainError> {
        let mut input = Input::open(path)?;
        input.skip_byte_order_mark()?;
        let mut list = Self::default();
        let mut counts = Vec::new();
        let mut places: HashMap<String, usize> = HashMap::new();
        let (mut counted, mut tokens) = (None, Tokens::new());
        let most = usize::try_from(Limits::DEFAULT.words).unwrap_or(usize::MAX);
        while let Some(line) = input.read_line_bounded(LINE_BYTES)? {
            let line = String::from_utf8_lossy(line).into_owned();
            if line.is_empty() {
                continue;
            }
            let place = cognate_files::Place::Line(input.lines());
            let (word, count) = match line.split_once('\t') {
                None => (line.as_str(), None),
                Some((word, count)) => match count.trim().parse::<u64>() {
                    Ok(count) => (word, Some(count)),
                    Err(_) => {
                        let problem = "expected a word, or a word, a tab and a whole number";
                        return Err(input.malformed(place, problem).into());
                    }
                },
            };
            if *counted.get_or_insert(count.is_some()) != count.is_some() {
                let problem = "some lines have a count and some have none";
                return Err(input.malformed(place, problem).into());
            }
            text::tokenise(rules, word, &mut tokens);
            let kept = tokens.len() == 1 && tokens.text(0) == word;
            if !kept || places.contains_key(word) {
                list.left_out += 1;
                continue;
            }
            if list.words.len() == most {
                let problem = format!("more than {most} words");
                return Err(input.malformed(place, problem).into());
            }
            places.insert(word.to_owned(), list.words.len());
            list.words.push(word.to_owned());
            counts.extend(count);
        }
        if list.words.is_empty() {
            let problem = "no word that the rules for texts give back as it is".to_owned();
            return Err(TrainError::Data { file: path.display().to_string(), problem });
        }
        if counted == Some(true) {
            if counts.iter().all(|&count| count == 0) {
                let problem = "every count is 0".to_owned();
                return Err(TrainError::Data { file: path.display().to_string(), problem });
            }
            list.counts = Some(counts);
        }
        Ok(list)
    }
}

/// Looks up the words of texts for training: as listed, shortened, or as parts around an
/// apostrophe. Unlike a served model it does not look up stems, because the stem's vector must not
/// learn the meaning of another form.
#[derive(Debug)]
pub struct Lookup<'w> {
    rules: &'w Normalisation,
    places: HashMap<&'w str, u32>,
}

/// Buffers that can be reused between look-ups.
#[derive(Debug, Default)]
pub struct LookupMemory {
    tokens: Tokens,
    buffer: String,
}

impl<'w> Lookup<'w> {
    /// A look-up of these words.
    pub fn new(words: &'w [String], rules: &'w Normalisation) -> Self {
        let places = words.iter().enumerate();
        Self { rules, places: places.map(|(at, word)| (word.as_str(), at as u32)).collect() }
    }

    /// Appends the indices of a text's words.
    pub fn read(&self, text: &str, memory: &mut LookupMemory, found: &mut Vec<u32>) {
        text::tokenise(self.rules, text, &mut memory.tokens);
        for token in memory.tokens.texts() {
            if let Some(&place) = self.places.get(token) {
                found.push(place);
                continue;
            }
            if self.rules.elongations == Elongations::Shorten {
                let short = [2, 1].into_iter().find_map(|run| {
                    let shorter = text::shortened(token, run, &mut memory.buffer);
                    self.places.get(memory.buffer.as_str()).filter(|_| shorter)
                });
                if let Some(&place) = short {
                    found.push(place);
                    continue;
                }
            }
            if token.contains('\'') {
                found.extend(token.split('\'').filter_map(|part| self.places.get(part)));
            }
        }
    }
}

/// The share of the running text that each word makes up.
pub fn probabilities(counts: &[u64]) -> Vec<f64> {
    let total = counts.iter().map(|&count| count as f64).sum::<f64>().max(1.0);
    counts.iter().map(|&count| count as f64 / total).collect()
}

pub fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &str) -> Result<WordList, TrainError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("words.tsv");
        std::fs::write(&file, list).unwrap();
        WordList::read(&file, &Normalisation::preset("plain").unwrap())
    }

    #[test]
    fn words_that_no_text_can_have_are_left_out() {
        let list = read("the\t9\nThe\t5\nnew york\t3\nthe\t2\ndon't\t1\n").unwrap();
        assert_eq!(list.words, ["the", "don't"]);
        assert_eq!(list.counts, Some(vec![9, 1]));
        assert_eq!(list.left_out, 3);
        assert_eq!(read("the\nof\n").unwrap().counts, None);
    }

    #[test]
    fn lists_that_make_no_sense_are_refused_by_line() {
        for (list, part) in [
            ("the\t9\nof\n", "line 2: some lines have a count"),
            ("the\tmany\n", "line 1: expected a word"),
            ("the\t0\nof\t0\n", "every count is 0"),
            ("...\n", "no word"),
        ] {
            let said = read(list).unwrap_err().to_string();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn texts_are_looked_up_by_words_and_by_parts() {
        let words = ["rock", "roll", "don't"].map(str::to_owned);
        let rules = Normalisation::preset("plain").unwrap();
        let mut found = Vec::new();
        Lookup::new(&words, &rules).read(
            "Don't rock'n'roll, ROCKS!",
            &mut LookupMemory::default(),
            &mut found,
        );
        assert_eq!(found, [2, 0, 1]);
    }
}
