//! Compares the texts of one block with each other: by the bytes of their vectors (all pairs,
//! unless the block is large) or by bits of their words, and by the chosen method if these are near enough.

use cognate::engine::QueryError;
use cognate_kernels::scan::{Probe, QUERIES, ROWS};

use crate::dedupe::buckets::Rows;
use crate::dedupe::judge::{Judge, Mark, places_of};
use crate::dedupe::steps::is_of_bucket;
use crate::dedupe::words::{WordBits, dice};

/// Maximum texts in which all pairs are compared.
const MAX: usize = 2048;
/// Average texts in each part of a larger block.
const PER_PART: usize = 256;
/// Number of parts that a text of a larger block belongs to.
const PARTS: usize = 2;
/// Maximum depth of dividing parts again.
const DEEPEST: usize = 4;
/// If a block cannot be divided, all its texts are compared with this many of its first ones.
const HEAD: usize = 512;
/// Maximum earlier texts that a text is scored with: the nearest, and the first of those near
/// enough.
const NEAREST: usize = 24;
const FIRST: usize = 8;
/// Pairs whose texts are held at a time.
const SCORED: usize = 4096;

/// Maximum texts of a block held in memory.
const MAX_MEMBERS: usize = 1 << 16;

/// A text of a block, for programs that hold texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub id: u32,
    /// The keys that it shares with other texts, in rising order.
    pub keys: Vec<u64>,
    pub text: String,
}

/// Collects members that share a key: texts, or texts' numbers, which arrive sorted by key and number.
#[derive(Debug)]
pub struct Blocks<M = Member> {
    open: Option<Block<M>>,
}

/// A key and the texts that have it.
pub type Block<M = Member> = (u64, Vec<M>);

impl<M> Default for Blocks<M> {
    fn default() -> Self {
        Self { open: None }
    }
}

impl<M> Blocks<M> {
    /// Adds the next text; returns the previous block if it is complete and has more than one text.
    pub fn push(&mut self, key: u64, member: M) -> Option<Block<M>> {
        match &mut self.open {
            Some((known, members)) if *known == key && members.len() < MAX_MEMBERS => {
                members.push(member);
                None
            }
            open => {
                let whole = open.replace((key, vec![member]));
                whole.filter(|(_, members)| members.len() > 1)
            }
        }
    }

    /// Returns the last block.
    pub fn finish(&mut self) -> Option<Block<M>> {
        self.open.take().filter(|(_, members)| members.len() > 1)
    }
}

/// Two texts with a score above the threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Match {
    pub earlier: u32,
    pub later: u32,
    pub score: f32,
    /// The words that both texts contain; empty unless requested.
    pub shared: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    pub compared: u64,
    pub scored: u64,
}

/// A text of a block without its text.
pub(super) struct Row {
    pub(super) id: u32,
    /// In rising order.
    pub(super) keys: Vec<u64>,
    pub(super) mark: Mark,
}

