//! The tokens of a collection's items as an inverted index, which finds the best by methods that
//! count tokens. Items with the same counts of the query's tokens and the same length have the same
//! score: each such class is scored once, by the method itself, and the first items of the best
//! classes are the best of all.

use std::sync::Arc;

use cognate::engine::{Engine, Query};
use cognate::methods::Counted;
use hashbrown::HashMap;

use crate::embedded::EmbeddedCollection;
use crate::embedded::bits::{BLOCK, Bits, and, count, number, places, set, without};
use crate::embedded::blocks::{BlockMaker, Kept, Wanted, items_of};
use crate::embedded::narrow::{FEW, SHARE, chosen};
use crate::settings::Paid;
use crate::{Budget, Cancellation, ChooseError, Chosen, Item, Several, TopQuery};

/// Bits of a posting that count the token's occurrences.
const TIMES_BITS: u32 = 4;
/// The most occurrences that a posting can count.
const MAX_TIMES: u32 = (1 << TIMES_BITS) - 1;
/// The bits of a [`Class`] for all tokens of a query.
const QUERY_BITS: usize = u128::BITS as usize;

#[derive(Debug)]
pub(super) struct TokenBlock {
    known: Bits,
    /// Items that the numbers below cannot describe: without tokens, or with more than they can
    /// count.
    apart: Bits,
    /// Number of tokens of each item, and number of its different tokens.
    sizes: Vec<[u16; 2]>,
    longest: u16,
    /// Every token once, by its key, in order.
    keys: Vec<u64>,
    ends: Vec<u32>,
    /// The index of each item that has the token, with its occurrences.
    postings: Vec<u16>,
    /// `None` if there was no memory for this block, which is used once.
    paid: Option<Paid>,
}

impl Kept for TokenBlock {
    fn known(&self) -> &Bits {
        &self.known
    }

    fn is_paid(&self) -> bool {
        self.paid.is_some()
    }
}

impl TokenBlock {
    /// A block extended by these items.
    fn build(
        kept: Option<&Self>,
        missing: &[(usize, &Item)],
        engine: &Engine,
        query: &Query,
        budget: &Arc<Budget>,
    ) -> Result<Self, ChooseError> {
        let (mut known, mut apart) =
            kept.map_or_else(Default::default, |kept| (kept.known, kept.apart));
        let mut sizes =
            kept.map_or_else(|| vec![[0; 2]; BLOCK as usize], |kept| kept.sizes.clone());
        let mut entries: Vec<(u64, u16)> = kept.map(Self::entries).unwrap_or_default();
        let texts: Vec<&str> = missing.iter().map(|(_, item)| &*item.text).collect();
        engine.token_counts(&texts, query, |index, tokens| {
            let Some(&(place, _)) = missing.get(index) else { return };
            set(&mut known, place);
            let length = tokens.iter().map(|(_, times)| *times as usize).sum::<usize>();
            let size = [length, tokens.len()].map(u16::try_from);
            let few = tokens.iter().all(|(_, times)| *times <= MAX_TIMES);
            match size {
                [Ok(length), Ok(kinds)] if few && length > 0 => {
                    sizes[place] = [length, kinds];
                    let posting = |times: u32| (place as u16) << TIMES_BITS | times as u16;
                    entries.extend(tokens.iter().map(|&(key, times)| (key, posting(times))));
                }
                _ => set(&mut apart, place),
            }
        })?;
        entries.sort_unstable();
        let (mut keys, mut ends) = (Vec::new(), Vec::new());
        for run in entries.chunk_by(|(one, _), (next, _)| one == next) {
            keys.extend(run.first().map(|(key, _)| *key));
            ends.push(ends.last().copied().unwrap_or(0) + run.len() as u32);
        }
        let postings = entries.into_iter().map(|(_, posting)| posting).collect();
        let longest = sizes.iter().map(|[length, _]| *length).max().unwrap_or(0);
        let mut block = Self { known, apart, sizes, longest, keys, ends, postings, paid: None };
        block.paid = budget.take_spare(block.bytes()).ok();
        Ok(block)
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + size_of_val(&*self.sizes)
            + size_of_val(&*self.keys)
            + size_of_val(&*self.ends)
            + size_of_val(&*self.postings)
    }

    fn entries(&self) -> Vec<(u64, u16)> {
        let mut entries = Vec::with_capacity(self.postings.len());
        for (at, key) in self.keys.iter().enumerate() {
            entries.extend(self.postings_at(at).iter().map(|posting| (*key, *posting)));
        }
        entries
    }

    fn postings_at(&self, at: usize) -> &[u16] {
        let end = |at: usize| self.ends.get(at).map_or(0, |end| *end as usize);
        let start = at.checked_sub(1).map_or(0, end);
        self.postings.get(start..end(at)).unwrap_or_default()
    }

