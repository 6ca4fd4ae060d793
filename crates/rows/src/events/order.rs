//! Texts that come a little late, put back in the order of their times.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::events::source::Tweet;

/// Texts that wait for others that may still come before them.
pub(super) struct Order {
    slack: i64,
    newest: Option<i64>,
    waiting: BinaryHeap<Waiting>,
    taken: u64,
}

/// A text that waits; the greatest is the earliest.
struct Waiting {
    tweet: Tweet,
    /// Texts of one time stay in the order in which they came.
    number: u64,
    /// Whether it waits for nothing: it is too late for its place, or nothing is put in order.
    due: bool,
}

impl Waiting {
    /// Those that wait for nothing come first, as they came.
    fn key(&self) -> (bool, i64, u64) {
        match self.due {
            true => (false, 0, self.number),
            false => (true, self.tweet.time, self.number),
        }
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

impl Order {
    /// A text waits until one came that is `slack` milliseconds younger; without slack none waits, and
    /// texts leave as they came.
    pub(super) fn new(slack: i64) -> Self {
        Self { slack, newest: None, waiting: BinaryHeap::new(), taken: 0 }
    }

    /// Takes a text in; whether it came later than the slack allows.
    pub(super) fn take(&mut self, tweet: Tweet) -> bool {
        let (time, slack) = (tweet.time, self.slack);
        let late = self.newest.is_some_and(|newest| newest.saturating_sub(time) > slack);
        self.newest = self.newest.max(Some(time));
        let waiting = Waiting { tweet, number: self.taken, due: late || slack == 0 };
        self.taken += 1;
        self.waiting.push(waiting);
        late
    }

    /// The texts that no other can come before any more; all of them at the end.
    pub(super) fn ready(&mut self, ended: bool) -> Vec<Tweet> {
        let mut ready = Vec::new();
        while let Some(first) = self.waiting.peek() {
            let newest = self.newest.unwrap_or(first.tweet.time);
            let due = first.due || newest.saturating_sub(first.tweet.time) >= self.slack;
            if !due && !ended {
                break;
            }
            ready.extend(self.waiting.pop().map(|waiting| waiting.tweet));
        }
        ready
    }
}
