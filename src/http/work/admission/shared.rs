//! The units of all requests, and the queue of requests that wait for them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::http::auth::client::{Client, Resource};
use crate::http::error::{ApiError, Result};
use crate::http::work::admission::{Permit, Reason};

pub(super) struct Shared {
    pub(super) all: usize,
    /// Units up to which a request is small.
    pub(super) small: usize,
    pub(super) reserved: usize,
    pub(super) waiting: usize,
    /// Most units of a client.
    pub(super) share: usize,
    /// Most waiting requests of a client.
    pub(super) waiting_share: usize,
    pub(super) patience: Duration,
    pub(super) state: Mutex<State>,
}

pub(super) struct State {
    used: usize,
    used_by_small: usize,
    waiting: VecDeque<Waiting>,
    seen: (f64, f64),
    seen_until: Instant,
}

impl Default for State {
    fn default() -> Self {
        let (seen, seen_until) = ((0.0, 0.0), Instant::now());
        Self { used: 0, used_by_small: 0, waiting: VecDeque::new(), seen, seen_until }
    }
}

impl State {
    pub(super) fn used(&self) -> usize {
        self.used
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.iter().filter(|waiting| waiting.is_there()).count()
    }

    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) fn charge(&mut self, shared: &Shared, client: &Client, before: usize, units: usize) {
        client.charge_unchecked(Resource::Units, units);
        client.give_back(Resource::Units, before);
        let small = |units: usize| if units <= shared.small { units } else { 0 };
        self.used = self.used.saturating_sub(before).saturating_add(units);
        self.used_by_small =
            self.used_by_small.saturating_sub(small(before)).saturating_add(small(units));
    }

    /// Counts units that became free just now, if any request waits for them.
    pub(super) fn see(&mut self, shared: &Shared, units: usize) {
        if self.waiting.is_empty() {
            return;
        }
        let now = Instant::now();
        self.seen.0 += now.duration_since(self.seen_until).as_secs_f64();
        self.seen.1 += units as f64;
        self.seen_until = now;
        if self.seen.1 > shared.all as f64 {
            self.seen = (self.seen.0 / 2.0, self.seen.1 / 2.0);
        }
    }

    /// Whether waiting for `units` units would take too long, at the observed pace. The pace of a
    /// burst is unknown until some of it is done, or until a request has waited in vain.
    fn is_hopeless(&self, shared: &Shared, units: usize) -> bool {
        let ((seconds, seen), patience) = (self.seen, shared.patience.as_secs_f64());
        let known = 2.0 * seen >= shared.all as f64 || seconds >= patience;
        known && seconds / seen.max(1.0) * units as f64 > patience
    }
}

struct Waiting {
    client: Client,
    units: usize,
    admitted: oneshot::Sender<Permit>,
}

