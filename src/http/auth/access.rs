//! Who may ask, and how much: keys and their quotas, looked at before a byte of the body is read.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderName;
use axum::http::HeaderValue;
use axum::http::header;

use crate::http::auth::keys::Keys;
use crate::http::auth::keys::KeysError;
use crate::http::auth::keys::Scope;
use crate::http::auth::quota::Bucket;
use crate::http::auth::quota::Quota;
use crate::http::error::ApiError;
use crate::http::error::Code;
use crate::http::observe::by_key::KeyUse;
use crate::http::observe::facts::Facts;
use crate::http::observe::metrics::Metrics;
use crate::http::settings::Settings;

/// The keys that are let in, and what each may still ask.
pub(crate) struct Access {
    keys: Keys,
    quota: Quota,
    /// The counters of each key, and those of requests without one.
    uses: Vec<Arc<KeyUse>>,
    nobody: Arc<KeyUse>,
}

impl Access {
    /// Reads the key file, if the settings name one. Keys that were let in `before` go on with the
    /// quota they have left.
    pub fn open(
        settings: &Settings,
        metrics: &Metrics,
        before: Option<&Self>,
    ) -> Result<Option<Self>, KeysError> {
        let Some(path) = &settings.keys_file else { return Ok(None) };
        let keys = Keys::read(path)?;
        let mut quota = Quota::new(keys.all().len(), settings.rate_limit_per_key);
        if let Some(before) = before {
            quota = quota.going_on(&before.quota, &keys.places_in(&before.keys));
        }
        let uses = keys.all().iter().map(|key| metrics.key_use(&key.id)).collect();
        Ok(Some(Self { keys, quota, uses, nobody: metrics.nobody() }))
    }

    /// How many keys are let in.
    pub(crate) fn keys(&self) -> usize {
        self.keys.all().len()
    }

    /// Who the caller is, if it is let in; `facts` learn whose key it brought.
    pub(crate) fn admit(
        &self,
        authorization: Option<&HeaderValue>,
        facts: &Facts,
    ) -> Result<Caller, ApiError> {
        let presented = authorization.map(HeaderValue::as_bytes);
        let key = self.keys.check(presented);
        let known = key.ok().and_then(|key| self.uses.get(key.index));
        facts.is_from(known.unwrap_or(&self.nobody));
        let key = key.map_err(|_| {
            let challenge = HeaderValue::from_static("Bearer realm=\"cognate\"");
            // The answer does not say whether a key is missing or wrong.
            ApiError::new(Code::Unauthorized, "a valid key is needed: Authorization: Bearer KEY")
                .with_header(header::WWW_AUTHENTICATE, challenge)
        })?;
        let bucket = self.quota.bucket(key.index);
        if let Some(bucket) = bucket {
            bucket.take(NonZeroU32::MIN).map_err(|wait| used_up(bucket, wait))?;
        }
        Ok(Caller { scope: key.scope, bucket: bucket.cloned() })
    }
}

/// The refusal of a key whose quota is used up for so long.
fn used_up(bucket: &Bucket, wait: Duration) -> ApiError {
    let started = u64::from(wait.subsec_nanos() > 0);
    let seconds = u32::try_from(wait.as_secs() + started).unwrap_or(u32::MAX).max(1);
    let left = format!("\"key\";q={};w=1, \"key\";r=0;t={seconds}", bucket.per_second());
    // Digits and quotes are fit for a header.
    let left = HeaderValue::from_str(&left).unwrap_or(HeaderValue::from_static("r=0"));
    let detail = "the quota of this key is used up for now (setting `rate_limit_per_key`)";
    let refusal = ApiError::new(Code::RateLimited, detail);
    ApiError { retry_after_s: Some(seconds), ..refusal }
        .with_header(HeaderName::from_static("ratelimit"), left)
}

/// An authorised caller: a request extension.
#[derive(Clone)]
pub(crate) struct Caller {
    /// What its key may be used for.
    pub scope: Scope,
    /// What its key may still ask, if there is a quota.
    pub bucket: Option<Arc<Bucket>>,
}
