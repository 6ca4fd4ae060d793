//! The loops every score is made of, compiled once a register width and chosen once a process.
//!
//! There is ONE canonical order of additions: sixteen lanes of f32, element `i` to lane `i mod 16`
//! by fused multiply-add, then a fixed tree over the lanes. A register of AVX-512 holds the sixteen
//! lanes, two of AVX2 do, and plain code has an array of them, so all give the same bits.

#![allow(unsafe_code)]

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering;

use half::f16;

/// Lanes of the canonical order.
pub const LANES: usize = 16;

/// A kind of processor that there is a loop for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Width {
    /// Plain code, for every processor.
    Scalar = 1,
    /// AVX2 with FMA and F16C.
    Avx2 = 2,
    /// AVX-512F.
    Avx512 = 3,
}

/// 0 until the processor was asked.
static CHOSEN: AtomicU8 = AtomicU8::new(0);

/// The width in use.
#[inline]
pub fn width() -> Width {
    match CHOSEN.load(Ordering::Relaxed) {
        1 => Width::Scalar,
        2 => Width::Avx2,
        3 => Width::Avx512,
        _ => {
            let widest = widest();
            CHOSEN.store(widest as u8, Ordering::Relaxed);
            widest
        }
    }
}

/// The widest this processor can do.
pub fn widest() -> Width {
    #[cfg(target_arch = "x86_64")]
    {
        let wide = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("f16c");
        if wide && is_x86_feature_detected!("avx512f") {
            return Width::Avx512;
        }
        if wide {
            return Width::Avx2;
        }
    }
    Width::Scalar
}

/// Uses `wanted`, or the widest below it that this processor can do, from now on.
pub fn limit(wanted: Width) {
    CHOSEN.store(wanted.min(widest()) as u8, Ordering::Relaxed);
}

/// A number that rows are made of.
pub trait Element: Copy {
    /// Its value.
    fn widen(self) -> f32;
}

impl Element for f32 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self
    }
}

impl Element for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        self.to_f32_const()
    }
}

impl Element for i8 {
    #[inline(always)]
    fn widen(self) -> f32 {
        f32::from(self)
    }
}

#[inline(always)]
fn fold(lanes: [f32; LANES]) -> f32 {
    let mut lanes = lanes;
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] += lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

#[inline(always)]
fn dot_lanes<A: Element, B: Element>(a: &[A], b: &[B]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            lanes[lane] = a[lane].widen().mul_add(b[lane].widen(), lanes[lane]);
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane = a.widen().mul_add(b.widen(), *lane);
    }
    fold(lanes)
}

#[inline(always)]
fn squared_distance_lanes<A: Element, B: Element>(a: &[A], b: &[B]) -> f32 {
    let mut lanes = [0.0_f32; LANES];
    let (a_chunks, a_rest) = a.as_chunks::<LANES>();
    let (b_chunks, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_chunks.iter().zip(b_chunks) {
        for lane in 0..LANES {
            let difference = a[lane].widen() - b[lane].widen();
            lanes[lane] = difference.mul_add(difference, lanes[lane]);
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        let difference = a.widen() - b.widen();
        *lane = difference.mul_add(difference, *lane);
    }
    fold(lanes)
}

#[inline(always)]
fn add_scaled_lanes<A: Element>(sum: &mut [f32], weight: f32, row: &[A]) {
    for (sum, value) in sum.iter_mut().zip(row) {
        *sum = value.widen().mul_add(weight, *sum);
    }
}

/// Compiles a loop once a width and calls the one in use.
macro_rules! dispatch {
    ($(#[$doc:meta])* $name:ident, $avx2:ident, $avx512:ident, $body:ident,
     <$($kind:ident),+>, ($($arg:ident: $type:ty),+) $(-> $result:ty)?) => {
        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c")]
        fn $avx2<$($kind: Element),+>($($arg: $type),+) $(-> $result)? {
            $body($($arg),+)
        }

        #[cfg(target_arch = "x86_64")]
        #[target_feature(enable = "avx2,fma,f16c,avx512f")]
        fn $avx512<$($kind: Element),+>($($arg: $type),+) $(-> $result)? {
            $body($($arg),+)
        }

        $(#[$doc])*
        #[inline]
        pub fn $name<$($kind: Element),+>($($arg: $type),+) $(-> $result)? {
            match width() {
                // SAFETY: `width` names only what this processor was found to have.
                #[cfg(target_arch = "x86_64")]
                Width::Avx512 => unsafe { $avx512($($arg),+) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Width::Avx2 => unsafe { $avx2($($arg),+) },
                _ => $body($($arg),+),
            }
        }
    };
}

dispatch!(
    /// `Σ a_i b_i` over the elements both have, in the canonical order.
    dot, dot_avx2, dot_avx512, dot_lanes, <A, B>, (a: &[A], b: &[B]) -> f32
);
dispatch!(
    /// `Σ (a_i - b_i)²` over the elements both have, in the canonical order.
    squared_distance, squared_distance_avx2, squared_distance_avx512, squared_distance_lanes,
    <A, B>, (a: &[A], b: &[B]) -> f32
);
dispatch!(
    /// `sum_i += weight · row_i` over the elements both have.
    add_scaled, add_scaled_avx2, add_scaled_avx512, add_scaled_lanes, <A>,
    (sum: &mut [f32], weight: f32, row: &[A])
);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(a: &[f32], b: &[f32]) -> f64 {
        a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
    }

    proptest! {
        #[test]
        fn every_width_gives_the_same_bits(
            a in prop::collection::vec(-3.0_f32..3.0, 0..130),
            seed in -2.0_f32..2.0,
        ) {
            let b: Vec<f32> = a.iter().rev().map(|value| value * seed).collect();
            let half: Vec<f16> = b.iter().map(|&value| f16::from_f32(value)).collect();
            let byte: Vec<i8> = b.iter().map(|&value| (value * 20.0) as i8).collect();
            let scalar = [
                dot_lanes(&a, &b), dot_lanes(&a, &half), dot_lanes(&byte, &byte),
                squared_distance_lanes(&a, &half),
            ];
            let mut plain = a.clone();
            add_scaled_lanes(&mut plain, seed, &half);
            #[cfg(target_arch = "x86_64")]
            for wide in [Width::Avx2, Width::Avx512] {
                if wide > widest() {
                    continue;
                }
                let mut sum = a.clone();
                // SAFETY: the width was just compared with what the processor has.
                let got = unsafe {
                    if wide == Width::Avx2 {
                        add_scaled_avx2(&mut sum, seed, &half);
                        [
                            dot_avx2(&a, &b), dot_avx2(&a, &half), dot_avx2(&byte, &byte),
                            squared_distance_avx2(&a, &half),
                        ]
                    } else {
                        add_scaled_avx512(&mut sum, seed, &half);
                        [
                            dot_avx512(&a, &b), dot_avx512(&a, &half), dot_avx512(&byte, &byte),
                            squared_distance_avx512(&a, &half),
                        ]
                    }
                };
                prop_assert_eq!(got.map(f32::to_bits), scalar.map(f32::to_bits));
                prop_assert_eq!(&sum, &plain);
            }
            let close = 1e-5 * (1.0 + naive(&a, &a).abs() + naive(&b, &b).abs());
            prop_assert!((f64::from(scalar[0]) - naive(&a, &b)).abs() < close);
        }

        #[test]
        fn half_widens_as_the_processor_does(bits: u16) {
            let half = f16::from_bits(bits);
            prop_assert_eq!(half.widen().to_bits(), half.to_f32().to_bits());
        }
    }
}
