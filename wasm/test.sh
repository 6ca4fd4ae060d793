#!/usr/bin/env bash
# Tests the package in Node: `wasm/test.sh COGNATE [PACKAGE]`; COGNATE is the program that it must be equal
# to, PACKAGE the folder that `wasm/build.sh` made, by default wasm/dist/package. Needs Node 20 or newer.
#
# The tests run with either module, on x86 with FMA3: without FMA3 nothing is fused there, and Node 20 has relaxed vectors
# only where they are asked for.
set -euo pipefail
COGNATE=$(realpath "${1:?usage: wasm/test.sh COGNATE [PACKAGE]}")
PACKAGE=$(realpath "${2:-$(dirname "$0")/dist/package}")
export COGNATE PACKAGE
cd "$(dirname "$0")/tests"

fused=--experimental-wasm-relaxed-simd
node --v8-options | grep -q -e "$fused" || fused=--enable-fma3
FUSED=no node --no-enable-fma3 --expose-gc --test-reporter=spec --test ./*.test.mjs
FUSED=yes node "$fused" --expose-gc --test-reporter=spec --test ./*.test.mjs
