//! How often each key may ask: so many requests a second, with bursts of as many. Which key a
//! request has is not known here.

use std::num::NonZeroU32;

use governor::RateLimiter;
use governor::clock::Clock;
use governor::clock::DefaultClock;
use governor::middleware::NoOpMiddleware;
use governor::state::InMemoryState;
use governor::state::NotKeyed;

/// A key's quota is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the quota of this key is spent; try again in {seconds} s")]
pub struct RetryAfter {
    /// Whole seconds until a request is let in again, at least 1.
    pub seconds: u64,
}

type Limiter<C> = RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// The quota of every key, or none at all. Its clock cannot be set, so it never jumps.
pub struct Quota<C: Clock = DefaultClock> {
    limiters: Vec<Limiter<C>>,
    clock: C,
    per_second: Option<NonZeroU32>,
}

impl Quota {
    /// A quota for so many keys; without a rate there is none.
    pub fn new(keys: usize, per_second: Option<u32>) -> Self {
        Self::with_clock(keys, per_second, DefaultClock::default())
    }
}

impl<C: Clock + Clone> Quota<C> {
    /// The same by another clock.
    pub fn with_clock(keys: usize, per_second: Option<u32>, clock: C) -> Self {
        let per_second = per_second.and_then(NonZeroU32::new);
        let limiters = per_second.map(governor::Quota::per_second).map_or_else(Vec::new, |rate| {
            let limiter = |_| RateLimiter::direct_with_clock(rate, clock.clone());
            (0..keys).map(limiter).collect()
        });
        Self { limiters, clock, per_second }
    }

    /// Requests a second for each key, if there is a quota.
    pub fn per_second(&self) -> Option<u32> {
        self.per_second.map(NonZeroU32::get)
    }

    /// Counts a request of the key at that place among all keys, if it is within the quota.
    pub fn check(&self, key: usize) -> Result<(), RetryAfter> {
        let Some(limiter) = self.limiters.get(key) else {
            return Ok(());
        };
        limiter.check().map_err(|spent| {
            let wait = spent.wait_time_from(self.clock.now());
            let started = u64::from(wait.subsec_nanos() > 0);
            RetryAfter { seconds: (wait.as_secs() + started).max(1) }
        })
    }
}
