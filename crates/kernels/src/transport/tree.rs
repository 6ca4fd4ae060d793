//! The spanning tree of the transportation simplex: which cells are in the basis, what flows in
//! them, and the prices they imply. Floating-point numbers are not known here.
//!
//! Nodes `0..rows` are the supplies, nodes `rows..` the demands. The cell between a node and its
//! parent is stored at the node. Prices satisfy `price(row) + price(column) = cost` in every cell
//! of the tree.

/// Stands for the root's missing parent, and ends a list of children.
pub(super) const NONE: u32 = u32::MAX;

/// A rooted spanning tree over the rows and columns of a cost matrix.
#[derive(Debug, Default)]
pub(super) struct Tree {
    rows: usize,
    nodes: Vec<Node>,
    prices: Vec<i64>,
    pending: Vec<u32>,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    flow: u128,
    parent: u32,
    depth: u32,
    first_child: u32,
    previous: u32,
    next: u32,
}

const LONE: Node =
    Node { flow: 0, parent: NONE, depth: 0, first_child: NONE, previous: NONE, next: NONE };

impl Tree {
    /// Forgets everything and makes room for a problem of this shape, all nodes apart.
    pub(super) fn clear(&mut self, rows: usize, columns: usize) {
        self.rows = rows;
        self.nodes.clear();
        self.nodes.resize(rows + columns, LONE);
        self.prices.clear();
        self.prices.resize(rows + columns, 0);
    }

    pub(super) fn prices(&self) -> (&[i64], &[i64]) {
        self.prices.split_at(self.rows)
    }

