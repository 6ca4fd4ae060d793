//! Eigenvalues and eigenvectors of a dense symmetric matrix, up to about a thousand columns:
//! Householder reflections to a tridiagonal matrix, then implicit QR steps with Wilkinson's shift
//! (Golub and Van Loan, chapter 8). What the matrix means is not known here.
//!
//! Everything works along rows: eigenvectors are rows throughout, so that a rotation combines two
//! contiguous stretches of memory.

use ndarray::{Array1, Array2, ArrayView2};

/// The eigenvalues of a symmetric matrix, largest first, with their eigenvectors.
#[derive(Debug, Clone, PartialEq)]
pub struct Eigen {
    pub values: Array1<f64>,
    /// Row `i` is the eigenvector of value `i`: of unit length, orthogonal to the others, its
    /// component of largest magnitude (the first of equals) positive.
    pub vectors: Array2<f64>,
}

/// QR steps allowed for each column; two are usual, and with this shift they always converge.
const STEPS_PER_COLUMN: usize = 60;

/// Decomposes a symmetric matrix of finite numbers. Only its lower triangle is read. Eigenvalues
/// are accurate to the rounding of the largest. Panics if the matrix is not square.
pub fn symmetric_eigen(matrix: ArrayView2<'_, f64>) -> Eigen {
    assert!(matrix.is_square(), "a symmetric matrix is square");
    let n = matrix.nrows();
    // Squares of entries far from one could overflow or vanish; a power of two costs no digit.
    let scale = power_of_two_near(matrix.iter().fold(0.0, |most, x| f64::max(most, x.abs())));
    let mut work: Vec<f64> = matrix.iter().map(|x| x / scale).collect();
    let (mut diagonal, mut beside, betas) = tridiagonalise(&mut work, n);
    let mut rows = reflections(&work, &betas, n);
    drop(work);
    diagonalise(&mut diagonal, &mut beside, &mut rows);

    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| diagonal[b].total_cmp(&diagonal[a]));
    let mut vectors = Array2::zeros((n, n));
    for (mut to, &from) in vectors.rows_mut().into_iter().zip(&order) {
        let from = &rows[from * n..][..n];
        let sign = sign_of_largest(from);
        to.iter_mut().zip(from).for_each(|(to, from)| *to = sign * from);
    }
    Eigen { values: order.iter().map(|&at| diagonal[at] * scale).collect(), vectors }
}

fn power_of_two_near(number: f64) -> f64 {
    if number.is_normal() { f64::from_bits(number.to_bits() & (0x7ff << 52)) } else { 1.0 }
}

fn sign_of_largest(row: &[f64]) -> f64 {
    let mut largest = 0.0f64;
    for &x in row {
        if x.abs() > largest.abs() {
            largest = x;
        }
    }
    if largest < 0.0 { -1.0 } else { 1.0 }
}

/// Reduces the lower triangle of `a` from the last row up: a reflection `1 - beta v vᵀ` leaves of
/// row `i` only the entry beside the diagonal. Returns the diagonal, the entries beside it
/// (`beside[i]` joins `i` and `i + 1`) and the betas; `v` of row `i` stays in its place in `a`.
fn tridiagonalise(a: &mut [f64], n: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let mut beside = vec![0.0; n];
    let mut betas = vec![0.0; n];
    let mut moved = vec![0.0; n];
    for i in (1..n).rev() {
        let (above, row) = a.split_at_mut(i * n);
        let v = &mut row[..i];
        let last = v[i - 1];
        let rest = dot(&v[..i - 1], &v[..i - 1]);
        if rest == 0.0 {
            beside[i - 1] = last;
            continue;
        }
        let norm = (rest + last * last).sqrt();
        // The reflection that adds magnitudes, and so loses no digits.
        let image = if last < 0.0 { norm } else { -norm };
        beside[i - 1] = image;
        v[i - 1] = last - image;
        let beta = 2.0 / (rest + v[i - 1] * v[i - 1]);
        betas[i] = beta;

        // With w = beta A v - (beta² vᵀAv / 2) v the block becomes A - v wᵀ - w vᵀ.
        let w = &mut moved[..i];
        w.fill(0.0);
        for j in 0..i {
            let line = &above[j * n..][..=j];
            w[j] += dot(&line[..j], &v[..j]) + line[j] * v[j];
            add_scaled(&mut w[..j], v[j], &line[..j]);
        }
        w.iter_mut().for_each(|w| *w *= beta);
        let half = 0.5 * beta * dot(w, v);
        add_scaled(w, -half, v);
        for j in 0..i {
            let line = &mut above[j * n..][..=j];
            let (vj, wj) = (v[j], w[j]);
            for ((a, v), w) in line.iter_mut().zip(&*v).zip(&*w) {
                *a -= vj * w + wj * v;
            }
        }
    }
    let diagonal = (0..n).map(|i| a[i * n + i]).collect();
    (diagonal, beside, betas)
}

