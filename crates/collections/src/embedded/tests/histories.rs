//! Long random histories compared with a home in memory: the process is killed between the
//! contract's steps and inside them, or loses its power, and another continues with what is on the
//! disk.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::Arc;

use cognate_testing::{Chance, rounds, seed};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

use crate::embedded::EmbeddedHome;
use crate::embedded::tests::simulated::Simulated;
use crate::{Home, Settings, SharedEngine, contract};

const STEPS: usize = 250;

#[derive(Debug, Default)]
struct Happened {
    steps: usize,
    killed_between: usize,
    killed_inside: usize,
    /// Histories that left nothing on the disk and were repeated.
    taken_again: usize,
}

fn open(disk: &Simulated) -> EmbeddedHome {
    let storage = Arc::new(disk.clone());
    EmbeddedHome::open_each(storage, Path::new("/data"), contract::LIMITS, false).unwrap().0
}

fn live(engine: &SharedEngine, seed: u64, happened: &mut Happened) {
    let mut chance = Chance(seed);
    let bytes: Vec<u8> = (0..4).flat_map(|_| chance.next().to_le_bytes()).collect();
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    let (mut disk, model) = (Simulated::new(), EmbeddedHome::in_memory(contract::LIMITS));
    let mut home = open(&disk);
    let mut now = 1_000_000;
    for home in [&model, &home] {
        assert!(home.set("news", Settings::default().into(), now).unwrap().1);
    }
    let seen = |home: &EmbeddedHome, now| contract::seen(&*home.get("news").unwrap(), engine, now);
    let end = happened.steps + STEPS;
    while happened.steps < end {
        for step in contract::steps().new_tree(&mut runner).unwrap().current() {
            happened.steps += 1;
            if let contract::Step::Wait(time) = step {
                now += time;
            }
            if chance.below(5) == 0 {
                disk.kill_at(1 + chance.below(8));
            }
            let mut came = Some(contract::take(&home, engine, &step, now));
            let is_inside = disk.is_dead();
            if is_inside || chance.below(6) == 0 {
                disk = match chance.below(3) {
                    0 => disk.without_power(|| chance.below(2) == 0),
                    _ => disk.killed(),
                };
                home = open(&disk);
                match is_inside {
                    true => happened.killed_inside += 1,
                    false => happened.killed_between += 1,
                }
            }
            if is_inside {
                // The step was not acknowledged: all of it is there or nothing.
                let is_lost = seen(&home, now) == seen(&model, now);
                happened.taken_again += usize::from(is_lost);
                came = is_lost.then(|| contract::take(&home, engine, &step, now));
            }
            let expected = contract::take(&model, engine, &step, now);
            if let Some(came) = came {
                assert_eq!(came, expected, "{step:?}");
            }
            assert_eq!(seen(&home, now), seen(&model, now), "{step:?}");
        }
    }
}

#[test]
fn a_home_that_is_killed_again_and_again_goes_on_as_one_in_memory() {
    let (engine, again) = (contract::engine(), seed());
    let is_long = rounds(0, 1) > 0;
    let operations = if again.is_some() { 1 } else { rounds(1_500, 200_000) };
    let first = again.unwrap_or_else(|| if is_long { RandomState::new().hash_one(()) } else { 0 });
    let mut happened = Happened::default();
    for seed in (0..).map(|history| first.wrapping_add(history)) {
        if happened.steps >= operations {
            break;
        }
        let live = AssertUnwindSafe(|| live(&engine, seed, &mut happened));
        catch_unwind(live).unwrap_or_else(|panic| {
            eprintln!("run again with TEST_COGNATE_SEED={seed}");
            resume_unwind(panic)
        });
    }
    if is_long {
        // Not through the harness, which hides the output of a test that passes.
        writeln!(io::stderr(), "collections, from seed {first}: {happened:?}").unwrap();
    }
    if again.is_none() {
        let Happened { steps, killed_between, killed_inside, taken_again } = happened;
        let least = steps / 20;
        assert!(killed_between > least && killed_inside > least && taken_again > 0, "{happened:?}");
    }
}
