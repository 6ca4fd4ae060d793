//! Items of a collection by block of their numbers, a bit each.

use cognate_kernels::scan::ROWS;

pub(super) const TILES: usize = 8;
pub(super) const BLOCK: u64 = (TILES * ROWS) as u64;

/// Items of a block, a bit each.
pub(super) type Bits = [u64; TILES];

pub(super) fn ones(bits: &Bits) -> usize {
    bits.iter().map(|bits| bits.count_ones() as usize).sum()
}

pub(super) fn set(bits: &mut Bits, place: usize) {
    bits[place / ROWS] |= 1 << (place % ROWS);
}

pub(super) fn unset(bits: &mut Bits, place: usize) {
    bits[place / ROWS] &= !(1 << (place % ROWS));
}

pub(super) fn places(bits: Bits) -> impl Iterator<Item = usize> {
    bits.into_iter().enumerate().flat_map(|(tile, mut rest)| {
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(tile * ROWS + bit)
        })
    })
}

pub(super) fn without(one: &Bits, other: &Bits) -> Bits {
    std::array::from_fn(|tile| one[tile] & !other[tile])
}

pub(super) fn and(one: &Bits, other: &Bits) -> Bits {
    std::array::from_fn(|tile| one[tile] & other[tile])
}

pub(super) fn or(one: &Bits, other: &Bits) -> Bits {
    std::array::from_fn(|tile| one[tile] | other[tile])
}

pub(super) fn count(wanted: &[(u64, Bits)]) -> usize {
    wanted.iter().map(|(_, bits)| ones(bits)).sum()
}

pub(super) fn numbers(wanted: &[(u64, Bits)]) -> impl Iterator<Item = u64> {
    wanted.iter().flat_map(|(at, bits)| places(*bits).map(|place| number(*at, place)))
}

pub(super) fn number(at: u64, place: usize) -> u64 {
    at * BLOCK + place as u64
}
