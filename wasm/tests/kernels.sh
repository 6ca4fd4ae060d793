#!/usr/bin/env bash
# Runs the kernels' own tests of their loops in WebAssembly, by Node: all have the bits of plain code, with the
# engine's multiply-add and with the emulated one. Needs the target wasm32-wasip1 of rustup.
set -euo pipefail
cd "$(dirname "$0")/../.."
fused=--experimental-wasm-relaxed-simd
node --v8-options | grep -q -e "$fused" || fused=--enable-fma3

# tested FEATURES OPTION: the tests with these features of the target, by Node with an option.
tested() {
    CARGO_TARGET_WASM32_WASIP1_RUNNER="node --no-warnings $2 $PWD/wasm/tests/wasi.mjs" RUSTFLAGS="-C target-feature=$1" \
        cargo test --locked --release --target wasm32-wasip1 -p cognate-kernels --lib -- simd
}
tested +simd128 --no-enable-fma3
tested +simd128,+relaxed-simd $fused