impl Judge<'_> {
    /// The matches among the texts of a block, which are sorted by id. A pair that shares several
    /// keys is compared only in the block of the first.
    pub fn matches(&self, key: u64, members: &[Member]) -> Result<(Vec<Match>, Work), QueryError> {
        let texts: Vec<&str> = members.iter().map(|member| member.text.as_str()).collect();
        let (marks, _) = self.marks_of(&texts)?;
        let row = |(member, mark): (&Member, _)| {
            let Member { id, keys, .. } = member;
            Row { id: *id, keys: keys.clone(), mark }
        };
        let rows: Vec<Row> = members.iter().zip(marks).map(row).collect();
        self.compare(key, &rows, |places| {
            let text = |&place: &usize| texts.get(place).copied().unwrap_or_default();
            Ok(places.iter().map(text).collect())
        })
    }

    /// Compares texts that `read` gets by their positions in the block.
    pub(super) fn compare<T: AsRef<str>, E: From<QueryError>>(
        &self,
        key: u64,
        rows: &[Row],
        mut read: impl FnMut(&[usize]) -> Result<Vec<T>, E>,
    ) -> Result<(Vec<Match>, Work), E> {
        let across = |earlier: &Row, later: &Row| {
            self.known.is_none_or(|known| earlier.id < known && later.id >= known)
        };
        let wanted = |earlier: &Row, later: &Row| {
            across(earlier, later) && first_shared(&earlier.keys, &later.keys) == Some(key)
        };
        let mut near = Near::new(rows, (self, key), &wanted);
        near.within(&(0..rows.len()).collect::<Vec<_>>(), 0);
        let mut work = Work { compared: near.compared, scored: 0 };
        let mut matches = Vec::new();
        for pairs in near.finish().chunks(SCORED) {
            let (places, pairs) = places_of(pairs);
            let texts = read(&places)?;
            work.scored += pairs.len() as u64;
            let scores = self.scores(&texts, &pairs)?;
            for (&(one, other), score) in pairs.iter().zip(scores) {
                let Some(score) = score.filter(|&score| score >= self.threshold) else { continue };
                let text = |at: usize| texts.get(at).map_or("", AsRef::as_ref);
                let id = |at: usize| places.get(at).and_then(|&at| rows.get(at)).map(|row| row.id);
                let (Some(earlier), Some(later)) = (id(one), id(other)) else { continue };
                let shared =
                    if self.explain { self.shared(text(one), text(other)) } else { String::new() };
                matches.push(Match { earlier, later, score, shared });
            }
        }
        Ok((matches, work))
    }
}

fn first_shared(one: &[u64], other: &[u64]) -> Option<u64> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    while let (Some(&&a), Some(&&b)) = (one.peek(), other.peek()) {
        match a.cmp(&b) {
            std::cmp::Ordering::Equal => return Some(a),
            std::cmp::Ordering::Less => one.next(),
            std::cmp::Ordering::Greater => other.next(),
        };
    }
    None
}

/// Texts that are near enough to a later text, with the product of both.
type Earlier = Vec<(u32, f32)>;

/// Leaves those to score, in rising order.
fn fewer(near: &mut Earlier) {
    near.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    // Two texts of a large block can share several of its parts; each part then lists the pair.
    near.dedup_by_key(|&mut (earlier, _)| earlier);
    if let Some(rest) = near.get_mut(FIRST..).filter(|rest| rest.len() > NEAREST) {
        rest.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        near.truncate(FIRST + NEAREST);
        near.sort_unstable_by_key(|&(earlier, _)| earlier);
    }
}

struct Near<'r> {
    rows: &'r [Row],
    dims: usize,
    floor: f32,
    /// Minimum share of words; infinite if they are not compared.
    least_shared: f32,
    /// Whether the block is that in which two texts are to be compared.
    wanted: &'r dyn Fn(&Row, &Row) -> bool,
    /// For each text.
    found: Vec<Earlier>,
    compared: u64,
}

impl<'r> Near<'r> {
    fn new(
        rows: &'r [Row],
        (judge, key): (&Judge<'_>, u64),
        wanted: &'r dyn Fn(&Row, &Row) -> bool,
    ) -> Self {
        let (found, compared) = (vec![Earlier::new(); rows.len()], 0);
        // Texts that share a bucket alone have no rare word in common.
        let least_shared = if is_of_bucket(key) { f32::INFINITY } else { judge.least_shared };
        Self { rows, dims: judge.dims, floor: judge.floor, least_shared, wanted, found, compared }
    }

    fn push(&mut self, earlier: usize, later: usize, product: f32) {
        let (Some(one), Some(other)) = (self.rows.get(earlier), self.rows.get(later)) else {
            return;
        };
        if let Some(near) = self.found.get_mut(later).filter(|_| (self.wanted)(one, other)) {
            near.push((earlier as u32, product));
            // Texts that are left out now would be left out at the end.
            if near.len() > 2 * (FIRST + NEAREST) {
                fewer(near);
            }
        }
    }

    /// The pairs to score, sorted by the later and then the earlier text.
    fn finish(mut self) -> Vec<(usize, usize)> {
        self.found.iter_mut().for_each(fewer);
        let pairs = self.found.iter().enumerate();
        pairs.flat_map(|(at, near)| near.iter().map(move |&(one, _)| (one as usize, at))).collect()
    }

    fn vectors(&self, places: &[usize]) -> Vec<&'r Probe> {
        places.iter().filter_map(|&at| Some(&self.rows.get(at)?.mark.vector)).collect()
    }