    /// The postings of each of these tokens. The binary searches advance in lockstep, so that the
    /// processor waits for memory once a step, not once a step and token.
    fn postings_of<'b>(&'b self, tokens: &[u64], found: &mut Vec<&'b [u16]>) {
        found.clear();
        let (mut firsts, mut size) = (vec![0; tokens.len()], self.keys.len());
        while size > 1 {
            let half = size / 2;
            for (first, token) in firsts.iter_mut().zip(tokens) {
                let is_after = self.keys.get(*first + half).is_some_and(|key| key <= token);
                *first += if is_after { half } else { 0 };
            }
            size -= half;
        }
        found.extend(firsts.iter().zip(tokens).map(|(first, token)| {
            let is_there = self.keys.get(*first) == Some(token);
            if is_there { self.postings_at(*first) } else { &[] }
        }));
    }
}

impl EmbeddedCollection {
    /// The items that may be among the best by a method that counts tokens, in the order in which
    /// they were added; all selected items if counting would take too long.
    pub(super) fn counted(
        &self,
        meant: &Wanted,
        best: &TopQuery<'_>,
        by: &Query,
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError> {
        self.counted_with(meant, best, (by, &[Tokens::Some, Tokens::None]), cancel)
    }

    /// As [`Self::counted`], for items that have tokens of the texts, or none, in this order;
    /// without the last group if none of it is among the best.
    fn counted_with(
        &self,
        meant: &Wanted,
        best: &TopQuery<'_>,
        (by, those): (&Query, &[Tokens]),
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError> {
        let (view, wanted) = meant;
        let items = count(wanted);
        let needed = best.length.max(1).saturating_mul(best.texts.len());
        let classes = match best.engine.counted(by) {
            Some(counted) if items > FEW && needed <= items / SHARE => classes(best, by, counted)?,
            _ => None,
        };
        let Some(mut classes) = classes else {
            return Ok(Chosen::complete(items_of(meant)));
        };
        let mut maker = BlockMaker::new(self, &self.tokens, best.engine);
        let mut numbers = Vec::new();
        for &tokens in those {
            for (at, bits) in wanted {
                cancel.check()?;
                let block = maker.block(*at, bits, view, |kept, missing| {
                    TokenBlock::build(kept, missing, best.engine, by, &self.budget)
                })?;
                let told = without(bits, &block.apart);
                for classes in &mut classes {
                    classes.sort(*at, &block, &told, tokens);
                }
                if tokens == Tokens::Some {
                    numbers.extend(places(without(bits, &told)).map(|place| number(*at, place)));
                }
            }
            for (classes, (text, _)) in classes.iter_mut().zip(&best.texts) {
                cancel.check()?;
                classes.rank(text, best.engine, by, tokens)?;
            }
            if !classes.iter().any(|classes| classes.wants_others) {
                break;
            }
        }
        classes.iter().for_each(|classes| classes.best(&mut numbers));
        numbers.sort_unstable();
        numbers.dedup();
        Ok(chosen(meant, numbers))
    }

    /// A shortlist, and as many of the best by each of the methods that count tokens.
    pub(super) fn fused(
        &self,
        meant: &Wanted,
        shortlist: &TopQuery<'_>,
        methods: &[Query],
        cancel: Cancellation<'_>,
    ) -> Result<Chosen, ChooseError> {
        let mut items = self.nearest(meant, shortlist, cancel)?.items;
        for by in methods {
            // Items without a token of the query are the best only for lack of others.
            let best = self.counted_with(meant, shortlist, (by, &[Tokens::Some]), cancel)?;
            // Otherwise it cannot tell the best, and these are all.
            if best.items.len() < best.meant {
                items.extend(best.items);
            }
        }
        items.sort_unstable_by_key(|(number, _)| *number);
        items.dedup_by_key(|(number, _)| *number);
        Ok(Chosen::complete(items))
    }
}

fn classes(
    best: &TopQuery<'_>,
    by: &Query,
    counted: Counted,
) -> Result<Option<Vec<Classes>>, ChooseError> {
    if best.several == Several::Sum && best.texts.len() > 1 {
        return Ok(None);
    }
    let mut all = Vec::new();
    let texts: Vec<&str> = best.texts.iter().map(|(text, _)| *text).collect();
    best.engine.token_counts(&texts, by, |_, tokens| {
        let keys = tokens.iter().map(|(key, _)| *key).collect();
        all.push(Classes::new(keys, counted, best.length.max(1)));
    })?;
    let fits = |one: &Classes| !one.keys.is_empty() && one.keys.len() * one.bits() <= QUERY_BITS;
    Ok(all.iter().all(fits).then_some(all))
}

/// Items of the same score: the occurrences of each token of the query, and the number of tokens.
type Class = (u128, u16);

/// Items by whether they have a token of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tokens {
    Some,
    None,
}

/// The first items of each class for one text.
struct Classes {
    keys: Vec<u64>,
    counted: Counted,
    length: usize,
    places: HashMap<Class, Place>,
    /// The class of items without any token of the query, by their number of tokens.
    others: Vec<Option<Place>>,
    wants_others: bool,
    longest: u16,
    numbers: Vec<Vec<u64>>,
    /// The classes with their scores, the best first.
    ranked: Vec<(f32, usize)>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    class: usize,
    left: usize,
}

impl Classes {
    fn new(keys: Vec<u64>, counted: Counted, length: usize) -> Self {
        let (places, others, numbers) = (HashMap::new(), Vec::new(), Vec::new());
        let (wants_others, longest, ranked) = (true, 0, Vec::new());
        Self { keys, counted, length, places, others, wants_others, longest, numbers, ranked }
    }

