//! API keys, their scopes, collections and quotas, and what each client holds.

pub(crate) mod access;
pub mod client;
pub mod keys;
pub mod quota;
