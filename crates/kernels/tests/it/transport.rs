//! Optimal transport against other ways to the same number: trying everything, linear
//! programming, and the laws that any transport cost obeys.

use cognate_kernels::transport::Transport;
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    name: String,
    supply: Vec<f64>,
    demand: Vec<f64>,
    cost: Vec<f64>,
    optimum: f64,
}

#[test]
fn agrees_with_linear_programming() {
    let golden = include_str!("../data/transport/golden.json");
    let golden: Vec<Golden> = serde_json::from_str(golden).unwrap();
    let mut solver = Transport::new();
    assert!(!golden.is_empty());
    for Golden { name, supply, demand, cost, optimum } in golden {
        let found = solver.cost(&supply, &demand, &cost);
        assert!((found - optimum).abs() <= 1e-12 * (1.0 + optimum), "{name}: {found} {optimum}");
    }
}

#[test]
fn a_worked_example() {
    // Half of the first word stays, half moves one step; the second word moves two steps.
    let found = Transport::new().cost(&[0.5, 0.5], &[0.25, 0.75], &[0.0, 1.0, 5.0, 2.0]);
    assert_eq!(found, 0.25 + 0.5 * 2.0);
    // Regardless of room, the first word would stay and the second still pay two.
    assert_eq!(Transport::new().relaxed(&[0.5, 0.5], &[0.25, 0.75], &[0.0, 1.0, 5.0, 2.0]), 1.0);
}

#[test]
fn a_side_without_mass_costs_nothing_and_bad_numbers_never_become_nan() {
    let mut solver = Transport::new();
    for (supply, demand) in [([0.0, 0.0], [1.0, 0.0]), ([1.0, 1.0], [0.0, 0.0])] {
        assert_eq!(solver.cost(&supply, &demand, &[1.0; 4]), 0.0);
        assert_eq!(Transport::new().relaxed(&supply, &demand, &[1.0; 4]), 0.0);
    }
    assert_eq!(solver.cost(&[], &[], &[]), 0.0);
    let odd = [f64::NAN, f64::INFINITY, -1.0, f64::MIN_POSITIVE, f64::from_bits(1), f64::MAX];
    for first in odd {
        for second in odd {
            for third in odd {
                let (supply, demand) = ([first, 1.0], [second, 1.0]);
                let cost = [first, third, second, 1.0];
                assert!(solver.cost(&supply, &demand, &cost).is_finite());
                assert!(Transport::new().relaxed(&supply, &demand, &cost).is_finite());
            }
        }
    }
}

/// The cheapest pairing of equally many unit masses, by trying all.
fn cheapest_pairing(
    from: &[usize],
    to: &mut Vec<usize>,
    cost: &dyn Fn(usize, usize) -> u32,
) -> u32 {
    let Some((&first, rest)) = from.split_first() else {
        return 0;
    };
    let mut best = u32::MAX;
    for at in 0..to.len() {
        let partner = to.swap_remove(at);
        best = best.min(cost(first, partner) + cheapest_pairing(rest, to, cost));
        to.push(partner);
        let last = to.len() - 1;
        to.swap(at, last);
    }
    best
}

#[derive(Debug, Clone)]
struct Problem {
    supply: Vec<f64>,
    demand: Vec<f64>,
    cost: Vec<f64>,
}

impl Problem {
    fn solve(&self) -> f64 {
        Transport::new().cost(&self.supply, &self.demand, &self.cost)
    }

    fn relaxed(&self) -> f64 {
        Transport::new().relaxed(&self.supply, &self.demand, &self.cost)
    }

    fn transposed(&self) -> Self {
        let (n, m) = (self.supply.len(), self.demand.len());
        let cost = (0..n * m).map(|at| self.cost[(at % n) * m + at / n]).collect();
        Self { supply: self.demand.clone(), demand: self.supply.clone(), cost }
    }

    /// The same bags with their words in another order, or with some left out.
    fn select(&self, rows: &[usize], columns: &[usize]) -> Self {
        let m = self.demand.len();
        Self {
            supply: rows.iter().map(|&row| self.supply[row]).collect(),
            demand: columns.iter().map(|&column| self.demand[column]).collect(),
            cost: rows
                .iter()
                .flat_map(|row| columns.iter().map(move |column| self.cost[row * m + column]))
                .collect(),
        }
    }
}

/// Continuous and heavily tied problems, words without mass among them.
fn problem() -> impl Strategy<Value = Problem> {
    let mass = || prop_oneof![1 => Just(0.0), 2 => Just(0.125), 4 => 1e-3..1.0f64];
    let cost = prop_oneof![1 => (0u8..4).prop_map(f64::from), 2 => 0.0..2.0f64];
    (1usize..12, 1usize..12).prop_flat_map(move |(n, m)| {
        (
            prop::collection::vec(mass(), n),
            prop::collection::vec(mass(), m),
            prop::collection::vec(cost.clone(), n * m),
        )
            .prop_map(|(supply, demand, cost)| Problem { supply, demand, cost })
    })
}

