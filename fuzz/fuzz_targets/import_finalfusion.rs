//! Hands the fuzzer's bytes to the body `import_finalfusion`; the laws it checks are told there.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::import_finalfusion(bytes));
