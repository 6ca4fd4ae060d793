//! The normal distribution: its cumulative probability and the inverse, to near double precision.
//!
//! The error function follows W. J. Cody, "Rational Chebyshev approximations for the error
//! function" (1969); the inverse is algorithm AS 241 (PPND16) of M. J. Wichura, "The percentage
//! points of the normal distribution" (1988). The coefficients are theirs, rounded to doubles, the
//! highest power first.

use std::f64::consts::FRAC_1_SQRT_2;

/// The probability that a standard normal variable is at most `z`. The lower tail keeps its
/// precision down to `z` = -37.
pub(super) fn cumulative(z: f64) -> f64 {
    let x = z.abs() * FRAC_1_SQRT_2;
    if x <= ERF_NEAR {
        return 0.5 + 0.5 * erf_near(z * FRAC_1_SQRT_2);
    }
    // Beyond 38 the true value is below the smallest double; infinity must not reach the
    // subtraction below.
    if x > 40.0 {
        return if z > 0.0 { 1.0 } else { 0.0 };
    }
    // exp(-z * z / 2) in two factors, the first of an exactly representable square: exp would
    // magnify the rounding errors of x and of a square.
    let coarse = (z * 16.0).trunc() / 16.0;
    let density = (-0.5 * coarse * coarse).exp() * (-0.5 * (z - coarse) * (z + coarse)).exp();
    let tail = 0.5 * density * erfc_scaled(x);
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// The value below which a standard normal variable lies with probability `p`: minus infinity for
/// `p` of 0 or less, and plus infinity for 1 or more.
pub(super) fn quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    if p >= 1.0 {
        return f64::INFINITY;
    }
    let centred = p - 0.5;
    if centred.abs() <= 0.425 {
        let r = 0.180625 - centred * centred;
        return centred * polynomial(&CENTRE_OVER, r) / polynomial(&CENTRE_UNDER, r);
    }
    let r = (-p.min(1.0 - p).ln()).sqrt();
    let size = if r <= 5.0 {
        polynomial(&SIDE_OVER, r - 1.6) / polynomial(&SIDE_UNDER, r - 1.6)
    } else {
        polynomial(&TAIL_OVER, r - 5.0) / polynomial(&TAIL_UNDER, r - 5.0)
    };
    if centred < 0.0 { -size } else { size }
}

/// End of Cody's first interval.
const ERF_NEAR: f64 = 0.46875;

/// The error function of an `x` of at most [`ERF_NEAR`] in size.
fn erf_near(x: f64) -> f64 {
    x * polynomial(&ERF_OVER, x * x) / polynomial(&ERF_UNDER, x * x)
}

/// One minus the error function, times exp(x * x), for an `x` larger than [`ERF_NEAR`].
fn erfc_scaled(x: f64) -> f64 {
    if x <= 4.0 {
        return polynomial(&ERFC_OVER, x) / polynomial(&ERFC_UNDER, x);
    }
    let inverse = 1.0 / (x * x);
    let over = inverse * polynomial(&ERFC_TAIL_OVER, inverse);
    (FRAC_1_SQRT_PI - over / polynomial(&ERFC_TAIL_UNDER, inverse)) / x
}

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

const FRAC_1_SQRT_PI: f64 = std::f64::consts::FRAC_2_SQRT_PI / 2.0;

/// Cody, erf of an x of at most 0.46875.
const ERF_OVER: [f64; 5] = [
    0.18577770618460315,
    3.1611237438705655,
    113.86415415105016,
    377.485237685302,
    3209.3775891384694,
];

/// Cody, erf of an x of at most 0.46875.
const ERF_UNDER: [f64; 5] =
    [1.0, 23.601290952344122, 244.02463793444417, 1282.6165260773723, 2844.236833439171];

/// Cody, erfc of an x of at most 4.
const ERFC_OVER: [f64; 9] = [
    2.1531153547440383e-08,
    0.5641884969886701,
    8.883149794388377,
    66.11919063714163,
    298.6351381974001,
    881.952221241769,
    1712.0476126340707,
    2051.0783778260716,
    1230.3393547979972,
];