/// A problem with an order for its rows and one for its columns.
fn shuffled() -> impl Strategy<Value = (Problem, Vec<usize>, Vec<usize>)> {
    problem().prop_flat_map(|problem| {
        let rows: Vec<usize> = (0..problem.supply.len()).collect();
        let columns: Vec<usize> = (0..problem.demand.len()).collect();
        (Just(problem), Just(rows).prop_shuffle(), Just(columns).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn nothing_cheaper_turns_up_when_every_pairing_is_tried(
        from in prop::collection::vec(0usize..4, 1..6),
        to in prop::collection::vec(0usize..4, 5),
        cost in prop::collection::vec(0u32..6, 16),
    ) {
        let mut to = to[..from.len()].to_vec();
        let bag = |units: &[usize]| {
            (0..4).map(|word| units.iter().filter(|&&unit| unit == word).count() as f64).collect()
        };
        let problem = Problem {
            supply: bag(&from),
            demand: bag(&to),
            cost: cost.iter().map(|&cost| f64::from(cost)).collect(),
        };
        let best = cheapest_pairing(&from, &mut to, &|row, column| cost[row * 4 + column]);
        let expected = f64::from(best) / from.len() as f64;
        prop_assert!((problem.solve() - expected).abs() < 1e-13);
    }

    #[test]
    fn neither_side_nor_order_nor_scale_changes_a_bit((problem, rows, columns) in shuffled()) {
        let (cost, bound) = (problem.solve().to_bits(), problem.relaxed().to_bits());
        let mut other = problem.select(&rows, &columns);
        other.supply.iter_mut().for_each(|mass| *mass *= 8.0);
        for same in [problem.transposed(), other.transposed(), other] {
            prop_assert_eq!(same.solve().to_bits(), cost);
            prop_assert_eq!(same.relaxed().to_bits(), bound);
        }
    }

    #[test]
    fn words_without_mass_change_nothing(problem in problem()) {
        let kept = |masses: &[f64]| -> Vec<usize> {
            (0..masses.len()).filter(|&word| masses[word] > 0.0).collect()
        };
        let dense = problem.select(&kept(&problem.supply), &kept(&problem.demand));
        prop_assert_eq!(dense.solve().to_bits(), problem.solve().to_bits());
        prop_assert_eq!(dense.relaxed().to_bits(), problem.relaxed().to_bits());
    }

    #[test]
    fn the_relaxation_never_exceeds_the_cost_nor_the_cost_its_largest_entry(problem in problem()) {
        let cost = problem.solve();
        prop_assert!(problem.relaxed() <= cost);
        prop_assert!(cost <= problem.cost.iter().copied().fold(0.0, f64::max));
    }

    #[test]
    fn a_used_solver_answers_as_a_fresh_one(first in problem(), second in problem()) {
        let mut used = Transport::new();
        used.cost(&first.supply, &first.demand, &first.cost);
        let again = used.cost(&second.supply, &second.demand, &second.cost);
        prop_assert_eq!(again.to_bits(), second.solve().to_bits());
    }

    #[test]
    fn over_points_of_a_line_it_is_a_metric(
        places in prop::collection::vec(-1.0..1.0f64, 8),
        masses in prop::collection::vec(prop::collection::vec(0.01..1.0f64, 8), 3),
    ) {
        let cost: Vec<f64> =
            (0..64).map(|at| f64::abs(places[at / 8] - places[at % 8])).collect();
        let mut solver = Transport::new();
        let mut between = |one: usize, two: usize| solver.cost(&masses[one], &masses[two], &cost);
        prop_assert_eq!(between(0, 0), 0.0);
        prop_assert!(between(0, 2) <= between(0, 1) + between(1, 2) + 1e-13);
        // On a line the cost is the area between the two cumulative distributions.
        let mut order: Vec<usize> = (0..8).collect();
        order.sort_by(|&a, &b| places[a].total_cmp(&places[b]));
        let total = |side: usize| masses[side].iter().sum::<f64>();
        let (mut ahead, mut area) = (0.0, 0.0);
        for pair in order.windows(2) {
            ahead += masses[0][pair[0]] / total(0) - masses[1][pair[0]] / total(1);
            area += f64::abs(ahead) * (places[pair[1]] - places[pair[0]]);
        }
        prop_assert!((between(0, 1) - area).abs() < 1e-13);
    }
}
