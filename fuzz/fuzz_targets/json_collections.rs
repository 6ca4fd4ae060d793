//! Hands the fuzzer's bytes to the body `json_collections`; the laws it checks are told there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::json_collections(bytes));
