//! The request rate of each key: a number of requests a second, with bursts of as many. Which key a
//! request has is not known here.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const SECOND: u64 = 1_000_000_000;

/// The quota of one key, by the generic cell rate algorithm: a single number states when the bucket
/// is full again, and each request delays that by its share of a second.
pub struct Bucket {
    per_second: NonZeroU32,
    start: Instant,
    /// Nanoseconds after `start` at which the bucket is full.
    full_at: AtomicU64,
}

impl Bucket {
    fn new(per_second: NonZeroU32) -> Self {
        Self { per_second, start: Instant::now(), full_at: AtomicU64::new(0) }
    }

    /// Requests per second, and at once.
    pub fn per_second(&self) -> NonZeroU32 {
        self.per_second
    }

    /// Counts `requests` requests if they are within the quota now, or returns how long until they
    /// are. More than a second allows count as many as it allows.
    pub fn take(&self, requests: NonZeroU32) -> Result<(), Duration> {
        self.take_at(requests, self.start.elapsed())
    }

    pub fn take_at(&self, requests: NonZeroU32, now: Duration) -> Result<(), Duration> {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let one = SECOND / u64::from(self.per_second.get());
        let cost = one * u64::from(requests.min(self.per_second).get());
        let most = one * u64::from(self.per_second.get());
        let put_off = |full_at: u64| {
            let after = full_at.max(now).saturating_add(cost);
            (after - now <= most).then_some(after)
        };
        let (set, fetch) = (Ordering::Relaxed, Ordering::Relaxed);
        match self.full_at.fetch_update(set, fetch, put_off) {
            Ok(_) => Ok(()),
            Err(full_at) => Err(Duration::from_nanos(full_at.max(now) - now + cost - most)),
        }
    }
}

pub struct Quota {
    buckets: Vec<Arc<Bucket>>,
}

impl Quota {
    /// A quota for `keys` keys; without a rate there is none.
    pub fn new(keys: usize, per_second: Option<u32>) -> Self {
        let buckets = per_second.and_then(NonZeroU32::new).map_or_else(Vec::new, |per_second| {
            std::iter::repeat_with(|| Arc::new(Bucket::new(per_second))).take(keys).collect()
        });
        Self { buckets }
    }

    /// This quota, in which earlier keys keep their buckets; `before` has the index of each key
    /// among the earlier keys.
    pub fn going_on(mut self, quota: &Self, before: &[Option<usize>]) -> Self {
        for (bucket, place) in self.buckets.iter_mut().zip(before) {
            if let Some(kept) = place.and_then(|place| quota.buckets.get(place)) {
                *bucket = Arc::clone(kept);
            }
        }
        self
    }

    /// The quota of the key at this index; `None` if there are no quotas.
    pub fn bucket(&self, key: usize) -> Option<&Arc<Bucket>> {
        self.buckets.get(key)
    }
}