    /// Searches among the rows at these indices, which are in rising order.
    fn within(&mut self, places: &[usize], depth: usize) {
        if places.len() <= MAX || self.dims == 0 {
            return self.compare(places, places.len());
        }
        let mut parts: Vec<Vec<usize>> = vec![Vec::new(); places.len() / PER_PART];
        let step = places.len() / parts.len().max(1);
        let centres: Vec<usize> =
            places.iter().copied().step_by(step.max(1)).take(parts.len()).collect();
        let centres = Rows::new(&self.vectors(&centres), self.dims);
        let nearest = centres.nearest::<PARTS>(&self.vectors(places));
        for (&at, nearest) in places.iter().zip(nearest) {
            for (part, _) in nearest.into_iter().flatten() {
                if let Some(part) = parts.get_mut(part) {
                    part.push(at);
                }
            }
        }
        self.compared += (places.len() * parts.len()) as u64;
        let largest = parts.iter().map(Vec::len).max().unwrap_or_default();
        if depth >= DEEPEST || largest > places.len() / 4 * 3 {
            return self.compare(places, HEAD);
        }
        for part in &parts {
            self.within(part, depth + 1);
        }
    }

    /// Compares the rows at these indices with earlier rows among the first `head`.
    fn compare(&mut self, places: &[usize], head: usize) {
        if self.least_shared <= 1.0 {
            self.compare_words(places, head);
        }
        if self.dims > 0 {
            self.compare_vectors(places, head);
        } else {
            self.compared += (places.len() * places.len().saturating_sub(1) / 2) as u64;
        }
    }

    fn compare_words(&mut self, places: &[usize], head: usize) {
        let words: Vec<WordBits> =
            places.iter().filter_map(|&at| Some(self.rows.get(at)?.mark.words)).collect();
        for (later, own) in words.iter().enumerate() {
            for (earlier, other) in words.iter().take(head.min(later)).enumerate() {
                if let Some(share) = own.may_share(other, self.least_shared) {
                    self.push(places[earlier], places[later], dice(share));
                }
            }
        }
    }

    fn compare_vectors(&mut self, places: &[usize], head: usize) {
        let vectors = self.vectors(places);
        let head = head.min(vectors.len());
        let earlier = Rows::new(&vectors[..head], self.dims);
        let mut sums = [[0; ROWS]; QUERIES];
        for tile in 0..head.div_ceil(ROWS) {
            let first = tile * ROWS;
            for (at, four) in vectors[first..].chunks(QUERIES).enumerate() {
                let asked = (four.len(), |at: usize| (four[at], self.floor));
                let reached = earlier.shelf.near(tile, asked, Some(&mut sums));
                let later = first + at * QUERIES;
                for (later, ((vector, mut near), sums)) in
                    (later..).zip(four.iter().zip(reached).zip(&sums))
                {
                    let before = later.min(head) - first;
                    self.compared += before.min(ROWS) as u64;
                    if before < ROWS {
                        near &= (1 << before) - 1;
                    }
                    while near != 0 {
                        let row = near.trailing_zeros() as usize;
                        near &= near - 1;
                        let product = earlier.shelf.product(first + row, vector, sums[row]);
                        self.push(places[first + row], places[later], product);
                    }
                }
            }
        }
    }
}
