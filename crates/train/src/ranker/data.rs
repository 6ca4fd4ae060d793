//! Judged posts as numbers: topics are read from files and divided into training and validation
//! topics, every text is looked up once, and examples of similar length are grouped into batches.
//!
//! A text is looked up as the service will look it up in the written model: a token that the given
//! model does not list, but that occurs often enough in the training texts, becomes a new word;
//! words whose vectors are composed for each text are left out, because no vector could be learned
//! for them.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use cognate::model::provenance::TrainingFile;
use cognate::model::{Model, Phrase};
use cognate_files::rows::Rows;
use cognate_files::topics;
use cognate_files::topics::Topic;
use cognate_kernels::random::Random;

use crate::ranker::RankerOptions;
use crate::ranker::pool::Positions;
use crate::run::{trained_on, unfit_data};
use crate::{Result, sampling};

const PARTING: u64 = 0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    pub query: u32,
    pub post: u32,
    pub relevant: bool,
}

#[derive(Debug, Default)]
pub struct Texts {
    words: Vec<u32>,
    ends: Vec<usize>,
}

impl Texts {
    pub fn add(&mut self, words: &[u32]) -> u32 {
        self.words.extend_from_slice(words);
        self.ends.push(self.words.len());
        (self.ends.len() - 1) as u32
    }

    pub fn get(&self, text: u32) -> &[u32] {
        let text = text as usize;
        let from = text.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.words[from..self.ends[text]]
    }
}

#[derive(Debug)]
pub struct Words {
    /// The id of each word in the new model, indexed by word number minus 1.
    pub ids: Vec<u32>,
    pub new: Vec<String>,
}

#[derive(Debug)]
pub struct Data {
    pub texts: Texts,
    pub words: Words,
    pub examples: Vec<Example>,
    pub queries: usize,
    pub judges: Vec<(Topic, Vec<Example>)>,
    pub files: [Vec<TrainingFile>; 2],
}

impl Data {
    pub fn read(model: &Model, options: &RankerOptions) -> Result<Self> {
        let (mut topics, training) = read(&options.files)?;
        let (mut judges, judging) = read(&options.valid)?;
        let files = [training, judging];
        if options.valid.is_empty() {
            judges = hold_out(&mut topics, options);
        }
        // A query needs both kinds of candidates to be trained or measured on.
        let of_both = |topic: &Topic| {
            let relevant = topic.grades.iter().filter(|&&grade| grade > 0).count();
            relevant > 0 && relevant < topic.grades.len()
        };
        judges.retain(of_both);
        if judges.is_empty() || !topics.iter().any(of_both) {
            let problem = "expected queries with relevant candidates and others, both to train on \
                           and to judge by";
            return Err(unfit_data(&files, problem));
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
        Ok(Self { texts, examples, queries: topics.len(), judges, files, words: reader.words })
    }
}

fn read(paths: &[PathBuf]) -> Result<(Vec<Topic>, Vec<TrainingFile>)> {
    let (mut found, mut files) = (Vec::new(), Vec::new());
    for path in paths {
        files.push(trained_on(path)?);
        found.extend(topics::read(&mut Rows::open(path)?, &[], |field, _| Ok(field))?);
    }
    Ok((found, files))
}

/// Removes a random share of the topics, at least one; their order is kept.
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
    new: HashMap<String, u32>,
    /// Word numbers by their ids in the new model.
    numbers: HashMap<u32, u32>,
    pub words: Words,
}

