//! Changes of the vectors themselves, fitted on the rows and applied to each as it is written.
//!
//! *All-but-the-top* (Mu and Viswanath 2018): word vectors share a mean and a few directions that
//! say how frequent a word is rather than what it means; taking both away leaves the meaning.

use std::io;

use cognate_kernels::linalg::{About, Moments};
use cognate_kernels::vector::Row;
use cognate_kernels::{linalg, vector};

use crate::spool::Rows;

/// How rows are cut to fewer dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Rotated to the principal axes of the rows, the largest kept.
    Pca,
    /// The first dimensions kept as they are, for vectors that come in that order.
    Truncate,
}

/// The changes asked for, in the order in which they are made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Changes {
    /// Take away the mean and this many principal components.
    pub abtt: Option<usize>,
    /// Cut to this many dimensions.
    pub dims: Option<(usize, Cut)>,
    /// Give every row length 1.
    pub unit_norm: bool,
}

/// Rows that all-but-the-top is fitted on: the most frequent words, as files list those first.
const FITTED_ROWS: u64 = 50_000;

/// Changes fitted to a table of rows.
#[derive(Debug, Default)]
pub(crate) struct Transform {
    mean: Vec<f32>,
    /// Axes one after another, a row each.
    removed: Vec<f32>,
    rotation: Option<Vec<f32>>,
    dims: usize,
    unit_norm: bool,
}

impl Transform {
    /// Fits `changes` to `rows`.
    pub(crate) fn fit(changes: &Changes, rows: &Rows<'_>) -> io::Result<Self> {
        let mut transform =
            Self { dims: rows.dims(), unit_norm: changes.unit_norm, ..Self::default() };
        if let Some(components) = changes.abtt {
            let mut moments = Moments::new(rows.dims());
            let (frequent, _) = rows.clone().split_at(FITTED_ROWS);
            frequent.each(|row| {
                moments.add(row);
                Ok(())
            })?;
            transform.mean = moments.mean().iter().map(|&mean| mean as f32).collect();
            transform.removed = linalg::principal_axes(&moments, components, About::Mean).to_rows();
        }
        if let Some((dims, Cut::Pca)) = changes.dims {
            let mut moments = Moments::new(rows.dims());
            rows.each(|row| {
                transform.remove(row);
                moments.add(row);
                Ok(())
            })?;
            // Around the origin, not the mean: products of rows are what methods live from.
            let axes = linalg::principal_axes(&moments, dims, About::Origin);
            transform.rotation = Some(axes.to_rows());
        }
        transform.dims = changes.dims.map_or(rows.dims(), |(dims, _)| dims);
        Ok(transform)
    }

    /// Dimensions of a changed row.
    pub(crate) fn dims(&self) -> usize {
        self.dims
    }

    /// Changes `row`, which is used up, into `out` of [`Transform::dims`] numbers.
    pub(crate) fn apply(&self, row: &mut [f32], out: &mut [f32]) {
        self.remove(row);
        match &self.rotation {
            Some(axes) => {
                for (value, axis) in out.iter_mut().zip(axes.chunks_exact(row.len())) {
                    *value = vector::dot(Row::F32(axis), Row::F32(row));
                }
            }
            None => {
                for (value, kept) in out.iter_mut().zip(row) {
                    *value = *kept;
                }
            }
        }
        if self.unit_norm {
            let norm = vector::norm(Row::F32(out));
            if norm > 0.0 {
                out.iter_mut().for_each(|value| *value /= norm);
            }
        }
    }

    fn remove(&self, row: &mut [f32]) {
        for (value, mean) in row.iter_mut().zip(&self.mean) {
            *value -= mean;
        }
        linalg::remove(&self.removed, row);
    }
}
