//! Dips of the machine: a thread multiplies and adds numbers now and then, and its processor time says how fast the
//! machine is at that moment. Time in which others have the core is not counted; time that a host takes, unless the
//! kernel knows of it, is. Where two cores are one core's threads, load itself slows the loop.

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::support::Clock;

/// Steps of a look, each of which needs the one before: about an eighth of a millisecond.
const STEPS: u64 = 100_000;
/// The pause between two looks, so that looking takes less than a hundredth of a core.
const PAUSE: Duration = Duration::from_millis(20);

/// Seconds that the fastest look took so far, and seconds of each look since the last figure.
static LOOKS: Mutex<(f64, Vec<f64>)> = Mutex::new((f64::INFINITY, Vec::new()));

/// Looks from now on, for as long as the process lives; a pinned generator's core is looked at.
pub fn watch() {
    std::thread::spawn(|| {
        loop {
            let start = Clock::Thread.now();
            let step = |sum: u64, more| sum.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(more);
            black_box((0..black_box(STEPS)).fold(0, step));
            let seconds = Clock::Thread.now() - start;
            let mut looks = LOOKS.lock().unwrap_or_else(PoisonError::into_inner);
            looks.0 = looks.0.min(seconds);
            looks.1.push(seconds);
            drop(looks);
            std::thread::sleep(PAUSE);
        }
    });
}

/// The speed in the slowest tenth of the time since the last call, in percent of the fastest look.
pub fn slowest_tenth() -> Option<f64> {
    let mut looks = LOOKS.lock().unwrap_or_else(PoisonError::into_inner);
    let (fastest, mut since) = (looks.0, std::mem::take(&mut looks.1));
    since.sort_unstable_by(f64::total_cmp);
    since.get(since.len() * 9 / 10).map(|slow| 100.0 * fastest / slow)
}
