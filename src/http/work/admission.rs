//! Admission by work: one weighted semaphore over all requests that compute.
//!
//! A request is let in for one unit before its body is read, and pays for the rest once its items
//! are counted, so that large batches cannot slip by. Nobody waits: what does not fit is refused
//! now, which costs next to nothing and tells a load balancer to try the next replica.

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

/// Units that were taken; dropping them makes room.
#[derive(Debug)]
pub struct Permit(OwnedSemaphorePermit);

impl Admission {
    /// Room for so many units.
    pub fn new(units: usize) -> Self {
        let all = units.min(Semaphore::MAX_PERMITS);
        Self { units: Arc::new(Semaphore::new(all)), all }
    }

    /// Lets a request in before anything is known of it.
    pub fn admit(&self) -> Result<Permit, ApiError> {
        self.charge(1).map(Permit)
    }

    /// Charges for a request's items; one unit is paid already.
    pub fn top_up(&self, permit: &mut Permit, items: usize) -> Result<(), ApiError> {
        // What is larger than the house gets all of it, rather than never being let in.
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
