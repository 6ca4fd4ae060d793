//! API keys, their scopes and their quotas.

pub mod access;
pub mod keys;
pub mod quota;
