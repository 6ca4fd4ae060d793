//! Exact optimal transport between two small weighted bags, for Word Mover's Distance (Kusner et
//! al. 2015) and Word Rotator's Distance (Yokoi et al. 2020). Masses and costs in, one number out:
//! what words and costs are is not known here.
//!
//! **Method.** The transportation simplex (Dantzig 1951) on a spanning tree, in integers. Masses
//! are rounded to 48 bits and costs to 50 bits of the largest of their side and matrix. Each side
//! is then multiplied by the other's total, which normalises both without a division, and the
//! optimum of that integer problem is found and summed exactly; only the last step rounds.
//!
//! **Order.** Reordering words, or swapping the sides and transposing the costs, is the same
//! integer problem, and its optimum is one number whatever flow attains it. So the answer is the
//! same bit for bit, and the caller need not sort anything. A word of no mass changes nothing. (A
//! word given twice with its mass split is the same problem only up to rounding.)
//!
//! **Termination.** The masses are multiplied by `SPREAD` and moved by one each, so that no part of
//! the supplies balances a part of the demands (Charnes 1952). Every cell of every tree then
//! carries flow, every pivot lowers the total cost, and no tree comes twice: the search ends at the
//! optimum. Random and Euclidean costs need one to eight pivots a word; the worst known (512 equal
//! masses with costs `i * j`) needs 0.4 for each pair of words. Since no useful bound is proven for
//! all, the search stops after `PIVOTS_PER_PAIR` a pair with the flow at hand, which is feasible,
//! so that the answer is then an upper bound; the laws on order hold short of that.

mod tree;

use tree::{Grid, Tree, WideSum};

pub const MAX_WORDS: usize = 512;

/// Bits of a mass: `(2^9 words * 2^48)^2 * SPREAD` is 2^126 and fits the flows.
const MASS_BITS: u32 = 48;
/// Bits of a cost: prices are sums of up to 2^10 costs, 2^60, and fit 64 bits with their sign.
const COST_BITS: u32 = 50;
/// Factor on the masses that makes room for moving each by one. A flow is moved by up to the number
/// of words, 2^10, and must differ from the next multiple.
const SPREAD: u128 = 1 << 12;
const PIVOTS_PER_PAIR: usize = 4;

/// The mass that a plan moves between two words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flow {
    pub from: usize,
    pub to: usize,
    pub share: f64,
}

struct Scale {
    largest: f64,
    grid: Grid,
}

/// The solver and its working memory: it allocates only to grow.
#[derive(Debug, Default)]
pub struct Transport {
    rows: Side,
    columns: Side,
    costs: Vec<i64>,
    open: Vec<u32>,
    nearest: Vec<f64>,
    tree: Tree,
    pivots: usize,
}

impl Transport {
    pub fn new() -> Self {
        Self::default()
    }

    /// The least total cost of moving all of `supply` to `demand`, where moving one unit from word
    /// `i` to word `j` costs `cost[i * demand.len() + j]`. Each side counts as shares of its own
    /// sum.
    ///
    /// Costs and masses must be finite and not negative; otherwise negative numbers and NaN count
    /// as 0 and infinity as the largest number, so that the result is always finite. It is 0 if a
    /// side has no mass at all. Panics if the length of `cost` is not that of all pairs, or if a
    /// side has more than [`MAX_WORDS`] words.
    pub fn cost(&mut self, supply: &[f64], demand: &[f64], cost: &[f64]) -> f64 {
        let Some(Scale { largest, grid }) = self.solve(supply, demand, cost) else {
            return 0.0;
        };
        let total = self.rows.total * self.columns.total;
        (self.flow_cost().over(total) * grid.step()).min(largest).min(f64::MAX)
    }

    /// A plan that attains [`Transport::cost`], with inputs and panics as there; any of several,
    /// depending on the order of words and sides. Empty if a side has no mass.
    pub fn plan(&mut self, supply: &[f64], demand: &[f64], cost: &[f64]) -> Vec<Flow> {
        if self.solve(supply, demand, cost).is_some() {
            let total = (self.rows.total * self.columns.total) as f64;
            let cells = self.tree.cells().map(|(row, column, flow)| Flow {
                from: self.rows.words[row] as usize,
                to: self.columns.words[column] as usize,
                share: ((flow + SPREAD / 2) / SPREAD) as f64 / total,
            });
            return cells.filter(|moved| moved.share > 0.0).collect();
        }
        // All costs are zero: every word may serve all others alike.
        let (rows, columns) = (&self.rows, &self.columns);
        let cells = rows.shares().flat_map(|(from, given)| {
            columns.shares().map(move |(to, taken)| Flow { from, to, share: given * taken })
        });
        cells.collect()
    }

