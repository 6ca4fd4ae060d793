//! Admission by work: one weighted semaphore over all requests that compute.
//!
//! A request takes one unit before its body is read, and the rest once its items are counted, so
//! that a large batch is weighed as one. Nobody waits: a request for which too few units are free is
//! refused at once, which costs next to nothing and tells a load balancer to try the next replica.

use std::sync::Arc;

use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::Semaphore;

use crate::http::error::ApiError;
use crate::http::error::Bottleneck;

/// Admits work up to a number of units.
pub struct Admission {
    units: Arc<Semaphore>,
    all: usize,
}

/// Units that were taken; dropping it gives them back.
#[derive(Debug)]
pub struct Permit(OwnedSemaphorePermit);

impl Admission {
    /// A semaphore of `units` units.
    pub(crate) fn new(units: usize) -> Self {
        let all = units.min(Semaphore::MAX_PERMITS);
        Self { units: Arc::new(Semaphore::new(all)), all }
    }

    /// Admits a request by one unit, before anything is known of it.
    pub fn admit(&self) -> Result<Permit, ApiError> {
        self.charge(1).map(Permit)
    }

    /// Takes the units of a request's items, less those that it has.
    pub(crate) fn top_up(&self, permit: &mut Permit, items: usize) -> Result<(), ApiError> {
        // A request of more units than there are takes all of them, rather than never being admitted.
        let more = items.min(self.all).saturating_sub(permit.0.num_permits());
        if more > 0 {
            permit.0.merge(self.charge(more)?);
        }
        Ok(())
    }

    /// Units in use.
    pub fn in_use(&self) -> usize {
        self.all.saturating_sub(self.units.available_permits())
    }

    fn charge(&self, units: usize) -> Result<OwnedSemaphorePermit, ApiError> {
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        Arc::clone(&self.units).try_acquire_many_owned(units).map_err(|_| {
            let detail = "as many items are in progress as this server takes on (setting \
                          `admission_units`); ask again, or another server";
            ApiError::overloaded(Bottleneck::Admission, detail)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::error::Code;

    #[test]
    fn items_are_charged_for_and_given_back() {
        let admission = Admission::new(10);
        let mut one = admission.admit().unwrap();
        admission.top_up(&mut one, 7).unwrap();
        assert_eq!(admission.in_use(), 7);
        let mut other = admission.admit().unwrap();
        assert_eq!(admission.top_up(&mut other, 4).unwrap_err().code, Code::Overloaded);
        assert_eq!(admission.in_use(), 8);
        drop(one);
        admission.top_up(&mut other, 1_000_000).unwrap();
        assert_eq!(admission.in_use(), 10);
        let waits: Vec<_> = (0..2).map(|_| admission.admit().unwrap_err().retry_after_s).collect();
        assert!(waits.contains(&Some(1)) && waits.contains(&Some(2)));
        drop(other);
        assert_eq!(admission.in_use(), 0);
    }
}
