//! Changes to the vectors, fitted to all rows and applied to each row as it is written.
//!
//! *All-but-the-top* (Mu and Viswanath 2018): word vectors share a mean and a few directions that
//! reflect the frequency of a word rather than its meaning; both are removed.

use std::cell::RefCell;
use std::io;
use std::io::Write;
use std::path::Path;

use cognate::model::format::{Dtype, Limits};
use cognate::model::pieces::MARK;
use cognate::model::pieces::cut::{LONGEST_PIECE_BYTES, PieceLengths};
use cognate::model::vectors::Quantiser;
use cognate::model::vocabulary::VocabularyTables;
use cognate::model::writer::{Source as TableSource, Table};
use cognate_files::progress::Progress;
use cognate_kernels::linalg::{About, Moments};
use cognate_kernels::vector::Row;
use cognate_kernels::{linalg, vector};

use crate::intake::{BadUtf8, FlawedRows, Intake, Policy};
use crate::readers::{Source, format};
use crate::spool::{Rows, Spool};
use crate::{PackError, Result};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Rotated to the principal axes of the rows; those with the largest variance are kept.
    Pca,
    /// The first dimensions are kept, for vectors with ordered dimensions.
    Truncate,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Changes {
    pub abtt: Option<usize>,
    pub dims: Option<(usize, Cut)>,
    pub unit_norm: bool,
}

/// Rows that all-but-the-top is fitted to: the most frequent words, which files list first.
const FITTED_ROWS: u64 = 50_000;

#[derive(Debug, Default)]
pub(crate) struct Transform {
    mean: Vec<f32>,
    removed: Vec<f32>,
    rotation: Option<Vec<f32>>,
    dims: usize,
    unit_norm: bool,
}

impl Transform {
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
            // Around the origin, not the mean: methods use products of rows.
            let axes = linalg::principal_axes(&moments, dims, About::Origin);
            transform.rotation = Some(axes.to_rows());
        }
        transform.dims = changes.dims.map_or(rows.dims(), |(dims, _)| dims);
        Ok(transform)
    }

    pub(crate) fn dims(&self) -> usize {
        self.dims
    }

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

#[derive(Debug)]
pub(crate) struct Matrix<'r> {
    rows: Rows<'r>,
    transform: &'r Transform,
    dtype: Dtype,
    /// One scale for each row; only for I8, and only after the rows were written.
    scales: RefCell<Vec<f32>>,
}

impl<'r> Matrix<'r> {
    pub(crate) fn new(rows: Rows<'r>, transform: &'r Transform, dtype: Dtype) -> Self {
        Self { rows, transform, dtype, scales: RefCell::default() }
    }

    pub(crate) fn len(&self) -> u64 {
        self.rows.len()
    }

    /// The norm for vectors of unlisted words: the median norm in the rarer half of the words,
    /// because an unlisted word is probably rare.
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

    /// The rows as a tensor of that name, and their scales for I8. Scales are computed while the
    /// rows are written, so their tensor comes after the rows.
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
            source: TableSource::Stream(Box::new(rows)),
        }];
        if self.dtype == Dtype::I8 {
            let numbers =
                |out: &mut dyn Write| out.write_all(bytemuck::cast_slice(&self.scales.borrow()));
            tables.push(Table {
                name: scales.to_owned(),
                dtype: Dtype::F32,
                shape: vec![self.len()],
                source: TableSource::Stream(Box::new(numbers)),
            });
        }
        tables
    }
}

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

pub(crate) struct Pieces {
    pub(crate) strings: VocabularyTables,
    pub(crate) rows: Spool,
    pub(crate) digest: String,
}

/// Reads pieces for words of `dims` dimensions. A flawed row is refused, because nothing else would
/// reveal a missing piece.
pub(crate) fn read_pieces(source: &Source, dims: usize, directory: &Path) -> Result<Pieces> {
    let policy = Policy {
        duplicates: FlawedRows::Refuse,
        non_finite: FlawedRows::Refuse,
        utf8: BadUtf8::Strict,
        lower: false,
        words: Limits::DEFAULT.words,
    };
    let mut reader = format::open(source)?;
    if reader.dims() != dims {
        let problem = format!(
            "--pieces: expected rows of {dims} dimensions, as the words have, got {}",
            reader.dims()
        );
        return Err(PackError::Options(problem));
    }
    let bar = Progress::bytes("pieces");
    let intake = Intake::read(reader.as_mut(), &policy, directory, &bar)?;
    let Intake { words, rows, left_out, .. } = intake;
    if words.is_empty() {
        return Err(PackError::NoRows { path: source.path.clone() });
    }
    if left_out.zero_rows + left_out.empty_words > 0 {
        let problem = format!(
            "--pieces: {}: {} rows are all zeros, {} have no name",
            source.path.display(),
            left_out.zero_rows,
            left_out.empty_words
        );
        return Err(PackError::Options(problem));
    }
    if PieceLengths::new(words.iter(), MARK).is_none() {
        let problem = format!(
            "--pieces: {}: expected pieces of at most {LONGEST_PIECE_BYTES} bytes",
            source.path.display()
        );
        return Err(PackError::Options(problem));
    }
    let strings = VocabularyTables::build(words.iter());
    Ok(Pieces { strings, rows, digest: reader.digest()? })
}
