//! The tokens of a text as a bag: every token, whether or not the model knows it, with its count. What
//! tokens weigh is not kept here.

use crate::methods::Shares;
use crate::model::Phrase;

/// Keys from here on belong to no text: they are above every id, and lack the bit of unlisted tokens.
const NO_TEXT: u64 = 1 << 32;

/// Tokens by their keys, sorted, so that the order of the text is forgotten.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TokenBag {
    sorted: Vec<u64>,
    pub(crate) tokens: Vec<(u64, u32)>,
}

impl TokenBag {
    pub(crate) fn from_phrase(phrase: &Phrase<'_>) -> Self {
        let mut bag = Self::default();
        bag.read(phrase);
        bag
    }

    pub(crate) fn read(&mut self, phrase: &Phrase<'_>) {
        self.sorted.clear();
        self.sorted.extend(phrase.token_keys());
        self.sorted.sort_unstable();
        self.count();
    }

    /// Replaces the bag by these tokens, each with its count, and by `others` different tokens that
    /// no text has.
    pub(crate) fn imagine(&mut self, tokens: impl Iterator<Item = (u64, u32)>, others: usize) {
        self.sorted.clear();
        for (key, times) in tokens {
            self.sorted.extend(std::iter::repeat_n(key, times as usize));
        }
        self.sorted.extend((NO_TEXT..).take(others));
        self.sorted.sort_unstable();
        self.count();
    }

    /// Reads a bag of tokens from sorted keys.
    pub(crate) fn read_sorted(&mut self, keys: &[u64]) {
        self.sorted.clear();
        self.sorted.extend_from_slice(keys);
        self.count();
    }

    fn count(&mut self) {
        self.tokens.clear();
        let runs = self.sorted.chunk_by(|a, b| a == b);
        let counted = runs.filter_map(|run| Some((*run.first()?, run.len() as u32)));
        self.tokens.extend(counted);
    }

    /// Number of tokens, repetitions included.
    pub(crate) fn length(&self) -> usize {
        self.sorted.len()
    }

    pub(crate) fn times(&self, key: u64) -> u32 {
        let at = self.tokens.binary_search_by_key(&key, |&(known, _)| known).ok();
        at.and_then(|at| self.tokens.get(at)).map_or(0, |&(_, times)| times)
    }

    /// Tokens that stand in both bags: key, and how often in either.
    pub(crate) fn shared<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (u64, u32, u32)> + 'a {
        let mut rest = other.tokens.as_slice();
        self.tokens.iter().filter_map(move |&(key, times)| {
            let before = rest.partition_point(|&(passed, _)| passed < key);
            rest = rest.get(before..).unwrap_or_default();
            let &(found, other_times) = rest.first()?;
            (found == key).then_some((key, times, other_times))
        })
    }

    /// Lays what each shared token adds to the score on the tokens of both texts: half on either
    /// side, and there the same on each time it occurs.
    pub(crate) fn lay_out(
        texts: [&Phrase<'_>; 2],
        bags: [&Self; 2],
        adds: impl Fn(u64, u32, u32) -> f64,
    ) -> Shares {
        let [one, other] = bags;
        let adds: Vec<(u64, f64)> =
            one.shared(other).map(|(key, a, b)| (key, adds(key, a, b))).collect();
        let side = |text: &Phrase<'_>, bag: &Self| {
            let share = |key: u64| {
                let added = adds.binary_search_by_key(&key, |(key, _)| *key).ok();
                let times = bag.tokens.binary_search_by_key(&key, |(key, _)| *key).ok();
                match (added.and_then(|at| adds.get(at)), times.and_then(|at| bag.tokens.get(at))) {
                    (Some((_, added)), Some((_, times))) => {
                        (added / 2.0 / f64::from(*times)) as f32
                    }
                    _ => 0.0,
                }
            };
            text.token_keys().map(share).collect()
        };
        let (of_one, of_other) = (side(texts[0], one), side(texts[1], other));
        Shares { one: of_one, other: of_other, memberships: None }
    }

    /// Lays what each token of this bag adds to the score (key and sum, in the order of keys) on
    /// the tokens of the query whose bag it is: the same on each time it occurs, and nothing on
    /// those of the post.
    pub(crate) fn lay_on_query(&self, texts: [&Phrase<'_>; 2], adds: &[(u64, f64)]) -> Shares {
        let [query, post] = texts;
        let share = |key: u64| {
            let at = adds.binary_search_by_key(&key, |&(known, _)| known).ok();
            let added = at.and_then(|at| adds.get(at)).map_or(0.0, |&(_, added)| added);
            (added / f64::from(self.times(key).max(1))) as f32
        };
        Shares {
            one: query.token_keys().map(share).collect(),
            other: vec![0.0; post.tokens_read()],
            memberships: None,
        }
    }
}
