//! Admission by work: units that all requests that compute share, one for each of their items.
//!
//! A request takes one unit before its body is read, those of a body of its length before it is
//! read, and the rest once its items are counted, so that a large batch is weighed as one. Where too
//! few units are free it waits for them, briefly: as many requests as may wait for a compute thread,
//! and only while, at the pace of the last ones, those before it will be done in time. Anything
//! beyond is refused at once, which costs next to nothing and tells a load balancer to try the next
//! replica.
//!
//! Who waits holds no units, so that no two requests wait for each other, and mostly no body: it is
//! still on its way. Small requests pass those that wait, and have units that no large one takes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::PoisonError;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio::time::timeout;

use crate::http::error::ApiError;
use crate::http::error::Bottleneck;

/// One request in so many of the units is small: at most a chunk of a stream, by default.
const SMALL: usize = 256;
/// Of so many units one is kept for small requests.
const KEPT: usize = 64;
/// Most requests that wait, whatever the settings say: each release of units looks at all of them.
const MOST_WAITING: usize = 1024;

/// Admits work up to a number of units.
pub struct Admission(Arc<Shared>);

/// Units that were taken; dropping it gives them back.
pub struct Permit {
    shared: Arc<Shared>,
    units: usize,
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
            state.charge(&self.shared, self.units, 0);
            state.see(&self.shared, self.units);
            self.shared.serve(&mut state);
        }
    }
}

impl Admission {
    /// So many units, for which at most `waiting` requests wait, each for at most `patience`.
    pub(crate) fn new(units: usize, waiting: usize, patience: Duration) -> Self {
        let (small, kept) = ((units / SMALL).max(1), units / KEPT);
        let waiting = waiting.min(MOST_WAITING);
        let state = Mutex::new(State {
            used: 0,
            used_by_small: 0,
            waiting: VecDeque::new(),
            seen: (0.0, 0.0),
            seen_until: Instant::now(),
        });
        Self(Arc::new(Shared { all: units, small, kept, waiting, patience, state }))
    }

    /// Admits a request by one unit, before anything is known of it, if one is free now.
    pub fn admit(&self) -> Result<Permit, ApiError> {
        let mut permit = Permit { shared: Arc::clone(&self.0), units: 0 };
        self.top_up(&mut permit, 1)?;
        Ok(permit)
    }

    /// Admits a request by one unit as soon as one is free.
    pub(crate) async fn admit_soon(&self) -> Result<Permit, ApiError> {
        let mut permit = Permit { shared: Arc::clone(&self.0), units: 0 };
        self.top_up_soon(&mut permit, 1).await?;
        Ok(permit)
    }

    /// Takes the units of a request's items, less those that it has, if they are free now.
    pub(crate) fn top_up(&self, permit: &mut Permit, items: usize) -> Result<(), ApiError> {
        match self.0.grow(&mut self.0.state(), permit, items) {
            true => Ok(()),
            false => Err(refusal(BUSY)),
        }
    }

    /// Takes the units of a request's items, less those that it has, as soon as they are free.
    pub(crate) async fn top_up_soon(
        &self,
        permit: &mut Permit,
        items: usize,
    ) -> Result<(), ApiError> {
        let place = {
            let mut state = self.0.state();
            if self.0.grow(&mut state, permit, items) {
                return Ok(());
            }
            let place = self.0.queue(&mut state, permit.units, self.0.weight(items))?;
            state.charge(&self.0, permit.units, 0);
            permit.units = 0;
            self.0.serve(&mut state);
            place
        };
        *permit = place.wait().await?;
        Ok(())
    }

    /// Takes the units of the items of a request that is being computed, free or not. It has a
    /// thread, of which there are few, so to turn it away would only waste what it has cost.
    pub(crate) fn settle(&self, permit: &mut Permit, items: usize) {
        let units = self.0.weight(items).max(permit.units);
        self.0.state().charge(&self.0, permit.units, units);
        permit.units = units;
    }

    /// Whether large requests are likely to be refused.
    pub(crate) fn is_crowded(&self) -> bool {
        let state = self.0.state();
        !state.waiting.is_empty() || state.used > (self.0.all - self.0.kept) / 2
    }

