//! Judged posts as numbers: topics read from files, parted into those trained on and those that
//! judge, and every text looked up once.
//!
//! A text is looked up as serving will look it up in the model to be: a token that the given model
//! does not list, but that occurs often enough in the texts trained on, becomes a word of its own;
//! words whose vectors are made for a text are left out, because nothing could be learned for them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use cognate::model::provenance::TrainingFile;
use cognate::model::{Model, Phrase};
use cognate_files::rows::Rows;
use cognate_files::topics;
use cognate_files::topics::Topic;

use crate::ranker::RankerOptions;
use crate::source::trained_on;
use crate::{TrainError, sampling};

/// What random choices are for.
const PARTING: u64 = 0;

/// A query and a post, by their numbers among the texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    pub query: u32,
    /// Which text may answer.
    pub post: u32,
    /// Whether it was judged relevant.
    pub relevant: bool,
}

/// Texts as numbers of words, one after another.
#[derive(Debug, Default)]
pub struct Texts {
    words: Vec<u32>,
    ends: Vec<usize>,
}

impl Texts {
    /// Keeps a text, and gives it a number.
    pub fn add(&mut self, words: &[u32]) -> u32 {
        self.words.extend_from_slice(words);
        self.ends.push(self.words.len());
        (self.ends.len() - 1) as u32
    }

    /// The words of a text.
    pub fn get(&self, text: u32) -> &[u32] {
        let text = text as usize;
        let from = text.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.words[from..self.ends[text]]
    }
}

/// The words that texts consist of. Their numbers begin at 1: 0 stands for no word.
#[derive(Debug)]
pub struct Words {
    /// The id of each word in the model to be, by its number less 1.
    pub ids: Vec<u32>,
    /// Words that the given model does not list; their ids follow the model's.
    pub new: Vec<String>,
}

/// What a run learns from and is judged by.
#[derive(Debug)]
pub struct Data {
    pub texts: Texts,
    pub words: Words,
    /// What is trained on.
    pub examples: Vec<Example>,
    pub queries: usize,
    /// Queries that judge, with their candidates.
    pub judges: Vec<(Topic, Vec<Example>)>,
    pub files: [Vec<TrainingFile>; 2],
}

impl Data {
    /// Reads the files, parts their topics and looks texts up.
    pub fn read(model: &Model, options: &RankerOptions) -> Result<Self, TrainError> {
        let (mut topics, files) = read(&options.files)?;
        let (mut judges, judging_files) = read(&options.valid)?;
        if options.valid.is_empty() {
            judges = hold_out(&mut topics, options);
        }
        // Nothing can be learned from, or measured on, a query without both kinds.
        let of_both = |topic: &Topic| {
            let relevant = topic.grades.iter().filter(|&&grade| grade > 0).count();
            relevant > 0 && relevant < topic.grades.len()
        };
        judges.retain(of_both);
        if judges.is_empty() || !topics.iter().any(of_both) {
            let names = files.iter().chain(&judging_files).map(|file| file.name.as_str());
            let problem = "expected queries with relevant candidates and others, both to train on \
                           and to judge by";
            return Err(TrainError::Data {
                file: names.collect::<Vec<_>>().join(", "),
                problem: problem.to_owned(),
            });
        }
        let mut reader = Reader::new(model, &topics, options.least);
        let mut texts = Texts::default();
        let mut examples = Vec::new();
        for topic in &topics {
            examples.extend(reader.topic(topic, &mut texts));
        }
        let judges = judges.into_iter().map(|topic| {
            let examples = reader.topic(&topic, &mut texts);
            (topic, examples)
        });
        let judges = judges.collect();
        let files = [files, judging_files];
        Ok(Self { texts, examples, queries: topics.len(), judges, files, words: reader.words })
    }
}

