//! Proof of optimality by duality: the prices the search ends with certify its flow.

use proptest::prelude::*;

use super::*;

/// A problem with many ties: masses and costs from a handful of values, or spread out.
fn problem() -> impl Strategy<Value = (Vec<f64>, Vec<f64>, Vec<f64>)> {
    let mass = || prop_oneof![Just(0.0), Just(1.0), Just(2.0), 1e-6..1.0f64];
    let cost = prop_oneof![2 => (0u8..4).prop_map(f64::from), 1 => 0.0..3.0f64];
    (1usize..14, 1usize..14).prop_flat_map(move |(n, m)| {
        (
            prop::collection::vec(mass(), n),
            prop::collection::vec(mass(), m),
            prop::collection::vec(cost.clone(), n * m),
        )
    })
}

/// Checks that the flow is feasible and the prices never exceed a cost. Cells of the tree are
/// priced exactly, so together these prove that no flow is cheaper.
fn check_certificate(solver: &Transport) {
    let (rows, columns) = (solver.rows.words.len(), solver.columns.words.len());
    let (row_prices, column_prices) = solver.tree.prices();
    for (row, from) in row_prices.iter().enumerate() {
        for (column, to) in column_prices.iter().enumerate() {
            assert!(from + to <= solver.costs[row * columns + column], "a cell is underpriced");
        }
    }
    let mut sent = vec![0u128; rows];
    let mut received = vec![0u128; columns];
    let mut cells = 0;
    for (row, column, flow) in solver.tree.cells() {
        assert!(flow > 0, "a cell of the tree is empty");
        assert_eq!(row_prices[row] + column_prices[column], solver.costs[row * columns + column]);
        let amount = (flow + SPREAD / 2) / SPREAD;
        sent[row] += amount;
        received[column] += amount;
        cells += 1;
    }
    assert_eq!(cells, rows + columns - 1);
    // Exact shares: mass over own total equals flow over both totals.
    assert_eq!(sent.iter().sum::<u128>(), solver.rows.total * solver.columns.total);
    assert!(sent.iter().all(|amount| amount % solver.columns.total == 0));
    assert!(received.iter().all(|amount| amount % solver.rows.total == 0));
}

proptest! {
    #[test]
    fn the_search_ends_with_a_proof_of_optimality((supply, demand, cost) in problem()) {
        let mut solver = Transport::new();
        let answer = solver.cost(&supply, &demand, &cost);
        prop_assert!(answer.is_finite() && answer >= 0.0);
        if supply.iter().any(|&mass| mass > 0.0)
            && demand.iter().any(|&mass| mass > 0.0)
            && answer > 0.0
        {
            check_certificate(&solver);
        }
    }

    #[test]
    fn a_plan_moves_every_mass_and_attains_the_cost((supply, demand, cost) in problem()) {
        let mut solver = Transport::new();
        let least = solver.cost(&supply, &demand, &cost);
        let plan = solver.plan(&supply, &demand, &cost);
        let (given, taken): (f64, f64) = (supply.iter().sum(), demand.iter().sum());
        prop_assume!(given > 0.0 && taken > 0.0);
        let (mut left, mut room) = (supply.clone(), demand.clone());
        let mut spent = 0.0;
        for moved in plan {
            left[moved.from] -= moved.share * given;
            room[moved.to] -= moved.share * taken;
            spent += moved.share * cost[moved.from * demand.len() + moved.to];
        }
        prop_assert!(left.iter().chain(&room).all(|mass| mass.abs() < 1e-11));
        prop_assert!((spent - least).abs() < 1e-11);
    }

    #[test]
    fn a_search_cut_short_still_bounds_the_cost_from_above((supply, demand, cost) in problem()) {
        let mut solver = Transport::new();
        let optimum = solver.cost(&supply, &demand, &cost);
        prop_assume!(optimum > 0.0);
        let total = solver.rows.total * solver.columns.total;
        let exact = solver.flow_cost().over(total);
        let mut before = f64::INFINITY;
        for limit in 0..solver.pivots {
            solver.rows.fill(&supply);
            solver.columns.fill(&demand);
            solver.spread_masses();
            solver.start();
            solver.improve(limit);
            let bound = solver.flow_cost().over(total);
            prop_assert!(exact <= bound && bound <= before);
            before = bound;
        }
    }
}

#[test]
fn the_largest_problem_stays_within_its_integers_and_far_from_the_pivot_limit() {
    let n = MAX_WORDS;
    let mut solver = Transport::new();
    let masses = vec![1.0; n];
    let products: Vec<f64> = (0..n * n).map(|at| ((at / n) * (at % n)) as f64).collect();
    solver.cost(&masses, &masses, &products);
    check_certificate(&solver);
    assert!(solver.pivots < n * n * PIVOTS_PER_PAIR / 4);
    // All costs at the top of the grid give the largest prices and the largest sum.
    let flat = vec![f64::MAX; n * n];
    assert_eq!(solver.cost(&masses, &masses, &flat), f64::MAX);
    check_certificate(&solver);
}