/// The product of the reflections, transposed: row `i` is the direction that became axis `i`.
fn reflections(a: &[f64], betas: &[f64], n: usize) -> Vec<f64> {
    let mut rows = vec![0.0; n * n];
    for i in 0..n {
        rows[i * n + i] = 1.0;
        let v = &a[i * n..][..i];
        if betas[i] == 0.0 {
            continue;
        }
        for row in rows.chunks_exact_mut(n).take(i) {
            let along = betas[i] * dot(&row[..i], v);
            add_scaled(&mut row[..i], -along, v);
        }
    }
    rows
}

/// Makes the tridiagonal matrix diagonal, and turns `rows` with it.
fn diagonalise(diagonal: &mut [f64], beside: &mut [f64], rows: &mut [f64]) {
    let n = diagonal.len();
    let size = (0..n).fold(0.0, |most, i| f64::max(most, diagonal[i].abs() + beside[i].abs()));
    let negligible = f64::EPSILON * size;
    let mut end = n.saturating_sub(1);
    for _ in 0..STEPS_PER_COLUMN * n {
        while end > 0 && beside[end - 1].abs() <= negligible {
            end -= 1;
        }
        if end == 0 {
            return;
        }
        let mut start = end - 1;
        while start > 0 && beside[start - 1].abs() > negligible {
            start -= 1;
        }
        qr_step(diagonal, beside, rows, start, end);
    }
}

/// One implicit QR step on the unreduced block from `start` to `end`, both included.
fn qr_step(diagonal: &mut [f64], beside: &mut [f64], rows: &mut [f64], start: usize, end: usize) {
    let n = diagonal.len();
    let half = 0.5 * (diagonal[end - 1] - diagonal[end]);
    let join = beside[end - 1];
    let root = (half * half + join * join).sqrt();
    let shift = diagonal[end] - join * join / (half + root.copysign(half));
    // `bulge` is the entry outside the three diagonals that each rotation pushes one place on.
    let (mut lead, mut bulge) = (diagonal[start] - shift, beside[start]);
    for k in start..end {
        let length = (lead * lead + bulge * bulge).sqrt();
        let (cos, sin) = if length > 0.0 { (lead / length, bulge / length) } else { (1.0, 0.0) };
        if k > start {
            beside[k - 1] = length;
        }
        let turn = sin * (diagonal[k + 1] - diagonal[k]) + 2.0 * cos * beside[k];
        diagonal[k] += sin * turn;
        diagonal[k + 1] -= sin * turn;
        beside[k] = cos * turn - beside[k];
        lead = beside[k];
        if k + 1 < end {
            bulge = sin * beside[k + 1];
            beside[k + 1] *= cos;
        }
        let (first, second) = rows[k * n..(k + 2) * n].split_at_mut(n);
        for (x, y) in first.iter_mut().zip(second) {
            (*x, *y) = (cos * *x + sin * *y, cos * *y - sin * *x);
        }
    }
}

/// Eight sums side by side, which the compiler can keep in vector registers, added in fixed order.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (x, y) = (x.chunks_exact(8), y.chunks_exact(8));
    let rest: f64 = x.remainder().iter().zip(y.remainder()).map(|(x, y)| x * y).sum();
    for (x, y) in x.zip(y) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

fn add_scaled(x: &mut [f64], factor: f64, y: &[f64]) {
    for (x, y) in x.iter_mut().zip(y) {
        *x += factor * y;
    }
}
