//! Orders texts so that near neighbours are adjacent: a batch then contains texts that are hard to
//! distinguish.
//!
//! Texts are divided into halves along the direction from one random text to another, and the
//! halves again, until the blocks are small. Seed and epoch fix the order, with any number of
//! threads.

use cognate_kernels::random::Random;
use cognate_kernels::simd;
use cognate_train::sampling;
use rayon::join;
use rayon::prelude::*;

use crate::space::Targets;

const SPLIT: u64 = 11;
const ORDER: u64 = 12;
/// Minimum texts of a block; blocks have fewer than twice as many.
const LEAF: usize = 64;
/// Texts that a thread projects at a time.
const PART: usize = 4096;

/// Batches of `size` texts, composed of blocks of neighbours; texts left over are omitted. With
/// fewer than `size` texts there is one batch.
pub fn batches(targets: &Targets, texts: &[u32], size: usize, seed: u64, epoch: u64) -> Vec<u32> {
    let mut order = sampling::generator(seed, ORDER, [epoch, 0]);
    let mut members = texts.to_vec();
    order.shuffle(&mut members);
    let neighbours = Neighbours { targets, least: LEAF, seed };
    let mut blocks = neighbours.of(members, epoch);
    order.shuffle(&mut blocks);
    let mut flat = blocks.concat();
    let size = size.min(flat.len()).max(1);
    flat.truncate(flat.len() / size * size);
    let mut batches: Vec<&[u32]> = flat.chunks_exact(size).collect();
    order.shuffle(&mut batches);
    batches.concat()
}

/// Divides texts into blocks of neighbours.
#[derive(Debug, Clone, Copy)]
pub struct Neighbours<'t> {
    pub targets: &'t Targets,
    /// Minimum texts of a block; blocks have fewer than twice as many.
    pub least: usize,
    pub seed: u64,
}

impl Neighbours<'_> {
    /// The blocks of these texts; one block if there are too few to divide, none if there are none.
    pub fn of(&self, members: Vec<u32>, epoch: u64) -> Vec<Vec<u32>> {
        if members.is_empty() {
            return Vec::new();
        }
        self.blocks(members, [epoch, 1])
    }

    /// The blocks of these texts, which are a node of the tree of halves; the root is node 1.
    fn blocks(&self, mut members: Vec<u32>, [epoch, node]: [u64; 2]) -> Vec<Vec<u32>> {
        if members.len() < 2 * self.least {
            return vec![members];
        }
        let mut random = sampling::generator(self.seed, SPLIT, [epoch, node]);
        let direction = self.direction(&members, &mut random);
        let place = |&text: &u32| (simd::dot(&direction, self.targets.row(text as usize)), text);
        let mut places: Vec<(f32, u32)> =
            members.par_iter().with_min_len(PART).map(place).collect();
        let half = places.len() / 2;
        places.select_nth_unstable_by(half, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for (member, (_, text)) in members.iter_mut().zip(places) {
            *member = text;
        }
        let far = members.split_off(half);
        let (mut near, far) = join(
            || self.blocks(members, [epoch, 2 * node]),
            || self.blocks(far, [epoch, 2 * node + 1]),
        );
        near.extend(far);
        near
    }

    /// Returns the direction from a random text to another random text.
    fn direction(&self, members: &[u32], random: &mut Random) -> Vec<f32> {
        let one = random.below(members.len());
        let other = (one + 1 + random.below(members.len() - 1)) % members.len();
        let row = |place: usize| self.targets.row(members[place] as usize);
        row(one).iter().zip(row(other)).map(|(a, b)| a.to_f32() - b.to_f32()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts of eight subjects, each near a separate axis.
    fn targets(texts: usize) -> Targets {
        let mut random = Random::seeded(5);
        let mut rows = Vec::new();
        for text in 0..texts {
            let near = |axis: usize| if axis == text % 8 { 1.0 } else { 0.0 };
            rows.extend((0..8).map(|axis| near(axis) + 0.1 * sampling::normal(&mut random) as f32));
        }
        Targets::of(rows, 8)
    }

    #[test]
    fn neighbours_come_together_and_every_text_once() {
        let (targets, all) = (targets(4096), (0..4096).collect::<Vec<u32>>());
        let order = batches(&targets, &all, 256, 1, 0);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, all);
        // In random order, one adjacent pair in eight would have the same subject.
        let alike = order.windows(2).filter(|pair| pair[0] % 8 == pair[1] % 8).count();
        assert!(alike > 2 * 4096 / 8, "{alike}");
        assert_ne!(batches(&targets, &all, 256, 1, 1), order);
        assert_ne!(batches(&targets, &all, 256, 2, 0), order);
    }

    #[test]
    fn what_fills_no_batch_is_left_out_unless_it_is_all_there_is() {
        let (targets, all) = (targets(300), (0..300).collect::<Vec<u32>>());
        assert_eq!(batches(&targets, &all, 128, 1, 0).len(), 256);
        assert_eq!(batches(&targets, &all[..100], 128, 1, 0).len(), 100);
        assert!(batches(&targets, &[], 128, 1, 0).is_empty());
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let (targets, all) = (targets(5000), (0..5000).collect::<Vec<u32>>());
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| batches(&targets, &all, 256, 1, 0))
        };
        assert_eq!(with(1), with(4));
    }
}
