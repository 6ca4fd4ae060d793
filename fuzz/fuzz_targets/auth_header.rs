//! Passes the fuzzer's bytes to the body `auth_header` of `targets.rs`, which checks properties.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::auth_header(bytes));