    /// Returns the cells of the tree: row, column, flow.
    pub(super) fn cells(&self) -> impl Iterator<Item = (usize, usize, u128)> + '_ {
        self.nodes.iter().enumerate().filter(|(_, node)| node.parent != NONE).map(|(at, node)| {
            let (row, column) = self.cell(at, node.parent as usize);
            (row, column, node.flow)
        })
    }

    /// Makes `parent` the parent of a node that has none; `flow` is the flow of the cell between them.
    pub(super) fn attach(&mut self, child: usize, parent: usize, flow: u128) {
        let sibling = self.nodes[parent].first_child;
        if sibling != NONE {
            self.nodes[sibling as usize].previous = child as u32;
        }
        let node = &mut self.nodes[child];
        node.flow = flow;
        node.parent = parent as u32;
        node.previous = NONE;
        node.next = sibling;
        self.nodes[parent].first_child = child as u32;
    }

    /// Computes depths and prices from the root down. All nodes must be attached.
    pub(super) fn settle(&mut self, root: usize, cost: impl Fn(usize, usize) -> i64) {
        self.nodes[root].depth = 0;
        self.prices[root] = 0;
        self.pending.clear();
        self.pending.push(root as u32);
        while let Some(at) = self.pending.pop() {
            let mut child = self.nodes[at as usize].first_child;
            while child != NONE {
                let (row, column) = self.cell(child as usize, at as usize);
                self.prices[child as usize] = cost(row, column) - self.prices[at as usize];
                self.nodes[child as usize].depth = self.nodes[at as usize].depth + 1;
                self.pending.push(child);
                child = self.nodes[child as usize].next;
            }
        }
    }

    /// Brings a cell into the tree: flow is pushed round the cycle it closes until a cell of the
    /// cycle is empty, and that cell leaves. `reduced` is the cell's cost less its prices.
    pub(super) fn pivot(&mut self, row: usize, column: usize, reduced: i64) {
        let column = self.rows + column;
        let (join, leaving, pushed) = self.bottleneck(row, column);
        self.push(row, join, pushed, true);
        self.push(column, join, pushed, false);
        // Cells lose flow at rows on the row's side and at columns on the column's side, so the
        // leaving node itself tells on which side the tree is cut.
        let leaving_is_row = leaving < self.rows;
        if leaving_is_row {
            self.hang(row, column, leaving, pushed);
        } else {
            self.hang(column, row, leaving, pushed);
        }
        let top = if leaving_is_row { row } else { column };
        self.shift(top, reduced);
    }

    /// Where the two paths towards the root meet, and the cell of least flow among those that lose
    /// flow. Flows are never tied (see the module above), so the order does not matter.
    fn bottleneck(&self, row: usize, column: usize) -> (usize, usize, u128) {
        let (mut left, mut right) = (row, column);
        let (mut leaving, mut least) = (row, u128::MAX);
        while left != right {
            let (walker, loses) = if self.nodes[left].depth >= self.nodes[right].depth {
                (&mut left, true)
            } else {
                (&mut right, false)
            };
            let node = &self.nodes[*walker];
            if (*walker < self.rows) == loses && node.flow < least {
                (leaving, least) = (*walker, node.flow);
            }
            *walker = node.parent as usize;
        }
        (left, leaving, least)
    }

    /// Changes the flow of each edge from `from` up to `join`: if `rows_lose`, edges above rows lose
    /// `pushed` and edges above columns gain it; else the reverse.
    fn push(&mut self, from: usize, join: usize, pushed: u128, rows_lose: bool) {
        let mut at = from;
        while at != join {
            let is_row = at < self.rows;
            let node = &mut self.nodes[at];
            if is_row == rows_lose {
                node.flow -= pushed;
            } else {
                node.flow += pushed;
            }
            at = node.parent as usize;
        }
    }

    /// Turns the path from `top` up to `leaving` upside down and hangs it below `parent`.
    fn hang(&mut self, top: usize, parent: usize, leaving: usize, flow: u128) {
        let (mut at, mut above, mut carried) = (top, parent, flow);
        loop {
            let old = self.nodes[at];
            self.detach(at);
            self.attach(at, above, carried);
            if at == leaving {
                return;
            }
            (at, above, carried) = (old.parent as usize, at, old.flow);
        }
    }

    fn detach(&mut self, child: usize) {
        let Node { parent, previous, next, .. } = self.nodes[child];
        if previous == NONE {
            self.nodes[parent as usize].first_child = next;
        } else {
            self.nodes[previous as usize].next = next;
        }
        if next != NONE {
            self.nodes[next as usize].previous = previous;
        }
    }

    /// Updates the prices below `top` to the new cell above it, and the depths to the new position.
    /// Within the subtree one kind of node gains what the other loses.
    fn shift(&mut self, top: usize, reduced: i64) {
        let top_is_row = top < self.rows;
        self.pending.clear();
        self.pending.push(top as u32);
        while let Some(at) = self.pending.pop() {
            let at = at as usize;
            let same_kind = (at < self.rows) == top_is_row;
            self.prices[at] += if same_kind { reduced } else { -reduced };
            let parent = self.nodes[at].parent as usize;
            self.nodes[at].depth = self.nodes[parent].depth + 1;
            let mut child = self.nodes[at].first_child;
            while child != NONE {
                self.pending.push(child);
                child = self.nodes[child as usize].next;
            }
        }
    }

    fn cell(&self, node: usize, parent: usize) -> (usize, usize) {
        if node < self.rows { (node, parent - self.rows) } else { (parent, node - self.rows) }
    }
}

/// A grid of equal steps, a power of two each, fine enough that the largest number it was made for
/// has `bits` significant bits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    exponent: u32,
    dropped: u32,
}

/// Significant bits of a `f64`, the hidden one included.
const MANTISSA_BITS: u32 = 53;

impl Grid {
    pub(super) fn up_to(largest: f64, bits: u32) -> Option<Self> {
        let (mantissa, exponent) = decompose(largest);
        (mantissa > 0).then_some(Self { exponent, dropped: MANTISSA_BITS - bits })
    }

    /// The number of steps nearest to `number`: at most `2^bits`, as rounding may reach it.
    pub(super) fn steps(self, number: f64) -> u64 {
        let (mantissa, exponent) = decompose(number);
        let shift = self.exponent.saturating_sub(exponent) + self.dropped;
        match shift {
            0 => mantissa,
            1..=MANTISSA_BITS => (mantissa + (1 << (shift - 1))) >> shift,
            _ => 0,
        }
    }

    pub(super) fn step(self) -> f64 {
        // An exponent field E scales the mantissa by 2^(E - 1075); below 2^-1022 a power of two
        // is a single bit of a subnormal number.
        let power = i64::from(self.exponent) - 1075 + i64::from(self.dropped);
        if power >= -1022 {
            f64::from_bits(((power + 1023) as u64) << 52)
        } else {
            f64::from_bits(1 << (power + 1074))
        }
    }
}

