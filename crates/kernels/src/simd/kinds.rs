//! Classifies the bytes of a block as bit masks, and lists the indices of a mask's bits. What the
//! kinds mean in a text is not known here.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

#[cfg(target_arch = "x86_64")]
use super::Width;
use super::width;

pub const BLOCK: usize = 64;
/// The highest ASCII control character.
const DELETE: u8 = 0x7F;
const WORD: usize = 8;

/// The kinds of the bytes of a block: bit `i` is byte `i`. Missing bytes count as spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kinds {
    pub letters: u64,
    pub digits: u64,
    pub apostrophes: u64,
    pub spaces: u64,
    pub stops: u64,
    pub slashes: u64,
    pub signs: u64,
    pub ampersands: u64,
    /// `!` to `~`: all of the above except blanks, and every other mark.
    pub printed: u64,
    pub controls: u64,
    pub wide: u64,
}

/// The kinds of up to [`BLOCK`] bytes; bytes after these are ignored.
#[inline]
pub fn kinds(bytes: &[u8]) -> Kinds {
    match bytes.first_chunk() {
        Some(block) => of_block(block),
        None => {
            let mut block = [b' '; BLOCK];
            block.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
            of_block(&block)
        }
    }
}

/// Which bytes are from `A` to `Z`, among the bytes that [`kinds`] classifies.
#[inline]
pub fn capitals(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.get(..BLOCK).unwrap_or(bytes).as_chunks();
    let mut last = [0; WORD];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).zip((0..BLOCK).step_by(WORD));
    words.fold(0, |capitals, (word, at)| {
        capitals | within(u64::from_le_bytes(*word), b'A', b'Z') << at
    })
}