    /// A lower bound on [`Transport::cost`] without a search: each word goes to its cheapest
    /// partner, regardless of others; the larger of the two directions (Kusner et al. 2015, section
    /// 4.1). Inputs and panics as there; never above its result, in any bit, and as independent of
    /// order.
    pub fn relaxed(&mut self, supply: &[f64], demand: &[f64], cost: &[f64]) -> f64 {
        check_shape(supply, demand, cost);
        self.rows.fill(supply);
        self.columns.fill(demand);
        let (rows, columns) = (&self.rows, &self.columns);
        if rows.total.min(columns.total) == 0 {
            return 0.0;
        }
        self.nearest.clear();
        self.nearest.resize(rows.words.len() + columns.words.len(), f64::INFINITY);
        let (of_rows, of_columns) = self.nearest.split_at_mut(rows.words.len());
        let mut largest = 0.0;
        for (&row, nearest) in rows.words.iter().zip(&mut *of_rows) {
            let costs = &cost[row as usize * demand.len()..][..demand.len()];
            for (&column, nearest_back) in columns.words.iter().zip(&mut *of_columns) {
                let cost = costs[column as usize];
                largest = f64::max(largest, cost);
                *nearest = nearest.min(cost);
                *nearest_back = nearest_back.min(cost);
            }
        }
        let Some(grid) = Grid::up_to(largest, COST_BITS) else {
            return 0.0;
        };
        let forth = one_sided(rows, columns, of_rows, grid);
        let back = one_sided(columns, rows, of_columns, grid);
        f64::max(forth, back).min(largest).min(f64::MAX)
    }

    /// Finds the optimum and leaves its flow in the tree. `None` if there is no mass, or no cost.
    fn solve(&mut self, supply: &[f64], demand: &[f64], cost: &[f64]) -> Option<Scale> {
        check_shape(supply, demand, cost);
        self.rows.fill(supply);
        self.columns.fill(demand);
        if self.rows.total.min(self.columns.total) == 0 {
            return None;
        }
        let width = demand.len();
        let mut largest = 0.0;
        for &row in &self.rows.words {
            for &column in &self.columns.words {
                largest = f64::max(largest, cost[row as usize * width + column as usize]);
            }
        }
        let grid = Grid::up_to(largest, COST_BITS)?;
        self.costs.clear();
        for &row in &self.rows.words {
            let costs = &cost[row as usize * width..][..width];
            let kept = self.columns.words.iter().map(|&at| grid.steps(costs[at as usize]) as i64);
            self.costs.extend(kept);
        }
        self.spread_masses();
        self.start();
        self.improve(PIVOTS_PER_PAIR * self.costs.len());
        Some(Scale { largest, grid })
    }

    /// Gives both sides the same total, and moves each mass by one so that no flow is ever zero.
    fn spread_masses(&mut self) {
        let (from, to) = (self.rows.total, self.columns.total);
        for mass in &mut self.rows.masses {
            *mass = *mass * to * SPREAD + 1;
        }
        for mass in &mut self.columns.masses {
            *mass = *mass * from * SPREAD - 1;
        }
        let moved = self.rows.masses.len() + self.columns.masses.len();
        if let Some(last) = self.columns.masses.last_mut() {
            *last += moved as u128;
        }
    }

    /// A first flow: row after row takes the cheapest columns with room left. An exhausted node
    /// hangs below the one that exhausted it; the last two are exhausted together, as the totals
    /// are equal, and the column of the two is the root.
    fn start(&mut self) {
        let (rows, columns) = (self.rows.masses.len(), self.columns.masses.len());
        self.tree.clear(rows, columns);
        self.open.clear();
        self.open.extend(0..columns as u32);
        let mut root = 0;
        for row in 0..rows {
            let costs = &self.costs[row * columns..][..columns];
            let mut left = self.rows.masses[row];
            while left > 0 {
                let cheapest =
                    self.open.iter().enumerate().min_by_key(|&(_, &at)| costs[at as usize]);
                let Some((place, &column)) = cheapest else {
                    break;
                };
                let column = column as usize;
                let room = &mut self.columns.masses[column];
                root = rows + column;
                if left <= *room {
                    self.tree.attach(row, root, left);
                    *room -= left;
                    left = 0;
                } else {
                    self.tree.attach(root, row, *room);
                    left -= *room;
                    *room = 0;
                    self.open.swap_remove(place);
                }
            }
        }
        let costs = &self.costs;
        self.tree.settle(root, |row, column| costs[row * columns + column]);
    }