    fn bits(&self) -> usize {
        match self.counted {
            Counted::Occurrences => TIMES_BITS as usize,
            Counted::Kinds => 1,
        }
    }

    /// Classifies the wanted items of a block that have a token of the query, or those that have
    /// none.
    fn sort(&mut self, at: u64, block: &TokenBlock, wanted: &Bits, tokens: Tokens) {
        if !self.wants_others {
            return;
        }
        self.longest = self.longest.max(block.longest);
        let (mut held, mut holders) = ([0_u128; BLOCK as usize], Bits::default());
        let bits = self.bits();
        let mut found = Vec::with_capacity(self.keys.len());
        block.postings_of(&self.keys, &mut found);
        for (token, postings) in found.into_iter().enumerate() {
            for &posting in postings {
                let times = match self.counted {
                    Counted::Occurrences => u128::from(posting) & u128::from(MAX_TIMES),
                    Counted::Kinds => 1,
                };
                let place = usize::from(posting >> TIMES_BITS);
                held[place] |= times << (token * bits);
                set(&mut holders, place);
            }
        }
        let wanted = match tokens {
            Tokens::Some => and(wanted, &holders),
            Tokens::None => without(wanted, &holders),
        };
        for place in places(wanted) {
            let [length, kinds] = block.sizes[place];
            let size = match self.counted {
                Counted::Occurrences => length,
                Counted::Kinds => kinds,
            };
            let other = usize::from(size);
            if self.others.len() <= other {
                self.others.resize(other + 1, None);
            }
            let (numbers, left) = (&mut self.numbers, self.length);
            let new = || {
                numbers.push(Vec::new());
                Place { class: numbers.len() - 1, left }
            };
            let place_of = match held[place] {
                0 => self.others[other].get_or_insert_with(new),
                held => self.places.entry((held, size)).or_insert_with(new),
            };
            if place_of.left > 0 {
                place_of.left -= 1;
                self.numbers[place_of.class].push(number(at, place));
            }
        }
    }

    /// Scores the classes of these items, and decides whether others may be among the best.
    fn rank(
        &mut self,
        text: &str,
        engine: &Engine,
        by: &Query,
        tokens: Tokens,
    ) -> Result<(), ChooseError> {
        if !self.wants_others {
            return Ok(());
        }
        let (kinds, classes): (Vec<(u128, usize)>, Vec<usize>) = match tokens {
            Tokens::Some => {
                let places = self.places.iter();
                places.map(|(&(held, size), of)| ((held, usize::from(size)), of.class)).unzip()
            }
            Tokens::None => {
                let others = self.others.iter().enumerate();
                others.filter_map(|(size, of)| Some(((0, size), of.as_ref()?.class))).unzip()
            }
        };
        let scores = self.scores(&kinds, text, engine, by)?;
        self.ranked.extend(scores.into_iter().zip(classes));
        self.ranked.sort_unstable_by(|(one, _), (other, _)| other.total_cmp(one));
        let mut found = 0;
        let last = self.ranked.iter().find(|(_, class)| {
            found += self.numbers.get(*class).map_or(0, Vec::len);
            found >= self.length
        });
        self.wants_others = tokens == Tokens::Some
            && match last {
                None => true,
                Some(&(last, _)) => {
                    let others: Vec<(u128, usize)> =
                        (1..=usize::from(self.longest)).map(|size| (0, size)).collect();
                    self.scores(&others, text, engine, by)?.iter().any(|score| *score >= last)
                }
            };
        Ok(())
    }

    fn scores(
        &self,
        classes: &[(u128, usize)],
        text: &str,
        engine: &Engine,
        by: &Query,
    ) -> Result<Vec<f32>, ChooseError> {
        let bits = self.bits();
        let scores = engine.counted_scores(text, by, |tell| {
            let mut times = vec![0; self.keys.len()];
            for (held, size) in classes {
                for (token, times) in times.iter_mut().enumerate() {
                    *times = (held >> (token * bits)) as u32 & ((1 << bits) - 1);
                }
                tell(&times, size.saturating_sub(times.iter().sum::<u32>() as usize));
            }
        })?;
        Ok(scores)
    }

    /// Adds the numbers of the items that may be among the best: those of the best classes, until
    /// there are as many as wanted, and of classes that tie with the last.
    fn best(&self, numbers: &mut Vec<u64>) {
        let (mut found, mut last) = (0, f32::INFINITY);
        for &(score, class) in &self.ranked {
            if found >= self.length && score < last {
                break;
            }
            let first = self.numbers.get(class).map_or(&[][..], Vec::as_slice);
            numbers.extend(first);
            found += first.len();
            last = score;
        }
    }
}
