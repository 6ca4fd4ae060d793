//! Compares every width with the plain code, bit for bit, and that with 64-bit arithmetic.

use proptest::prelude::*;

use super::*;

/// The results of all loops for two sets of rows, by the module `$from`.
macro_rules! outcome {
    ($from:ident, $loops:expr, $dims:expr, $a:expr, $b:expr) => {{
        let (a, b) = (&filled_for($loops, $dims, $a), &filled_for($loops, $dims, $b));
        let mut found = Vec::new();
        let (mut own, mut of_a) = (vec![9.0; a.stride()], vec![9.0; a.stride()]);
        let mut of_b = vec![9.0; b.stride()];
        $from::within(a.blocks(), &mut Vec::new(), own.as_chunks_mut().0);
        let out = [of_a.as_chunks_mut().0, of_b.as_chunks_mut().0];
        $from::across(a.blocks(), b.blocks(), &mut Vec::new(), out);
        let mut products = vec![9.0; a.stride() * b.stride()];
        $from::products(a.blocks(), b.blocks(), products.as_chunks_mut().0);
        let mut gram = vec![9.0; a.stride() * a.stride()];
        $from::gram(a.blocks(), gram.as_chunks_mut().0);
        for list in [&own, &of_a, &of_b, &products, &gram] {
            found.extend(list.iter().map(|number| number.to_bits()));
        }
        for at in 0..a.blocks().len() {
            let squares = $from::squares(a.blocks().block(at), a.dims);
            found.extend(squares.map(|square| square as u32));
        }
        let mut bytes = vec![9; of_b.len()];
        found.push($from::quantise(&of_b, &mut bytes).to_bits());
        found.extend(bytes.into_iter().map(|byte| byte as u32));
        found.extend(a.rows.iter().zip(&b.rows).map(|(a, b)| $from::dot(a, b) as u32));
        found
    }};
}

fn byte() -> impl Strategy<Value = i8> {
    prop_oneof![any::<i8>(), Just(i8::MIN), Just(i8::MAX)]
}

type Text = Vec<(Vec<i8>, f32)>;

fn rows(dims: usize) -> impl Strategy<Value = Text> {
    prop::collection::vec(
        (prop::collection::vec(byte(), dims), -2.0_f32..2.0),
        0..if cfg!(miri) { 6 } else { 11 },
    )
}

fn two_texts() -> impl Strategy<Value = (usize, [Text; 2])> {
    // Miri takes seconds for a row.
    (1..if cfg!(miri) { 40_usize } else { 200 })
        .prop_flat_map(|dims| (Just(dims), [rows(dims), rows(dims)]))
}

fn filled(dims: usize, rows: &[(Vec<i8>, f32)]) -> ByteRows<'_> {
    filled_for(Loops::in_use(), dims, rows)
}

fn filled_for(loops: Loops, dims: usize, rows: &[(Vec<i8>, f32)]) -> ByteRows<'_> {
    let mut filled = ByteRows::default();
    // Memory of earlier rows must have no effect.
    filled.fill(2, [([1_i8, 2].as_slice(), 1.0)].into_iter());
    filled.fill_for(loops, dims, rows.iter().map(|(row, factor)| (row.as_slice(), *factor)));
    filled
}

fn exact(a: &[i8], b: &[i8]) -> i64 {
    a.iter().zip(b).map(|(&a, &b)| i64::from(a) * i64::from(b)).sum()
}

fn product((a, by): &(Vec<i8>, f32), (b, other): &(Vec<i8>, f32)) -> f32 {
    exact(a, b) as f32 * (by * other)
}

