//! The loops over one row or two, the same for every width: what a register holds is the business of the
//! file that calls this.

/// Defines `dot`, `squared_distance` and `add_scaled` over `Load`, `none`, `all`, `chunk`, `rest_of_row`,
/// `lanes_of`, `lanes_of_rest`, `fused`, `difference`, `fold`, `store` and `store_rest`.
macro_rules! loops {
    ($features:literal) => {
        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn dot<A: Load, B: Load>(a: &[A], b: &[B]) -> f32 {
            let (a_chunks, a_rest) = a.as_chunks::<LANES>();
            let (b_chunks, b_rest) = b.as_chunks::<LANES>();
            let mut lanes = none();
            for (a, b) in a_chunks.iter().zip(b_chunks) {
                lanes = fused(chunk(a), chunk(b), lanes);
            }
            if !a_rest.is_empty() {
                lanes = fused(rest_of_row(a_rest), rest_of_row(b_rest), lanes);
            }
            fold(lanes)
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn squared_distance<A: Load, B: Load>(a: &[A], b: &[B]) -> f32 {
            let (a_chunks, a_rest) = a.as_chunks::<LANES>();
            let (b_chunks, b_rest) = b.as_chunks::<LANES>();
            let mut lanes = none();
            for (a, b) in a_chunks.iter().zip(b_chunks) {
                let difference = difference(chunk(a), chunk(b));
                lanes = fused(difference, difference, lanes);
            }
            if !a_rest.is_empty() {
                let difference = difference(rest_of_row(a_rest), rest_of_row(b_rest));
                lanes = fused(difference, difference, lanes);
            }
            fold(lanes)
        }

        #[inline]
        #[target_feature(enable = $features)]
        pub(super) fn add_scaled<A: Load, const N: usize>(
            sum: &mut [f32],
            weights: [f32; N],
            rows: [&[A]; N],
        ) {
            let (chunks, rest) = sum.as_chunks_mut::<LANES>();
            let whole = chunks.len() * LANES;
            for (at, sum) in chunks.iter_mut().enumerate() {
                let mut lanes = lanes_of(sum);
                for place in 0..N {
                    let row = &rows[place].as_chunks::<LANES>().0[at];
                    lanes = fused(chunk(row), all(weights[place]), lanes);
                }
                store(sum, lanes);
            }
            if !rest.is_empty() {
                let mut lanes = lanes_of_rest(rest);
                for place in 0..N {
                    let row = rest_of_row(&rows[place][whole..]);
                    lanes = fused(row, all(weights[place]), lanes);
                }
                store_rest(rest, lanes);
            }
        }
    };
}

pub(super) use loops;
