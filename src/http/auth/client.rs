//! A client's share of resources, so that no client takes all of them: items in progress, unread
//! answers, streams, jobs. The totals are not known here.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Parts of the table of addresses, so that requests of different clients rarely wait for each
/// other.
const PARTS: usize = 16;
const MANY: usize = 64;
/// Bits of an IPv6 address that are one client's own to choose.
const OWN_BITS: u32 = 64;

/// Returns `percent` percent of `all`, at least 1.
pub(crate) fn share_of(all: usize, percent: usize) -> usize {
    let share = all as u128 * percent.min(100) as u128 / 100;
    usize::try_from(share).unwrap_or(all).max(1)
}

/// A client whose share is counted, or an uncounted caller. A clone is the same client.
#[derive(Debug, Clone, Default)]
pub struct Client(Option<Arc<Holdings>>);

/// The amount of each [`Resource`].
type Holdings = [AtomicUsize; 4];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    Units,
    Unsent,
    Streams,
    /// Slots for jobs that are computed or wait for a thread.
    Jobs,
}

impl Client {
    pub(crate) fn counted() -> Self {
        Self(Some(Arc::default()))
    }

    pub(crate) fn is_counted(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    fn of(&self, what: Resource) -> Option<&AtomicUsize> {
        self.0.as_deref()?.get(what as usize)
    }

    pub(crate) fn holds(&self, what: Resource) -> usize {
        self.of(what).map_or(0, |held| held.load(Ordering::Relaxed))
    }

    /// Whether the client may take `more`, up to `share` in all.
    pub(crate) fn may_take(&self, what: Resource, more: usize, share: usize) -> bool {
        !self.is_counted() || self.holds(what).saturating_add(more) <= share
    }

    /// Charges `more`, if the client then has at most `share`.
    pub(crate) fn take(&self, what: Resource, more: usize, share: usize) -> bool {
        let Some(held) = self.of(what) else { return true };
        let take = |held: usize| held.checked_add(more).filter(|held| *held <= share);
        held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Charges `more` without a limit.
    pub(crate) fn charge_unchecked(&self, what: Resource, more: usize) {
        if let Some(held) = self.of(what) {
            held.fetch_add(more, Ordering::Relaxed);
        }
    }

    pub(crate) fn give_back(&self, what: Resource, less: usize) {
        if let Some(held) = self.of(what) {
            held.fetch_sub(less, Ordering::Relaxed);
        }
    }
}

/// The clients at network addresses that use resources now.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    parts: [Mutex<HashMap<IpAddr, Weak<Holdings>>>; PARTS],
    hasher: RandomState,
}

impl Peers {
    /// The client at an address. Programs on this machine cannot be distinguished and are not
    /// counted.
    pub(crate) fn client(&self, address: IpAddr) -> Client {
        let address = address.to_canonical();
        if address.is_loopback() {
            return Client::default();
        }
        let address = network(address);
        let part = self.hasher.hash_one(address) as usize % PARTS;
        let Some(part) = self.parts.get(part) else { return Client::default() };
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = part.get(&address).and_then(Weak::upgrade) {
            return Client(Some(known));
        }
        if part.len() >= MANY && part.len() == part.capacity() {
            part.retain(|_, holdings| holdings.strong_count() > 0);
        }
        let fresh = Arc::default();
        part.insert(address, Arc::downgrade(&fresh));
        Client(Some(fresh))
    }
}

/// One person usually has all addresses of an IPv6 network.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let bits = address.to_bits() >> OWN_BITS << OWN_BITS;
            IpAddr::V6(Ipv6Addr::from_bits(bits))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_holds_its_share_and_anyone_as_much_as_there_is() {
        let (client, anyone) = (Client::counted(), Client::default());
        assert!(client.take(Resource::Streams, 2, 3) && !client.take(Resource::Streams, 2, 3));
        assert!(
            client.may_take(Resource::Streams, 1, 3) && !client.may_take(Resource::Streams, 2, 3)
        );
        assert!(client.take(Resource::Unsent, 3, 3), "each thing is counted for itself");
        client.charge_unchecked(Resource::Streams, 5);
        assert_eq!(client.holds(Resource::Streams), 7);
        client.give_back(Resource::Streams, 6);
        assert!(client.clone().take(Resource::Streams, 2, 3));
        assert!(
            anyone.take(Resource::Streams, usize::MAX, 1) && anyone.holds(Resource::Streams) == 0
        );
        assert!(client.is(&client.clone()) && !client.is(&Client::counted()));
        assert!(!anyone.is(&anyone.clone()));
    }

    #[test]
    fn shares_are_at_least_one_and_never_more_than_all() {
        assert_eq!([share_of(10, 50), share_of(1, 50), share_of(0, 50)], [5, 1, 1]);
        assert_eq!([share_of(10, 100), share_of(10, 1000)], [10, 10]);
        assert_eq!(share_of(usize::MAX, 100), usize::MAX);
    }

    #[test]
    fn addresses_are_clients_but_for_those_of_this_machine() {
        let peers = Peers::default();
        let client = |address: &str| peers.client(address.parse().unwrap());
        for near in ["127.0.0.1", "127.3.2.1", "::1", "::ffff:127.0.0.1"] {
            assert!(!client(near).is_counted(), "{near}");
        }
        let one = client("192.0.2.1");
        assert!(one.is(&client("192.0.2.1")) && one.is(&client("::ffff:192.0.2.1")));
        assert!(!one.is(&client("192.0.2.2")));
        let six = client("2001:db8:1:2::1");
        assert!(six.is(&client("2001:db8:1:2:ffff::9")) && !six.is(&client("2001:db8:1:3::1")));
    }

    #[test]
    fn who_holds_nothing_is_forgotten() {
        let peers = Peers::default();
        let known = || peers.parts.iter().map(|part| part.lock().unwrap().len()).sum::<usize>();
        for number in 0..100_000_u32 {
            drop(peers.client(IpAddr::V4(number.wrapping_add(10 << 24).into())));
        }
        assert!(known() <= PARTS * 2 * MANY, "{} addresses are kept", known());
    }
}
