//! Hands the fuzzer's bytes to the body `collection_log`; the laws it checks are told there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::collection_log(bytes));
