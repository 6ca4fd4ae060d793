//! Passes the fuzzer's bytes to the body `import_npy` of `targets.rs`, which checks properties.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::import_npy(bytes));