proptest! {
    #[test]
    fn every_width_gives_the_same_bits((dims, [a, b]) in two_texts()) {
        let plain = outcome!(plain, Loops::Least, dims, &a, &b);
        #[cfg(target_arch = "wasm32")]
        prop_assert_eq!(&outcome!(least, Loops::Least, dims, &a, &b), &plain);
        #[cfg(target_arch = "aarch64")]
        {
            // SAFETY: every processor of 64 bits has what they need.
            prop_assert_eq!(&unsafe { outcome!(least, Loops::Least, dims, &a, &b) }, &plain);
            if has_sdot() {
                // SAFETY: the processor was just found to have it.
                prop_assert_eq!(&unsafe { outcome!(sdot, Loops::Sdot, dims, &a, &b) }, &plain);
            }
        }
        #[cfg(target_arch = "x86_64")]
        {
            use crate::simd::widest;
            if widest() >= Width::Avx2 {
                // SAFETY: the width was just compared with what the processor has.
                prop_assert_eq!(&unsafe { outcome!(avx2, Loops::Avx2, dims, &a, &b) }, &plain);
            }
            if widest() >= Width::Avx512 && has_vnni() {
                // SAFETY: the width was just compared with what the processor has.
                prop_assert_eq!(&unsafe { outcome!(vnni, Loops::Vnni, dims, &a, &b) }, &plain);
            }
        }
    }

    #[test]
    fn rows_prepared_for_different_loops_are_multiplied((dims, [a, b]) in two_texts()) {
        let rows = [Loops::Least, Loops::in_use()].map(|loops| filled_for(loops, dims, &a));
        let others = filled(dims, &b);
        let [first, second] = rows.map(|rows| {
            let mut found = Vec::new();
            products(&rows, &others, &mut found);
            found
        });
        prop_assert_eq!(first, second);
    }

    #[test]
    fn products_are_exact_and_rounded_once((dims, [a, b]) in two_texts()) {
        let (rows, others) = (filled(dims, &a), filled(dims, &b));
        let most = |row: &(Vec<i8>, f32), others: &[(Vec<i8>, f32)]| {
            others.iter().map(|other| product(row, other)).fold(0.0, f32::max)
        };
        let (mut columns, mut own) = (Columns::default(), vec![9.0; 3]);
        within(&rows, &mut columns, &mut own);
        prop_assert_eq!(own, a.iter().map(|row| most(row, &a)).collect::<Vec<_>>());
        let (mut of_a, mut of_b) = (vec![9.0; 20], Vec::new());
        across(&rows, &others, &mut columns, [&mut of_a, &mut of_b]);
        prop_assert_eq!(of_a, a.iter().map(|row| most(row, &b)).collect::<Vec<_>>());
        prop_assert_eq!(of_b, b.iter().map(|row| most(row, &a)).collect::<Vec<_>>());
        let (mut cross, mut square) = (vec![9.0; 2], Vec::new());
        products(&rows, &others, &mut cross);
        gram(&rows, &mut square);
        prop_assert_eq!(cross.len(), a.len() * others.stride());
        prop_assert_eq!(square.len(), a.len() * rows.stride());
        for (i, row) in a.iter().enumerate() {
            for (j, other) in b.iter().enumerate() {
                prop_assert_eq!(cross[i * others.stride() + j], product(row, other));
            }
            for (j, other) in a.iter().enumerate() {
                prop_assert_eq!(square[i * rows.stride() + j], product(row, other));
            }
        }
    }

    #[test]
    fn a_row_as_bytes_is_rounded_half_away_from_zero(
        row in prop::collection::vec((-254_i16..=254, 0.001_f32..1000.0), 1..90), step in 0.001_f32..9.0,
    ) {
        // Half steps are where roundings differ; the other numbers are anything.
        let rows = [
            row.iter().map(|(halves, _)| f32::from(*halves) / 2.0 * step).collect::<Vec<_>>(),
            row.iter().map(|(halves, by)| f32::from(*halves) * by).collect(),
        ];
        for row in rows {
            let mut bytes = vec![9; row.len()];
            let scale = quantise(&row, &mut bytes);
            let largest = row.iter().map(|number| number.abs()).fold(0.0, f32::max);
            prop_assert_eq!(scale, if largest > 0.0 { largest / 127.0 } else { 1.0 });
            for (byte, number) in bytes.iter().zip(&row) {
                prop_assert_eq!(f32::from(*byte), (number / scale).round());
            }
        }
    }

    #[test]
    fn unit_rows_have_length_one((dims, [a, _]) in two_texts()) {
        let mut rows = filled(dims, &a);
        let mut lengths = vec![9.0];
        rows.to_unit_length(&mut lengths);
        prop_assert_eq!(lengths.len(), a.len());
        let (mut square, stride) = (Vec::new(), rows.stride());
        gram(&rows, &mut square);
        for (at, (row, factor)) in a.iter().enumerate() {
            let length = (exact(row, row) as f32 * (factor * factor)).sqrt();
            prop_assert_eq!(lengths[at], length);
            let of_itself = square[at * stride + at];
            let expected = if length > 0.0 { 1.0 } else { 0.0 };
            prop_assert!((of_itself - expected).abs() < 1e-5, "{} {}", length, of_itself);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "hundreds of thousands of numbers take it minutes")]
fn the_longest_rows_of_the_largest_bytes_do_not_overflow() {
    let (most, least) = (vec![i8::MAX; MAX_DIMS], vec![i8::MIN; MAX_DIMS]);
    for (a, b) in [(&most, &most), (&most, &least), (&least, &most), (&least, &least)] {
        assert_eq!(i64::from(dot(a, b)), exact(a, b));
        let mut rows = [ByteRows::default(), ByteRows::default()];
        rows[0].fill(MAX_DIMS, [(a.as_slice(), 1.0)].into_iter());
        rows[1].fill(MAX_DIMS, [(b.as_slice(), 1.0)].into_iter());
        let mut found = Vec::new();
        products(&rows[0], &rows[1], &mut found);
        assert_eq!(found[0], exact(a, b) as f32);
    }
}

#[test]
fn memory_is_kept_without_what_it_held() {
    let row = vec![1_i8; 40];
    let mut rows = ByteRows::default();
    rows.fill(40, std::iter::repeat_n((row.as_slice(), 0.5), 9));
    assert_eq!((rows.count(), rows.stride()), (9, 12));
    let kept = rows.emptied();
    assert_eq!((kept.count(), kept.stride()), (0, 0));
    assert!(kept.rows.capacity() >= 9 && kept.factors.capacity() >= 9);
}