impl<'m> Reader<'m> {
    /// A reader for the model's words and for new tokens that occur at least `least` times in the
    /// topics' texts.
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
        let mut words = self.phrase.origins().zip(self.phrase.words()).peekable();
        for (position, token) in (0..).zip(self.phrase.tokens().texts()) {
            // Tokens listed in the new model need no further look-up.
            let new = self.new.get(token).copied();
            ids.extend(new);
            while let Some((_, &word)) = words.next_if(|(origin, _)| origin.token == position) {
                if new.is_none() {
                    ids.extend(self.phrase.id(word));
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

fn unlisted<'p>(phrase: &'p Phrase<'_>) -> impl Iterator<Item = &'p str> {
    let words = phrase.origins().zip(phrase.words());
    let listed = words.filter(|(_, word)| phrase.id(**word).is_some());
    let mut known: Vec<u32> = listed.map(|(origin, _)| origin.token).collect();
    known.dedup();
    let tokens = (0..).zip(phrase.tokens().texts());
    tokens
        .filter(move |(position, _)| known.binary_search(position).is_err())
        .map(|(_, token)| token)
}

/// Number of batches that are sorted by length together: enough to make lengths similar, few enough
/// to keep batches random.
const CHUNK: usize = 24;

/// Texts of a batch, padded to the longest.
#[derive(Debug, Default)]
pub struct PaddedTexts {
    /// For each position the index of its word in [`Batch::words`]; 0 is the padding row.
    pub places: Vec<u32>,
    pub width: usize,
    pub lengths: Vec<usize>,
}

#[derive(Debug, Default)]
pub struct Batch {
    pub words: Vec<u32>,
    pub queries: PaddedTexts,
    pub posts: PaddedTexts,
    pub query_of: Vec<u32>,
    /// 1 if the post is relevant, else 0.
    pub labels: Vec<u32>,
}

impl PaddedTexts {
    pub fn positions(&self) -> Positions<'_> {
        Positions { places: &self.places, lengths: &self.lengths }
    }
}

/// The distinct pairs of a query word and a post word that occur in an example, and the posts as
/// lists of such pairs, one list for every word of the query.
#[derive(Debug)]
pub struct WordPairs {
    /// The indices of the two words of each pair; the first pair is padding.
    pub words: [Vec<u32>; 2],
    /// For each example and query position, the post's positions as indices of pairs.
    pub texts: PaddedTexts,
}

impl Batch {
    pub fn new(texts: &Texts, examples: &[Example]) -> Self {
        let mut queries: Vec<u32> = examples.iter().map(|example| example.query).collect();
        queries.sort_unstable();
        queries.dedup();
        let query_of = examples
            .iter()
            .map(|example| queries.binary_search(&example.query).map_or(0, |place| place as u32));
        let query_of = query_of.collect();
        let mut numbers = Numbers { words: vec![0], of: HashMap::new() };
        Self {
            queries: numbers.fill(queries.iter().map(|&query| texts.get(query))),
            posts: numbers.fill(examples.iter().map(|example| texts.get(example.post))),
            query_of,
            labels: examples.iter().map(|example| u32::from(example.relevant)).collect(),
            words: numbers.words,
        }
    }

    pub fn word_pairs(&self) -> WordPairs {
        let (asking, width) = (self.queries.width, self.posts.width);
        let mut met = WordPairs {
            words: [vec![0], vec![0]],
            texts: PaddedTexts { width, ..PaddedTexts::default() },
        };
        let mut places: HashMap<[u32; 2], u32> = HashMap::from([([0, 0], 0)]);
        for (&query, post) in self.query_of.iter().zip(self.posts.places.chunks_exact(width)) {
            let from = query as usize * asking;
            for &one in &self.queries.places[from..from + asking] {
                for &other in post {
                    // A padding position on either side makes a padding pair.
                    let pair = if one == 0 || other == 0 { [0, 0] } else { [one, other] };
                    let place = *places.entry(pair).or_insert_with(|| {
                        met.words[0].push(one);
                        met.words[1].push(other);
                        met.words[0].len() as u32 - 1
                    });
                    met.texts.places.push(place);
                }
            }
        }
        let lengths = self.posts.lengths.iter();
        met.texts.lengths = lengths.flat_map(|&l| std::iter::repeat_n(l, asking)).collect();
        met
    }

    /// The weight of each position of an example's query in the mean over its words.
    pub fn shares(&self) -> Vec<f32> {
        let share = |&query: &u32| {
            let length = self.queries.lengths[query as usize];
            (0..self.queries.width)
                .map(move |at| if at < length { 1.0 / length as f32 } else { 0.0 })
        };
        self.query_of.iter().flat_map(share).collect()
    }
}

struct Numbers {
    words: Vec<u32>,
    of: HashMap<u32, u32>,
}

impl Numbers {
    fn fill<'t>(&mut self, texts: impl Iterator<Item = &'t [u32]> + Clone) -> PaddedTexts {
        let width = texts.clone().map(<[u32]>::len).max().unwrap_or(0).max(1);
        let mut filled = PaddedTexts { width, ..PaddedTexts::default() };
        for text in texts {
            for &word in text {
                let next = self.words.len() as u32;
                let place = *self.of.entry(word).or_insert(next);
                if place == next {
                    self.words.push(word);
                }
                filled.places.push(place);
            }
            filled.places.resize(filled.places.len() + width - text.len(), 0);
            filled.lengths.push(text.len());
        }
        filled
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grouping {
    /// Posts of one query, so that a step is about what tells them apart
    Query,
    /// Posts of any queries
    Mixed,
}

/// The batches of an epoch in random order: every example is in exactly one batch, among examples
/// of similar length.
pub fn order(
    texts: &Texts,
    examples: &[Example],
    (grouping, size): (Grouping, usize),
    random: &mut Random,
) -> Vec<Vec<u32>> {
    let mut places: Vec<u32> = (0..examples.len() as u32).collect();
    let of = |place: u32| &examples[place as usize];
    random.shuffle(&mut places);
    let mut batches: Vec<Vec<u32>> = Vec::new();
    let mut fill = |chunk: &mut [u32], length: &dyn Fn(&Example) -> (usize, usize)| {
        chunk.sort_by_key(|&place| length(of(place)));
        batches.extend(chunk.chunks(size).map(<[u32]>::to_vec));
    };
    match grouping {
        Grouping::Mixed => {
            let length =
                |example: &Example| (texts.get(example.query).len(), texts.get(example.post).len());
            places.chunks_mut(size * CHUNK).for_each(|chunk| fill(chunk, &length));
        }
        Grouping::Query => {
            places.sort_by_key(|&place| of(place).query);
            for asked in places.chunk_by_mut(|&one, &other| of(one).query == of(other).query) {
                // Posts are assigned to batches at random; their lengths hardly differ.
                fill(asked, &|_| (0, 0));
            }
        }
    }
    random.shuffle(&mut batches);
    batches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_filled_up_and_every_word_is_numbered_once() {
        let mut texts = Texts::default();
        let query = texts.add(&[7, 9]);
        let posts = [&[9, 9, 3][..], &[], &[5]].map(|post| texts.add(post));
        let example = |post| Example { query, post, relevant: post == posts[0] };
        let batch = Batch::new(&texts, &posts.map(example));
        assert_eq!(batch.words, [0, 7, 9, 3, 5]);
        assert_eq!(batch.queries.places, [1, 2]);
        assert_eq!(batch.posts.places, [2, 2, 3, 0, 0, 0, 4, 0, 0]);
        assert_eq!((batch.posts.width, &batch.posts.lengths[..]), (3, &[3, 0, 1][..]));
        assert_eq!(
            (batch.query_of.as_slice(), batch.labels.as_slice()),
            (&[0; 3][..], &[1, 0, 0][..])
        );
        assert_eq!(batch.shares(), [0.5; 6]);
        let met = batch.word_pairs();
        assert_eq!(met.words, [vec![0, 1, 1, 2, 2, 1, 2], vec![0, 2, 3, 2, 3, 4, 4]]);
        assert_eq!(met.texts.places[..6], [1, 1, 2, 3, 3, 4]);
        assert_eq!(met.texts.places[12..], [5, 0, 0, 6, 0, 0]);
        assert_eq!(met.texts.lengths, [3, 3, 0, 0, 1, 1]);
    }

    #[test]
    fn an_epoch_holds_every_example_once() {
        let mut texts = Texts::default();
        let queries = [1, 2, 3].map(|word| texts.add(&[word]));
        let examples: Vec<Example> = (0..1000_usize)
            .map(|at| Example {
                query: queries[at % 3],
                post: texts.add(&vec![2; at % 7]),
                relevant: false,
            })
            .collect();
        for grouping in [Grouping::Query, Grouping::Mixed] {
            let batches = order(&texts, &examples, (grouping, 16), &mut Random::seeded(3));
            let one_query = |batch: &Vec<u32>| {
                batch
                    .iter()
                    .all(|&at| examples[at as usize].query == examples[batch[0] as usize].query)
            };
            assert_eq!(batches.iter().all(one_query), grouping == Grouping::Query);
            let mut seen: Vec<u32> = batches.concat();
            seen.sort_unstable();
            assert!(seen.into_iter().eq(0..1000));
        }
    }
}
