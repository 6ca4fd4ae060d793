//! Hands the fuzzer's bytes to the body `auth_header`; the laws it checks are told there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::auth_header(bytes));