    /// Pivots until no cell is cheaper than its prices, or the limit is reached. Rows are searched
    /// in turn and the best cell of a row is taken, which finds a good cell without searching the
    /// whole matrix.
    fn improve(&mut self, limit: usize) {
        let (rows, columns) = (self.rows.masses.len(), self.columns.masses.len());
        self.pivots = 0;
        let (mut row, mut settled) = (0, 0);
        while settled < rows && self.pivots < limit {
            let (row_prices, column_prices) = self.tree.prices();
            let costs = &self.costs[row * columns..][..columns];
            let (column, least) = cheapest(costs, column_prices);
            let reduced = least - row_prices[row];
            if reduced < 0 {
                self.tree.pivot(row, column, reduced);
                self.pivots += 1;
                settled = 0;
            } else {
                settled += 1;
            }
            row = if row + 1 == rows { 0 } else { row + 1 };
        }
    }

    /// The cost of the flow with the original masses.
    fn flow_cost(&self) -> WideSum {
        let columns = self.columns.masses.len();
        let mut sum = WideSum::default();
        for (row, column, flow) in self.tree.cells() {
            let amount = (flow + SPREAD / 2) / SPREAD;
            sum.add_product(amount, self.costs[row * columns + column] as u64);
        }
        sum
    }
}

/// The cost when each word of `from` goes to its cheapest partner on the other side. It is put over
/// the same denominator as the exact cost, so that rounding cannot reverse their order.
fn one_sided(from: &Side, to: &Side, nearest: &[f64], grid: Grid) -> f64 {
    let costs = nearest.iter().map(|&cost| u128::from(grid.steps(cost)));
    let amount = from.masses.iter().zip(costs).map(|(mass, cost)| mass * cost).sum();
    let mut sum = WideSum::default();
    // A total is below 2^58: up to 2^9 words of 2^48 each.
    sum.add_product(amount, to.total as u64);
    sum.over(from.total * to.total) * grid.step()
}

/// One side of the integer problem: only words with mass.
#[derive(Debug, Default)]
struct Side {
    words: Vec<u32>,
    masses: Vec<u128>,
    total: u128,
}

impl Side {
    fn fill(&mut self, masses: &[f64]) {
        self.words.clear();
        self.masses.clear();
        let largest = masses.iter().copied().fold(0.0, f64::max);
        if let Some(grid) = Grid::up_to(largest, MASS_BITS) {
            let steps = masses.iter().map(|&mass| grid.steps(mass));
            for (word, steps) in steps.enumerate().filter(|(_, steps)| *steps > 0) {
                self.words.push(word as u32);
                self.masses.push(u128::from(steps));
            }
        }
        self.total = self.masses.iter().sum();
    }

    /// Returns each word and its share of the total, before the masses are spread.
    fn shares(&self) -> impl Iterator<Item = (usize, f64)> + '_ {
        let total = self.total as f64;
        let words = self.words.iter().map(|&word| word as usize);
        words.zip(self.masses.iter().map(move |&mass| mass as f64 / total))
    }
}

/// Returns the index and the value of the least `cost - price`; the first of equal values.
fn cheapest(costs: &[i64], prices: &[i64]) -> (usize, i64) {
    let (mut place, mut least) = (0, i64::MAX);
    for (at, (cost, price)) in costs.iter().zip(prices).enumerate() {
        let reduced = cost - price;
        if reduced < least {
            (place, least) = (at, reduced);
        }
    }
    (place, least)
}

fn check_shape(supply: &[f64], demand: &[f64], cost: &[f64]) {
    assert!(supply.len().max(demand.len()) <= MAX_WORDS, "a side has more than {MAX_WORDS} words");
    assert_eq!(cost.len(), supply.len() * demand.len(), "one cost for each pair of words");
}

#[cfg(test)]
mod tests;