/// Returns mantissa and exponent field. Negative numbers and NaN become zero, and infinity becomes the
/// largest finite number, so that no input can make a sum NaN or infinite.
fn decompose(number: f64) -> (u64, u32) {
    if number.is_nan() || number <= 0.0 {
        return (0, 1);
    }
    let bits = number.min(f64::MAX).to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match (bits >> 52) as u32 {
        0 => (fraction, 1),
        exponent => (fraction | (1 << 52), exponent),
    }
}

/// An exact sum of products, held as `high * 2^64 + low`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct WideSum {
    high: u128,
    low: u128,
}

impl WideSum {
    /// Adds `amount * price`. The halves cannot overflow for up to 2^13 terms of
    /// `amount < 2^115` and `price <= 2^50`, nor for one with `amount < 2^115` and any price below
    /// 2^60.
    pub(super) fn add_product(&mut self, amount: u128, price: u64) {
        self.high += (amount >> 64) * u128::from(price);
        self.low += u128::from(amount as u64) * u128::from(price);
    }

    /// The sum over `divisor`, rounded. Both are rounded to nearest before the division, hence a
    /// larger sum never gives a smaller quotient.
    pub(super) fn over(self, divisor: u128) -> f64 {
        let high = self.high + (self.low >> 64);
        let low = self.low as u64;
        let sum = if high >> 64 == 0 {
            ((high << 64) | u128::from(low)) as f64
        } else {
            // More than 64 significant bits: the lower half only decides whether a tie is one.
            (high | u128::from(low != 0)) as f64 * 2f64.powi(64)
        };
        sum / divisor as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ends_of_the_number_line_are_placed_without_overflow() {
        for largest in [f64::MAX, f64::INFINITY, 1.0, f64::MIN_POSITIVE, f64::from_bits(1)] {
            let grid = Grid::up_to(largest, 48).unwrap();
            // Rounding up may pass the last finite number.
            let back = (grid.steps(largest) as f64 * grid.step()).min(f64::MAX);
            let finite = largest.min(f64::MAX);
            // A number of a few bits at the very bottom cannot keep 48 of them.
            assert!((back - finite).abs() <= finite * 2f64.powi(-48) || finite < 1e-300);
            assert_eq!(grid.steps(0.0), 0);
            assert_eq!(grid.steps(-1.0), 0);
            assert_eq!(grid.steps(f64::NAN), 0);
        }
        assert!(Grid::up_to(0.0, 48).is_none());
        assert!(Grid::up_to(f64::NAN, 48).is_none());
    }

    proptest! {
        #[test]
        fn a_number_is_within_half_a_step_of_its_place(largest in 1e-9..1e9f64, share in 0.0..=1.0f64) {
            let grid = Grid::up_to(largest, 48).unwrap();
            let number = largest * share;
            let back = grid.steps(number) as f64 * grid.step();
            prop_assert!((back - number).abs() <= 0.5 * grid.step());
            prop_assert!(grid.steps(largest) <= 1 << 48);
        }

        #[test]
        fn a_wide_sum_agrees_with_128_bits_where_those_suffice(
            terms in prop::collection::vec((0u128..1 << 70, 0u64..1 << 50), 1..20),
            divisor in 1u128..1 << 100,
        ) {
            let mut wide = WideSum::default();
            let mut narrow = 0u128;
            for &(amount, price) in &terms {
                wide.add_product(amount, price);
                narrow += amount * u128::from(price);
            }
            prop_assert_eq!(wide.over(divisor), narrow as f64 / divisor as f64);
        }

        #[test]
        fn a_larger_wide_sum_never_rounds_below_a_smaller(
            amount in (1u128 << 100)..(1 << 114), price in (1u64 << 49)..(1 << 50), more in 1u64..u64::MAX,
        ) {
            let mut smaller = WideSum::default();
            smaller.add_product(amount, price);
            let mut larger = smaller;
            larger.add_product(u128::from(more), 1);
            prop_assert!(smaller.over(3) <= larger.over(3));
        }
    }
}
