//! `&str` to tokens.
