//! Examples put together for one step: texts of about the same length side by side, their words
//! numbered within the batch, shorter texts filled up with a row of zeros.

use std::collections::HashMap;

use cognate_kernels::random::Random;

use crate::ranker::data::{Example, Texts};
use crate::ranker::pool::Positions;

/// Batches whose examples are put in order of length together: enough for lengths to be alike, few
/// enough for batches to stay mixed.
const CHUNK: usize = 24;

/// Texts of a batch, filled up to the longest.
#[derive(Debug, Default)]
pub struct Filled {
    /// Where each position's row stands among [`Batch::words`]; 0 is the row of zeros.
    pub places: Vec<u32>,
    /// Positions of a text, at least one.
    pub width: usize,
    /// Positions of each text that are no filling.
    pub lengths: Vec<usize>,
}

/// Examples for one step.
#[derive(Debug, Default)]
pub struct Batch {
    /// The words of all texts; the first stands for filling and is none.
    pub words: Vec<u32>,
    pub queries: Filled,
    /// The post of each example.
    pub posts: Filled,
    /// The query of each example.
    pub query_of: Vec<u32>,
    /// 1 where the post is relevant.
    pub labels: Vec<u32>,
}

impl Filled {
    /// The positions and the words they hold.
    pub fn positions(&self) -> Positions<'_> {
        Positions { places: &self.places, lengths: &self.lengths }
    }
}

/// Words of posts met by words of queries: each such pair once, and the posts as pairs, once for
/// every word of the query.
#[derive(Debug)]
pub struct Met {
    /// The places of both words of each pair; the first pair is filling.
    pub words: [Vec<u32>; 2],
    /// For each example and each position of its query, the post's positions as places of pairs.
    pub texts: Filled,
}

impl Batch {
    pub fn of(texts: &Texts, examples: &[Example]) -> Self {
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

    /// The pairs of words that meet.
    pub fn met(&self) -> Met {
        let (asking, width) = (self.queries.width, self.posts.width);
        let mut met =
            Met { words: [vec![0], vec![0]], texts: Filled { width, ..Filled::default() } };
        let mut places: HashMap<[u32; 2], u32> = HashMap::from([([0, 0], 0)]);
        for (&query, post) in self.query_of.iter().zip(self.posts.places.chunks_exact(width)) {
            let from = query as usize * asking;
            for &one in &self.queries.places[from..from + asking] {
                for &other in post {
                    // Filling of either kind meets nothing.
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

    /// What each position of an example's query counts in the mean over its words.
    pub fn shares(&self) -> Vec<f32> {
        let share = |&query: &u32| {
            let length = self.queries.lengths[query as usize];
            (0..self.queries.width)
                .map(move |at| if at < length { 1.0 / length as f32 } else { 0.0 })
        };
        self.query_of.iter().flat_map(share).collect()
    }
}

/// Words of a batch by the order in which they are met.
struct Numbers {
    words: Vec<u32>,
    of: HashMap<u32, u32>,
}

impl Numbers {
    fn fill<'t>(&mut self, texts: impl Iterator<Item = &'t [u32]> + Clone) -> Filled {
        let width = texts.clone().map(<[u32]>::len).max().unwrap_or(0).max(1);
        let mut filled = Filled { width, ..Filled::default() };
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

/// Which examples stand in one batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Grouping {
    /// Posts of one query, so that a step is about what tells them apart
    Query,
    /// Posts of any queries
    Mixed,
}

/// The batches of an epoch, drawn at random: every example stands in one of them, beside others of
/// about its length.
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
                // Which posts share a batch is left to chance; their lengths hardly differ.
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
        let batch = Batch::of(&texts, &posts.map(example));
        assert_eq!(batch.words, [0, 7, 9, 3, 5]);
        assert_eq!(batch.queries.places, [1, 2]);
        assert_eq!(batch.posts.places, [2, 2, 3, 0, 0, 0, 4, 0, 0]);
        assert_eq!((batch.posts.width, &batch.posts.lengths[..]), (3, &[3, 0, 1][..]));
        assert_eq!(
            (batch.query_of.as_slice(), batch.labels.as_slice()),
            (&[0; 3][..], &[1, 0, 0][..])
        );
        assert_eq!(batch.shares(), [0.5; 6]);
        let met = batch.met();
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