impl Waiting {
    /// Whether the request still waits: it has not timed out, and its client is there.
    fn is_there(&self) -> bool {
        !self.admitted.is_closed()
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the units of `items` items, at most the limit of a large request or of a client: otherwise a
    /// larger request would never be admitted.
    pub(super) fn weight(&self, client: &Client, items: usize) -> usize {
        let units = if items <= self.small { items } else { items.min(self.all - self.reserved) };
        if client.is_counted() { units.min(self.share) } else { units }
    }

    fn has_share(&self, client: &Client, units: usize) -> bool {
        client.may_take(Resource::Units, units, self.share)
    }

    pub(super) fn fits(&self, state: &State, client: &Client, units: usize) -> bool {
        let used = state.used.saturating_add(units);
        let free = match units <= self.small {
            true => used <= self.all || state.used_by_small.saturating_add(units) <= self.reserved,
            false => used <= self.all - self.reserved,
        };
        free && self.has_share(client, units)
    }

    /// Whether a request of `units` units may take them now: no earlier large request waits for units, unless
    /// it waits for its own client's share.
    pub(super) fn may_have(&self, state: &State, units: usize) -> bool {
        let waits = |waiting: &Waiting| {
            waiting.units > self.small
                && waiting.is_there()
                && self.has_share(&waiting.client, waiting.units)
        };
        units <= self.small || !state.waiting.iter().any(waits)
    }

    /// Takes the units of a request's items, if they are free and no large one waits for them.
    pub(super) fn grow(&self, state: &mut State, permit: &mut Permit, items: usize) -> bool {
        let units = self.weight(&permit.client, items);
        if units <= permit.units {
            return true;
        }
        if !self.may_have(state, units) {
            return false;
        }
        state.charge(self, &permit.client, permit.units, 0);
        let units = if self.fits(state, &permit.client, units) { units } else { permit.units };
        state.charge(self, &permit.client, 0, units);
        let grown = units > permit.units;
        permit.units = units;
        grown
    }

    /// Queues for `units` units, or refuses if there is no hope. `held` units are returned
    /// meanwhile.
    pub(super) fn queue(
        self: &Arc<Self>,
        state: &mut State,
        client: &Client,
        held: usize,
        units: usize,
    ) -> Result<Place> {
        self.check_wait(state, client, held, units)?;
        // The first in the queue waits whatever the estimate: its wait improves the estimate.
        if state.waiting.is_empty() {
            state.seen_until = Instant::now();
        }
        let (admitted, receiver) = oneshot::channel();
        let client = client.clone();
        let place = Place {
            shared: Arc::clone(self),
            client: client.clone(),
            units,
            receiver: Some(receiver),
        };
        state.waiting.push_back(Waiting { client, units, admitted });
        Ok(place)
    }

    pub(super) fn check_wait(
        &self,
        state: &mut State,
        client: &Client,
        held: usize,
        units: usize,
    ) -> Result<()> {
        let refused = |reason| Err(self.refusal(reason, client, units.saturating_sub(held)));
        if self.patience.is_zero() {
            return refused(Reason::Busy);
        }
        state.waiting.retain(Waiting::is_there);
        if state.waiting.len() >= self.waiting {
            return Err(Reason::Crowded.refusal(false));
        }
        let own = state.waiting.iter().filter(|waiting| waiting.client.is(client));
        let (own_waiting, own_units) =
            own.fold((0, 0), |(count, units), waiting| (count + 1, units + waiting.units));
        if own_waiting >= self.waiting_share && client.is_counted() {
            return Err(Reason::Crowded.refusal(true));
        }
        let first = state.waiting.is_empty();
        // Requests that wait for their own client's share do not make others wait longer.
        let passed = |waiting: &&Waiting| self.has_share(&waiting.client, waiting.units);
        let before: usize = state.waiting.iter().filter(passed).map(|waiting| waiting.units).sum();
        let free = self.all.saturating_sub(state.used.saturating_sub(held));
        let ahead = before.saturating_add(units).saturating_sub(free);
        let own_free =
            self.share.saturating_sub(client.holds(Resource::Units).saturating_sub(held));
        let own_ahead = match client.is_counted() {
            true => own_units.saturating_add(units).saturating_sub(own_free),
            false => 0,
        };
        if !first && units > self.small && state.is_hopeless(self, ahead.max(own_ahead)) {
            return refused(Reason::Slow);
        }
        Ok(())
    }

    /// The refusal of more units to a client: its own share is used up, or all units are.
    pub(super) fn refusal(&self, reason: Reason, client: &Client, more: usize) -> ApiError {
        reason.refusal(!self.has_share(client, more))
    }

    /// Admits waiting requests for which there is room: large ones in their order, small ones past
    /// them, and all past those that wait for their client's share.
    pub(super) fn serve(self: &Arc<Self>, state: &mut State) {
        let (mut next, mut large_waits) = (0, false);
        while let Some(waiting) = state.waiting.get(next) {
            let (there, units) = (waiting.is_there(), waiting.units);
            let large = units > self.small;
            let fits = self.fits(state, &waiting.client, units);
            if there && ((large && large_waits) || !fits) {
                large_waits |= large && self.has_share(&waiting.client, units);
                next += 1;
                continue;
            }
            let Some(waiting) = state.waiting.remove(next).filter(|_| there) else { continue };
            state.charge(self, &waiting.client, 0, units);
            let permit = Permit { shared: Arc::clone(self), client: waiting.client, units };
            if let Err(mut permit) = waiting.admitted.send(permit) {
                state.charge(self, &permit.client, std::mem::take(&mut permit.units), 0);
            }
        }
    }
}

/// A request's position in the queue; dropping it lets later ones pass.
pub(super) struct Place {
    shared: Arc<Shared>,
    client: Client,
    units: usize,
    receiver: Option<oneshot::Receiver<Permit>>,
}

impl Place {
    pub(super) async fn wait(mut self) -> Result<Permit> {
        let Some(receiver) = self.receiver.as_mut() else {
            return Err(Reason::Busy.refusal(false));
        };
        if let Ok(Ok(permit)) = timeout(self.shared.patience, receiver).await {
            self.receiver = None;
            return Ok(permit);
        }
        // The request is still queued, so this time counts although nothing may have become free.
        self.shared.state().see(&self.shared, 0);
        Err(self.shared.refusal(Reason::Late, &self.client, self.units))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A permit that came at the last moment is returned here.
        if let Some(receiver) = self.receiver.take() {
            drop(receiver);
            self.shared.serve(&mut self.shared.state());
        }
    }
}
