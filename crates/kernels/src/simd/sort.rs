//! Sorts a few numbers, as many as a short text has words, without comparisons that the processor
//! has to predict.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

#[cfg(target_arch = "x86_64")]
use crate::simd::Width;
use crate::simd::{LANES, width};

const FEW: usize = 2 * LANES;

/// Sorts numbers, none of which is `u32::MAX`.
pub fn sort(numbers: &mut [u32]) {
    match (numbers.len(), width()) {
        (0 | 1, _) => {}
        // SAFETY: `width` names only what this processor was found to have.
        #[cfg(target_arch = "x86_64")]
        (..=LANES, Width::Avx512) => unsafe { in_registers::<1>(numbers) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        (..=FEW, Width::Avx512) => unsafe { in_registers::<2>(numbers) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        (..=LANES, Width::Avx2) => unsafe { by_counting_avx2::<LANES>(numbers) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        (..=FEW, Width::Avx2) => unsafe { by_counting_avx2::<FEW>(numbers) },
        (..=LANES, _) => by_counting::<LANES>(numbers),
        _ => numbers.sort_unstable(),
    }
}

const PLACE_BITS: u32 = FEW.trailing_zeros();

/// Each number's rank is the number of smaller keys: a key is a number followed by its index, so
/// that no two are equal. Numbers that leave no room for an index exceed the size of a vocabulary.
#[inline(always)]
fn by_counting<const N: usize>(numbers: &mut [u32]) {
    if numbers.iter().fold(0, |all, &number| all | number) >= 1 << (i32::BITS - 1 - PLACE_BITS) {
        return numbers.sort_unstable();
    }
    let (mut keys, mut ranks, mut sorted) = ([i32::MAX; N], [0_i32; N], [0; N]);
    for ((key, number), place) in keys.iter_mut().zip(&*numbers).zip(0..) {
        *key = (number << PLACE_BITS | place).cast_signed();
    }
    for other in keys.iter().take(numbers.len()) {
        for (rank, key) in ranks.iter_mut().zip(&keys) {
            // Wrapping, because overflow checks would prevent vectorisation.
            *rank = rank.wrapping_add(i32::from(other < key));
        }
    }
    for (number, rank) in numbers.iter().zip(ranks) {
        if let Some(place) = sorted.get_mut(rank as usize) {
            *place = *number;
        }
    }
    numbers.iter_mut().zip(sorted).for_each(|(number, sorted)| *number = sorted);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn by_counting_avx2<const N: usize>(numbers: &mut [u32]) {
    by_counting::<N>(numbers);
}

/// Sorts up to `16 N` numbers by a bitonic network.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn in_registers<const N: usize>(numbers: &mut [u32]) {
    let mut parts = [_mm512_set1_epi32(-1); N];
    for (part, numbers) in parts.iter_mut().zip(numbers.chunks(LANES)) {
        // SAFETY: of the slice's numbers and no others.
        *part = unsafe {
            _mm512_mask_loadu_epi32(*part, first(numbers.len()), numbers.as_ptr().cast())
        };
        *part = sorted_lanes(*part);
    }
    if let [low, high] = parts.as_mut_slice() {
        let turned = _mm512_permutexvar_epi32(away(15), *high);
        (*low, *high) =
            (merged(_mm512_min_epu32(*low, turned)), merged(_mm512_max_epu32(*low, turned)));
    }
    for (part, numbers) in parts.iter().zip(numbers.chunks_mut(LANES)) {
        // SAFETY: as above.
        unsafe {
            _mm512_mask_storeu_epi32(numbers.as_mut_ptr().cast(), first(numbers.len()), *part);
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn first(count: usize) -> __mmask16 {
    ((1_u32 << count) - 1) as __mmask16
}

/// One step of the network: each lane becomes the smaller or, where the mask says so, the larger of
/// itself and the lane at this distance.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn step(lanes: __m512i, distance: i32, larger: __mmask16) -> __m512i {
    let others = _mm512_permutexvar_epi32(away(distance), lanes);
    _mm512_mask_max_epu32(_mm512_min_epu32(lanes, others), larger, lanes, others)
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn away(distance: i32) -> __m512i {
    let lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    _mm512_xor_si512(lanes, _mm512_set1_epi32(distance))
}

/// Sorts sixteen numbers. Partners mirror each other, so that every run rises.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn sorted_lanes(lanes: __m512i) -> __m512i {
    let pairs = step(lanes, 1, 0xAAAA);
    let fours = step(step(pairs, 3, 0xCCCC), 1, 0xAAAA);
    let eights = step(step(step(fours, 7, 0xF0F0), 2, 0xCCCC), 1, 0xAAAA);
    merged_from_four(step(eights, 15, 0xFF00))
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn merged(lanes: __m512i) -> __m512i {
    merged_from_four(step(lanes, 8, 0xFF00))
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn merged_from_four(lanes: __m512i) -> __m512i {
    step(step(step(lanes, 4, 0xF0F0), 2, 0xCCCC), 1, 0xAAAA)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_way_sorts(
            numbers in prop_oneof![
                prop::collection::vec(prop_oneof![0..9_u32, 0..1_000_000_u32], 0..50),
                prop::collection::vec(0..u32::MAX, 0..50),
            ],
        ) {
            let mut expected = numbers.clone();
            expected.sort_unstable();
            let check = |way: fn(&mut [u32])| {
                let mut sorted = numbers.clone();
                way(&mut sorted);
                prop_assert_eq!(&sorted, &expected);
                Ok(())
            };
            check(sort)?;
            if numbers.len() <= FEW {
                check(by_counting::<FEW>)?;
            }
        }
    }
}