    /// Why a request of so many items would be refused, if it came now: neither is there room, nor may
    /// it wait.
    pub(crate) fn refusal(&self, items: usize) -> Option<ApiError> {
        let (shared, mut state) = (&self.0, self.0.state());
        let units = shared.weight(items).max(1);
        let fits = shared.may_have(&state, units) && shared.fits(&state, units);
        if fits { None } else { shared.check_wait(&mut state, 0, units).err() }
    }

    /// Units in use. More than there are while large requests are computed whose bodies were short.
    pub fn in_use(&self) -> usize {
        self.0.state().used
    }

    /// Requests that wait for units.
    pub fn waiting(&self) -> usize {
        self.0.state().waiting.iter().filter(|waiting| waiting.is_there()).count()
    }
}

struct Shared {
    all: usize,
    /// Units up to which a request is small.
    small: usize,
    /// Units that large requests leave to small ones.
    kept: usize,
    /// Most requests that wait.
    waiting: usize,
    /// How long each waits at most.
    patience: Duration,
    state: Mutex<State>,
}

struct State {
    used: usize,
    /// Those of them that small requests use.
    used_by_small: usize,
    /// In the order in which they came.
    waiting: VecDeque<Waiting>,
    /// Seconds in which somebody waited, and units that became free in them: the older, the less they
    /// count.
    seen: (f64, f64),
    /// Up to when they are counted.
    seen_until: Instant,
}

impl State {
    /// Notes that a request uses so many units rather than so many.
    fn charge(&mut self, shared: &Shared, before: usize, units: usize) {
        let small = |units: usize| if units <= shared.small { units } else { 0 };
        self.used = self.used.saturating_sub(before).saturating_add(units);
        self.used_by_small =
            self.used_by_small.saturating_sub(small(before)).saturating_add(small(units));
    }

