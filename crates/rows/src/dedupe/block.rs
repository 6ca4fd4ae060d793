//! Compares the texts of one block with each other: by their vectors (all pairs, unless the block
//! is large), and by the chosen method if the vectors are near enough.

use cognate::engine::QueryError;
use cognate_kernels::vector;

use crate::dedupe::buckets::Room;
use crate::dedupe::judge::Judge;

/// Maximum texts in which all pairs are compared.
const MOST: usize = 2048;
/// Average texts in each part of a larger block.
const PER_PART: usize = 256;
/// Number of parts that a text of a larger block belongs to.
const PARTS: usize = 2;
/// Maximum depth of dividing parts again.
const DEEPEST: usize = 4;
/// If a block cannot be divided, all its texts are compared with this many of its first ones.
const HEAD: usize = 512;
/// Rows multiplied at a time.
const TILE: usize = 64;
/// Maximum earlier texts that a text is scored with: the nearest, and the first of those near
/// enough.
const NEAREST: usize = 24;
const FIRST: usize = 8;

/// Maximum texts of a block held in memory.
const MOST_MEMBERS: usize = 1 << 16;

#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    pub id: u32,
    /// The keys that it shares with other texts, in rising order.
    pub keys: Vec<u64>,
    pub text: String,
}

/// Collects texts that share a key; texts arrive sorted by key and number.
#[derive(Debug, Default)]
pub struct Blocks {
    open: Option<Block>,
}

/// A key and the texts that have it.
pub type Block = (u64, Vec<Member>);

impl Blocks {
    /// Adds the next text; returns the previous block if it is complete and has more than one text.
    pub fn push(&mut self, key: u64, member: Member) -> Option<Block> {
        match &mut self.open {
            Some((known, members)) if *known == key && members.len() < MOST_MEMBERS => {
                members.push(member);
                None
            }
            open => {
                let whole = open.replace((key, vec![member]));
                whole.filter(|(_, members)| members.len() > 1)
            }
        }
    }

    pub fn finish(&mut self) -> Option<Block> {
        self.open.take().filter(|(_, members)| members.len() > 1)
    }
}

/// Two texts whose score reaches the threshold.
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

impl Judge<'_> {
    /// The matches among the texts of a block, which are sorted by id. A pair that shares several
    /// keys is compared only in the block of the first.
    pub fn matches(&self, key: u64, members: &[Member]) -> Result<(Vec<Match>, Work), QueryError> {
        let texts: Vec<&str> = members.iter().map(|member| member.text.as_str()).collect();
        let rows = self.vectors_of(&texts)?;
        let mut near = Near { rows: &rows, dims: self.dims, floor: self.floor, ..Near::default() };
        near.within(&(0..members.len()).collect::<Vec<_>>(), 0);
        let mut work = Work { compared: near.compared, scored: 0 };
        let mut found = near.found;
        found.retain(|&(earlier, later, _)| {
            let (Some(one), Some(other)) = (members.get(earlier), members.get(later)) else {
                return false;
            };
            let across = self.known.is_none_or(|known| one.id < known && other.id >= known);
            across && first_shared(&one.keys, &other.keys) == Some(key)
        });
        let found = fewer(found);
        let place = |at: usize| members.get(at).map_or("", |member| member.text.as_str());
        let pairs: Vec<_> = found.iter().map(|&(one, other)| (place(one), place(other))).collect();
        work.scored = pairs.len() as u64;
        let scored = self.engine.similarity(&pairs, &self.query)?;
        let mut unscored = scored.unscored.iter().peekable();
        let mut matches = Vec::new();
        for (at, (&(one, other), &score)) in found.iter().zip(&scored.scores).enumerate() {
            let missing = unscored.next_if_eq(&&at).is_some();
            if missing || score < self.threshold {
                continue;
            }
            let (Some(one), Some(other)) = (members.get(one), members.get(other)) else { continue };
            let shared =
                if self.explain { self.shared(&one.text, &other.text) } else { String::new() };
            matches.push(Match { earlier: one.id, later: other.id, score, shared });
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

/// Of the pairs that are near enough, those to score, sorted by the later and then the earlier
/// text.
fn fewer(mut found: Vec<(usize, usize, f32)>) -> Vec<(usize, usize)> {
    found.sort_unstable_by_key(|&(earlier, later, _)| (later, earlier));
    // Two texts of a large block can be in several parts together.
    found.dedup_by_key(|&mut (earlier, later, _)| (earlier, later));
    let mut kept = Vec::with_capacity(found.len());
    for of_one in found.chunk_by_mut(|a, b| a.1 == b.1) {
        if of_one.len() > NEAREST + FIRST {
            let rest = of_one.get_mut(FIRST..).unwrap_or_default();
            rest.sort_unstable_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0)));
        }
        kept.extend(
            of_one.iter().take(NEAREST + FIRST).map(|&(earlier, later, _)| (earlier, later)),
        );
    }
    kept
}

#[derive(Default)]
struct Near<'r> {
    rows: &'r [f32],
    dims: usize,
    floor: f32,
    found: Vec<(usize, usize, f32)>,
    compared: u64,
    products: Vec<f32>,
}

impl Near<'_> {
    fn row(&self, at: usize) -> &[f32] {
        self.rows.get(at * self.dims..(at + 1) * self.dims).unwrap_or_default()
    }

    fn gathered(&self, places: &[usize]) -> Vec<f32> {
        let mut rows = Vec::with_capacity(places.len() * self.dims);
        places.iter().for_each(|&at| rows.extend_from_slice(self.row(at)));
        rows
    }

    /// Searches among the rows at these indices, which are in rising order.
    fn within(&mut self, places: &[usize], depth: usize) {
        if places.len() <= MOST {
            return self.compare(places, places.len());
        }
        let mut parts: Vec<Vec<usize>> = vec![Vec::new(); places.len() / PER_PART];
        let step = places.len() / parts.len().max(1);
        let centres: Vec<usize> =
            places.iter().copied().step_by(step.max(1)).take(parts.len()).collect();
        let centres = self.gathered(&centres);
        let mut room = Room::default();
        for &at in places {
            let nearest = room.nearest::<PARTS>(self.row(at), &centres, self.dims);
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

    /// Compares the rows at these indices with earlier ones among the first `head`.
    fn compare(&mut self, places: &[usize], head: usize) {
        let rows = self.gathered(places);
        let mut products = std::mem::take(&mut self.products);
        for (tile, own) in rows.chunks(TILE * self.dims).enumerate() {
            let first = tile * TILE;
            let count = own.len() / self.dims;
            let before = (first + count).min(head.max(1));
            let Some(earlier) = rows.get(..before * self.dims) else { continue };
            vector::products(own, earlier, self.dims, &mut products);
            for (at, products) in products.chunks_exact(before).enumerate() {
                let later = first + at;
                let earlier = products.get(..later.min(before)).unwrap_or_default();
                self.compared += earlier.len() as u64;
                for (earlier, &product) in earlier.iter().enumerate() {
                    if product >= self.floor
                        && let (Some(&one), Some(&other)) = (places.get(earlier), places.get(later))
                    {
                        self.found.push((one, other, product));
                    }
                }
            }
        }
        self.products = products;
    }
}
