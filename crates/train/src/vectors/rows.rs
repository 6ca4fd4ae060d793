//! Tables of rows being trained: how a row is changed by its gradients, and how a table is cut into
//! blocks that threads change at the same time.

use std::ops::Range;

use cognate_kernels::simd;

/// How rows are changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Update {
    /// Plain gradient descent at this rate.
    Descend(f32),
    /// Adagrad (Duchi et al. 2011): each number of a row goes by the rate divided by the root of
    /// the squares of all its gradients so far.
    Adagrad(f32),
}

/// Keeps the first steps of Adagrad finite.
const SMALLEST: f32 = 1e-8;

impl Update {
    pub fn rate(self) -> f32 {
        match self {
            Self::Descend(rate) | Self::Adagrad(rate) => rate,
        }
    }

    /// Puts mentions of words, in the order of the batch, into the order that they are applied in.
    /// Adagrad needs all gradients of a word together; for plain descent, where each is added on its
    /// own, the order of words makes no difference.
    pub fn prepare(self, mentions: &mut [(u32, u32)]) {
        if matches!(self, Self::Adagrad(_)) {
            mentions.sort_unstable();
        }
    }

    /// Changes a row by its gradients, one after another.
    pub fn apply<'g>(
        self,
        row: &mut [f32],
        squares: &mut [f32],
        mut gradients: impl Iterator<Item = &'g [f32]>,
    ) {
        match self {
            Self::Descend(rate) => {
                gradients.for_each(|gradient| simd::add_scaled(row, [-rate], [gradient]));
            }
            Self::Adagrad(rate) => {
                let Some(first) = gradients.next() else { return };
                let Some(second) = gradients.next() else {
                    return by_own_rates(row, squares, first, rate);
                };
                let mut sum = first.to_vec();
                simd::add_scaled(&mut sum, [1.0], [second]);
                gradients.for_each(|gradient| simd::add_scaled(&mut sum, [1.0], [gradient]));
                by_own_rates(row, squares, &sum, rate);
            }
        }
    }
}

/// A step of Adagrad. Of lists of one length the compiler makes vector code.
fn by_own_rates(row: &mut [f32], squares: &mut [f32], gradient: &[f32], rate: f32) {
    let dims = row.len();
    let (squares, gradient) = (&mut squares[..dims], &gradient[..dims]);
    for at in 0..dims {
        squares[at] += gradient[at] * gradient[at];
        row[at] -= rate * gradient[at] / (squares[at] + SMALLEST).sqrt();
    }
}

/// A table cut into blocks of neighbouring rows that are about equally busy.
#[derive(Debug)]
pub struct Blocks {
    bounds: Vec<usize>,
    of: Vec<u16>,
    dims: usize,
}

/// Blocks of a table, so many that no thread has to wait long for another.
const BLOCKS: u64 = 64;

impl Blocks {
    /// Blocks over rows that are used as often as `counts` says.
    pub fn of_words(counts: &[u64], dims: usize) -> Self {
        let total: u64 = counts.iter().sum();
        let (mut bounds, mut of) = (vec![0], Vec::with_capacity(counts.len()));
        let mut seen = 0;
        for (word, count) in counts.iter().enumerate() {
            of.push((bounds.len() - 1) as u16);
            seen += count;
            if seen * BLOCKS >= total * bounds.len() as u64 || word + 1 == counts.len() {
                bounds.push(word + 1);
            }
        }
        Self { bounds, of, dims }
    }

    pub fn dims(&self) -> usize {
        self.dims
    }

    /// Rows of the table.
    pub fn words(&self) -> usize {
        self.of.len()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The block of a word.
    #[inline]
    pub fn of(&self, word: u32) -> usize {
        usize::from(self.of[word as usize])
    }

    /// The first word of a block.
    pub fn first(&self, block: usize) -> usize {
        self.bounds[block]
    }

    /// A table in its blocks; an empty one in empty blocks.
    pub fn split<'t>(&self, mut table: &'t mut [f32]) -> Vec<&'t mut [f32]> {
        let whole = !table.is_empty();
        let sizes = self.bounds.windows(2).map(|ends| Range { start: ends[0], end: ends[1] });
        sizes
            .map(|words| {
                let size = if whole { words.len() * self.dims } else { 0 };
                let (block, rest) = std::mem::take(&mut table).split_at_mut(size);
                table = rest;
                block
            })
            .collect()
    }
}