    /// Counts units that became free just now, if anybody waits for them.
    fn see(&mut self, shared: &Shared, units: usize) {
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

    /// Whether nobody would wait long enough for so many units, at the pace that was seen. Of a burst
    /// nothing is known until some of it is done, or until somebody waited in vain.
    fn is_hopeless(&self, shared: &Shared, units: usize) -> bool {
        let ((seconds, seen), patience) = (self.seen, shared.patience.as_secs_f64());
        let known = 2.0 * seen >= shared.all as f64 || seconds >= patience;
        known && seconds / seen.max(1.0) * units as f64 > patience
    }
}

/// A request that waits.
struct Waiting {
    units: usize,
    admitted: oneshot::Sender<Permit>,
}

impl Waiting {
    /// Whether it still waits: neither was its time over nor did its client go away.
    fn is_there(&self) -> bool {
        !self.admitted.is_closed()
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The units of so many items. A request of more than a large one may take is charged with all of
    /// those, rather than never being admitted.
    fn weight(&self, items: usize) -> usize {
        if items <= self.small { items } else { items.min(self.all - self.kept) }
    }

    fn fits(&self, state: &State, units: usize) -> bool {
        let used = state.used.saturating_add(units);
        match units <= self.small {
            true => used <= self.all || state.used_by_small.saturating_add(units) <= self.kept,
            false => used <= self.all - self.kept,
        }
    }

    /// Whether no large request waits before one of so many units.
    fn may_have(&self, state: &State, units: usize) -> bool {
        let waits = |waiting: &Waiting| waiting.units > self.small && waiting.is_there();
        units <= self.small || !state.waiting.iter().any(waits)
    }

    /// Gives a request the units of its items, if they are free and no large one waits for them.
    fn grow(&self, state: &mut State, permit: &mut Permit, items: usize) -> bool {
        let units = self.weight(items);
        if units <= permit.units {
            return true;
        }
        if !self.may_have(state, units) {
            return false;
        }
        state.charge(self, permit.units, 0);
        let units = if self.fits(state, units) { units } else { permit.units };
        state.charge(self, 0, units);
        let grown = units > permit.units;
        permit.units = units;
        grown
    }

    /// A place to wait for so many units, or a refusal where that is hopeless. `held` units are given
    /// back meanwhile.
    fn queue(
        self: &Arc<Self>,
        state: &mut State,
        held: usize,
        units: usize,
    ) -> Result<Place, ApiError> {
        self.check_wait(state, held, units)?;
        // The first waits whatever is expected: what is seen meanwhile is what the next expect.
        if state.waiting.is_empty() {
            state.seen_until = Instant::now();
        }
        let (admitted, receiver) = oneshot::channel();
        state.waiting.push_back(Waiting { units, admitted });
        Ok(Place { shared: Arc::clone(self), receiver: Some(receiver) })
    }

    /// Refuses a request of so many units that may not wait for them.
    fn check_wait(&self, state: &mut State, held: usize, units: usize) -> Result<(), ApiError> {
        if self.patience.is_zero() {
            return Err(refusal(BUSY));
        }
        state.waiting.retain(Waiting::is_there);
        if state.waiting.len() >= self.waiting {
            return Err(refusal(CROWDED));
        }
        let before: usize = state.waiting.iter().map(|waiting| waiting.units).sum();
        let free = self.all.saturating_sub(state.used.saturating_sub(held));
        let ahead = before.saturating_add(units).saturating_sub(free);
        let first = state.waiting.is_empty();
        if !first && units > self.small && state.is_hopeless(self, ahead) {
            return Err(refusal(SLOW));
        }
        Ok(())
    }

    /// Admits those who wait and for whom there is room: large requests in their order, small ones
    /// past them.
    fn serve(self: &Arc<Self>, state: &mut State) {
        let (mut next, mut large_waits) = (0, false);
        while let Some(waiting) = state.waiting.get(next) {
            let (there, units) = (waiting.is_there(), waiting.units);
            let large = units > self.small;
            if there && ((large && large_waits) || !self.fits(state, units)) {
                large_waits |= large;
                next += 1;
                continue;
            }
            let Some(waiting) = state.waiting.remove(next).filter(|_| there) else { continue };
            state.charge(self, 0, units);
            let permit = Permit { shared: Arc::clone(self), units };
            if let Err(mut permit) = waiting.admitted.send(permit) {
                // Gone in this moment. The permit's own end would ask for the state, which is held.
                state.charge(self, std::mem::take(&mut permit.units), 0);
            }
        }
    }
}

/// A place among those who wait; who gives it up lets those behind it pass.
struct Place {
    shared: Arc<Shared>,
    receiver: Option<oneshot::Receiver<Permit>>,
}

impl Place {
    async fn wait(mut self) -> Result<Permit, ApiError> {
        let Some(receiver) = self.receiver.as_mut() else { return Err(refusal(BUSY)) };
        if let Ok(Ok(permit)) = timeout(self.shared.patience, receiver).await {
            self.receiver = None;
            return Ok(permit);
        }
        // Its place is still there, so this time counts although nothing may have become free.
        self.shared.state().see(&self.shared, 0);
        Err(refusal(LATE))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A permit that came at the last moment is given back here.
        if let Some(receiver) = self.receiver.take() {
            drop(receiver);
            self.shared.serve(&mut self.shared.state());
        }
    }
}

const BUSY: &str = "as many items are in progress as this server takes on (setting \
                    `admission_units`); ask again, or another server";
const CROWDED: &str = "as many items are in progress as this server takes on (setting \
                       `admission_units`), and as many requests wait for them as may (setting \
                       `compute_queue`); ask again, or another server";
const SLOW: &str = "as many items are in progress as this server takes on (setting \
                    `admission_units`), and those that wait already will take longer than a \
                    request may wait (setting `admission_wait_ms`); ask again, or another server";
const LATE: &str = "as many items are in progress as this server takes on (setting \
                    `admission_units`), and they were not done while the request waited (setting \
                    `admission_wait_ms`); ask again, or another server";

fn refusal(detail: &'static str) -> ApiError {
    ApiError::overloaded(Bottleneck::Admission, detail)
}

#[cfg(test)]
mod tests;