/// Cody, erfc of an x of at most 4.
const ERFC_UNDER: [f64; 9] = [
    1.0,
    15.744926110709835,
    117.6939508913125,
    537.1811018620099,
    1621.3895745666903,
    3290.7992357334597,
    4362.619090143247,
    3439.3676741437216,
    1230.3393548037495,
];

/// Cody, erfc of an x beyond 4.
const ERFC_TAIL_OVER: [f64; 6] = [
    0.016315387137302097,
    0.30532663496123236,
    0.36034489994980445,
    0.12578172611122926,
    0.016083785148742275,
    0.0006587491615298378,
];

/// Cody, erfc of an x beyond 4.
const ERFC_TAIL_UNDER: [f64; 6] = [
    1.0,
    2.568520192289822,
    1.8729528499234673,
    0.5279051029514285,
    0.06051834131244132,
    0.0023352049762686918,
];

/// Wichura, |p - 0.5| of at most 0.425.
const CENTRE_OVER: [f64; 8] = [
    2509.0809287301227,
    33430.57558358813,
    67265.7709270087,
    45921.95393154987,
    13731.69376550946,
    1971.5909503065513,
    133.14166789178438,
    3.3871328727963665,
];

/// Wichura, |p - 0.5| of at most 0.425.
const CENTRE_UNDER: [f64; 8] = [
    5226.495278852854,
    28729.085735721943,
    39307.89580009271,
    21213.794301586597,
    5394.196021424751,
    687.1870074920579,
    42.31333070160091,
    1.0,
];

const SIDE_OVER: [f64; 8] = [
    0.0007745450142783414,
    0.022723844989269184,
    0.2417807251774506,
    1.2704582524523684,
    3.6478483247632045,
    5.769497221460691,
    4.630337846156546,
    1.4234371107496835,
];

const SIDE_UNDER: [f64; 8] = [
    1.0507500716444169e-09,
    0.0005475938084995345,
    0.015198666563616457,
    0.14810397642748008,
    0.6897673349851,
    1.6763848301838038,
    2.053191626637759,
    1.0,
];

/// Wichura, the far tails.
const TAIL_OVER: [f64; 8] = [
    2.0103343992922881e-07,
    2.7115555687434876e-05,
    0.0012426609473880784,
    0.026532189526576124,
    0.29656057182850487,
    1.7848265399172913,
    5.463784911164114,
    6.657904643501103,
];

/// Wichura, the far tails.
const TAIL_UNDER: [f64; 8] = [
    2.0442631033899397e-15,
    1.421511758316446e-07,
    1.8463183175100548e-05,
    0.0007868691311456133,
    0.014875361290850615,
    0.1369298809227358,
    0.599832206555888,
    1.0,
];

#[cfg(test)]
mod tests {
    use super::{cumulative, quantile};
    use crate::golden;

    #[test]
    fn both_directions_are_right_in_all_but_the_last_digit() {
        let golden = golden::topic("normal");
        for (z, p) in golden::numbers(&golden["z"]).into_iter().zip(golden::numbers(&golden["cdf"]))
        {
            let found = cumulative(z);
            assert!((found - p).abs() <= 5e-15 * p, "cumulative({z}) is {found:e}, not {p:e}");
        }
        for (p, z) in
            golden::numbers(&golden["p"]).into_iter().zip(golden::numbers(&golden["quantile"]))
        {
            let found = quantile(p);
            assert!(
                (found - z).abs() <= 1e-14 * z.abs().max(1.0),
                "quantile({p:e}) is {found}, not {z}"
            );
        }
    }

    #[test]
    fn the_ends_are_infinite_and_come_back() {
        assert_eq!(quantile(0.0), f64::NEG_INFINITY);
        assert_eq!(quantile(1.0), f64::INFINITY);
        assert_eq!(cumulative(f64::NEG_INFINITY), 0.0);
        assert_eq!(cumulative(f64::INFINITY), 1.0);
        assert_eq!(cumulative(1e300), 1.0);
    }
}
