#!/usr/bin/env bash
# Tests the package in Node: `wasm/test.sh COGNATE [PACKAGE]`; COGNATE is the program that it must be equal
# to, PACKAGE the folder that `wasm/build.sh` made, by default wasm/dist/package. Needs Node 20 or newer.
set -euo pipefail
COGNATE=$(realpath "${1:?usage: wasm/test.sh COGNATE [PACKAGE]}")
PACKAGE=$(realpath "${2:-$(dirname "$0")/dist/package}")
export COGNATE PACKAGE
cd "$(dirname "$0")/tests"
node --expose-gc --test-reporter=spec --test ./*.test.mjs
