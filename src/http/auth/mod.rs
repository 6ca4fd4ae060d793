//! API keys, their scopes and their quotas.

pub(crate) mod access;
pub mod keys;
pub mod quota;
