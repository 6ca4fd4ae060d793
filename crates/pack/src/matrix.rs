//! Rows as tensors of a model file: changed and quantised while they stream from the spool into it.

use std::cell::RefCell;
use std::io;
use std::io::Write;

use cognate::model::format::Dtype;
use cognate::model::vectors::Quantiser;
use cognate::model::writer::{Source, Table};
use cognate_kernels::vector;
use cognate_kernels::vector::Row;

use crate::spool::Rows;
use crate::transform::Transform;

/// Rows to be written, and what becomes of them.
#[derive(Debug)]
pub(crate) struct Matrix<'r> {
    rows: Rows<'r>,
    transform: &'r Transform,
    dtype: Dtype,
    /// One scale a row, for I8 alone; there once the rows are written.
    scales: RefCell<Vec<f32>>,
}

impl<'r> Matrix<'r> {
    /// Rows to be changed by `transform` and stored as `dtype`.
    pub(crate) fn new(rows: Rows<'r>, transform: &'r Transform, dtype: Dtype) -> Self {
        Self { rows, transform, dtype, scales: RefCell::default() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.rows.len()
    }

    /// What the length of hash vectors should be: the median length in the rarer half of the words,
    /// because a word that is not listed is a rare one.
    pub(crate) fn median_norm_of_rarer_half(&self) -> io::Result<f32> {
        let mut rarer = Vec::new();
        let (_, rows) = self.rows.clone().split_at(self.rows.len() / 2);
        changed(&rows, self.transform, |row| {
            rarer.push(vector::norm(Row::F32(row)));
            Ok(())
        })?;
        rarer.sort_unstable_by(f32::total_cmp);
        Ok(rarer.get(rarer.len() / 2).copied().unwrap_or(1.0))
    }

    /// The rows as a tensor of that name, and their scales where they have any. The scales become
    /// known while the rows are written, which tensors are in their order.
    pub(crate) fn tables(&self, name: &str, scales: &str) -> Vec<Table<'_>> {
        let rows = move |out: &mut dyn Write| {
            let mut quantiser = Quantiser::new(self.dtype);
            changed(&self.rows, self.transform, |row| quantiser.write(row, out))?;
            self.scales.replace(quantiser.scales);
            Ok(())
        };
        let mut tables = vec![Table {
            name: name.to_owned(),
            dtype: self.dtype,
            shape: vec![self.len(), self.transform.dims() as u64],
            source: Source::Stream(Box::new(rows)),
        }];
        if self.dtype == Dtype::I8 {
            let numbers =
                |out: &mut dyn Write| out.write_all(bytemuck::cast_slice(&self.scales.borrow()));
            tables.push(Table {
                name: scales.to_owned(),
                dtype: Dtype::F32,
                shape: vec![self.len()],
                source: Source::Stream(Box::new(numbers)),
            });
        }
        tables
    }
}

/// Shows each row as `transform` leaves it.
fn changed(
    rows: &Rows<'_>,
    transform: &Transform,
    mut see: impl FnMut(&[f32]) -> io::Result<()>,
) -> io::Result<()> {
    let mut after = vec![0.0; transform.dims()];
    rows.each(|row| {
        transform.apply(row, &mut after);
        see(&after)
    })
}
