//! Passes the fuzzer's bytes to the body `model_open` of `targets.rs`, which checks properties.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::model_open(bytes));
