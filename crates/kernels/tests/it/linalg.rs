//! Moments, principal axes and centroids against numpy, and against what defines them.

use cognate_kernels::linalg::{
    About, Eigen, KMeans, Moments, principal_axes, remove, remove_scaled, symmetric_eigen,
};
use ndarray::{Array1, Array2};
use proptest::prelude::*;
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    dim: usize,
    rows: Vec<f32>,
    weights: Vec<f64>,
    mean: Vec<f64>,
    covariance: Vec<f64>,
    second_moment: Vec<f64>,
    centred_values: Vec<f64>,
    centred_vectors: Vec<f64>,
    origin_values: Vec<f64>,
    origin_vectors: Vec<f64>,
    points: Vec<f32>,
    centroids: Vec<f64>,
    assignment: Vec<u32>,
    inertia: f64,
}

fn golden() -> Golden {
    serde_json::from_str(include_str!("../data/linalg/golden.json"))
        .expect("the golden file is one of ours")
}

#[track_caller]
fn check_close<'a>(
    found: impl IntoIterator<Item = &'a f64>,
    expected: impl IntoIterator<Item = &'a f64>,
    tolerance: f64,
) {
    let (mut found, mut expected) = (found.into_iter(), expected.into_iter());
    let mut at = 0;
    loop {
        match (found.next(), expected.next()) {
            (None, None) => break,
            (Some(x), Some(y)) => assert!((x - y).abs() <= tolerance, "at {at}: {x}, not {y}"),
            (x, y) => panic!("lengths differ at {at}: {x:?}, {y:?}"),
        }
        at += 1;
    }
    assert!(at > 0, "nothing was compared");
}

fn moments_of(rows: &[f32], weights: &[f64], dim: usize) -> Moments {
    let mut moments = Moments::new(dim);
    for (row, &weight) in rows.chunks_exact(dim).zip(weights) {
        moments.add_weighted(row, weight);
    }
    moments
}

#[test]
fn moments_and_axes_agree_with_numpy() {
    let golden = golden();
    let moments = moments_of(&golden.rows, &golden.weights, golden.dim);
    assert_eq!(moments.weight(), golden.weights.iter().sum::<f64>());
    check_close(&moments.mean(), &golden.mean, 1e-13);
    check_close(&moments.covariance(), &golden.covariance, 1e-12);
    check_close(&moments.second_moment(), &golden.second_moment, 1e-12);

    let about_mean = principal_axes(&moments, golden.dim, About::Mean);
    check_close(&about_mean.eigenvalues, &golden.centred_values, 1e-12);
    check_close(&about_mean.vectors, &golden.centred_vectors, 1e-11);
    let about_origin = principal_axes(&moments, 4, About::Origin);
    check_close(&about_origin.eigenvalues, &golden.origin_values[..4], 1e-11);
    check_close(&about_origin.vectors, &golden.origin_vectors[..4 * golden.dim], 1e-11);
    assert!((about_origin.shares().sum() - 1.0).abs() < 1e-15);
}

#[test]
fn centroids_agree_with_numpy_from_the_same_start() {
    let golden = golden();
    let search = KMeans { clusters: 5, seed: 0, max_iterations: 100, threads: 2 };
    let found = search.fit_from(&golden.points, 3, golden.points[..15].to_vec());
    let centroids: Vec<f64> = found.centroids.iter().map(|&x| f64::from(x)).collect();
    check_close(&centroids, &golden.centroids, 1e-6);
    assert_eq!(found.assignment, golden.assignment);
    assert!((found.inertia - golden.inertia).abs() < 1e-4);
    // From a start of its own it does no worse than twice the best known.
    assert!(search.fit(&golden.points, 3).inertia < 2.0 * golden.inertia);
}

