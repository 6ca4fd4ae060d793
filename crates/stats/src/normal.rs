//! The normal distribution: its cumulative probability and the inverse, to near double precision.
//!
//! The inverse is algorithm AS 241 (PPND16) of M. J. Wichura, "The percentage points of the normal
//! distribution" (1988). The coefficients are his, rounded to doubles, the highest power first.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_SQRT_PI};

use cognate_kernels::elementary::{erfc, exp};

/// 1/√2 − `FRAC_1_SQRT_2`: the rounding error of that constant.
const FRAC_1_SQRT_2_REST: f64 = -4.833646656726457e-17;

/// The probability that a standard normal variable is at most `z`. The lower tail keeps its
/// precision down to `z` = -37.
pub(super) fn cumulative(z: f64) -> f64 {
    let x = -z * FRAC_1_SQRT_2;
    // Beyond this the true value is below the smallest double, and infinity would have no rest.
    if x.abs() > 40.0 {
        return if z > 0.0 { 1.0 } else { 0.0 };
    }
    // In the tail the function magnifies what rounding took from x, so its slope adds that again.
    let rest = (-z).mul_add(FRAC_1_SQRT_2, -x) - z * FRAC_1_SQRT_2_REST;
    0.5 * (erfc(x) - FRAC_2_SQRT_PI * exp(-x * x) * rest)
}

/// Returns the value below which a standard normal variable lies with probability `p`: minus infinity for
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

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

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