/// Every topic of some files; a name may stand in several.
fn read(paths: &[PathBuf]) -> Result<(Vec<Topic>, Vec<TrainingFile>), TrainError> {
    let (mut found, mut files) = (Vec::new(), Vec::new());
    for path in paths {
        files.push(trained_on(path)?);
        found.extend(topics::read(&mut Rows::open(path)?, &[], |field, _| Ok(field))?);
    }
    Ok((found, files))
}

/// Takes a share of the topics out, drawn by the seed, at least one; in their order.
fn hold_out(topics: &mut Vec<Topic>, options: &RankerOptions) -> Vec<Topic> {
    let mut drawn: Vec<usize> = (0..topics.len()).collect();
    sampling::generator(options.seed, PARTING, [0, 0]).shuffle(&mut drawn);
    let share = (topics.len() as f64 * options.valid_share).round() as usize;
    drawn.truncate(share.max(1));
    let all = std::mem::take(topics).into_iter().enumerate();
    let (held_out, rest): (Vec<_>, Vec<_>) = all.partition(|(place, _)| drawn.contains(place));
    *topics = rest.into_iter().map(|(_, topic)| topic).collect();
    held_out.into_iter().map(|(_, topic)| topic).collect()
}

pub struct Reader<'m> {
    phrase: Phrase<'m>,
    /// New words and their ids.
    new: HashMap<String, u32>,
    /// The number of each word by its id.
    numbers: HashMap<u32, u32>,
    /// The words of the texts looked up so far.
    pub words: Words,
}

impl<'m> Reader<'m> {
    /// A reader that knows the model's words, and the tokens that the topics' texts hold `least`
    /// times.
    pub fn new(model: &'m Model, topics: &[Topic], least: u64) -> Self {
        let mut phrase = Phrase::new(model);
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for topic in topics {
            for text in std::iter::once(&topic.query).chain(&topic.texts) {
                phrase.read(text);
                for token in unlisted(&phrase) {
                    *counts.entry(token.to_owned()).or_default() += 1;
                }
            }
        }
        let new: Vec<String> =
            counts.into_iter().filter(|(_, count)| *count >= least).map(|(word, _)| word).collect();
        let first = model.vocabulary().len() as u32;
        Self {
            phrase,
            new: new.iter().cloned().zip(first..).collect(),
            numbers: HashMap::new(),
            words: Words { ids: Vec::new(), new },
        }
    }

    /// Looks up a query and its candidates.
    pub fn topic(&mut self, topic: &Topic, texts: &mut Texts) -> Vec<Example> {
        let query = texts.add(&self.read(&topic.query));
        let candidates = topic.texts.iter().zip(&topic.grades);
        candidates
            .map(|(text, &grade)| {
                let post = texts.add(&self.read(text));
                Example { query, post, relevant: grade > 0 }
            })
            .collect()
    }

    fn read(&mut self, text: &str) -> Vec<u32> {
        self.phrase.read(text);
        let mut ids = Vec::new();
        let mut words = self.phrase.words().iter().peekable();
        for (position, (token, _)) in (0..).zip(self.phrase.tokens().iter()) {
            // What the model to be lists is looked up no further.
            let new = self.new.get(token).copied();
            ids.extend(new);
            while let Some(word) = words.next_if(|word| word.token == position) {
                if new.is_none() {
                    ids.extend(word.id);
                }
            }
        }
        let number = |id: u32| {
            let next = self.words.ids.len() as u32 + 1;
            let number = *self.numbers.entry(id).or_insert(next);
            if number == next {
                self.words.ids.push(id);
            }
            number
        };
        ids.into_iter().map(number).collect()
    }
}

/// The tokens of a text for which the model has no learned vector.
fn unlisted<'p>(phrase: &'p Phrase<'_>) -> impl Iterator<Item = &'p str> {
    let mut known: Vec<u32> =
        phrase.words().iter().filter(|word| word.id.is_some()).map(|word| word.token).collect();
    known.dedup();
    let tokens = (0..).zip(phrase.tokens().iter());
    tokens
        .filter(move |(position, _)| known.binary_search(position).is_err())
        .map(|(_, (token, _))| token)
}