/// What makes a decomposition right, whatever the matrix.
fn check_decomposition(matrix: &Array2<f64>) {
    let Eigen { values, vectors } = symmetric_eigen(matrix.view());
    let n = matrix.nrows();
    let size = matrix.iter().fold(0.0, |most, x| f64::max(most, x.abs())) * n as f64;
    let tolerance = 1e-14 * n.max(8) as f64;
    let turned = matrix.dot(&vectors.t());
    for (i, value) in values.iter().enumerate() {
        check_close(turned.column(i), &(&vectors.row(i) * *value), tolerance * size.max(1e-300));
        assert!(i == 0 || values[i - 1] >= *value);
        let largest =
            vectors.row(i).iter().fold(0.0, |l: f64, &x| if x.abs() > l.abs() { x } else { l });
        assert!(largest > 0.0);
    }
    check_close(&vectors.dot(&vectors.t()), &Array2::eye(n), tolerance);
}

#[test]
fn awkward_matrices_are_decomposed_too() {
    let n = 24;
    check_decomposition(&Array2::zeros((n, n)));
    check_decomposition(&Array2::eye(n));
    check_decomposition(&Array2::ones((n, n)));
    check_decomposition(&Array2::from_elem((1, 1), -2.0));
    check_decomposition(&Array2::from_diag(&Array1::from_iter((0..n).map(|i| (i % 3) as f64))));
    // Widely graded, ill-conditioned, and two equal halves that do not touch.
    check_decomposition(&Array2::from_shape_fn((n, n), |(i, j)| 10f64.powi(-((i + j) as i32))));
    check_decomposition(&Array2::from_shape_fn((n, n), |(i, j)| 1.0 / (i + j + 1) as f64));
    check_decomposition(&Array2::from_shape_fn((n, n), |(i, j)| {
        if i / 12 == j / 12 { 1.0 / (1 + (i % 12).abs_diff(j % 12)) as f64 } else { 0.0 }
    }));
    // Squares of these would overflow or vanish.
    for scale in [1e200, 1e-200] {
        let matrix = Array2::from_shape_fn((5, 5), |(i, j)| scale * ((i * j) % 4) as f64);
        check_decomposition(&matrix);
    }
    assert_eq!(symmetric_eigen(Array2::zeros((0, 0)).view()).values.len(), 0);
}

#[test]
fn a_mean_far_away_costs_no_digits() {
    // Steps of 1/4 about 10,000: the sum of squares alone would keep no more than eight digits.
    let rows: Vec<f32> = (0..2000).map(|at| 10_000.0 + (at * 7 % 13) as f32 / 4.0).collect();
    let moments = moments_of(&rows, &vec![1.0; 1000], 2);
    let mean = moments.mean();
    for column in 0..2 {
        let own =
            rows.iter().skip(column).step_by(2).map(|&x| (f64::from(x) - mean[column]).powi(2));
        let expected = own.sum::<f64>() / 1000.0;
        assert!((moments.covariance()[[column, column]] - expected).abs() < 1e-12);
    }
}

#[test]
fn no_rows_have_no_spread() {
    let empty = Moments::new(3);
    assert_eq!(empty.mean(), Array1::<f64>::zeros(3));
    let axes = principal_axes(&empty, 2, About::Mean);
    assert_eq!(axes.eigenvalues, Array1::<f64>::zeros(2));
    assert_eq!(axes.shares(), Array1::<f64>::zeros(2));
    let clusters = KMeans { clusters: 4, seed: 1, max_iterations: 9, threads: 3 }.fit(&[], 3);
    assert!(clusters.centroids.is_empty() && clusters.inertia == 0.0);
}

#[test]
fn fewer_different_rows_than_clusters_end_on_the_rows() {
    let rows = [1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 5.0, 6.0];
    let clusters = KMeans { clusters: 3, seed: 1, max_iterations: 9, threads: 1 }.fit(&rows, 2);
    assert_eq!(clusters.inertia, 0.0);
    assert_eq!(clusters.centroids.len(), 6);
}

