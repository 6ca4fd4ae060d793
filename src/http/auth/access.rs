//! Access control by keys: who may ask, how much, and of which collections, checked before a byte
//! of the body is read.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderName, HeaderValue, header};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::http::auth::client::Client;
use crate::http::auth::keys::{CollectionNames, Key, Keys, KeysError, Scope};
use crate::http::auth::quota::{Bucket, Quota};
use crate::http::error::{ApiError, Code, Result};
use crate::http::observe::metrics::{KeyUse, Metrics};
use crate::http::observe::request_log::Facts;
use crate::http::settings::Settings;

pub(crate) struct Access {
    keys: Keys,
    quota: Quota,
    /// State of each key besides its quota.
    of_keys: Vec<OfKey>,
    nobody: Arc<KeyUse>,
}

struct OfKey {
    key: Arc<Key>,
    used: Arc<KeyUse>,
    client: Client,
    /// Locked while the key writes, if its collections have a joint limit.
    writing: Option<Arc<Mutex<()>>>,
}

impl OfKey {
    /// The state of a key, which a key that was valid before the reload keeps.
    fn new(key: &Key, metrics: &Metrics, before: Option<&Self>) -> Self {
        let writing = key.collections.is_some().then(|| {
            let writing = before.and_then(|before| before.writing.clone());
            writing.unwrap_or_default()
        });
        let client = before.map_or_else(Client::counted, |before| before.client.clone());
        Self { key: Arc::new(key.clone()), used: metrics.key_use(&key.id), client, writing }
    }
}

impl Access {
    /// Reads the key file, if the settings name one. Keys that were valid `before` keep the quota
    /// they have left.
    pub fn open(
        settings: &Settings,
        metrics: &Metrics,
        before: Option<&Self>,
    ) -> Result<Option<Self>, KeysError> {
        let Some(path) = &settings.keys_file else { return Ok(None) };
        let keys = Keys::read(path)?;
        let mut quota = Quota::new(keys.all().len(), settings.rate_limit_per_key);
        let mut places = vec![None; keys.all().len()];
        if let Some(before) = before {
            places = keys.places_in(&before.keys);
            quota = quota.going_on(&before.quota, &places);
        }
        let known = |place: Option<usize>| before?.of_keys.get(place?);
        let of_keys = keys.all().iter().zip(places);
        let of_keys = of_keys.map(|(key, place)| OfKey::new(key, metrics, known(place))).collect();
        Ok(Some(Self { keys, quota, of_keys, nobody: metrics.nobody() }))
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The caller of a request, if it may ask; `facts` record the key.
    pub(crate) fn admit(
        &self,
        authorization: Option<&HeaderValue>,
        facts: &Facts,
    ) -> Result<Caller> {
        let key = self.key(authorization);
        facts.is_from(key.map_or(&self.nobody, |(_, of_key)| &of_key.used));
        let (key, of_key) = key.ok_or_else(|| {
            let challenge = HeaderValue::from_static("Bearer realm=\"cognate\"");
            // The answer does not say whether a key is missing or wrong.
            ApiError::new(Code::Unauthorized, "a valid key is needed: Authorization: Bearer KEY")
                .with_header(header::WWW_AUTHENTICATE, challenge)
        })?;
        let bucket = self.quota.bucket(key.index);
        if let Some(bucket) = bucket {
            bucket.take(NonZeroU32::MIN).map_err(|wait| used_up(bucket, wait))?;
        }
        Ok(Caller {
            key: Some(Arc::clone(&of_key.key)),
            bucket: bucket.cloned(),
            client: self.counted(of_key),
            writing: of_key.writing.clone(),
            is_led_here: false,
        })
    }

    /// Whether a caller that was admitted before a reload of the keys would be admitted now with
    /// the same rights.
    pub(crate) fn still_admits(&self, caller: &Caller) -> bool {
        caller.key.as_ref().is_some_and(|key| self.keys.include(key))
    }

    /// The client that a request counts for, without checking its quota.
    pub(crate) fn client(&self, authorization: Option<&HeaderValue>) -> Client {
        self.key(authorization).map(|(_, of_key)| self.counted(of_key)).unwrap_or_default()
    }

    fn key(&self, authorization: Option<&HeaderValue>) -> Option<(&Key, &OfKey)> {
        let key = self.keys.check(authorization.map(HeaderValue::as_bytes))?;
        Some((key, self.of_keys.get(key.index)?))
    }

    /// With a single key there is no other client to protect.
    fn counted(&self, of_key: &OfKey) -> Client {
        if self.of_keys.len() > 1 { of_key.client.clone() } else { Client::default() }
    }
}

/// The refusal of a key whose quota is used up for the time `wait`.
fn used_up(bucket: &Bucket, wait: Duration) -> ApiError {
    let started = u64::from(wait.subsec_nanos() > 0);
    let seconds = u32::try_from(wait.as_secs() + started).unwrap_or(u32::MAX).max(1);
    let left = format!("\"key\";q={};w=1, \"key\";r=0;t={seconds}", bucket.per_second());
    // Digits and quotes are valid in a header.
    let left = HeaderValue::from_str(&left).unwrap_or(HeaderValue::from_static("r=0"));
    let detail = "the quota of this key is used up for now (setting `rate_limit_per_key`)";
    let refusal = ApiError::new(Code::RateLimited, detail);
    ApiError { retry_after_s: Some(seconds), ..refusal }
        .with_header(HeaderName::from_static("ratelimit"), left)
}

/// An authorised caller: a request extension.
#[derive(Clone)]
pub(crate) struct Caller {
    key: Option<Arc<Key>>,
    pub bucket: Option<Arc<Bucket>>,
    pub client: Client,
    /// Locked while its key writes, if the key is limited to named collections.
    writing: Option<Arc<Mutex<()>>>,
    is_led_here: bool,
}

impl Caller {
    /// A caller where no keys are set. With `is_led_here` the request may come from a page whose
    /// reader did not mean to call this service.
    pub(crate) fn without_key(client: Client, is_led_here: bool) -> Self {
        Self { key: None, bucket: None, client, writing: None, is_led_here }
    }

    /// The caller of a request. A route without a caller is not behind the keys, which is a defect.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Result<Self> {
        let caller = extensions.get::<Self>().cloned();
        caller.ok_or_else(|| ApiError::internal("a request without a caller"))
    }

    /// The scope of its key; `None` if no keys are set.
    pub(crate) fn scope(&self) -> Option<Scope> {
        self.key.as_ref().map(|key| key.scope)
    }

    /// Whether the request may come from a page that was not meant to call this service.
    pub(crate) fn is_led_here(&self) -> bool {
        self.is_led_here
    }

    pub(crate) fn is_limited(&self) -> bool {
        self.names().is_some()
    }

    pub(crate) fn reaches(&self, name: &str) -> bool {
        self.names().is_none_or(|names| names.include(name))
    }

    fn names(&self) -> Option<&CollectionNames> {
        self.key.as_ref()?.collections.as_ref()
    }

    /// Waits until no other request writes with the caller's key, if the key names collections.
    pub(crate) async fn alone(&self) -> Option<OwnedMutexGuard<()>> {
        match &self.writing {
            Some(writing) => Some(Arc::clone(writing).lock_owned().await),
            None => None,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self> {
        Self::from_extensions(&parts.extensions)
    }
}