/// Which of eight bytes are ASCII from `from` to `to`, a bit per byte.
#[inline]
fn within(word: u64, from: u8, to: u8) -> u64 {
    const ONES: u64 = u64::MAX / 0xFF;
    const TOPS: u64 = ONES << 7;
    // With their top bits set, no byte borrows from the next.
    let is_from = |least: u8| (word | TOPS) - ONES * u64::from(least);
    let found = is_from(from) & !is_from(to + 1) & !word & TOPS;
    // The product's top byte has each bit once.
    (found >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

#[inline]
fn of_block(block: &[u8; BLOCK]) -> Kinds {
    match width() {
        // SAFETY: the processor was found to have it.
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 if is_x86_feature_detected!("avx512bw") => unsafe { by_avx512(block) },
        // SAFETY: `width` names only what this processor was found to have, narrower widths too.
        #[cfg(target_arch = "x86_64")]
        Width::Avx512 | Width::Avx2 => unsafe { by_avx2(block) },
        // SAFETY: every processor of 64 bits has it.
        #[cfg(target_arch = "aarch64")]
        _ => unsafe { by_neon(block) },
        #[cfg(not(target_arch = "aarch64"))]
        _ => by_scalar(block),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw")]
fn by_avx512(block: &[u8; BLOCK]) -> Kinds {
    let splat = |byte: u8| _mm512_set1_epi8(byte.cast_signed());
    // SAFETY: it has the 64 bytes.
    let block = unsafe { _mm512_loadu_si512(block.as_ptr().cast()) };
    let is = |byte: u8| _mm512_cmpeq_epi8_mask(block, splat(byte));
    let within = |block: __m512i, from: u8, to: u8| {
        _mm512_cmple_epu8_mask(_mm512_sub_epi8(block, splat(from)), splat(to - from))
    };
    Kinds {
        letters: within(_mm512_or_si512(block, splat(0x20)), b'a', b'z'),
        digits: within(block, b'0', b'9'),
        apostrophes: is(b'\''),
        spaces: is(b' '),
        stops: is(b'.') | is(b':'),
        slashes: is(b'/'),
        signs: is(b'#') | is(b'@'),
        ampersands: is(b'&'),
        printed: within(block, b'!', b'~'),
        controls: _mm512_cmplt_epu8_mask(block, splat(b' ')) | is(DELETE),
        wide: _mm512_movepi8_mask(block),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn by_avx2(block: &[u8; BLOCK]) -> Kinds {
    let mut kinds = Kinds::default();
    for (half, at) in block.as_chunks::<32>().0.iter().zip([0, 32]) {
        // SAFETY: it has the 32 bytes.
        let half = unsafe { _mm256_loadu_si256(half.as_ptr().cast()) };
        let splat = |byte: u8| _mm256_set1_epi8(byte.cast_signed());
        let put = |mask: &mut u64, found: __m256i| {
            *mask |= u64::from(_mm256_movemask_epi8(found).cast_unsigned()) << at;
        };
        let is = |byte: u8| _mm256_cmpeq_epi8(half, splat(byte));
        let within = |half: __m256i, from: u8, to: u8| {
            let offset = _mm256_sub_epi8(half, splat(from));
            _mm256_cmpeq_epi8(_mm256_min_epu8(offset, splat(to - from)), offset)
        };
        put(&mut kinds.letters, within(_mm256_or_si256(half, splat(0x20)), b'a', b'z'));
        put(&mut kinds.digits, within(half, b'0', b'9'));
        put(&mut kinds.apostrophes, is(b'\''));
        put(&mut kinds.spaces, is(b' '));
        put(&mut kinds.stops, _mm256_or_si256(is(b'.'), is(b':')));
        put(&mut kinds.slashes, is(b'/'));
        put(&mut kinds.signs, _mm256_or_si256(is(b'#'), is(b'@')));
        put(&mut kinds.ampersands, is(b'&'));
        put(&mut kinds.printed, within(half, b'!', b'~'));
        put(&mut kinds.controls, _mm256_or_si256(within(half, 0, b' ' - 1), is(DELETE)));
        put(&mut kinds.wide, half);
    }
    kinds
}

/// A mask has a bit per byte, for which NEON has no instruction: each byte keeps the bit of its
/// index among eight, and neighbours are added until eight bytes are one.
#[cfg(target_arch = "aarch64")]
#[target_feature(enable = "neon")]
fn by_neon(block: &[u8; BLOCK]) -> Kinds {
    use std::arch::aarch64::*;
    let parts = block.as_chunks::<16>().0;
    // SAFETY: each part has its sixteen bytes.
    let load = |part: &[u8; 16]| unsafe { vld1q_u8(part.as_ptr()) };
    let block = [load(&parts[0]), load(&parts[1]), load(&parts[2]), load(&parts[3])];
    let bits = vreinterpretq_u8_u64(vdupq_n_u64(0x8040_2010_0804_0201));
    let mask = |found: [uint8x16_t; 4]| {
        let [a, b, c, d] = found.map(|part| vandq_u8(part, bits));
        let halves = vpaddq_u8(vpaddq_u8(a, b), vpaddq_u8(c, d));
        vgetq_lane_u64::<0>(vreinterpretq_u64_u8(vpaddq_u8(halves, halves)))
    };
    let is = |byte: u8| mask(block.map(|part| vceqq_u8(part, vdupq_n_u8(byte))));
    let within = |block: [uint8x16_t; 4], from: u8, to: u8| {
        let (first, most) = (vdupq_n_u8(from), vdupq_n_u8(to - from));
        mask(block.map(|part| vcleq_u8(vsubq_u8(part, first), most)))
    };
    Kinds {
        letters: within(block.map(|part| vorrq_u8(part, vdupq_n_u8(0x20))), b'a', b'z'),
        digits: within(block, b'0', b'9'),
        apostrophes: is(b'\''),
        spaces: is(b' '),
        stops: is(b'.') | is(b':'),
        slashes: is(b'/'),
        signs: is(b'#') | is(b'@'),
        ampersands: is(b'&'),
        printed: within(block, b'!', b'~'),
        controls: within(block, 0, b' ' - 1) | is(DELETE),
        wide: within(block, 0x80, 0xFF),
    }
}

/// For every processor, eight bytes at a time.
#[cfg_attr(target_arch = "aarch64", allow(dead_code, reason = "what others are held against"))]
fn by_scalar(block: &[u8; BLOCK]) -> Kinds {
    let mut kinds = Kinds::default();
    for (word, at) in block.as_chunks().0.iter().zip((0..).step_by(WORD)) {
        let word = u64::from_le_bytes(*word);
        let is = |byte: u8| within(word, byte, byte) << at;
        let within = |from: u8, to: u8| within(word, from, to) << at;
        kinds.letters |= within(b'a', b'z') | within(b'A', b'Z');
        kinds.digits |= within(b'0', b'9');
        kinds.apostrophes |= is(b'\'');
        kinds.spaces |= is(b' ');
        kinds.stops |= is(b'.') | is(b':');
        kinds.slashes |= is(b'/');
        kinds.signs |= is(b'#') | is(b'@');
        kinds.ampersands |= is(b'&');
        kinds.printed |= within(b'!', b'~');
        kinds.controls |= within(0, b' ' - 1) | is(DELETE);
        kinds.wide |= (within(0, DELETE) ^ 0xFF << at) & 0xFF << at;
    }
    kinds
}

/// Appends `base` plus the index of each bit of a mask to a list.
#[inline]
pub fn push_places(mask: u64, base: u32, out: &mut Vec<u32>) {
    #[cfg(target_arch = "x86_64")]
    if width() == Width::Avx512
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vbmi2")
        && is_x86_feature_detected!("popcnt")
    {
        // SAFETY: the processor was found to have it.
        return unsafe { push_places_by_avx512(mask, base, out) };
    }
    let mut rest = mask;
    // By count, so that memory is reserved once.
    out.extend((0..mask.count_ones()).map(|_| {
        let place = rest.trailing_zeros();
        rest &= rest.wrapping_sub(1);
        base.wrapping_add(place)
    }));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vbmi2,popcnt")]
fn push_places_by_avx512(mask: u64, base: u32, out: &mut Vec<u32>) {
    const PLACES: [u8; BLOCK] = {
        let mut places = [0; BLOCK];
        let mut at = 0;
        while at < BLOCK {
            places[at] = at as u8;
            at += 1;
        }
        places
    };
    out.reserve(BLOCK);
    let (count, found) = (out.len(), mask.count_ones() as usize);
    let base = _mm512_set1_epi32(base.cast_signed());
    let put = |bytes: __m128i, from: usize, out: &mut Vec<u32>| {
        let places = _mm512_add_epi32(base, _mm512_cvtepu8_epi32(bytes));
        // SAFETY: there is room for 64 numbers behind those that the list has, and `from` is at most 48.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().add(count + from).cast(), places) };
    };
    // SAFETY: there are 64 bytes to read.
    let all = unsafe { _mm512_loadu_si512(PLACES.as_ptr().cast()) };
    let places = _mm512_maskz_compress_epi8(mask, all);
    put(_mm512_castsi512_si128(places), 0, out);
    if found > 16 {
        put(_mm512_extracti32x4_epi32::<1>(places), 16, out);
    }
    if found > 32 {
        put(_mm512_extracti32x4_epi32::<2>(places), 32, out);
        put(_mm512_extracti32x4_epi32::<3>(places), 48, out);
    }
    // SAFETY: as many numbers as the mask has bits were just written.
    unsafe { out.set_len(count + found) };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one_by_one(bytes: &[u8]) -> Kinds {
        let mut kinds = Kinds::default();
        for (at, &byte) in bytes.iter().chain(std::iter::repeat(&b' ')).enumerate().take(BLOCK) {
            let put = |mask: &mut u64, found: bool| *mask |= u64::from(found) << at;
            put(&mut kinds.letters, byte.is_ascii_alphabetic());
            put(&mut kinds.digits, byte.is_ascii_digit());
            put(&mut kinds.apostrophes, byte == b'\'');
            put(&mut kinds.spaces, byte == b' ');
            put(&mut kinds.stops, b".:".contains(&byte));
            put(&mut kinds.slashes, byte == b'/');
            put(&mut kinds.signs, b"#@".contains(&byte));
            put(&mut kinds.ampersands, byte == b'&');
            put(&mut kinds.printed, byte.is_ascii_graphic());
            put(&mut kinds.controls, byte.is_ascii_control());
            put(&mut kinds.wide, !byte.is_ascii());
        }
        kinds
    }

    proptest! {
        #[test]
        fn places_are_those_of_the_bits(masks in prop::collection::vec(any::<u64>(), 1..4), base: u32) {
            for thin in [u64::MAX, 0x1111_1111_1111_1111] {
                let (mut found, mut expected) = (vec![7], vec![7]);
                for mask in masks.iter().map(|mask| mask & thin) {
                    push_places(mask, base, &mut found);
                    let bits = (0..64).filter(|at| mask >> at & 1 == 1);
                    expected.extend(bits.map(|at| base.wrapping_add(at)));
                }
                prop_assert_eq!(found, expected);
            }
        }

        #[test]
        fn masks_are_what_the_bytes_say(
            bytes in prop::collection::vec(any::<u8>(), 0..130), text in "[a-zA-Z0-9 '@.:/&#\\[`{é]{0,130}",
        ) {
            for bytes in [bytes.as_slice(), text.as_bytes()] {
                let expected = one_by_one(bytes);
                prop_assert_eq!(kinds(bytes), expected);
                let places = (0..).zip(bytes).take(BLOCK);
                let shown = places.filter(|(_, byte)| byte.is_ascii_uppercase());
                prop_assert_eq!(capitals(bytes), shown.fold(0, |bits, (at, _)| bits | 1_u64 << at));
                let Some(block) = bytes.first_chunk() else { continue };
                prop_assert_eq!(by_scalar(block), expected);
                #[cfg(target_arch = "aarch64")]
                // SAFETY: every processor of 64 bits has it.
                prop_assert_eq!(unsafe { by_neon(block) }, expected);
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has it.
                    prop_assert_eq!(unsafe { by_avx2(block) }, expected);
                }
            }
        }
    }
}
