//! The loops over bytes in plain code, for every processor: the reference for the others.

use crate::simd::Tile;
pub(super) use crate::simd::bytes::quantise_loop as quantise;
use crate::simd::bytes::{Block, Blocks, Prepared, SIDE};

pub(super) fn dot(a: &[i8], b: &[i8]) -> i32 {
    let products = a.iter().zip(b).map(|(&a, &b)| i32::from(a) * i32::from(b));
    products.fold(0, i32::wrapping_add)
}

/// Rows that are multiplied one by one need no preparation.
pub(super) fn prepare(_rows: &[[&[i8]; SIDE]], _dims: usize, _prepared: &mut Prepared) {}

pub(super) fn squares(block: Block<'_>, _dims: usize) -> [i32; SIDE] {
    block.rows.map(|row| dot(row, row))
}

fn product(a: Block<'_>, i: usize, b: Block<'_>, j: usize) -> f32 {
    dot(a.rows[i], b.rows[j]) as f32 * (a.factors[i] * b.factors[j])
}

fn larger(number: &mut f32, other: f32) {
    // A positive zero stays.
    *number = if other > *number { other } else { *number };
}

pub(super) fn within(rows: Blocks<'_>, _columns: &mut Vec<Tile>, out: &mut [[f32; SIDE]]) {
    out.fill([0.0; SIDE]);
    for i in 0..rows.len() * SIDE {
        for j in i..rows.len() * SIDE {
            let (a, b) = (rows.block(i / SIDE), rows.block(j / SIDE));
            let product = product(a, i % SIDE, b, j % SIDE);
            larger(&mut out[i / SIDE][i % SIDE], product);
            larger(&mut out[j / SIDE][j % SIDE], product);
        }
    }
}

pub(super) fn across(
    a: Blocks<'_>,
    b: Blocks<'_>,
    _columns: &mut Vec<Tile>,
    [of_a, of_b]: [&mut [[f32; SIDE]]; 2],
) {
    of_a.fill([0.0; SIDE]);
    of_b.fill([0.0; SIDE]);
    for i in 0..a.len() * SIDE {
        for j in 0..b.len() * SIDE {
            let product = product(a.block(i / SIDE), i % SIDE, b.block(j / SIDE), j % SIDE);
            larger(&mut of_a[i / SIDE][i % SIDE], product);
            larger(&mut of_b[j / SIDE][j % SIDE], product);
        }
    }
}

pub(super) fn products(a: Blocks<'_>, b: Blocks<'_>, out: &mut [[f32; SIDE]]) {
    for i in 0..a.len() * SIDE {
        for j in 0..b.len() * SIDE {
            out[i * b.len() + j / SIDE][j % SIDE] =
                product(a.block(i / SIDE), i % SIDE, b.block(j / SIDE), j % SIDE);
        }
    }
}

pub(super) fn gram(a: Blocks<'_>, out: &mut [[f32; SIDE]]) {
    products(a, a, out);
}
