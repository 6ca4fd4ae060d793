//! Admission by work: units that all computing requests share, one for each of their items.
//!
//! A request takes one unit before its body is read, units for the body's length before it is read,
//! and the rest once its items are counted, so that a large batch is weighed as one. If too few
//! units are free it waits for them, briefly: as many requests as may wait for a compute thread,
//! and only if, at the pace of the last ones, those before it will be done in time. Others are
//! refused at once, which costs next to nothing and tells a load balancer to try the next replica.
//!
//! A waiting request holds no units, so that no two requests wait for each other, and mostly no
//! body: it is still on its way. Small requests pass waiting ones, and have units that no large one
//! takes. A known client takes at most its share of the units, and of the slots for waiting; other
//! clients pass those that wait for their own share.

mod shared;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::http::auth::client::{Client, share_of};
use crate::http::error::{ApiError, Bottleneck, Result};
use crate::http::work::admission::shared::Shared;

/// A request of at most this part of the units is small: a chunk of a stream, by default.
const SMALL: usize = 256;
/// One unit in this many is reserved for small requests.
const RESERVED: usize = 64;
/// Most requests that wait, whatever the settings: each release of units visits all of them.
const MAX_WAITING: usize = 1024;

pub struct Admission(Arc<Shared>);

/// Units that a client took; dropping it returns them.
pub struct Permit {
    shared: Arc<Shared>,
    client: Client,
    units: usize,
}

impl Permit {
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }
}

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({})", self.units)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.units > 0 {
            let mut state = self.shared.state();
            state.charge(&self.shared, &self.client, self.units, 0);
            state.see(&self.shared, self.units);
            self.shared.serve(&mut state);
        }
    }
}

impl Admission {
    /// `units` units, for which at most `waiting` requests wait, each for at most `patience`. A
    /// client has `percent` hundredths of both.
    pub(crate) fn new(units: usize, waiting: usize, patience: Duration, percent: usize) -> Self {
        let (small, reserved) = ((units / SMALL).max(1), units / RESERVED);
        let waiting = waiting.min(MAX_WAITING);
        Self(Arc::new(Shared {
            all: units,
            small,
            reserved,
            waiting,
            share: share_of(units, percent),
            waiting_share: share_of(waiting, percent),
            patience,
            state: Mutex::default(),
        }))
    }

    /// Admits an uncounted client's request by one unit, before anything is known of it, if one is
    /// free now.
    pub fn admit(&self) -> Result<Permit> {
        self.admit_for(&Client::default())
    }

    /// Admits a request of a client by one unit, if one is free now.
    pub(crate) fn admit_for(&self, client: &Client) -> Result<Permit> {
        let mut permit = self.nothing(client);
        self.top_up(&mut permit, 1)?;
        Ok(permit)
    }

    /// Admits a request of a client by one unit as soon as one is free.
    pub(crate) async fn admit_soon(&self, client: &Client) -> Result<Permit> {
        let mut permit = self.nothing(client);
        self.wait_and_top_up(&mut permit, 1).await?;
        Ok(permit)
    }

    fn nothing(&self, client: &Client) -> Permit {
        Permit { shared: Arc::clone(&self.0), client: client.clone(), units: 0 }
    }

    /// Takes the units of a request's items, less those that it has, if they are free now.
    pub(crate) fn top_up(&self, permit: &mut Permit, items: usize) -> Result<()> {
        let mut state = self.0.state();
        match self.0.grow(&mut state, permit, items) {
            true => Ok(()),
            false => {
                let more = self.0.weight(&permit.client, items).saturating_sub(permit.units);
                Err(self.0.refusal(Reason::Busy, &permit.client, more))
            }
        }
    }

    /// Takes the units of a request's items, less those that it has, as soon as they are free.
    pub(crate) async fn wait_and_top_up(&self, permit: &mut Permit, items: usize) -> Result<()> {
        let place = {
            let mut state = self.0.state();
            if self.0.grow(&mut state, permit, items) {
                return Ok(());
            }
            let units = self.0.weight(&permit.client, items);
            let place = self.0.queue(&mut state, &permit.client, permit.units, units)?;
            state.charge(&self.0, &permit.client, permit.units, 0);
            permit.units = 0;
            self.0.serve(&mut state);
            place
        };
        *permit = place.wait().await?;
        Ok(())
    }

    /// Takes the units of the items of a request that is being computed, free or not. It has a
    /// thread, of which there are few, so refusing it would only waste what it has cost.
    pub(crate) fn charge_running(&self, permit: &mut Permit, items: usize) {
        let units = self.0.weight(&permit.client, items).max(permit.units);
        self.0.state().charge(&self.0, &permit.client, permit.units, units);
        permit.units = units;
    }

    pub(crate) fn is_crowded(&self) -> bool {
        let state = self.0.state();
        state.is_waited_for() || state.used() > (self.0.all - self.0.reserved) / 2
    }

    /// Why a request of `items` items would be refused now: there is no room, and it may not wait.
    pub(crate) fn refusal(&self, client: &Client, items: usize) -> Option<ApiError> {
        let (shared, mut state) = (&self.0, self.0.state());
        let units = shared.weight(client, items).max(1);
        let fits = shared.may_have(&state, units) && shared.fits(&state, client, units);
        if fits { None } else { shared.check_wait(&mut state, client, 0, units).err() }
    }

    /// Units in use. They exceed the limit while large requests with short bodies are computed.
    pub fn in_use(&self) -> usize {
        self.0.state().used()
    }

    pub fn waiting(&self) -> usize {
        self.0.state().waiting()
    }
}

/// Why a request gets no units and does not wait for units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    Busy,
    Crowded,
    Slow,
    Late,
}

impl Reason {
    /// The refusal, for lack of the client's share or of all units.
    fn refusal(self, of_share: bool) -> ApiError {
        let detail = match (self, of_share) {
            (Self::Busy, false) => {
                "as many items are in progress as this server takes on (setting \
                 `admission_units`); ask again, or another server"
            }
            (Self::Crowded, false) => {
                "as many items are in progress as this server takes on (setting \
                 `admission_units`), and as many requests wait for them as may (setting \
                 `compute_queue`); ask again, or another server"
            }
            (Self::Slow, false) => {
                "as many items are in progress as this server takes on (setting \
                 `admission_units`), and those that wait already will take longer than a \
                 request may wait (setting `admission_wait_ms`); ask again, or another server"
            }
            (Self::Late, false) => {
                "as many items are in progress as this server takes on (setting \
                 `admission_units`), and they were not done while the request waited (setting \
                 `admission_wait_ms`); ask again, or another server"
            }
            (Self::Busy, true) => {
                "this client has as many items in progress as one may (settings `admission_units` \
                 and `client_share`); ask again once some are answered"
            }
            (Self::Crowded, true) => {
                "this client has as many requests that wait for others as one may (settings \
                 `compute_queue` and `client_share`); ask again once some are answered"
            }
            (Self::Slow, true) => {
                "this client has as many items in progress as one may (settings `admission_units` \
                 and `client_share`), and those of it that wait already will take longer than a \
                 request may wait (setting `admission_wait_ms`); ask again once some are answered"
            }
            (Self::Late, true) => {
                "this client has as many items in progress as one may (settings `admission_units` \
                 and `client_share`), and they were not done while the request waited (setting \
                 `admission_wait_ms`); ask again once some are answered"
            }
        };
        ApiError::overloaded(Bottleneck::Admission, detail)
    }
}

#[cfg(test)]
mod tests;
