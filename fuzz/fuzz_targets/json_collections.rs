//! Passes the fuzzer's bytes to the body `json_collections` of `targets.rs`, which checks properties.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::json_collections(bytes));
