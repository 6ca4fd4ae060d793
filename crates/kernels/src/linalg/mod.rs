//! Linear algebra on dense matrices of a few hundred columns: second moments of a stream of rows,
//! principal axes, removal of a projection, k-means centroids. What the rows mean is not known
//! here.
//!
//! All of it is plain multiplication and addition in a fixed order, so that the same input gives
//! the same bits on every processor and for any number of threads: a packed model file can be
//! reproduced.

mod eigen;
mod kmeans;
mod moments;
mod nearest;

pub use eigen::{Eigen, symmetric_eigen};
pub use kmeans::{Clusters, KMeans};
pub use moments::Moments;
use ndarray::{Array1, Array2, s};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// The mean of the rows: principal component analysis.
    Mean,
    /// Zero: the singular vectors of the rows as they are, as in SIF (Arora et al. 2017).
    Origin,
}

/// Orthonormal directions in which rows spread most.
#[derive(Debug, Clone, PartialEq)]
pub struct Axes {
    /// One axis a row, the strongest first; in each the component of largest magnitude is
    /// positive.
    pub vectors: Array2<f64>,
    /// The mean squared length of the rows along each axis.
    pub eigenvalues: Array1<f64>,
}

impl Axes {
    /// Each eigenvalue as a share of the sum over these axes: the factors of uSIF (Ethayarajh
    /// 2018). Zeros if the sum is 0.
    pub fn shares(&self) -> Array1<f64> {
        let sum = self.eigenvalues.sum();
        if sum > 0.0 { &self.eigenvalues / sum } else { Array1::zeros(self.eigenvalues.len()) }
    }

    /// Returns the axes one after the other in single precision, as [`remove`] takes them.
    pub fn to_rows(&self) -> Vec<f32> {
        self.vectors.iter().map(|&component| component as f32).collect()
    }
}

/// The `count` strongest axes, or as many as there are columns.
pub fn principal_axes(moments: &Moments, count: usize, about: About) -> Axes {
    let matrix = match about {
        About::Mean => moments.covariance(),
        About::Origin => moments.second_moment(),
    };
    let Eigen { values, vectors } = symmetric_eigen(matrix.view());
    let count = count.min(values.len());
    Axes {
        vectors: vectors.slice(s![..count, ..]).to_owned(),
        // Both matrices have no negative eigenvalue except by rounding.
        eigenvalues: values.slice(s![..count]).mapv(|value| value.max(0.0)),
    }
}

/// Subtracts from `x` its projection on each axis: `x -= u (u · x)`. `axes` has orthonormal rows as
/// long as `x`, one after the other. Panics if the length of `axes` is not a multiple of that of
/// `x`.
pub fn remove(axes: &[f32], x: &mut [f32]) {
    for axis in axes_along(axes, x.len()) {
        subtract_projection(axis, 1.0, x);
    }
}

/// As [`remove`], but subtracts only the given share of each projection. Panics if the numbers of
/// factors and axes differ.
pub fn remove_scaled(axes: &[f32], factors: &[f32], x: &mut [f32]) {
    assert_eq!(axes.len(), factors.len() * x.len(), "one factor for each axis");
    for (axis, &factor) in axes_along(axes, x.len()).zip(factors) {
        subtract_projection(axis, f64::from(factor), x);
    }
}

fn axes_along(axes: &[f32], dim: usize) -> impl Iterator<Item = &[f32]> {
    let dim = dim.max(1);
    assert!(axes.len().is_multiple_of(dim), "axes are as long as the row they are removed from");
    axes.chunks_exact(dim)
}

fn subtract_projection(axis: &[f32], factor: f64, x: &mut [f32]) {
    let along: f64 = axis.iter().zip(&*x).map(|(&u, &x)| f64::from(u) * f64::from(x)).sum();
    let along = factor * along;
    for (x, &u) in x.iter_mut().zip(axis) {
        *x = (f64::from(*x) - along * f64::from(u)) as f32;
    }
}
