//! Running text in memory as word numbers: sentences one after another, grouped by document,
//! without rare words.
//!
//! Four bytes a word, so text of a billion words takes four gigabytes. What is learned from the
//! sentences is not known here.

use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use cognate::model::format::Limits;
use cognate::text;
use cognate::text::{Normalisation, Tokens};
use cognate_files::Place;
use cognate_files::input::Input;
use cognate_files::progress::Progress;

use crate::Result;
use crate::run::unfit;

const RARE: u32 = u32::MAX;

#[derive(Debug)]
pub struct Corpus {
    pub words: Vec<String>,
    /// The number of each word in the sentences: its index in `words`, unless renumbered.
    pub numbers: Vec<u32>,
    pub counts: Vec<u64>,
    pub lines_with: Vec<u32>,
    pub tokens: u64,
    pub lines: u64,
    pub digest: String,
    text: Vec<u32>,
    ends: Vec<usize>,
    document_of: Vec<u32>,
}

impl Corpus {
    /// Reads files with a sentence a line; an empty line ends a paragraph, two end a document, and
    /// so does the end of a file. Leaves out words with fewer than `least` occurrences, and sentences
    /// that have only such words.
    pub fn read(files: &[PathBuf], rules: &Normalisation, least: u64) -> Result<Self> {
        let progress = Progress::bytes("reading");
        let mut draft = Draft::default();
        for file in files {
            let mut input = Input::open(file)?;
            input.skip_byte_order_mark()?;
            let mut blank = 2;
            while let Some(line) = input.read_line()? {
                let Ok(line) = std::str::from_utf8(line) else {
                    let place = Place::Line(input.lines());
                    return Err(input.malformed(place, "the text is not UTF-8").into());
                };
                if line.trim().is_empty() {
                    blank += 1;
                } else {
                    draft.sentence(rules, line, blank >= 2);
                    blank = 0;
                }
                progress.follow(&input);
            }
        }
        let corpus = draft.finish(least);
        if corpus.words.is_empty() {
            return Err(unfit(files, &format!("no word occurs {least} times")));
        }
        Ok(corpus)
    }

    pub fn sentences(&self) -> usize {
        self.ends.len()
    }

    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    #[inline]
    pub fn sentence(&self, at: usize) -> &[u32] {
        &self.text[self.span(at..at + 1)]
    }

    fn span(&self, sentences: Range<usize>) -> Range<usize> {
        let start = |at: usize| if at == 0 { 0 } else { self.ends[at - 1] };
        start(sentences.start)..start(sentences.end)
    }

    pub fn words_in(&self, sentences: Range<usize>) -> usize {
        self.span(sentences).len()
    }

    #[inline]
    pub fn document_of(&self, at: usize) -> u32 {
        self.document_of[at]
    }

    pub fn same_document(&self, at: usize, other: usize) -> bool {
        matches!((self.document_of.get(at), self.document_of.get(other)), (Some(a), Some(b)) if a == b)
    }

    /// Replaces word numbers, for vectors of a larger vocabulary.
    pub fn renumber(&mut self, numbers: Vec<u32>) {
        self.text.iter_mut().for_each(|word| *word = numbers[*word as usize]);
        self.numbers = numbers;
    }
}

#[derive(Default)]
struct Draft {
    numbers: HashMap<Box<str>, u32>,
    counts: Vec<u64>,
    lines_with: Vec<u32>,
    last_seen: Vec<u64>,
    tokens: Tokens,
    digest: blake3::Hasher,
    lines: u64,
    documents: u32,
    text: Vec<u32>,
    ends: Vec<usize>,
    document_of: Vec<u32>,
}

