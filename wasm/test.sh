#!/usr/bin/env bash
# Tests the package in Node: `wasm/test.sh COGNATE [PACKAGE]`; COGNATE is the program that it must be equal
# to, PACKAGE the folder that `wasm/build.sh` made, by default wasm/dist/package. Needs Node 20 or newer.
#
# The tests run with either module: without FMA3 nothing is fused on x86, and Node 20 has relaxed vectors only where
# they are asked for.
set -euo pipefail
COGNATE=$(realpath "${1:?usage: wasm/test.sh COGNATE [PACKAGE]}")
PACKAGE=$(realpath "${2:-$(dirname "$0")/dist/package}")
export COGNATE PACKAGE
cd "$(dirname "$0")/tests"

fused=--experimental-wasm-relaxed-simd
node --v8-options | grep -q -e "$fused" || fused=--enable-fma3
for engine in --no-enable-fma3 $fused; do
    node "$engine" --expose-gc --test-reporter=spec --test ./*.test.mjs
done
