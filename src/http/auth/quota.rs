//! How often each key may ask: a number of requests a second, with bursts of as many. Which key a
//! request has is not known here.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use governor::RateLimiter;
use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::state::{InMemoryState, NotKeyed};

/// What one key may still ask. Its clock cannot be set, so it never jumps.
pub struct Bucket<C: Clock = DefaultClock> {
    limiter: RateLimiter<NotKeyed, InMemoryState, C, NoOpMiddleware<C::Instant>>,
    clock: C,
    per_second: NonZeroU32,
}

impl<C: Clock + Clone> Bucket<C> {
    fn new(per_second: NonZeroU32, clock: C) -> Self {
        let rate = governor::Quota::per_second(per_second);
        Self { limiter: RateLimiter::direct_with_clock(rate, clock.clone()), clock, per_second }
    }

    /// Requests a second, and at once.
    pub fn per_second(&self) -> NonZeroU32 {
        self.per_second
    }

    /// Counts `requests` requests if they are within the quota now, or says how long until they are.
    /// More at once than a second allows count as many as it allows.
    pub fn take(&self, requests: NonZeroU32) -> Result<(), Duration> {
        match self.limiter.check_n(requests.min(self.per_second)) {
            Ok(taken) => taken.map_err(|spent| spent.wait_time_from(self.clock.now())),
            Err(_) => Err(Duration::from_secs(1)),
        }
    }
}

/// The bucket of every key, or none at all.
pub struct Quota<C: Clock = DefaultClock> {
    buckets: Vec<Arc<Bucket<C>>>,
}

impl Quota {
    /// A quota for `keys` keys; without a rate there is none.
    pub fn new(keys: usize, per_second: Option<u32>) -> Self {
        Self::with_clock(keys, per_second, DefaultClock::default())
    }
}

impl<C: Clock + Clone> Quota<C> {
    /// The same by another clock.
    pub fn with_clock(keys: usize, per_second: Option<u32>, clock: C) -> Self {
        let bucket = |per_second| Arc::new(Bucket::new(per_second, clock.clone()));
        let buckets = per_second.and_then(NonZeroU32::new);
        let buckets = buckets.map_or_else(Vec::new, |per_second| {
            std::iter::repeat_with(|| bucket(per_second)).take(keys).collect()
        });
        Self { buckets }
    }

    /// The same quota in which keys that were there before go on with the bucket they had; `before`
    /// has the place of each key among those.
    pub fn going_on(mut self, quota: &Self, before: &[Option<usize>]) -> Self {
        for (bucket, place) in self.buckets.iter_mut().zip(before) {
            if let Some(kept) = place.and_then(|place| quota.buckets.get(place)) {
                *bucket = Arc::clone(kept);
            }
        }
        self
    }

    /// What the key at that place among all keys may still ask; nothing if there is no quota.
    pub fn bucket(&self, key: usize) -> Option<&Arc<Bucket<C>>> {
        self.buckets.get(key)
    }
}