#[test]
fn a_centroid_nobody_is_near_takes_the_farthest_row() {
    let rows = [0.0, 1.0, 2.0, 10.0];
    let search = KMeans { clusters: 2, seed: 1, max_iterations: 9, threads: 1 };
    let clusters = search.fit_from(&rows, 1, vec![1.0, -50.0]);
    assert_eq!(clusters.centroids, [1.0, 10.0]);
    assert_eq!(clusters.assignment, [0, 0, 0, 1]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_symmetric_matrix_is_decomposed(n in 1usize..40, entries in prop::collection::vec(-1.0..1.0f64, 1600)) {
        check_decomposition(&Array2::from_shape_fn((n, n), |(i, j)| entries[i.max(j) * 40 + i.min(j)]));
    }

    #[test]
    fn moments_are_those_of_the_definition_however_the_stream_is_cut(
        dim in 1usize..20,
        rows in prop::collection::vec(-4.0..4.0f32, 20..3000),
        cut in 0.0..1.0f64,
    ) {
        let count = rows.len() / dim;
        let rows = &rows[..count * dim];
        let weights: Vec<f64> = (0..count).map(|at| (at % 5) as f64 / 2.0).collect();
        let total: f64 = weights.iter().sum();
        prop_assume!(total > 0.0);
        let matrix = Array2::from_shape_fn((count, dim), |(r, c)| f64::from(rows[r * dim + c]));
        let weighted = Array2::from_shape_fn((count, dim), |(r, c)| weights[r] * matrix[[r, c]]);
        let second = weighted.t().dot(&matrix) / total;

        let cut = (cut * count as f64) as usize;
        let mut parts = moments_of(&rows[..cut * dim], &weights[..cut], dim);
        parts.merge(moments_of(&rows[cut * dim..], &weights[cut..], dim));
        for moments in [moments_of(rows, &weights, dim), parts] {
            check_close(&moments.second_moment(), &second, 1e-12);
            let mean = moments.mean();
            let outer = Array2::from_shape_fn((dim, dim), |(i, j)| mean[i] * mean[j]);
            check_close(&moments.covariance(), &(&second - &outer), 1e-12);
        }
    }

    #[test]
    fn what_is_removed_is_gone_and_the_rest_stays(
        rows in prop::collection::vec(-1.0..1.0f32, 60),
        mut x in prop::collection::vec(-1.0..1.0f32, 6),
        share in 0.0..1.0f32,
    ) {
        let moments = moments_of(&rows, &[1.0; 10], 6);
        let axes = principal_axes(&moments, 2, About::Origin).to_rows();
        let along = |u: &[f32], x: &[f32]| u.iter().zip(x).map(|(u, x)| u * x).sum::<f32>();
        let mut partly = x.clone();
        remove_scaled(&axes, &[share, 0.0], &mut partly);
        prop_assert!((along(&axes[..6], &partly) - (1.0 - share) * along(&axes[..6], &x)).abs() < 1e-5);
        prop_assert!((along(&axes[6..], &partly) - along(&axes[6..], &x)).abs() < 1e-5);
        remove(&axes, &mut x);
        prop_assert!(along(&axes[..6], &x).abs() < 1e-5 && along(&axes[6..], &x).abs() < 1e-5);
    }

    #[test]
    fn threads_do_not_change_a_bit_and_centroids_are_means(
        dim in 1usize..7,
        rows in prop::collection::vec(-1.0..1.0f32, 7..900),
        clusters in 1usize..12,
        seed: u64,
    ) {
        let rows = &rows[..rows.len() / dim * dim];
        let search = KMeans { clusters, seed, max_iterations: 200, threads: 1 };
        let found = search.fit(rows, dim);
        for threads in [2, 3, 7] {
            prop_assert_eq!(&KMeans { threads, ..search }.fit(rows, dim), &found);
        }
        prop_assert_eq!(found.centroids.len(), clusters.min(rows.len() / dim) * dim);
        prop_assert!(found.iterations < 200);
        for (cluster, centroid) in found.centroids.chunks_exact(dim).enumerate() {
            let own = || rows.chunks_exact(dim).zip(&found.assignment).filter(|(_, c)| **c as usize == cluster);
            for (column, &x) in centroid.iter().enumerate() {
                let sum: f64 = own().map(|(row, _)| f64::from(row[column])).sum();
                prop_assert_eq!(x, (sum / own().count() as f64) as f32);
            }
        }
        // More updates never make it worse.
        let early = KMeans { max_iterations: 0, ..search }.fit(rows, dim);
        prop_assert!(found.inertia <= early.inertia * 1.00001 + 1e-6);
    }
}