impl Draft {
    fn sentence(&mut self, rules: &Normalisation, line: &str, opens_document: bool) {
        if opens_document {
            self.documents = self.documents.saturating_add(1);
        }
        self.lines += 1;
        text::tokenise(rules, line, &mut self.tokens);
        for token in self.tokens.texts() {
            let number = match self.numbers.get(token) {
                Some(&number) => number as usize,
                None => {
                    let number = self.counts.len();
                    self.numbers.insert(token.into(), number as u32);
                    self.counts.push(0);
                    self.lines_with.push(0);
                    self.last_seen.push(0);
                    number
                }
            };
            self.counts[number] += 1;
            if std::mem::replace(&mut self.last_seen[number], self.lines) != self.lines {
                self.lines_with[number] += 1;
            }
            self.text.push(number as u32);
            self.digest.update(token.as_bytes()).update(b" ");
        }
        self.digest.update(if opens_document { b"\n\n" } else { b"\n" });
        self.ends.push(self.text.len());
        self.document_of.push(self.documents);
    }

    fn finish(self, least: u64) -> Corpus {
        let mut kept: Vec<(Box<str>, u32)> = self.numbers.into_iter().collect();
        kept.retain(|(_, number)| self.counts[*number as usize] >= least);
        // Words of equal count are ordered by name, so that the order of reading does not matter.
        kept.sort_unstable_by(|(a, m), (b, n)| {
            let count = |number: &u32| self.counts[*number as usize];
            count(n).cmp(&count(m)).then_with(|| a.cmp(b))
        });
        kept.truncate(usize::try_from(Limits::DEFAULT.words).unwrap_or(usize::MAX));
        let mut anew = vec![RARE; self.counts.len()];
        for (number, (_, old)) in kept.iter().enumerate() {
            anew[*old as usize] = number as u32;
        }
        let tokens = self.text.len() as u64;
        let mut corpus = Corpus {
            counts: kept.iter().map(|(_, old)| self.counts[*old as usize]).collect(),
            lines_with: kept.iter().map(|(_, old)| self.lines_with[*old as usize]).collect(),
            numbers: (0..kept.len() as u32).collect(),
            words: kept.into_iter().map(|(word, _)| word.into()).collect(),
            tokens,
            lines: self.lines,
            digest: self.digest.finalize().to_hex().to_string(),
            text: Vec::with_capacity(self.text.len()),
            ends: Vec::with_capacity(self.ends.len()),
            document_of: Vec::with_capacity(self.ends.len()),
        };
        let mut from = 0;
        for (end, document) in self.ends.into_iter().zip(self.document_of) {
            let before = corpus.text.len();
            let numbers = self.text[from..end].iter().map(|&old| anew[old as usize]);
            corpus.text.extend(numbers.filter(|&number| number != RARE));
            from = end;
            if corpus.text.len() > before {
                corpus.ends.push(corpus.text.len());
                corpus.document_of.push(document);
            }
        }
        corpus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(text: &str, least: u64) -> Result<Corpus> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("text.txt");
        std::fs::write(&file, text).unwrap();
        Corpus::read(&[file], &Normalisation::preset("plain").unwrap(), least)
    }

    #[test]
    fn sentences_and_documents_are_told_apart() {
        let corpus = corpus("A b, a.\nB c!\n\nA a\n\n\nc b\n", 2).unwrap();
        assert_eq!(corpus.words, ["a", "b", "c"]);
        assert_eq!(corpus.counts, [4, 3, 2]);
        assert_eq!(corpus.lines_with, [2, 3, 2]);
        let sentences: Vec<_> = (0..corpus.sentences()).map(|at| corpus.sentence(at)).collect();
        assert_eq!(sentences, [&[0, 1, 0][..], &[1, 2], &[0, 0], &[2, 1]]);
        assert!(corpus.same_document(1, 2) && !corpus.same_document(2, 3));
        assert!(!corpus.same_document(3, 4));
        assert_eq!(corpus.words_in(1..3), 4);
    }

    #[test]
    fn rare_words_and_sentences_of_nothing_else_are_left_out() {
        let found = corpus("a a rare\nonce\na b b\n", 2).unwrap();
        assert_eq!((found.tokens, found.len(), found.sentences()), (7, 5, 2));
        let refusal = corpus("each word once\n", 2).unwrap_err().to_string();
        assert!(refusal.contains("no word occurs 2 times"), "{refusal}");
    }
}
