//! The budget of log lines for requests and connections: so many lines a second of each kind,
//! spread over the second, and a line that counts those left out. What the lines say is not known
//! here.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

pub(crate) const LINES: u64 = 100;

/// The kind of a line. Each kind has its own budget, so that none displaces another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Answered,
    Refused,
    /// A request that was refused because there were too many.
    Shed,
    Failed,
    Connection,
}

type LeftOut = [u64; 5];

#[derive(Debug)]
pub struct Budget {
    begun: Instant,
    second: AtomicU64,
    kinds: [Count; 5],
}

#[derive(Debug, Default)]
struct Count {
    /// Lines to write in this second.
    seen: AtomicU64,
    written: AtomicU64,
    /// Sampling interval: every n-th line is written, from the count of the last second.
    every: AtomicU64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { begun: Instant::now(), second: AtomicU64::new(0), kinds: Default::default() }
    }
}

impl Budget {
    pub(crate) fn admits(&self, kind: Kind, now: Instant) -> bool {
        self.report(now);
        self.take(kind)
    }

    /// Logs how many lines were left out, once their second is over.
    pub(crate) fn report(&self, now: Instant) {
        let left_out = self.turn(now.saturating_duration_since(self.begun).as_secs());
        if let Some([answered, refused, shed, failed, connections]) = left_out {
            let message = "lines left out of the log";
            tracing::info!(answered, refused, shed, failed, connections, message);
        }
    }

    fn take(&self, kind: Kind) -> bool {
        let Some(count) = self.kinds.get(kind as usize) else { return false };
        let number = count.seen.fetch_add(1, Relaxed);
        let more = |written: u64| (written < LINES).then_some(written + 1);
        number.is_multiple_of(count.every.load(Relaxed).max(1))
            && count.written.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    /// Begins a second; returns what was left out of the last one, if anything. A line at that
    /// moment may count in either.
    fn turn(&self, second: u64) -> Option<LeftOut> {
        let before = self.second.load(Relaxed);
        if second == before
            || self.second.compare_exchange(before, second, Relaxed, Relaxed).is_err()
        {
            return None;
        }
        let left_out = self.kinds.each_ref().map(|count| {
            let seen = count.seen.swap(0, Relaxed);
            // After a silent second nothing is expected.
            let expected = if second == before + 1 { seen } else { 0 };
            count.every.store(expected.div_ceil(LINES), Relaxed);
            seen.saturating_sub(count.written.swap(0, Relaxed))
        });
        (left_out != LeftOut::default()).then_some(left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(budget: &Budget, kind: Kind, lines: u64) -> Vec<u64> {
        (0..lines).filter(|_| budget.take(kind)).collect()
    }

    #[test]
    fn a_few_lines_are_all_written_and_of_many_a_sample() {
        let budget = Budget::default();
        assert_eq!(written(&budget, Kind::Answered, 70).len(), 70);
        assert_eq!(budget.turn(1), None);
        // Of an unexpected burst the first hundred lines are written.
        assert_eq!(written(&budget, Kind::Answered, 1000).len(), 100);
        assert_eq!(written(&budget, Kind::Refused, 20).len(), 20, "refusals are not hidden by it");
        assert_eq!(budget.turn(2), Some([900, 0, 0, 0, 0]));
        assert_eq!(budget.turn(2), None, "it is said once");
        // As many again: a tenth, from the whole of the second.
        let second = written(&budget, Kind::Answered, 1000);
        assert_eq!(second, (0..100).map(|line| line * 10).collect::<Vec<_>>());
        assert_eq!(budget.turn(3), Some([900, 0, 0, 0, 0]));
        // Few again: a tenth of them, and all of them from the next second on.
        assert_eq!(written(&budget, Kind::Answered, 50).len(), 5);
        assert_eq!(budget.turn(4), Some([45, 0, 0, 0, 0]));
        assert_eq!(written(&budget, Kind::Answered, 50).len(), 50);
        assert_eq!(written(&budget, Kind::Connection, 500).len(), 100);
        assert_eq!(budget.turn(9), Some([0, 0, 0, 0, 400]));
        assert_eq!(written(&budget, Kind::Connection, 30).len(), 30, "that was long ago");
    }
}
