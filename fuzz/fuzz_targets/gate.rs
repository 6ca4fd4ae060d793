//! Hands the fuzzer's bytes to the body `gate`; the laws it checks are told there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::gate(bytes));
