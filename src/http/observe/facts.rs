//! What becomes known of a request on its way in: who asks, what, and how much. The log and the
//! counters are told when it is answered.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use axum::http::Request;

use crate::http::observe::by_key::KeyUse;

/// A request extension. What is noted first stays.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    caller: OnceLock<Arc<KeyUse>>,
    body_bytes: OnceLock<usize>,
    asked: OnceLock<Asked>,
}

/// What a request asks.
#[derive(Debug)]
pub(crate) struct Asked {
    pub model: Arc<str>,
    /// The scoring method, `auto` resolved.
    pub method: Cow<'static, str>,
    /// Texts, pairs or candidates; not known of a stream.
    pub items: Option<usize>,
}

impl Facts {
    /// Those of a request; of one that nobody watches, facts that nobody reads.
    pub(crate) fn of<B>(request: &Request<B>) -> Arc<Self> {
        request.extensions().get::<Arc<Self>>().cloned().unwrap_or_default()
    }

    /// Notes whose key the request brought, or that it needed one and brought none.
    pub(crate) fn is_from(&self, caller: &Arc<KeyUse>) {
        let _ = self.caller.set(Arc::clone(caller));
    }

    /// Notes how long the body is.
    pub(crate) fn brings(&self, bytes: usize) {
        let _ = self.body_bytes.set(bytes);
    }

    /// Notes what is asked.
    pub(crate) fn asks(&self, model: &Arc<str>, method: Cow<'static, str>, items: Option<usize>) {
        let _ = self.asked.set(Asked { model: Arc::clone(model), method, items });
    }

    /// Who asks, if the route asks for a key.
    pub(crate) fn caller(&self) -> Option<&KeyUse> {
        self.caller.get().map(Arc::as_ref)
    }

    /// Bytes of the body, if it was read.
    pub(crate) fn body_bytes(&self) -> Option<usize> {
        self.body_bytes.get().copied()
    }

    /// What is asked, if that was understood.
    pub(crate) fn asked(&self) -> Option<&Asked> {
        self.asked.get()
    }
}
