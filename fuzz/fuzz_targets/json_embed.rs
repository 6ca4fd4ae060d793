//! Passes the fuzzer's bytes to the body `json_embed` of `targets.rs`, which checks properties.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::json_embed(bytes));
