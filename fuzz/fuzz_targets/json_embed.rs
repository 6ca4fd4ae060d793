//! Hands the fuzzer's bytes to the body `json_embed`; the laws it checks are told there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::json_embed(bytes));
