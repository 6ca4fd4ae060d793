//! The nearest of a batch are those of texts that come alone, and those of looking at all.

use cognate_kernels::random::Random;
use cognate_kernels::simd::Width;
use cognate_kernels::vector::Row;
use cognate_kernels::{simd, vector};
use proptest::prelude::*;

use crate::window::{Entry, Limits, Near, Window};

const DIMS: usize = 21;

/// Returns vectors around a few centres; some occur twice, and some have length 0.
fn vectors(count: usize, seed: u64) -> Vec<Option<Vec<f32>>> {
    let mut random = Random::seeded(seed);
    let mut all: Vec<Option<Vec<f32>>> = Vec::new();
    for at in 0..count {
        let centre = random.below(3) as f32 - 1.0;
        all.push(match random.below(9) {
            0 => None,
            1 if at > 0 => all[random.below(at)].clone(),
            _ => Some(
                (0..DIMS).map(|_| 0.3 * centre + random.below(2001) as f32 / 1e3 - 1.0).collect(),
            ),
        });
    }
    all
}

/// What looking at every text gives.
fn slow(texts: &[Entry<'_>], limits: Limits, most: usize, floor: f32) -> Vec<Vec<Near>> {
    let nearest = |at: usize| {
        let mut near = Vec::new();
        for other in at.saturating_sub(limits.last)..at {
            let (Some(one), Some(two)) = (texts[at].vector, texts[other].vector) else { continue };
            let apart = texts[at].time.abs_diff(texts[other].time);
            if limits.within.is_some_and(|most| apart > most.unsigned_abs()) {
                continue;
            }
            let cosine = vector::cosine(Row::F32(two), Row::F32(one));
            let score = if one == two { 1.0 } else { cosine };
            if score >= floor {
                near.push(Near { number: other as u64, score });
            }
        }
        near.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.number.cmp(&a.number)));
        near.truncate(most);
        near
    };
    (0..texts.len()).map(nearest).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]
    #[test]
    fn batches_of_any_size_at_any_width_give_what_looking_at_all_gives(
        count in 1usize..400,
        last in 1usize..150,
        within in prop::option::of(0i64..300),
        most in 1usize..9,
        floor in prop::sample::select(vec![-1.0_f32, 0.0, 0.4]),
        batch in 1usize..200,
        seed in 0u64..1000,
    ) {
        let vectors = vectors(count, seed);
        // Some come late, and some with a wrong clock.
        let mut random = Random::seeded(seed);
        let mut time = |at: usize| match random.below(5) {
            0 => random.below(2 * count) as i64,
            _ => at as i64 * 2,
        };
        let texts: Vec<Entry<'_>> = vectors
            .iter()
            .enumerate()
            .map(|(at, vector)| Entry { time: time(at), vector: vector.as_deref() })
            .collect();
        let limits = Limits { last, within };
        let expected = slow(&texts, limits, most, floor);
        for width in [Width::Least, Width::Avx2, Width::Avx512] {
            simd::limit(width);
            let mut window = Window::new(DIMS, limits);
            let mut found = Vec::new();
            for part in texts.chunks(batch) {
                // Who looks changes nothing, and finds what the next text does.
                let looked = window.look_up(part, most, floor);
                prop_assert_eq!(&looked[0], &expected[found.len()]);
                for (text, looked) in part.iter().zip(&looked) {
                    let alone = window.look_up(std::slice::from_ref(text), most, floor);
                    prop_assert_eq!(&alone[0], looked);
                }
                found.extend(window.follow(part, most, floor));
            }
            simd::limit(simd::widest());
            prop_assert_eq!(&found, &expected);
        }
    }
}

#[test]
fn a_window_knows_what_it_keeps() {
    let mut window = Window::new(2, Limits { last: 3, within: None });
    window.begin_at(10);
    for at in 0..5 {
        window.add(&Entry { time: at, vector: (at != 3).then_some(&[1.0, 2.0]) });
    }
    assert_eq!((window.next(), window.kept()), (15, 12..15));
    assert!(window.text(11).is_none() && window.text(15).is_none());
    assert_eq!(window.text(13).map(|text| (text.time, text.vector.is_some())), Some((3, false)));
    assert_eq!(window.text(14).and_then(|text| text.vector), Some(&[1.0, 2.0][..]));
}
