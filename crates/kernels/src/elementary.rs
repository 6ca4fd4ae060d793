//! Logarithms, exponentials, powers and the error function with the same bits on every system. Those of
//! C libraries differ in the last bit, from version to version and from processor to processor.

pub fn ln(x: f64) -> f64 {
    libm::log(x)
}

/// `ln(1 + x)`, exact for small `x`, too.
pub fn ln_1p(x: f64) -> f64 {
    libm::log1p(x)
}

pub fn exp(x: f64) -> f64 {
    libm::exp(x)
}

pub fn power(base: f64, exponent: f64) -> f64 {
    libm::pow(base, exponent)
}

/// One minus the error function.
pub fn erfc(x: f64) -> f64 {
    libm::erfc(x)
}
